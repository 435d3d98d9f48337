// Writing traces in their Python form (schedule-language.md §4.3).
#include <fmt/format.h>

#include "ir/print.h"
#include "schedule/primitive.h"

namespace tilewright {

namespace {

std::string name_of(const Symbol& s) {
  const char* prefix = s.kind == SymbolKind::block ? "b" : s.kind == SymbolKind::loop ? "l" : "v";
  return s.number < 0 ? "_" : fmt::format("{}{}", prefix, s.number);
}

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    out += c;
  }
  return out + '"';
}

std::string number(double x) {
  std::string text = fmt::format("{:.17g}", x);
  return text;
}

std::string print_value(const TraceValue& v) {
  struct Printer {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool x) const { return x ? "True" : "False"; }
    std::string operator()(int64_t x) const { return fmt::format("{}", x); }
    std::string operator()(double x) const { return number(x); }
    std::string operator()(const std::string& x) const { return quoted(x); }
    std::string operator()(const TraceList& x) const {
      std::string out = "[";
      for (size_t i = 0; i < x.size(); ++i) out += (i ? ", " : "") + print_value(x[i]);
      return out + "]";
    }
    std::string operator()(const TraceDict& x) const {
      std::string out = "{";
      for (const auto& [key, item] : x) out += (out.size() > 1 ? ", " : "") + quoted(key) + ": " + print_value(item);
      return out + "}";
    }
    std::string operator()(const Symbol& x) const { return x.number < 0 ? "None" : name_of(x); }
    std::string operator()(const IndexMapRef& x) const { return index_map_to_python(*x); }
  };
  return std::visit(Printer{}, v.value);
}

/// Annotation values keep the difference between 1 and 1.0.
std::string print_annotation(const TraceValue& v) {
  if (auto* x = v.get<double>()) {
    std::string text = number(*x);
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }
  return print_value(v);
}

const TraceValue& argument(const Instruction& instruction, const std::string& name) {
  const Primitive& p = *instruction.kind;
  for (size_t i = 0; i < p.inputs.size(); ++i)
    if (p.inputs[i].name == name) return instruction.inputs[i];
  for (size_t i = 0; i < p.attrs.size(); ++i)
    if (p.attrs[i].name == name) return instruction.attrs[i];
  TW_UNREACHABLE("{} has no argument {}", p.name, name);
}

std::string print_argument(const Instruction& instruction, const ArgSpec& spec) {
  const TraceValue& v = argument(instruction, spec.name);
  if (spec.type == ArgType::loops || instruction.kind->positional) {
    if (auto* list = v.get<TraceList>(); list && spec.type == ArgType::loops) {
      std::string out;
      for (const TraceValue& item : *list) out += (out.empty() ? "" : ", ") + print_value(item);
      return out;
    }
    if (v.get<Symbol>()) return print_value(v);
  }
  if (spec.type == ArgType::blocks && spec.fallback && v.get<TraceList>()->empty()) return "";
  if (spec.type == ArgType::buffer) {
    const TraceList& pair = *v.get<TraceList>();
    return fmt::format("{}=({}, {})", spec.name, print_value(pair[0]), print_value(pair[1]));
  }
  return fmt::format("{}={}", spec.name, spec.type == ArgType::value ? print_annotation(v) : print_value(v));
}

std::string print_instruction(const Instruction& instruction) {
  const Primitive& p = *instruction.kind;
  std::string line;
  for (size_t i = 0; i < instruction.outputs.size(); ++i) line += (i ? ", " : "") + name_of(instruction.outputs[i]);
  bool list = p.outputs == OutputShape::blocks || p.outputs == OutputShape::loops || p.outputs == OutputShape::ints;
  if (list && instruction.outputs.size() == 1) line += ",";
  if (list && instruction.outputs.empty()) line = "[]";  // a list of none, as it is unpacked
  if (!line.empty()) line += " = ";
  std::vector<std::string> order = p.python_order;
  if (order.empty()) {
    for (const ArgSpec& spec : p.inputs) order.push_back(spec.name);
    for (const ArgSpec& spec : p.attrs) order.push_back(spec.name);
  }
  std::string arguments;
  auto add = [&](const std::string& text) {
    if (text.empty()) return;
    arguments += (arguments.empty() ? "" : ", ") + text;
  };
  for (const std::string& name : order) add(print_argument(instruction, *p.find(name)));
  if (instruction.decision) add("decision=" + print_value(*instruction.decision));
  return fmt::format("{}sch.{}({})", line, p.name, arguments);
}

}  // namespace

std::string index_map_to_python(const IndexMap& map) {
  std::string inputs;
  for (const Var& v : map.inputs) inputs += (inputs.empty() ? "" : ", ") + v->name;
  std::string outputs;
  if (!map.ranges.empty()) {
    for (const Range& r : map.ranges)
      outputs += fmt::format("{}({}, {})", outputs.empty() ? "" : ", ", print(r.min), print(r.min + r.extent));
    outputs = "[" + outputs + "]";
  } else {
    for (const Expr& e : map.outputs) outputs += print(e) + ", ";
    if (!outputs.empty()) outputs.pop_back();
    outputs = "(" + outputs + ")";
  }
  std::string lambda = fmt::format("lambda{}{}: {}", inputs.empty() ? "" : " ", inputs, outputs);
  if (!map.inverse) return lambda;
  return fmt::format("tvm.tirx.IndexMap.from_func({}, inverse_index_map={})", lambda,
                     index_map_to_python(*map.inverse));
}

std::string trace_to_python(const Trace& trace, std::string_view function_name) {
  std::string out = fmt::format("# from tvm import s_tir\ndef {}(sch: s_tir.Schedule) -> None:\n", function_name);
  for (const Instruction& instruction : trace.instructions) out += "  " + print_instruction(instruction) + "\n";
  if (trace.instructions.empty()) out += "  pass\n";
  return out;
}

}  // namespace tilewright
