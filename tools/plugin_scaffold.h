// The files of a new plug-in (docs/howto/write-a-plugin.md): a CMake project that builds as it stands, with one thing
// that it registers.
#pragma once

#include <string>
#include <vector>

#include "export/export.h"

namespace tilewright::tools {

/// "rule", "mutator", …
std::vector<std::string> scaffold_kinds();
/// `name`: a C identifier, the prefix of all that the plug-in registers. `kind`: one of scaffold_kinds().
std::vector<ExportFile> scaffold(const std::string& name, const std::string& kind);

}  // namespace tilewright::tools
