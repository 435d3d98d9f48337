#include "lowering/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <vector>

namespace tilewright::lowering {

namespace {

// Words that a text option takes.
const std::map<std::string_view, std::vector<std::string>>& choices() {
  static const std::map<std::string_view, std::vector<std::string>> table{{"denormals", {"ieee", "flush"}},
                                                                          {"math", {"auto", "accurate", "fast"}},
                                                                          {"index", {"auto", "i64"}},
                                                                          {"smem_reuse", {"auto", "on", "off"}},
                                                                          {"sync", {"auto", "explicit"}}};
  return table;
}

std::string value_text(bool v) { return v ? "on" : "off"; }
std::string value_text(int64_t v) { return std::to_string(v); }
std::string value_text(const std::string& v) { return v; }

Status read(std::string_view name, const std::string& text, bool& out) {
  if (text != "on" && text != "off")
    return refuse(lower_option_invalid, fmt::format("expected on or off for \"{}\", got \"{}\"", name, text));
  out = text == "on";
  return {};
}
Status read(std::string_view name, const std::string& text, int64_t& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || out <= 0)
    return refuse(lower_option_invalid, fmt::format("expected a positive integer for \"{}\", got \"{}\"", name, text));
  return {};
}
Status read(std::string_view name, const std::string& text, std::string& out) {
  const std::vector<std::string>& words = choices().at(name);
  if (std::find(words.begin(), words.end(), text) == words.end())
    return refuse(lower_option_invalid,
                  fmt::format("expected {} for \"{}\", got \"{}\"", fmt::join(words, " or "), name, text));
  out = text;
  return {};
}

}  // namespace

std::string LowerOptions::fallback(std::string_view option) {
  std::string out;
  for_each_named_field(LowerOptions(), [&](std::string_view name, const auto& v) {
    if (name == option) out = value_text(v);
  });
  return out;
}

std::string LowerOptions::expected(std::string_view option) {
  if (auto words = choices().find(option); words != choices().end())
    return fmt::format("{}", fmt::join(words->second, " or "));
  return option == "max_code" ? "a positive whole number" : "on or off";
}

std::string LowerOptions::text() const {
  std::map<std::string_view, std::string> defaults;
  const LowerOptions plain;
  for_each_named_field(plain, [&](std::string_view name, const auto& v) { defaults[name] = value_text(v); });
  std::vector<std::string> parts;
  for_each_named_field(*this, [&](std::string_view name, const auto& v) {
    if (value_text(v) != defaults[name]) parts.push_back(fmt::format("{}={}", name, value_text(v)));
  });
  return fmt::format("{}", fmt::join(parts, ","));
}

std::map<std::string, std::string> LowerOptions::split(const std::string& text) {
  std::map<std::string, std::string> out;
  std::istringstream in(text);
  for (std::string option; std::getline(in, option, ',');)
    if (size_t equal = option.find('='); equal != std::string::npos)
      out[option.substr(0, equal)] = option.substr(equal + 1);
  return out;
}

Result<LowerOptions> LowerOptions::parse(const std::map<std::string, std::string>& options) {
  LowerOptions out;
  for (const auto& [key, text] : options) {
    bool known = false;
    Status status;
    for_each_named_field(out, [&, &k = key, &t = text](std::string_view name, auto& field) {
      if (name != k) return;
      known = true;
      status = read(name, t, field);
    });
    if (!status) return refuse(status.error());
    if (known) continue;
    std::vector<std::string> names;
    for (std::string_view name : field_names_of<LowerOptions>) names.emplace_back(name);
    Refusal unknown(lower_option_unknown, fmt::format("lowering has no option \"{}\"", key));
    std::string near = did_you_mean(key, names);
    return refuse(near.empty() ? unknown : unknown.with_help(fmt::format("did you mean \"{}\"?", near)));
  }
  return out;
}

}  // namespace tilewright::lowering
