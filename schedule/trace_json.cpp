// The JSON form of traces (schedule-language.md §4.1, §4.2).
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "support/json.h"

namespace tilewright {

namespace {

const char* prefix(SymbolKind kind) { return kind == SymbolKind::block ? "b" : kind == SymbolKind::loop ? "l" : "v"; }

std::string symbol_name(const Symbol& s) { return s.number < 0 ? "_" : fmt::format("{}{}", prefix(s.kind), s.number); }

// --- writing. Among inputs a string carries its own quotes and None is the string "None"; among attributes both are
// plain.

class Writer {
 public:
  /// `graphs`: index maps as TVM's object graphs, else as lambdas.
  explicit Writer(bool graphs) : graphs_(graphs) {}

  Result<std::string> trace(const Trace& trace) {
    Json instructions = Json::array(), decisions = Json::array();
    for (size_t i = 0; i < trace.instructions.size(); ++i) {
      const Instruction& instruction = trace.instructions[i];
      Json outputs = Json::array();
      for (const Symbol& s : instruction.outputs) outputs.push_back(symbol_name(s));
      instructions.push_back({instruction.kind->kind, inputs(instruction), attrs(instruction), outputs});
      if (instruction.decision) decisions.push_back({i, write(*instruction.decision, false)});
    }
    if (refused_) return refuse(*refused_);
    return Json::array({instructions, decisions}).dump();
  }

 private:
  Json write(const TraceValue& v, bool input) {
    return std::visit([&](const auto& x) { return form(x, input); }, v.value);
  }
  Json form(std::monostate, bool input) { return input ? Json("None") : Json(nullptr); }
  Json form(bool x, bool) { return x; }
  Json form(int64_t x, bool) { return x; }
  Json form(double x, bool) { return x; }
  Json form(const std::string& x, bool input) { return input ? "\"" + x + "\"" : x; }
  Json form(const TraceList& x, bool input) {
    Json out = Json::array();
    for (const TraceValue& item : x) out.push_back(write(item, input));
    return out;
  }
  Json form(const TraceDict& x, bool) {
    Json out = Json::object();
    for (const auto& [key, item] : x) out[key] = write(item, false);
    return out;
  }
  Json form(const Symbol& x, bool input) {
    return x.number < 0 ? Json("None") : Json(input ? symbol_name(x) : "$" + symbol_name(x));
  }
  Json form(const IndexMapRef& x, bool) {
    if (!graphs_) return index_map_to_python(*x);
    auto graph = index_map_to_graph(*x);
    if (graph) return *graph;
    if (!refused_) refused_ = graph.error();
    return nullptr;
  }

  Json inputs(const Instruction& instruction) {
    Json out = Json::array();
    const Primitive& p = *instruction.kind;
    for (size_t i = 0; i < p.inputs.size(); ++i) {
      bool variadic = p.inputs[i].type == ArgType::factors || p.inputs[i].type == ArgType::loops;
      if (variadic)
        for (const TraceValue& item : *instruction.inputs[i].get<TraceList>()) out.push_back(write(item, true));
      else if (p.inputs[i].type == ArgType::side)
        out.push_back(*instruction.inputs[i].get<std::string>() == "write" ? 1 : 0);
      else
        out.push_back(write(instruction.inputs[i], true));
    }
    return out;
  }

  Json attrs(const Instruction& instruction) {
    Json out = Json::array();
    const Primitive& p = *instruction.kind;
    for (size_t i = 0; i < p.attrs.size(); ++i) {
      if (p.attrs[i].type == ArgType::buffer) {  // ("read", 0) is the pair [index, 0 or 1]
        const TraceList& pair = *instruction.attrs[i].get<TraceList>();
        out.push_back(write(pair[1], false));
        out.push_back(*pair[0].get<std::string>() == "write" ? 1 : 0);
      } else {
        out.push_back(write(instruction.attrs[i], false));
      }
    }
    return out;
  }

