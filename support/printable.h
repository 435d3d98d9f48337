// Text of a user on its way to a terminal.
#pragma once

#include <string>
#include <string_view>

namespace tilewright {

/// Control bytes (but newlines) and broken UTF-8, which could move a terminal's cursor or worse, as \x1b and the like.
std::string printable(std::string_view text);

}  // namespace tilewright
