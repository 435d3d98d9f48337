// The one header through which the core sees nlohmann-json. Include it in .cpp files; public headers use
// <nlohmann/json_fwd.hpp>.
#pragma once

#include <nlohmann/json.hpp>

#include "support/diagnostic.h"

namespace tilewright {

using Json = nlohmann::ordered_json;

Json to_json(const Diagnostic&);

}  // namespace tilewright
