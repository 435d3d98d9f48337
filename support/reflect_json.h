// JSON of reflected structs (support/reflect.h): write, read, JSON Schema. Include it in .cpp files only.
// Rules: numbers are numbers, keys are hex text, enums are their names. Text, lists, maps and optionals are left out
// when empty, and a missing one reads as empty: that is how a struct grows. Every other field is required. A number
// that is not finite is null. Unknown fields and enum names of a newer version are skipped (the enum reads as
// `unspecified`).
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>
#include <vector>

#include "support/hash.h"
#include "support/json.h"
#include "support/reflect.h"
#include "support/result.h"
#include "support/trial.h"

namespace tilewright {

TW_REFUSAL_CODE(json_field_invalid, "json-field-invalid",
                "a JSON field is missing or has another type than its schema");

namespace reflect_json {

template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;
template <class T>
constexpr bool is_vector = false;
template <class T>
constexpr bool is_vector<std::vector<T>> = true;
template <class T>
constexpr bool is_map = false;
template <class T>
constexpr bool is_map<std::map<std::string, T>> = true;
template <class T>
constexpr bool is_text = std::is_same_v<T, std::string>;
template <class T>
constexpr bool may_be_absent = is_optional<T> || is_vector<T> || is_map<T> || is_text<T>;

template <class T>
bool is_absent(const T& x) {
  if constexpr (is_optional<T>)
    return !x.has_value();
  else if constexpr (may_be_absent<T>)
    return x.empty();
  else
    return false;
}

template <class T>
Json write(const T& x) {
  if constexpr (is_optional<T>) {
    return write(*x);
  } else if constexpr (is_vector<T>) {
    Json out = Json::array();
    for (const auto& item : x) out.push_back(write(item));
    return out;
  } else if constexpr (is_map<T>) {
    Json out = Json::object();
    for (const auto& [key, value] : x) out[key] = write(value);
    return out;
  } else if constexpr (Reflected<T>) {
    Json out = Json::object();
    for_each_named_field(x, [&](std::string_view field, const auto& value) {
      if (!is_absent(value)) out[std::string(field)] = write(value);
    });
    return out;
  } else if constexpr (std::is_same_v<T, Key128>) {
    return x.hex();
  } else if constexpr (std::is_same_v<T, Id64>) {
    return hex64(x.value);
  } else if constexpr (std::is_enum_v<T>) {
    return to_string(x);
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isfinite(x) ? Json(x) : Json(nullptr);
  } else {
    return x;
  }
}

/// The refusal for a field at `path`.
inline tl::unexpected<Refusal> wrong(const std::string& path, const char* expected, const Json& found) {
  std::string text = found.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return refuse(json_field_invalid, fmt::format("field \"{}\": expected {}, found {}", path, expected, text));
}

template <class T>
Status read(const Json& json, T& out, const std::string& path);

template <Reflected T>
Status read_fields(const Json& json, T& out, const std::string& path) {
  Status status;
  for_each_named_field(out, [&](std::string_view field, auto& value) {
    if (!status) return;
    std::string place = path.empty() ? std::string(field) : fmt::format("{}.{}", path, field);
    auto it = json.find(field);
    if (it != json.end())
      status = read(*it, value, place);
    else if (!may_be_absent<std::remove_cvref_t<decltype(value)>>)
      status = refuse(json_field_invalid, fmt::format("field \"{}\" is missing", place));
  });
  return status;
}

template <class T>
Status read_number(const Json& json, T& out, const std::string& path) {
  if constexpr (std::is_floating_point_v<T>) {
    if (json.is_null())
      out = std::numeric_limits<T>::quiet_NaN();
    else if (json.is_number())
      out = json.get<T>();
    else
      return wrong(path, "a number", json);
  } else if constexpr (std::is_unsigned_v<T>) {
    if (!json.is_number_unsigned() || json.get<uint64_t>() > std::numeric_limits<T>::max())
      return wrong(path, "an unsigned integer in range", json);
    out = static_cast<T>(json.get<uint64_t>());
  } else {
    bool fits = json.is_number_unsigned()
                    ? json.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<T>::max())
                    : json.is_number_integer() && json.get<int64_t>() >= std::numeric_limits<T>::min();
    if (!fits) return wrong(path, "an integer in range", json);
    out = static_cast<T>(json.get<int64_t>());
  }
  return {};
}

template <class T>
Status read(const Json& json, T& out, const std::string& path) {
  if constexpr (is_optional<T>) {
    return read(json, out.emplace(), path);
  } else if constexpr (is_vector<T>) {
    if (!json.is_array()) return wrong(path, "a list", json);
    out.clear();
    for (const Json& item : json)
      TW_TRY_VOID(read(item, out.emplace_back(), fmt::format("{}[{}]", path, out.size() - 1)));
  } else if constexpr (is_map<T>) {
    if (!json.is_object()) return wrong(path, "an object", json);
    out.clear();
    for (const auto& [key, value] : json.items()) TW_TRY_VOID(read(value, out[key], fmt::format("{}.{}", path, key)));
  } else if constexpr (Reflected<T>) {
    if (!json.is_object()) return wrong(path, "an object", json);
    return read_fields(json, out, path);
  } else if constexpr (std::is_same_v<T, Key128>) {
    auto key = json.is_string() ? Key128::from_hex(json.get_ref<const std::string&>()) : std::nullopt;
    if (!key) return wrong(path, "32 hexadecimal digits", json);
    out = *key;
  } else if constexpr (std::is_same_v<T, Id64>) {
    auto id = json.is_string() ? parse_hex64(json.get_ref<const std::string&>()) : std::nullopt;
    if (!id) return wrong(path, "16 hexadecimal digits", json);
    out.value = *id;
  } else if constexpr (std::is_enum_v<T>) {
    if (!json.is_string()) return wrong(path, "a name", json);
    out = parse_name<T>(json.get_ref<const std::string&>()).value_or(T::unspecified);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) return wrong(path, "true or false", json);
    out = json.get<bool>();
  } else if constexpr (is_text<T>) {
    if (!json.is_string()) return wrong(path, "text", json);
    out = json.get<std::string>();
  } else {
    return read_number(json, out, path);
  }
  return {};
}

