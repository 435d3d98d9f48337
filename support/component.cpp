#include "support/component.h"

#include <dlfcn.h>

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

namespace tilewright {

namespace {

std::mutex& lock() {
  static std::mutex mutex;
  return mutex;
}

std::filesystem::path core_directory() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&open_component), &info)) return {};
  return std::filesystem::path(info.dli_fname).parent_path();
}

}  // namespace

const char* abi_word() { return TILEWRIGHT_ABI; }

Status open_component(std::string_view name) {
  static std::map<std::string, void*, std::less<>> open;
  std::scoped_lock guard(lock());
  if (open.find(name) != open.end()) return {};
  std::string file = fmt::format("libtilewright-{}.so", name);
  void* handle = dlopen((core_directory() / file).c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!handle) handle = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!handle) {
    std::string reason = dlerror();
    return refuse(Refusal(component_missing, fmt::format("cannot open component \"{}\": {}", name, reason))
                      .with_help("install the package again, or build with all components"));
  }
  open.emplace(name, handle);
  return {};
}

Status open_plugin(const std::string& path) {
  std::scoped_lock guard(lock());
  std::error_code ec;
  std::filesystem::path absolute = std::filesystem::absolute(path, ec);
  if (!std::filesystem::exists(absolute, ec))
    return refuse(plugin_not_loadable, fmt::format("plug-in {} does not exist", path));
  // RTLD_LAZY: the ABI word must be readable even when symbols of another version do not resolve.
  void* handle = dlopen(absolute.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!handle) return refuse(plugin_not_loadable, fmt::format("cannot open plug-in {}: {}", path, dlerror()));
  auto abi = reinterpret_cast<const char* (*)()>(dlsym(handle, "tw_plugin_abi"));
  if (!abi)
    return refuse(plugin_not_loadable, fmt::format("{} is not a Tilewright plug-in: it has no TW_PLUGIN line", path));
  if (std::strcmp(abi(), abi_word()) != 0)
    return refuse(plugin_not_loadable, fmt::format("plug-in {} was built for {}, this is {}", path, abi(), abi_word()));
  return {};
}

}  // namespace tilewright
