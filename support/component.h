// Components: the parts that link something heavy (LLVM, XGBoost, gRPC, libpq) are separate shared objects,
// libtilewright-<name>.so beside the core library, opened on first use; their static registrations then fill the
// registries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace tilewright {

TW_REFUSAL_CODE(component_missing, "component-missing", "a shared object of this installation cannot be opened");

/// Opens libtilewright-<name>.so once; later calls are free. Names: "codegen", "gbdt", "measure", "postgres".
Status open_component(std::string_view name);

TW_REFUSAL_CODE(plugin_not_loadable, "plugin-not-loadable", "a plug-in cannot be opened or was built for another ABI");

struct Plugin {
  std::string path;  ///< absolute
  std::string name;  ///< "acme@1.0"
  bool operator==(const Plugin&) const = default;
};
/// Opens a plug-in: an absolute or relative path of a shared object that registers things. Its ABI word is read from
/// the file first: nothing of a plug-in for another ABI is run.
Result<Plugin> open_plugin(const std::string& path);
/// Those that were opened, in that order. Worker processes open the same ones.
std::vector<Plugin> open_plugins();

/// ABI word of this build; a plug-in carries the word that it was built against.
const char* abi_word();

}  // namespace tilewright

/// Put once into a plug-in.
#define TW_PLUGIN(name_, version_)                                                      \
  extern "C" __attribute__((visibility("default"), used)) const char tw_plugin_word[] = \
      "tilewright-plugin:" TILEWRIGHT_ABI;                                              \
  extern "C" __attribute__((visibility("default"))) const char* tw_plugin_name() { return name_ "@" version_; }
