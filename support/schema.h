// JSON Schemas of what Tilewright writes, by name (`tilewright schema NAME`). Each is generated from the structs that
// are written, and registered in the file that writes them.
#pragma once

#include <string>

#include "support/registry.h"

namespace tilewright {

struct Schema {
  static constexpr const char* registry_name = "schema";
  std::string (*text)();  ///< JSON Schema, draft 2020-12, indented
};

}  // namespace tilewright
