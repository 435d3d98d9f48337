// Field reflection: a struct lists its fields once, and visitors, equality, hashing, JSON and documentation derive from
// it.
//   struct Range { Expr min, extent; TW_FIELDS(min, extent) };
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
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

/// The names of T's reflected fields, in order.
template <Reflected T>
consteval auto field_names() {
  std::array<std::string_view, std::tuple_size_v<decltype(std::declval<const T&>().tw_fields())>> names;
  std::string_view rest = T::tw_field_list();
  for (std::string_view& name : names) {
    size_t comma = rest.find(',');
    name = rest.substr(0, comma);
    rest = comma == rest.npos ? std::string_view{} : rest.substr(rest.find_first_not_of(", \n", comma));
  }
  return names;
}

template <Reflected T>
inline constexpr auto field_names_of = field_names<T>();

/// Calls f(name, field) for each reflected field of `x`.
template <class T, class F>
void for_each_named_field(T&& x, F&& f) {
  size_t i = 0;
  for_each_field(x, [&](auto& field) { f(field_names_of<std::remove_cvref_t<T>>[i++], field); });
}

}  // namespace tilewright

#define TW_FIELDS(...)                                     \
  auto tw_fields() { return std::tie(__VA_ARGS__); }       \
  auto tw_fields() const { return std::tie(__VA_ARGS__); } \
  static constexpr std::string_view tw_field_list() { return #__VA_ARGS__; }