  bool graphs_;
  std::optional<Refusal> refused_;
};

// --- reading
// -----------------------------------------------------------------------------------------------------------

class Reader {
 public:
  Result<Trace> trace(const Json& json) {
    if (!json.is_array() || json.size() != 2 || !json[0].is_array() || !json[1].is_array())
      return refuse(trace_malformed, "expected [[instructions], [decisions]]");
    Trace out;
    for (size_t i = 0; i < json[0].size(); ++i) {
      TW_TRY(Instruction instruction, read_instruction(json[0][i], i));
      out.instructions.push_back(std::move(instruction));
    }
    for (const Json& decision : json[1]) {
      if (!decision.is_array() || decision.size() != 2 || !decision[0].is_number_integer())
        return refuse(trace_malformed, fmt::format("expected a decision [index, value], found {}", decision.dump()));
      int64_t index = decision[0].get<int64_t>();
      if (index < 0 || index >= static_cast<int64_t>(out.instructions.size()))
        return refuse(decision_index_invalid,
                      fmt::format("decision {} of {} instructions", index, out.instructions.size()));
      Instruction& instruction = out.instructions[index];
      if (!instruction.kind->samples)
        return refuse(decision_index_invalid,
                      fmt::format("instruction {} ({}) takes no decision", index, instruction.kind->kind));
      TW_TRY(instruction.decision, value(decision[1], false));
    }
    return out;
  }

 private:
  Result<Instruction> read_instruction(const Json& json, size_t index) {
    auto malformed = [&](const std::string& what) {
      return refuse(trace_malformed, fmt::format("instruction {}: {}", index, what));
    };
    if (!json.is_array() || json.size() != 4 || !json[0].is_string() || !json[1].is_array() || !json[2].is_array() ||
        !json[3].is_array())
      return malformed("expected [kind, [inputs], [attributes], [outputs]]");
    std::string kind = json[0].get<std::string>();
    if (kind == "SetAxisSeparator")
      return refuse(instruction_retired, fmt::format("instruction {}: {} has no meaning any more", index, kind));
    const Primitive* primitive = find_primitive(kind);
    if (!primitive) {
      std::string hint = suggest_primitive(kind);
      Refusal r(instruction_unknown, fmt::format("instruction {}: no primitive is called {}", index, kind));
      return refuse(hint.empty() ? r : r.with_help(fmt::format("did you mean \"{}\"?", hint)));
    }
    Instruction out;
    out.kind = primitive;
    TW_TRY_VOID(read_inputs(json[1], index, out));
    TW_TRY_VOID(read_attrs(json[2], index, out));
    for (const Json& name : json[3]) {
      if (!name.is_string()) return malformed("an output is not a name");
      std::string text = name.get<std::string>();
      if (text == "_") {
        out.outputs.push_back({-1, primitive->output_kind});
        continue;
      }
      SymbolKind symbol_kind = primitive->output_kind;
      if (primitive->outputs == OutputShape::blocks_or_one && text[0] == 'b') symbol_kind = SymbolKind::block;
      Symbol symbol{next_++, symbol_kind};
      if (!names_.emplace(text, symbol).second) return malformed(fmt::format("output {} is already defined", text));
      out.outputs.push_back(symbol);
    }
    return out;
  }

  Status read_inputs(const Json& json, size_t index, Instruction& out) {
    const std::vector<ArgSpec>& specs = out.kind->inputs;
    size_t at = 0;
    for (const ArgSpec& spec : specs) {
      if (spec.type == ArgType::factors || spec.type == ArgType::loops) {
        TraceList items;
        for (; at < json.size(); ++at) {
          TW_TRY(TraceValue item, value(json[at], true));
          items.push_back(std::move(item));
        }
        out.inputs.emplace_back(std::move(items));
      } else if (at < json.size()) {
        TW_TRY(TraceValue item, value(json[at++], true));
        if (spec.type == ArgType::side && item.get<int64_t>())
          item = *item.get<int64_t>() == 1 ? TraceValue("write") : TraceValue("read");
        out.inputs.push_back(std::move(item));
      } else if (spec.fallback) {
        out.inputs.push_back(*spec.fallback);
      } else {
        return refuse(wrong_argument_count, fmt::format("instruction {}: {} takes {} inputs, found {}", index,
                                                        out.kind->kind, specs.size(), json.size()));
      }
    }
    if (at < json.size())
      return refuse(wrong_argument_count, fmt::format("instruction {}: {} takes {} inputs, found {}", index,
                                                      out.kind->kind, specs.size(), json.size()));
    return {};
  }

