#include "tools/measurable.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/simplify/analyzer.h"
#include "ir/visit.h"

namespace tilewright::tools {

namespace {

Diagnostic error(const RefusalCode& code, std::string message, Span place, std::string help) {
  return {std::string(code.text), std::move(message), std::move(place), {}, std::move(help)};
}

/// For each parameter that is written before it is read, the least box that holds everything which is written, and the
/// steps in it. Both are never too narrow, so that what lies outside them is surely not written.
class Written {
 public:
  explicit Written(const Function& f) {
    for (const Param& p : f.params) parameters_.insert(p.buffer.get());
    visit(f.body);
  }

  struct Box {
    std::vector<Interval> sides;
    std::vector<ModularSet> steps;
    const Store* last = nullptr;
  };
  const std::map<const BufferNode*, Box>& boxes() const { return boxes_; }
  bool known() const { return known_; }
  bool is_output(const BufferNode* b) const { return boxes_.contains(b) && !read_first_.contains(b); }

 private:
  void visit(const Stmt& root) {
    if (!root) return;
    walk(
        root,
        [&](const Expr& e) {
          if (const Load* l = as<Load>(e); l && !boxes_.contains(l->buffer.get())) read_first_.insert(l->buffer.get());
          if (const Call* c = as<Call>(e)) known_ = known_ && c->op->effect != OpEffect::opaque;
          return true;
        },
        [&](const Stmt& s) {
          if (const For* loop = as<For>(s)) {
            auto scope = analyzer_.scope();
            analyzer_.bind(*loop);
            visit(loop->body);
            return false;
          }
          if (const Block* block = as<Block>(s)) {
            auto scope = analyzer_.scope();
            for (const Iter& iter : block->iters) analyzer_.bind(iter.var, iter.binding);
            known_ = known_ && block->matches.empty();
            visit(block->init);
            visit(block->body);
            return false;
          }
          if (const Store* store = as<Store>(s); store && parameters_.contains(store->buffer.get())) {
            walk(store->value, [&](const Expr& e) {
              if (const Load* l = as<Load>(e); l && !boxes_.contains(l->buffer.get()))
                read_first_.insert(l->buffer.get());
              return true;
            });
            add(*store);
          }
          return true;
        });
  }

  void add(const Store& store) {
    auto [it, fresh] = boxes_.try_emplace(store.buffer.get());
    Box& box = it->second;
    if (fresh) box.sides.assign(store.indices.size(), {Interval::kMax, Interval::kMin});
    box.last = &store;
    if (fresh) box.steps.assign(store.indices.size(), {});
    for (size_t d = 0; d < store.indices.size(); ++d) {
      const ModularSet step = analyzer_.modular(store.indices[d]);
      if (fresh)
        box.steps[d] = step;
      else if (!(box.steps[d] == step))
        box.steps[d] = {};
      Interval at = analyzer_.const_bounds(store.indices[d]);
      box.sides[d] = {std::min(box.sides[d].min, at.min), std::max(box.sides[d].max, at.max)};
    }
  }

  Analyzer analyzer_;
  std::set<const BufferNode*> parameters_, read_first_;
  std::map<const BufferNode*, Box> boxes_;
  bool known_ = true;  ///< nothing else can write a parameter
};

std::string symbolic_extents(const Buffer& buffer) {
  std::string names;
  for (const Expr& extent : buffer->shape)
    if (!const_int(extent))
      for (const Var& v : vars_of(extent))
        if (names.find(v->name) == std::string::npos) names += (names.empty() ? "" : ", ") + v->name;
  return names;
}

}  // namespace

std::vector<Diagnostic> check_measurable(const Function& f, const SourceMap& spans) {
  std::vector<Diagnostic> out;
  for (const Param& p : f.params) {
    if (!p.buffer) {
      out.push_back(error(
          parameter_not_a_buffer,
          fmt::format("parameter {} of {} is no buffer, so that it has no value to measure with", p.var->name, f.name),
          spans.find(p.var.get()), "write its value into the program"));
    } else if (std::string names = symbolic_extents(p.buffer); !names.empty()) {
      out.push_back(
          error(extent_not_given,
                fmt::format("expected a value for {} in the shape of parameter {}, found none", names, p.buffer->name),
                spans.find(p.buffer.get()), fmt::format("--arg {}=N", names.substr(0, names.find(',')))));
      break;  // others most likely lack the same
    }
  }
  if (!out.empty()) return out;
  const Written writes(f);
  if (!writes.known()) return out;
  for (const Param& p : f.params) {
    if (!writes.is_output(p.buffer.get())) continue;
    const Written::Box& box = writes.boxes().at(p.buffer.get());
    for (size_t d = 0; d < box.sides.size(); ++d) {
      const int64_t last = *const_int(p.buffer->shape[d]) - 1;
      const Interval side = box.sides[d];
      const ModularSet step = box.steps[d];
      if (side.min <= 0 && side.max >= last && step.coefficient <= 1) continue;
      const std::string written =
          side.min <= 0 && side.max >= last
              ? fmt::format("those that leave {} when divided by {}", step.base, step.coefficient)
              : fmt::format("{} to {}", side.min, side.max);
      out.push_back(error(output_not_covered,
                          fmt::format("output {} has {} elements in dimension {}, and of these only {} are written",
                                      p.buffer->name, last + 1, d, written),
                          spans.find(box.last), "write the rest too, or give the buffer the shape that is written"));
      break;
    }
  }
  return out;
}

}  // namespace tilewright::tools
