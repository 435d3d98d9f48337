// A registry of the user's own, shared by the program and its plug-in.
#pragma once

#include <string>

#include "support/registry.h"

struct Greeting {
  static constexpr const char* registry_name = "greeting";
  std::string text;
};
