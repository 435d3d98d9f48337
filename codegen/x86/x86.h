// Private to codegen/x86.
#pragma once

#include "codegen/codegen.h"

namespace tilewright::codegen {

Result<std::unique_ptr<LoadedCode>> load_objects_jit(std::span<const std::string> objects);

}  // namespace tilewright::codegen