  Status read_attrs(const Json& json, size_t index, Instruction& out) {
    size_t at = 0;
    for (const ArgSpec& spec : out.kind->attrs) {
      if (spec.type == ArgType::buffer && at + 1 < json.size()) {
        TW_TRY(TraceValue number, value(json[at], false));
        bool write_side = json[at + 1] == 1 || json[at + 1] == "write";
        at += 2;
        out.attrs.emplace_back(TraceList{write_side ? "write" : "read", number});
      } else if (at < json.size()) {
        TW_TRY(TraceValue item, value(json[at++], false));
        if (spec.type == ArgType::boolean && item.get<int64_t>()) item = *item.get<int64_t>() != 0;
        if ((spec.type == ArgType::index_map || spec.type == ArgType::index_map_or_none) && item.get<std::string>()) {
          TW_TRY(item, index_map(*item.get<std::string>()));
        }
        out.attrs.push_back(std::move(item));
      } else if (spec.fallback) {
        out.attrs.push_back(*spec.fallback);
      } else {
        return refuse(wrong_argument_count, fmt::format("instruction {}: {} takes {} attributes, found {}", index,
                                                        out.kind->kind, out.kind->attrs.size(), json.size()));
      }
    }
    if (at < json.size())
      return refuse(wrong_argument_count, fmt::format("instruction {}: {} takes {} attributes, found {}", index,
                                                      out.kind->kind, out.kind->attrs.size(), json.size()));
    return {};
  }

  Result<TraceValue> value(const Json& json, bool input) {
    if (json.is_null()) return TraceValue();
    if (json.is_boolean()) return TraceValue(json.get<bool>());
    if (json.is_number_integer()) return TraceValue(json.get<int64_t>());
    if (json.is_number()) return TraceValue(json.get<double>());
    if (json.is_array()) {
      TraceList out;
      for (const Json& item : json) {
        TW_TRY(TraceValue v, value(item, input));
        out.push_back(std::move(v));
      }
      return TraceValue(std::move(out));
    }
    if (json.is_object()) {
      TraceDict out;
      for (const auto& [key, item] : json.items()) {
        TW_TRY(TraceValue v, value(item, false));
        out[key] = std::move(v);
      }
      return TraceValue(std::move(out));
    }
    return string_value(json.get<std::string>(), input);
  }

  Result<TraceValue> string_value(const std::string& text, bool input) {
    if (!input) {
      if (text.size() > 1 && text[0] == '$')
        if (auto it = names_.find(text.substr(1)); it != names_.end()) return TraceValue(it->second);
      return TraceValue(text);
    }
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
      return TraceValue(text.substr(1, text.size() - 2));
    if (text == "None") return TraceValue();
    if (text.starts_with("lambda") || text.starts_with("tvm.") || text.starts_with("{")) return index_map(text);
    auto it = names_.find(text);
    if (it == names_.end())
      return refuse(trace_name_undefined, fmt::format("name {} is used before it is defined", text));
    return TraceValue(it->second);
  }

  static Result<TraceValue> index_map(const std::string& text) {
    TW_TRY(IndexMapRef map, text.starts_with("{") ? index_map_from_graph(text) : index_map_from_python(text));
    return TraceValue(map);
  }

  std::map<std::string, Symbol> names_;
  int next_ = 0;
};

}  // namespace

std::string trace_to_json(const Trace& trace) { return *Writer(false).trace(trace); }

Result<std::string> trace_to_tvm_json(const Trace& trace) { return Writer(true).trace(trace); }

Result<Trace> trace_from_json(const Json& json) { return Reader().trace(json); }

Result<Trace> trace_from_json(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    std::string reason = "not valid JSON";
    try {
      Json unused = Json::parse(text);
    } catch (const nlohmann::json::parse_error& error) {
      reason = fmt::format("not valid JSON at byte {}", error.byte);
    }
    return refuse(trace_malformed, "expected [[instructions], [decisions]]: " + reason);
  }
  return trace_from_json(json);
}

}  // namespace tilewright
