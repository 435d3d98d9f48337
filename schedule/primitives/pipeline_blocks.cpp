#include "schedule/primitives/pipeline_blocks.h"

#include <algorithm>

#include "schedule/primitives/cache.h"

namespace tilewright {

namespace {

constexpr int64_t kAlignment = 1024;  ///< of a staged buffer: what swizzled and bulk copies ask for (hopper.md §2)
constexpr int64_t kBarriers = 16;     ///< a full and an empty mbarrier of 8 bytes for each stage

/// The body's one store, under loops.
const Store* only_store(const Stmt& s) {
  if (const For* loop = as<For>(s)) return only_store(loop->body);
  return as<Store>(s);
}

bool is_constant(const Expr& e) {
  const Cast* c = as<Cast>(e);
  return c ? is_constant(c->value) : as<IntImm>(e) || as<FloatImm>(e);
}

int64_t rounded(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::optional<int64_t> bytes_of(const BufferRegion& region, Analyzer& facts) {
  int64_t elements = 1;
  for (const Range& r : region.region) {
    std::optional<int64_t> extent = const_int(facts.simplify(r.extent));
    if (!extent || __builtin_mul_overflow(elements, *extent, &elements)) return std::nullopt;
  }
  return (elements * region.buffer->dtype.bits + 7) / 8;
}

/// What the places touch of the buffer, seen from `container`.
BufferRegion touched(const State& state, Place container, const std::vector<Place>& places, const Buffer& buffer,
                     Analyzer& facts) {
  std::optional<BufferRegion> all;
  for (Place p : places)
    for (const auto* regions : {&state.tree().block(p)->reads, &state.tree().block(p)->writes})
      for (const BufferRegion& r : *regions) {
        if (!r.buffer.same_as(buffer)) continue;
        BufferRegion at = region_at(state, container, p, r, buffer->scope);
        all = all ? region_union(*all, at, facts) : at;
      }
  return all ? *all : full_region(buffer);
}

}  // namespace

bool is_shared(const Buffer& b) { return b->scope == "shared" || b->scope.rfind("shared.", 0) == 0; }

bool is_copy(const Block& block) {
  const Store* store = only_store(block.body);
  if (!store || block.init || block.writes.size() != 1 || block.reads.size() != 1) return false;
  const Call* guarded = as<Call>(store->value);
  if (guarded && guarded->op->name == "if_then_else")
    return as<Load>(guarded->args[1]) && is_constant(guarded->args[2]) && !reads_memory(guarded->args[0]);
  return as<Load>(store->value);
}

bool keeps_order(const Block& block) {
  const Store* store = only_store(block.body);
  const Load* load = nullptr;
  walk(store->value, [&](const Expr& e) {
    if (const Load* node = as<Load>(e)) load = node;
    return true;
  });
  auto order = [](const std::vector<Expr>& indices) {
    std::vector<Var> out;
    for (const Expr& e : indices)
      for (const Var& v : vars_of(e)) out.push_back(v);
    return out;
  };
  const std::vector<Var> target = order(store->indices), source = order(load->indices);
  if (target.empty() || source.empty()) return target.empty() && source.empty();
  const bool same_order = std::equal(target.rbegin(), target.rend(), source.rbegin(), source.rend(),
                                     [](const Var& a, const Var& b) { return a.same_as(b); });
  auto unit = [](const Expr& last, const Var& v) {
    return is_const(simplify(substitute(last, {{v.get(), Expr(v) + 1}}) - last), 1);
  };
  return same_order && unit(store->indices.back(), target.back()) && unit(load->indices.back(), source.back());
}

std::vector<PipelineStatement> pipeline_statements(const State& state, const For* loop) {
  const TreeIndex& tree = state.tree();
  const Place place = state.place(*loop);
  std::vector<PipelineStatement> out;
  for (const Stmt& s : seq_items(loop->body)) out.push_back({s, true, {}});
  for (Place p : tree.child_blocks(place)) {
    const StmtNode* item = tree.stmt(child_containing(tree, place, p));
    for (PipelineStatement& statement : out)
      if (statement.stmt.get() == item) statement.blocks.push_back(tree.block(p));
  }
  for (PipelineStatement& statement : out)
    statement.copy = !statement.blocks.empty() &&
                     std::all_of(statement.blocks.begin(), statement.blocks.end(),
                                 [](const Block* b) { return is_copy(*b) && is_shared(b->writes[0].buffer); });
  return out;
}

std::optional<SharedBytes> shared_bytes(const State& state, const For* loop) {
  const TreeIndex& tree = state.tree();
  const Place place = state.place(*loop);
  Analyzer facts;
  bind_loops_above(facts, state, place);
  facts.bind(*loop);
  SharedBytes out{kBarriers, 0};
  std::vector<Buffer> staged;
  for (const PipelineStatement& statement : pipeline_statements(state, loop))
    for (const Block* b : statement.blocks) {
      if (!statement.copy) continue;
      std::optional<int64_t> bytes =
          bytes_of(region_at(state, place, state.place(*b), b->writes[0], b->writes[0].buffer->scope), facts);
      if (!bytes) return std::nullopt;
      out.stage += rounded(*bytes);
      staged.push_back(b->writes[0].buffer);
    }
  for (Place owner : tree.blocks())
    for (const Buffer& buffer : tree.block(owner)->allocs) {
      if (!is_shared(buffer) ||
          std::any_of(staged.begin(), staged.end(), [&](const Buffer& b) { return b.same_as(buffer); }))
        continue;
      std::vector<Place> users;
      for (Place p : tree.child_blocks(owner))
        for (const auto* regions : {&tree.block(p)->reads, &tree.block(p)->writes})
          if (std::any_of(regions->begin(), regions->end(),
                          [&](const BufferRegion& r) { return r.buffer.same_as(buffer); }))
            users.push_back(p);
      BufferRegion region = full_region(buffer);
      if (users.size() > 1) region = touched(state, common_container(tree, users), users, buffer, facts);
      std::optional<int64_t> bytes = bytes_of(region, facts);
      if (!bytes) return std::nullopt;
      out.others += rounded(*bytes);
    }
  return out;
}

}  // namespace tilewright
