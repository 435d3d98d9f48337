#include "schedule/trace.h"

#include <algorithm>
#include <set>

#include "ir/equal.h"
#include "ir/rewrite.h"
#include "schedule/primitive.h"

namespace tilewright {

// --- values
// ------------------------------------------------------------------------------------------------------------

std::vector<Expr> apply_index_map(const IndexMap& map, const std::vector<Expr>& indices) {
  TW_CHECK(indices.size() == map.inputs.size());
  VarMap vars;
  for (size_t i = 0; i < indices.size(); ++i) vars[map.inputs[i].get()] = indices[i];
  std::vector<Expr> out;
  for (const Expr& e : map.outputs) out.push_back(substitute(e, vars));
  return out;
}

bool operator==(const IndexMap& a, const IndexMap& b) {
  if (a.inputs.size() != b.inputs.size() || a.outputs.size() != b.outputs.size() || a.ranges.size() != b.ranges.size())
    return false;
  std::vector<Expr> names(b.inputs.begin(), b.inputs.end());
  std::vector<Expr> renamed = apply_index_map(a, names);
  for (size_t i = 0; i < renamed.size(); ++i)
    if (!same(renamed[i], b.outputs[i])) return false;
  VarMap vars;
  for (size_t i = 0; i < names.size(); ++i) vars[a.inputs[i].get()] = names[i];
  for (size_t i = 0; i < a.ranges.size(); ++i)
    if (!same(substitute(a.ranges[i].min, vars), b.ranges[i].min) ||
        !same(substitute(a.ranges[i].extent, vars), b.ranges[i].extent))
      return false;
  return true;
}

bool operator==(const TraceValue& a, const TraceValue& b) {
  if (a.value.index() != b.value.index()) return false;
  if (auto* map = a.get<IndexMapRef>()) return **map == **b.get<IndexMapRef>();
  return a.value == b.value;
}

TraceValue to_trace_value(const Attr& attr) {
  struct Convert {
    TraceValue operator()(std::monostate) const { return {}; }
    TraceValue operator()(bool v) const { return v; }
    TraceValue operator()(int64_t v) const { return v; }
    TraceValue operator()(double v) const { return v; }
    TraceValue operator()(const std::string& v) const { return v; }
    TraceValue operator()(const AttrList& v) const {
      TraceList list;
      for (const Attr& item : v) list.push_back(to_trace_value(item));
      return list;
    }
    TraceValue operator()(const AttrDict& v) const {
      TraceDict dict;
      for (const auto& [key, item] : v) dict[key] = to_trace_value(item);
      return dict;
    }
    TraceValue operator()(const Expr&) const { return {}; }
  };
  return std::visit(Convert{}, attr.value);
}

void for_each_symbol(const TraceValue& v, const std::function<void(const Symbol&)>& f) {
  if (auto* symbol = v.get<Symbol>()) f(*symbol);
  if (auto* list = v.get<TraceList>())
    for (const TraceValue& item : *list) for_each_symbol(item, f);
  if (auto* dict = v.get<TraceDict>())
    for (const auto& [key, item] : *dict) for_each_symbol(item, f);
}

namespace {

TraceValue map_symbols(const TraceValue& v, const std::function<Symbol(Symbol)>& f) {
  if (auto* symbol = v.get<Symbol>()) return f(*symbol);
  if (auto* list = v.get<TraceList>()) {
    TraceList out;
    for (const TraceValue& item : *list) out.push_back(map_symbols(item, f));
    return out;
  }
  if (auto* dict = v.get<TraceDict>()) {
    TraceDict out;
    for (const auto& [key, item] : *dict) out[key] = map_symbols(item, f);
    return out;
  }
  return v;
}

}  // namespace

// --- traces
// ------------------------------------------------------------------------------------------------------------

size_t Trace::postproc_position() const {
  for (size_t i = 0; i < instructions.size(); ++i)
    if (instructions[i].kind->kind == "EnterPostproc") return i;
  return instructions.size();
}

int Trace::symbol_count() const {
  int count = 0;
  for (const Instruction& instruction : instructions)
    for (const Symbol& s : instruction.outputs) count = std::max(count, s.number + 1);
  return count;
}

bool operator==(const Trace& a, const Trace& b) {
  return std::equal(a.instructions.begin(), a.instructions.end(), b.instructions.begin(), b.instructions.end(),
                    [](const Instruction& x, const Instruction& y) {
                      return x.kind == y.kind && x.inputs == y.inputs && x.attrs == y.attrs && x.outputs == y.outputs &&
                             x.decision == y.decision;
                    });
}

Trace simplify(const Trace& trace) {
  std::set<int> live;
  std::vector<Instruction> kept;
  auto use = [&](const Symbol& s) { live.insert(s.number); };
  for (auto it = trace.instructions.rbegin(); it != trace.instructions.rend(); ++it) {
    bool needed = !it->kind->pure || std::any_of(it->outputs.begin(), it->outputs.end(),
                                                 [&](const Symbol& s) { return live.count(s.number) > 0; });
    if (!needed) continue;
    for (const TraceValue& v : it->inputs) for_each_symbol(v, use);
    for (const TraceValue& v : it->attrs) for_each_symbol(v, use);
    kept.push_back(*it);
  }
  std::reverse(kept.begin(), kept.end());
  return {std::move(kept)};
}

Trace without_decisions(const Trace& trace) {
  Trace out = trace;
  for (Instruction& instruction : out.instructions) instruction.decision.reset();
  return out;
}

Trace renumber(const Trace& trace) {
  std::map<int, int> names;
  auto rename = [&](Symbol s) {
    auto it = names.find(s.number);
    return it == names.end() ? s : Symbol{it->second, s.kind};
  };
  int next = 0;
  Trace out = trace;
  for (Instruction& instruction : out.instructions) {
    for (TraceValue& v : instruction.inputs) v = map_symbols(v, rename);
    for (TraceValue& v : instruction.attrs) v = map_symbols(v, rename);
    for (Symbol& s : instruction.outputs) {
      if (s.number < 0) continue;
      names[s.number] = next;
      s.number = next++;
    }
  }
  return out;
}

}  // namespace tilewright
