// rewrite_layout: a constant operand (a weight) is stored in the order in which the tiled loops read it. Buffers whose
// layout is free are named by parameter number in the function's or a block's `layout_free_buffers`. Each gets a copy
// in front of its reader, marked as preparation, and the copy's flattened index is cut into the digits of the reader's
// loops, outermost loop first:
//
//   B[k, j] read at k = k0*16 + k1, j = j0*32 + j1 under loops j0, k0, k1, j1  →  B'[j0, k0, k1, j1]
//
// Source of the method: layout rewrite of MetaSchedule. The copy stays a part of the program, and its time counts: the
// exported function takes the operand in the layout that the program states.
#include <algorithm>
#include <set>

#include "ir/analysis/iter_map.h"
#include "ir/visit.h"
#include "search/postprocs/postproc.h"

namespace tilewright {

namespace {

constexpr const char* kFree = "layout_free_buffers";
constexpr const char* kPreparation = "meta_schedule.layout_rewrite_preproc";

void add_numbers(const AttrDict& attrs, std::set<int64_t>& into) {
  auto it = attrs.find(kFree);
  const AttrList* list = it == attrs.end() ? nullptr : std::get_if<AttrList>(&it->second.value);
  if (!list) return;
  for (const Attr& a : *list)
    if (auto* n = std::get_if<int64_t>(&a.value)) into.insert(*n);
}

std::vector<Buffer> free_buffers(const Schedule& s) {
  std::set<int64_t> numbers;
  add_numbers(s.function().attrs, numbers);
  const TreeIndex& tree = s.state().tree();
  for (Place p : tree.blocks()) add_numbers(tree.block(p)->annotations, numbers);
  std::vector<Buffer> out;
  for (int64_t n : numbers)
    if (n >= 0 && n < static_cast<int64_t>(s.function().params.size()) && s.function().params[n].buffer)
      out.push_back(s.function().params[n].buffer);
  return out;
}

/// The layout in which `loops` read the region one element after the other. Nothing: the digits of the flattened index
/// are not those of the whole buffer, or they are in order already.
std::optional<IndexMapRef> layout_of(const Block& block, const BufferRegion& read,
                                     const std::vector<const For*>& loops) {
  std::unordered_map<const VarNode*, Expr> bindings;
  for (const Iter& iter : block.iters) bindings[iter.var.get()] = iter.binding;
  Expr flat = int_imm(0);
  int64_t elements = 1;
  for (size_t d = 0; d < read.region.size(); ++d) {
    std::optional<int64_t> extent = const_int(read.buffer->shape[d]);
    if (!extent || !is_const(read.region[d].extent, 1)) return std::nullopt;
    flat = flat * *extent + substitute(read.region[d].min, bindings);
    elements *= *extent;
  }
  std::vector<VarRange> domains = ranges_of(loops);
  Analyzer facts;
  for (const VarRange& d : domains) facts.bind(d.var, d.range);
  IterMap map = detect_iter_map({facts.simplify(flat)}, domains, nullptr, IterMapCheck::none, facts);
  if (!map) return std::nullopt;

  struct Digit {
    size_t loop;
    int64_t lower, extent, scale;
  };
  std::vector<Digit> digits;
  int64_t next = elements;  // scale × extent that the next digit must have: together they count every element once
  for (const IterSplit& split : map.indices[0].splits) {
    std::optional<int64_t> lower = const_int(split.lower_factor), extent = const_int(split.extent),
                           scale = const_int(split.scale);
    if (!split.mark->is_var() || !lower || !extent || !scale || *scale * *extent != next) return std::nullopt;
    next = *scale;
    auto at =
        std::find_if(loops.begin(), loops.end(), [&](const For* l) { return l->var.get() == split.mark->var.get(); });
    if (at == loops.end()) return std::nullopt;
    digits.push_back({static_cast<size_t>(at - loops.begin()), *lower, *extent, *scale});
  }
  if (next != 1) return std::nullopt;
  auto outer_first = [](const Digit& a, const Digit& b) {
    return std::pair(a.loop, -a.lower) < std::pair(b.loop, -b.lower);
  };
  if (std::is_sorted(digits.begin(), digits.end(), outer_first)) return std::nullopt;
  std::stable_sort(digits.begin(), digits.end(), outer_first);

  auto out = std::make_unique<IndexMap>();
  Expr index = int_imm(0);
  for (size_t d = 0; d < read.region.size(); ++d) {
    out->inputs.push_back(make_var("i" + std::to_string(d)));
    index = index * *const_int(read.buffer->shape[d]) + Expr(out->inputs.back());
  }
  Analyzer inputs;
  for (size_t d = 0; d < read.region.size(); ++d) inputs.bind(out->inputs[d], {int_imm(0), read.buffer->shape[d]});
  for (const Digit& d : digits) out->outputs.push_back(inputs.simplify(floor_mod(floor_div(index, d.scale), d.extent)));
  return IndexMapRef(out.release());
}

struct Work {
  std::string block;
  int read = 0;
  IndexMapRef layout;
};

std::optional<Work> find_work(const Schedule& s, const Buffer& buffer, const std::set<std::string>& done) {
  const TreeIndex& tree = s.state().tree();
  for (Place p : tree.blocks()) {
    const Block& b = *tree.block(p);
    if (tree.enclosing_block(p) == kNoPlace || !tree.child_blocks(p).empty()) continue;
    if (done.contains(b.name) || tree.blocks_named(b.name).size() != 1 || b.annotations.contains(kPreparation))
      continue;
    for (size_t r = 0; r < b.reads.size(); ++r) {
      if (b.reads[r].buffer.get() != buffer.get()) continue;
      if (std::optional<IndexMapRef> layout = layout_of(b, b.reads[r], tree.loop_nodes_above(p)))
        return Work{b.name, static_cast<int>(r), *layout};
    }
  }
  return std::nullopt;
}

Status apply(Schedule& s, const PostprocContext&) {
  for (const Buffer& buffer : free_buffers(s)) {
    std::set<std::string> done;
    while (std::optional<Work> work = find_work(s, buffer, done)) {
      done.insert(work->block);
      const Schedule before = s;
      TW_TRY(BlockRV block, s.get_sblock(work->block, s.function().name));
      auto copy = s.cache_read(block, work->read, "global");
      bool ok = copy && s.annotate(*copy, kPreparation, true).has_value() &&
                s.transform_layout(block, "read", work->read, work->layout).has_value();
      if (!ok) s = before;  // left as it is
    }
  }
  return {};
}

const Register<Postproc> entry{
    "rewrite_layout", "stores operands of free layout in the order in which the loops read them", {apply}};

}  // namespace

}  // namespace tilewright
