// Internal invariants. A failed check is a bug in Tilewright: it throws InternalError, which is caught at
// the trial boundary and recorded as `internal_error`. Expected failures are values (refusal.h), never this.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace tilewright {

class InternalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] inline void fail_check(const char* file, int line, const char* what, const std::string& message) {
  throw InternalError(
      fmt::format("{}:{}: check failed: {}{}{}", file, line, what, message.empty() ? "" : ": ", message));
}

}  // namespace tilewright

namespace tw = tilewright;

/// TW_CHECK(condition) or TW_CHECK(condition, "format {}", arguments...). The message is built only on failure.
#define TW_CHECK(cond, ...)                                                                                 \
  do {                                                                                                      \
    if (!(cond)) [[unlikely]]                                                                               \
      ::tilewright::fail_check(__FILE__, __LINE__, #cond, ::tilewright::detail_check_message(__VA_ARGS__)); \
  } while (0)
#define TW_UNREACHABLE(...) \
  ::tilewright::fail_check(__FILE__, __LINE__, "unreachable", ::tilewright::detail_check_message(__VA_ARGS__))

namespace tilewright {
inline std::string detail_check_message() { return {}; }
template <class... Args>
std::string detail_check_message(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}
}  // namespace tilewright
