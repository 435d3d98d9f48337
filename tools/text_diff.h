// The difference of two texts by lines, for people.
#pragma once

#include <string>

namespace tilewright::tools {

/// Lines "  kept", "- gone", "+ new" with `context` kept lines around each change and "  ..." between distant ones;
/// empty: the texts are equal.
std::string line_diff(const std::string& before, const std::string& after, size_t context = 2);

}  // namespace tilewright::tools
