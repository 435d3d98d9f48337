#include "measure/check/reference_program.h"

#include <optional>

#include "ir/build.h"
#include "ir/rewrite.h"
#include "ir/visit.h"
#include "schedule/schedule.h"

namespace tilewright::measure {

namespace {

// --------------------------------------------------------------------------------------------------- wide accumulators

/// value, as float64; sums, products and extrema of loads of `narrow` and of other values are computed in float64.
Expr widen(const Expr& value, const Buffer& narrow, const Buffer& wide, bool& possible) {
  if (const Load* l = as<Load>(value); l && l->buffer.get() == narrow.get()) return load(wide, l->indices);
  if (const Binary* b = as<Binary>(value); b && value->dtype.is_float()) {
    switch (b->op) {
      case BinaryOp::add:
      case BinaryOp::sub:
      case BinaryOp::mul:
      case BinaryOp::min:
      case BinaryOp::max:
        return binary(b->op, widen(b->a, narrow, wide, possible), widen(b->b, narrow, wide, possible));
      default:
        break;
    }
  }
  bool reads = false;
  walk(value, [&](const Expr& e) {
    const Load* l = as<Load>(e);
    reads = reads || (l && l->buffer.get() == narrow.get());
    return !reads;
  });
  possible = possible && !reads;
  return cast(kFloat64, value);
}

/// The only block of a nest of loops, or null.
const Block* only_block(const Stmt& nest) {
  const Stmt* s = &nest;
  while (const For* loop = as<For>(*s)) s = &loop->body;
  return as<Block>(*s);
}

Stmt widened_store(const Stmt& s, const Buffer& narrow, const Buffer& wide, bool& possible) {
  const Store* store = as<Store>(s);
  if (!store || store->buffer.get() != narrow.get()) {
    possible = false;
    return s;
  }
  return make_stmt<Store>(wide, store->indices, widen(store->value, narrow, wide, possible));
}

/// for …: narrow[…] = float32(wide[…])
Stmt rounding_nest(const Buffer& narrow, const Buffer& wide) {
  std::vector<Var> loops;
  std::vector<Iter> iters;
  std::vector<Expr> indices;
  std::vector<Range> region;
  for (size_t d = 0; d < narrow->shape.size(); ++d) {
    loops.push_back(make_var("i" + std::to_string(d), narrow->shape[d]->dtype));
    Var v = make_var("v" + std::to_string(d), narrow->shape[d]->dtype);
    Expr zero = int_imm(0, v->dtype), one = int_imm(1, v->dtype);
    iters.push_back({v, {zero, narrow->shape[d]}, IterType::spatial, loops.back()});
    indices.push_back(v);
    region.push_back({Expr(v), one});
  }
  Stmt body = make_stmt<Store>(narrow, indices, cast(narrow->dtype, load(wide, indices)));
  Stmt s = make_stmt<Block>(narrow->name + "_rounded", iters, bool_imm(true), std::vector<BufferRegion>{{wide, region}},
                            std::vector<BufferRegion>{{narrow, region}}, std::vector<Buffer>{},
                            std::vector<MatchBuffer>{}, AttrDict{}, Stmt(), body);
  for (size_t d = loops.size(); d-- > 0;)
    s = make_stmt<For>(loops[d], int_imm(0, loops[d]->dtype), narrow->shape[d], Expr(), ForKind::serial, std::string(),
                       AttrDict{}, s);
  return s;
}

/// The nest with a wide accumulator followed by its rounding, or nothing if the nest is no such reduction.
std::optional<Stmt> widened_nest(const Stmt& nest, Buffer& wide) {
  const Block* block = only_block(nest);
  if (!block || !block->init || block->writes.size() != 1 || !block->matches.empty()) return std::nullopt;
  const Buffer narrow = block->writes[0].buffer;
  if (narrow->dtype != kFloat32 || narrow->shape.empty()) return std::nullopt;
  wide = make_buffer(narrow->name + "_wide", kFloat64, narrow->shape);
  bool possible = true;
  Stmt init = widened_store(block->init, narrow, wide, possible);
  Stmt body = widened_store(block->body, narrow, wide, possible);
  if (!possible) return std::nullopt;
  auto copy = edit(*block);
  copy->init = init;
  copy->body = body;
  for (std::vector<BufferRegion>* regions : {&copy->reads, &copy->writes})
    for (BufferRegion& r : *regions)
      if (r.buffer.get() == narrow.get()) r.buffer = wide;
  Stmt changed = replace_stmt(nest, block, finish(std::move(copy)));
  return make_seq({changed, rounding_nest(narrow, wide)});
}

FunctionRef with_wide_accumulators(const Function& f) {
  const Block* root = f.root();
  if (!root) return FunctionRef(&f);
  std::vector<Stmt> nests;
  if (const Seq* seq = as<Seq>(root->body))
    nests = seq->stmts;
  else
    nests = {root->body};
  auto copy = edit(*root);
  for (Stmt& nest : nests) {
    Buffer wide;
    if (std::optional<Stmt> changed = widened_nest(nest, wide)) {
      nest = *changed;
      copy->allocs.push_back(wide);
    }
  }
  copy->body = make_seq(std::move(nests));
  return with_body(f, finish(std::move(copy)));
}

// ----------------------------------------------------------------------------------------------------------- loop
// order

/// Moves the last loop that only spatial iters use to the inside, and makes the first one parallel.
void reorder_block(Schedule& s, BlockRV rv) {
  auto block = s.block(rv);
  auto loops = s.get_loops(rv);
  if (!block || !loops || loops->empty()) return;
  std::vector<bool> spatial;
  for (LoopRV l : *loops) {
    auto loop = s.loop(l);
    if (!loop) return;
    bool used = false, reduces = false;
    for (const Iter& iter : (*block)->iters)
      if (uses_var(iter.binding, (*loop)->var.get())) {
        used = true;
        reduces = reduces || iter.type != IterType::spatial;
      }
    spatial.push_back(used && !reduces);
  }
  auto last = std::find(spatial.rbegin(), spatial.rend(), true);
  if (last == spatial.rend()) return;
  size_t at = static_cast<size_t>(spatial.rend() - last) - 1;
  std::vector<LoopRV> order;
  for (size_t i = 0; i < loops->size(); ++i)
    if (i != at) order.push_back((*loops)[i]);
  order.push_back((*loops)[at]);
  Schedule before = s;
  if (order.size() > 1 && !s.reorder(order)) s = before;
  if (!spatial[0] || loops->size() < 2) return;
  before = s;
  if (!s.parallel((*loops)[0])) s = before;
}

}  // namespace

ProgramRef reference_program(const ProgramRef& program) {
  auto main = schedulable_function(*program);
  if (!main) return program;
  ProgramRef wide = with_function(*program, with_wide_accumulators(**main));
  Schedule s(wide);
  std::vector<std::string> names;
  for (Place p : s.state().tree().blocks())
    if (s.state().tree().enclosing_block(p) != kNoPlace) names.push_back(s.state().tree().block(p)->name);
  for (const std::string& name : names)
    if (auto rv = s.get_sblock(name, s.function().name)) reorder_block(s, *rv);
  return with_function(*wide, FunctionRef(&s.function()));
}

}  // namespace tilewright::measure
