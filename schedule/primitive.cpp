#include "schedule/primitive.h"

#include <fmt/format.h>

#include <unordered_map>

#include "schedule/codes.h"
#include "schedule/schedule.h"

namespace tilewright {

namespace {

// Older names of instructions (schedule-language.md §4.4).
const std::pair<const char*, const char*> kOldNames[] = {
    {"GetBlock", "get_sblock"}, {"get_block", "get_sblock"}, {"pipeline_depth", "sample_pipeline_depth"}};

/// Mutable while the process loads; afterwards only read.
std::unordered_map<std::string, const Primitive*>& index() {
  static std::unordered_map<std::string, const Primitive*> table;
  return table;
}

const char* type_name(ArgType type) {
  switch (type) {
    case ArgType::block:
      return "a block";
    case ArgType::loop:
      return "a loop";
    case ArgType::block_or_loop:
      return "a block or a loop";
    case ArgType::loops:
      return "loops";
    case ArgType::blocks:
      return "a list of blocks";
    case ArgType::block_list_or_loop:
      return "a loop or a list of blocks";
    case ArgType::factors:
      return "integers or None";
    case ArgType::integer:
      return "an integer";
    case ArgType::int_list:
      return "a list of integers";
    case ArgType::float_list:
      return "a list of numbers";
    case ArgType::boolean:
      return "True or False";
    case ArgType::text:
      return "a string";
    case ArgType::text_or_none:
      return "a string or None";
    case ArgType::index_map:
      return "an index map (lambda i, j: …)";
    case ArgType::index_map_or_none:
      return "an index map or None";
    case ArgType::value:
      return "a value";
    case ArgType::buffer:
      return "a buffer such as (\"read\", 0)";
    case ArgType::side:
      return "\"read\" or \"write\"";
  }
  return "?";
}

bool is_symbol(const TraceValue& v, SymbolKind kind) {
  auto* s = v.get<Symbol>();
  return s && s->kind == kind;
}
bool is_integer(const TraceValue& v) { return v.get<int64_t>() || is_symbol(v, SymbolKind::integer); }

template <class F>
bool all_of(const TraceValue& v, F&& f) {
  auto* list = v.get<TraceList>();
  if (!list) return false;
  for (const TraceValue& item : *list)
    if (!f(item)) return false;
  return true;
}

bool fits(const TraceValue& v, ArgType type) {
  switch (type) {
    case ArgType::block:
      return is_symbol(v, SymbolKind::block);
    case ArgType::loop:
      return is_symbol(v, SymbolKind::loop);
    case ArgType::block_or_loop:
      return is_symbol(v, SymbolKind::block) || is_symbol(v, SymbolKind::loop);
    case ArgType::loops:
      return all_of(v, [](const TraceValue& x) { return is_symbol(x, SymbolKind::loop); });
    case ArgType::blocks:
      return all_of(v, [](const TraceValue& x) { return is_symbol(x, SymbolKind::block); });
    case ArgType::block_list_or_loop:
      return is_symbol(v, SymbolKind::loop) ||
             all_of(v, [](const TraceValue& x) { return is_symbol(x, SymbolKind::block); });
    case ArgType::factors:
      return all_of(v, [](const TraceValue& x) { return x.is_none() || is_integer(x); });
    case ArgType::integer:
      return is_integer(v);
    case ArgType::int_list:
      return all_of(v, is_integer);
    case ArgType::float_list:
      return all_of(v, [](const TraceValue& x) { return x.get<double>() || x.get<int64_t>(); });
    case ArgType::boolean:
      return v.get<bool>() || v.get<int64_t>();
    case ArgType::text:
    case ArgType::side:
      return v.get<std::string>();
    case ArgType::text_or_none:
      return v.is_none() || v.get<std::string>();
    case ArgType::index_map:
      return v.get<IndexMapRef>();
    case ArgType::index_map_or_none:
      return v.is_none() || v.get<IndexMapRef>();
    case ArgType::value:
      return true;
    case ArgType::buffer: {
      auto* pair = v.get<TraceList>();
      if (!pair || pair->size() != 2 || !(*pair)[1].get<int64_t>()) return false;
      auto* side = (*pair)[0].get<std::string>();
      return side && (*side == "read" || *side == "write");
    }
  }
  return false;
}

}  // namespace

const ArgSpec* Primitive::find(std::string_view argument) const {
  for (const ArgSpec& spec : inputs)
    if (spec.name == argument) return &spec;
  for (const ArgSpec& spec : attrs)
    if (spec.name == argument) return &spec;
  return nullptr;
}

const RefusalList& argument_refusals() {
  static const RefusalList list{wrong_argument_count,  wrong_argument_type,         trace_name_undefined,
                                codes::handle_expired, codes::handle_of_wrong_kind, codes::inside_an_init};
  return list;
}

bool declares(const Primitive& p, std::string_view code) {
  auto among = [&](const RefusalList& list) {
    return std::any_of(list.codes().begin(), list.codes().end(), [&](const RefusalCode* c) { return c->text == code; });
  };
  return among(p.refusals) || among(argument_refusals());
}

RegisterPrimitive::RegisterPrimitive(std::string name, std::string doc, Primitive p,
                                     const std::source_location& where) {
  p.name = name;
  Registry<Primitive>::instance().add(name, std::move(doc), std::move(p), where);
  const Primitive* stored = Registry<Primitive>::instance().find(name);
  index()[stored->name] = stored;
  index()[stored->kind] = stored;
}

const Primitive* find_primitive(std::string_view name) {
  for (const auto& [old, now] : kOldNames)
    if (name == old) name = now;
  auto it = index().find(std::string(name));
  return it == index().end() ? nullptr : it->second;
}

std::vector<const Primitive*> all_primitives() {
  std::vector<const Primitive*> out;
  for (const auto& [name, entry] : Registry<Primitive>::instance().entries()) out.push_back(&entry.value);
  return out;
}

std::string suggest_primitive(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [key, p] : index()) names.push_back(key);
  std::sort(names.begin(), names.end());
  return did_you_mean(name, names);
}

