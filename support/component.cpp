#include "support/component.h"

#include <dlfcn.h>

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

#include "support/check.h"

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

namespace {

std::vector<Plugin>& opened() {
  static std::vector<Plugin> list;
  return list;
}

/// What stands behind the marker that TW_PLUGIN puts into a file.
Result<std::string> word_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  static constexpr std::string_view marker = "tilewright-plugin:";
  size_t at = bytes.find(marker);
  if (at == std::string::npos)
    return refuse(plugin_not_loadable, fmt::format("{} is not a Tilewright plug-in: it has no TW_PLUGIN line", path));
  return std::string(bytes.c_str() + at + marker.size());
}

}  // namespace

Result<Plugin> open_plugin(const std::string& path) {
  std::scoped_lock guard(lock());
  std::error_code ec;
  std::string absolute = std::filesystem::absolute(path, ec).lexically_normal().string();
  if (!std::filesystem::is_regular_file(absolute, ec))
    return refuse(plugin_not_loadable, fmt::format("plug-in {} does not exist", path));
  for (const Plugin& p : opened())
    if (p.path == absolute) return p;
  TW_TRY(std::string word, word_of(absolute));
  if (word != abi_word())
    return refuse(
        Refusal(plugin_not_loadable, fmt::format("plug-in {} was built for {}, this is {}", path, word, abi_word()))
            .with_help("build it again against the installed package of this version"));
  void* handle = nullptr;
  try {
    handle = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  } catch (const InternalError& e) {  // a name that is taken
    return refuse(plugin_not_loadable, fmt::format("cannot open plug-in {}: {}", path, e.what()));
  }
  if (!handle) return refuse(plugin_not_loadable, fmt::format("cannot open plug-in {}: {}", path, dlerror()));
  auto name = reinterpret_cast<const char* (*)()>(dlsym(handle, "tw_plugin_name"));
  if (!name)
    return refuse(plugin_not_loadable, fmt::format("{} is not a Tilewright plug-in: it has no TW_PLUGIN line", path));
  opened().push_back({absolute, name()});
  return opened().back();
}

std::vector<Plugin> open_plugins() {
  std::scoped_lock guard(lock());
  return opened();
}

}  // namespace tilewright
