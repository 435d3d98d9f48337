// Result<T>: a value or a Refusal. TW_TRY propagates a refusal; nothing here throws.
#pragma once

#include <tl/expected.hpp>

#include <utility>

#include "support/refusal.h"

namespace tilewright {

template <class T>
using Result = tl::expected<T, Refusal>;

using Status = Result<void>;

template <class... Args>
tl::unexpected<Refusal> refuse(const RefusalCode& code, Args&&... args) {
  return tl::unexpected<Refusal>(Refusal(code, std::forward<Args>(args)...));
}
inline tl::unexpected<Refusal> refuse(Refusal refusal) { return tl::unexpected<Refusal>(std::move(refusal)); }

}  // namespace tilewright

#define TW_CONCAT_(a, b) a##b
#define TW_CONCAT(a, b) TW_CONCAT_(a, b)
/// TW_TRY(auto x, expression): binds the value or returns the refusal.
#define TW_TRY(decl, ...) TW_TRY_(TW_CONCAT(tw_try_, __COUNTER__), decl, __VA_ARGS__)
#define TW_TRY_(tmp, decl, ...)                                  \
  auto&& tmp = (__VA_ARGS__);                                    \
  if (!tmp) return ::tilewright::refuse(std::move(tmp).error()); \
  decl = std::move(*tmp)
/// TW_TRY_VOID(expression): for Status.
#define TW_TRY_VOID(...)                                                           \
  do {                                                                             \
    auto&& tw_try_void = (__VA_ARGS__);                                            \
    if (!tw_try_void) return ::tilewright::refuse(std::move(tw_try_void).error()); \
  } while (0)