/// JSON Schema of T.
template <class T>
Json schema() {
  if constexpr (is_optional<T>) {
    return schema<typename T::value_type>();
  } else if constexpr (is_vector<T>) {
    return {{"type", "array"}, {"items", schema<typename T::value_type>()}};
  } else if constexpr (is_map<T>) {
    return {{"type", "object"}, {"additionalProperties", schema<typename T::mapped_type>()}};
  } else if constexpr (Reflected<T>) {
    Json properties = Json::object(), required = Json::array();
    T empty{};
    for_each_named_field(empty, [&](std::string_view field, auto& value) {
      using Field = std::remove_cvref_t<decltype(value)>;
      properties[std::string(field)] = schema<Field>();
      if (!may_be_absent<Field>) required.push_back(std::string(field));
    });
    return {{"type", "object"}, {"properties", properties}, {"required", required}};
  } else if constexpr (std::is_same_v<T, Key128>) {
    return {{"type", "string"}, {"pattern", "^[0-9a-f]{32}$"}};
  } else if constexpr (std::is_same_v<T, Id64>) {
    return {{"type", "string"}, {"pattern", "^[0-9a-f]{16}$"}};
  } else if constexpr (std::is_enum_v<T>) {
    Json names = Json::array();
    for (T value : all_values<T>()) names.push_back(to_string(value));
    return {{"type", "string"}, {"enum", names}};
  } else if constexpr (std::is_same_v<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (is_text<T>) {
    return {{"type", "string"}};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {{"type", Json::array({"number", "null"})}};
  } else if constexpr (std::is_unsigned_v<T>) {
    return {{"type", "integer"}, {"minimum", 0}};
  } else {
    return {{"type", "integer"}};
  }
}

}  // namespace reflect_json
}  // namespace tilewright
