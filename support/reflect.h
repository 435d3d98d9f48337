// Field reflection: a struct lists its fields once, and visitors, equality, hashing, JSON and documentation derive from it.
//   struct Range { Expr min, extent; TW_FIELDS(min, extent) };
#pragma once

#include <tuple>
#include <utility>

namespace tilewright {

/// Calls f(field) for each reflected field of `x` (const or not, as x is).
template <class T, class F>
void for_each_field(T&& x, F&& f) {
  std::apply([&](auto&&... field) { (f(std::forward<decltype(field)>(field)), ...); }, x.tw_fields());
}

/// Calls f(field of a, field of b) until one returns false; returns whether all were true.
template <class T, class F>
bool all_field_pairs(const T& a, const T& b, F&& f) {
  return std::apply(
      [&](const auto&... fa) {
        return std::apply([&](const auto&... fb) { return (f(fa, fb) && ...); }, b.tw_fields());
      },
      a.tw_fields());
}

template <class T>
concept Reflected = requires(const T& x) { x.tw_fields(); };

}  // namespace tilewright

#define TW_FIELDS(...)                               \
  auto tw_fields() { return std::tie(__VA_ARGS__); } \
  auto tw_fields() const { return std::tie(__VA_ARGS__); }