Result<Instruction> bind_arguments(const Primitive& p, std::vector<std::pair<std::string, TraceValue>> arguments) {
  Instruction out;
  out.kind = &p;
  auto take = [&](const ArgSpec& spec) -> Result<TraceValue> {
    for (auto& [name, value] : arguments)
      if (name == spec.name) return std::move(value);
    if (spec.fallback) return *spec.fallback;
    return refuse(wrong_argument_count, fmt::format("{}: argument {} is missing", p.name, spec.name));
  };
  for (const auto& [name, value] : arguments)
    if (!p.find(name)) {
      std::vector<std::string> names;
      for (const ArgSpec& spec : p.inputs) names.push_back(spec.name);
      for (const ArgSpec& spec : p.attrs) names.push_back(spec.name);
      std::string hint = did_you_mean(name, names);
      Refusal r(wrong_argument_count,
                fmt::format("{} has no argument {}; it takes {}", p.name, name, fmt::join(names, ", ")));
      return refuse(hint.empty() ? r : r.with_help(fmt::format("did you mean \"{}\"?", hint)));
    }
  for (const ArgSpec& spec : p.inputs) {
    TW_TRY(TraceValue value, take(spec));
    out.inputs.push_back(std::move(value));
  }
  for (const ArgSpec& spec : p.attrs) {
    TW_TRY(TraceValue value, take(spec));
    out.attrs.push_back(std::move(value));
  }
  return out;
}

Status check_arguments(const Instruction& instruction, const std::vector<SymbolValue>& symbols) {
  const Primitive& p = *instruction.kind;
  auto check = [&](const ArgSpec& spec, const TraceValue& v) -> Status {
    if (!fits(v, spec.type)) {
      auto* symbol = v.get<Symbol>();
      bool handle =
          symbol && (spec.type == ArgType::block || spec.type == ArgType::loop || spec.type == ArgType::block_or_loop);
      return refuse(handle ? codes::handle_of_wrong_kind : wrong_argument_type,
                    fmt::format("{}: expected {} for argument {}", p.name, type_name(spec.type), spec.name));
    }
    Status status;
    for_each_symbol(v, [&](const Symbol& s) {
      if (s.kind != SymbolKind::integer || s.number < 0) return;
      if (s.number >= static_cast<int>(symbols.size()) || !symbols[s.number].defined)
        status = refuse(trace_name_undefined, fmt::format("{}: v{} is used before it is defined", p.name, s.number));
    });
    return status;
  };
  TW_CHECK(instruction.inputs.size() == p.inputs.size() && instruction.attrs.size() == p.attrs.size());
  for (size_t i = 0; i < p.inputs.size(); ++i) TW_TRY_VOID(check(p.inputs[i], instruction.inputs[i]));
  for (size_t i = 0; i < p.attrs.size(); ++i) TW_TRY_VOID(check(p.attrs[i], instruction.attrs[i]));
  return {};
}

}  // namespace tilewright
