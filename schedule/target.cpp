// Text of targets: `NAME[:key=value,+feature,-feature…]`.
#include "schedule/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace tilewright {

namespace {

// One property that text may override. Byte sizes accept and print the suffixes K and M.
struct Property {
  const char* key;
  int64_t (*get)(const Target&);
  void (*set)(Target&, int64_t);
  bool bytes;
  TargetKind kind;
};

#define TW_PROPERTY(key, field, bytes, kind)                                                               \
  Property {                                                                                               \
    key, [](const Target& t) { return static_cast<int64_t>(t.field); },                                    \
        [](Target& t, int64_t v) { t.field = static_cast<decltype(t.field)>(v); }, bytes, TargetKind::kind \
  }
const Property kProperties[] = {
    TW_PROPERTY("cores", cores, false, cpu),
    TW_PROPERTY("vector-bits", vector_bits, false, cpu),
    TW_PROPERTY("fma-pipes", fma_pipes, false, cpu),
    TW_PROPERTY("fma-latency", fma_latency, false, cpu),
    TW_PROPERTY("l1", l1_bytes, true, cpu),
    TW_PROPERTY("l2", l2_bytes, true, cpu),
    TW_PROPERTY("l3", l3_bytes, true, cpu),
    TW_PROPERTY("page", page_bytes, true, cpu),
    TW_PROPERTY("sms", sms, false, cuda),
    TW_PROPERTY("l2", l2_bytes, true, cuda),
    TW_PROPERTY("shared-per-block", shared_per_block, true, cuda),
};
#undef TW_PROPERTY

std::string size_text(int64_t bytes) {
  if (bytes && bytes % (1 << 20) == 0) return fmt::format("{}M", bytes >> 20);
  if (bytes && bytes % 1024 == 0) return fmt::format("{}K", bytes >> 10);
  return std::to_string(bytes);
}

std::optional<int64_t> parse_size(std::string_view text, bool suffix) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value <= 0) return std::nullopt;
  std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
  if (rest.empty()) return value;
  if (!suffix || value > (int64_t{1} << 40)) return std::nullopt;
  if (rest == "K") return value << 10;
  if (rest == "M") return value << 20;
  return std::nullopt;
}

const Property* find_property(TargetKind kind, std::string_view key) {
  for (const Property& p : kProperties)
    if (p.kind == kind && key == p.key) return &p;
  return nullptr;
}

Status apply(Target& target, std::string_view item) {
  if (item.starts_with('+') || item.starts_with('-')) {
    std::string feature(item.substr(1));
    if (feature.empty()) return refuse(target_malformed, fmt::format("expected a feature after \"{}\"", item));
    auto at = std::lower_bound(target.features.begin(), target.features.end(), feature);
    bool present = at != target.features.end() && *at == feature;
    if (item[0] == '+' && !present) target.features.insert(at, feature);
    if (item[0] == '-' && present) target.features.erase(at);
    return {};
  }
  size_t equals = item.find('=');
  if (equals == std::string_view::npos)
    return refuse(target_malformed, fmt::format("expected key=value or +feature, got \"{}\"", item));
  std::string_view key = item.substr(0, equals), value = item.substr(equals + 1);
  if (key == "num-cores") key = "cores";
  const Property* property = find_property(target.kind, key);
  if (!property) {
    std::vector<std::string> keys;
    for (const Property& p : kProperties)
      if (p.kind == target.kind) keys.emplace_back(p.key);
    Refusal unknown(target_key_unknown, fmt::format("target {} has no property \"{}\"; it has {}", target.name, key,
                                                    fmt::join(keys, ", ")));
    std::string near = did_you_mean(key, keys);
    return refuse(near.empty() ? unknown : unknown.with_help(fmt::format("did you mean \"{}\"?", near)));
  }
  std::optional<int64_t> number = parse_size(value, property->bytes);
  int64_t limit = property->bytes ? int64_t{1} << 40 : 1 << 20;
  if (!number || *number > limit)
    return refuse(target_value_invalid, fmt::format("expected a positive integer{} for \"{}\", got \"{}\"",
                                                    property->bytes ? " with an optional K or M" : "", key, value));
  bool width = std::string_view(property->key) == "vector-bits";
  if (width && *number != 128 && *number != 256 && *number != 512)
    return refuse(target_value_invalid, fmt::format("expected 128, 256 or 512 for \"vector-bits\", got {}", *number));
  property->set(target, *number);
  return {};
}

}  // namespace

bool Target::has(std::string_view feature) const {
  return std::binary_search(features.begin(), features.end(), feature);
}

std::string Target::text() const {
  const Target* base = Registry<Target>::instance().find(name);
  std::vector<std::string> parts;
  for (const Property& p : kProperties)
    if (p.kind == kind && (!base || p.get(*base) != p.get(*this)))
      parts.push_back(fmt::format("{}={}", p.key, p.bytes ? size_text(p.get(*this)) : std::to_string(p.get(*this))));
  if (base) {
    for (const std::string& f : features)
      if (!base->has(f)) parts.push_back("+" + f);
    for (const std::string& f : base->features)
      if (!has(f)) parts.push_back("-" + f);
  }
  return parts.empty() ? name : fmt::format("{}:{}", name, fmt::join(parts, ","));
}

Result<Target> parse_target(std::string_view text) {
  size_t colon = text.find(':');
  std::string_view name = text.substr(0, colon);
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  if (name.empty() || (colon != std::string_view::npos && rest.empty()))
    return refuse(target_malformed, fmt::format("expected NAME[:key=value,…], got \"{}\"", text));
  if (name == "cuda")
    return refuse(Refusal(target_needs_device, "target \"cuda\" is the runner's GPU, which is not known here")
                      .with_help("name the architecture or device, for example sm_90a or h200"));
  Target target;
  if (name == "native") {
    target = native_target();
  } else {
    const auto& registry = Registry<Target>::instance();
    const Target* found = registry.find(name);
    if (!found) {
      Refusal unknown(target_unknown, fmt::format("no target is named \"{}\"", name));
      std::string near = registry.suggestion(name);
      return refuse(unknown.with_help(near.empty()
                                          ? fmt::format("targets: native, {}", fmt::join(registry.names(), ", "))
                                          : fmt::format("did you mean \"{}\"?", near)));
    }
    target = *found;
  }
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    TW_TRY_VOID(apply(target, rest.substr(0, comma)));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  if (target.is_cpu() && target.cores == 0)
    return refuse(Refusal(target_cores_missing, fmt::format("target {} does not say its number of cores", target.name))
                      .with_help(fmt::format("{}{}cores=1", text, colon == std::string_view::npos ? ":" : ",")));
  return target;
}

}  // namespace tilewright
