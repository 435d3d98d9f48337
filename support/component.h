// Components: the parts that link something heavy (LLVM, XGBoost, gRPC, libpq) are separate shared objects,
// libtilewright-<name>.so beside the core library, opened on first use; their static registrations then fill the
// registries.
#pragma once

#include <string>
#include <string_view>

#include "support/result.h"

namespace tilewright {

TW_REFUSAL_CODE(component_missing, "component-missing", "a shared object of this installation cannot be opened");

/// Opens libtilewright-<name>.so once; later calls are free. Names: "codegen", "gbdt", "measure", "postgres".
Status open_component(std::string_view name);

/// Opens a plug-in: an absolute or relative path of a shared object that registers things.
TW_REFUSAL_CODE(plugin_not_loadable, "plugin-not-loadable", "a plug-in cannot be opened or was built for another ABI");
Status open_plugin(const std::string& path);

/// ABI word of this build; a plug-in exports `tw_plugin_abi` with the word it was built against.
const char* abi_word();

}  // namespace tilewright

/// Put once into a plug-in.
#define TW_PLUGIN(name_, version_)                                                                         \
  extern "C" __attribute__((visibility("default"))) const char* tw_plugin_abi() { return TILEWRIGHT_ABI; } \
  extern "C" __attribute__((visibility("default"))) const char* tw_plugin_name() { return name_ "@" version_; }
