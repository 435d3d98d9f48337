// Random well-formed schedulable programs for property tests of the text, the analyses and the primitives: 1 to 4
// blocks of ranks 0 to 4, unit and prime extents, predicates, float and integer types, several consumers of one
// producer, in-place updates, reductions with init, stencils behind if_then_else, split and fused bindings, axes that
// do not start at 0.
//   ProgramRef p = random_program(Rng::keyed(seed, case));
// Signatures are exact and every element of an intermediate is written before it is read.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/build.h"
#include "ir/program.h"
#include "support/rng.h"

namespace tilewright {

class RandomProgram {
 public:
  /// `integers`: no floating type, so that sums may be reassociated.
  explicit RandomProgram(Rng rng, bool integers = false) : rng_(rng), integers_(integers) {}

  ProgramRef make() {
    int inputs = static_cast<int>(rng_.between(1, 2)), blocks = static_cast<int>(rng_.between(1, 4));
    for (int i = 0; i < inputs; ++i)
      params_.push_back(new_buffer(fmt::format("in{}", i), random_shape(), random_dtype()));
    readable_ = params_;
    std::vector<Stmt> stmts;
    std::vector<Buffer> written;
    for (int i = 0; i < blocks; ++i) {
      bool in_place = !written.empty() && rng_.chance(0.2);
      Buffer out = in_place ? pick(written) : new_buffer(fmt::format("b{}", i), random_shape(), random_dtype());
      stmts.push_back(in_place ? update(out, i) : rng_.chance(0.35) ? reduction(out, i) : elementwise(out, i));
      if (in_place) continue;
      written.push_back(out);
      readable_.push_back(out);
    }
    // The last buffer is an output; earlier ones are outputs or intermediates.
    std::vector<Buffer> allocs;
    for (const Buffer& b : written) {
      bool output = b.same_as(written.back()) || rng_.chance(0.3);
      (output ? params_ : allocs).push_back(b);
    }
    Stmt root = make_stmt<Block>(std::string("root"), std::vector<Iter>(), Expr(), std::vector<BufferRegion>(),
                                 std::vector<BufferRegion>(), allocs, std::vector<MatchBuffer>(), AttrDict(), Stmt(),
                                 make_seq(std::move(stmts)));
    auto f = std::make_unique<Function>();
    f->name = "main";
    for (const Buffer& b : params_) f->params.push_back({make_var(b->name + "_handle", kHandle), b, rng_.chance(0.3)});
    f->attrs["tirx.noalias"] = Attr(true);
    f->body = std::move(root);
    return make_program({FunctionRef(f.release())});
  }

 private:
  static constexpr int64_t kExtents[] = {1, 1, 2, 3, 4, 5, 6, 7, 8, 12};

  template <class T>
  const T& pick(const std::vector<T>& items) {
    return items[rng_.below(items.size())];
  }
  DType random_dtype() {
    static const std::vector<DType> kTypes{kFloat32, kFloat32, kInt32, kFloat16, kInt8, kInt64};
    static const std::vector<DType> kIntegers{kInt32, kInt8, kInt64};
    return pick(integers_ ? kIntegers : kTypes);
  }
  std::vector<int64_t> random_shape() {
    std::vector<int64_t> shape(rng_.below(5));
    for (int64_t& n : shape) n = kExtents[rng_.below(std::size(kExtents))];
    return shape;
  }
  static Buffer new_buffer(const std::string& name, const std::vector<int64_t>& shape, DType t) {
    std::vector<Expr> extents;
    for (int64_t n : shape) extents.push_back(int_imm(n));
    return make_buffer(name, t, std::move(extents));
  }
  static int64_t extent(const Buffer& b, size_t d) { return *const_int(b->shape[d]); }

  struct Axis {
    int64_t extent;
    IterType type;
  };
  /// Loops and iters of a block over the axes; `value` makes the statements from the iter variables.
  template <class F>
  Stmt nest(int number, const std::vector<Axis>& axes, F&& fill) {
    auto block = std::make_unique<Block>();
    block->name = fmt::format("block{}", number);
    block->id = fresh_block_id();
    std::vector<Expr> vars;
    struct Loop {
      Var var;
      int64_t min, extent;
    };
    std::vector<Loop> loops;
    for (size_t d = 0; d < axes.size(); ++d) {
      int64_t n = axes[d].extent;
      Var v = make_var(fmt::format("v{}", d));
      Expr binding;
      double shape = rng_.uniform();
      if (shape < 0.25 && n > 1) {  // split, with a predicate when the factor does not divide
        int64_t factor = rng_.between(1, n);
        Var o = make_var(fmt::format("i{}_o", d)), i = make_var(fmt::format("i{}_i", d));
        loops.push_back({o, 0, (n + factor - 1) / factor});
        loops.push_back({i, 0, factor});
        binding = Expr(o) * factor + Expr(i);
        if (n % factor != 0) block->predicate = and_of(block->predicate, less(binding, int_imm(n)));
      } else if (shape < 0.35 && d + 1 < axes.size() && axes[d + 1].type == axes[d].type) {  // fused with the next axis
        int64_t m = axes[d + 1].extent;
        Var f = make_var(fmt::format("i{}_fused", d)), w = make_var(fmt::format("v{}", d + 1));
        loops.push_back({f, 0, n * m});
        block->iters.push_back({v, {int_imm(0), int_imm(n)}, axes[d].type, floor_div(Expr(f), m)});
        block->iters.push_back({w, {int_imm(0), int_imm(m)}, axes[d + 1].type, floor_mod(Expr(f), m)});
        vars.push_back(v);
        vars.push_back(w);
        ++d;
        continue;
      } else if (shape < 0.45) {  // a loop that starts elsewhere
        int64_t min = rng_.between(-2, 3);
        Var i = make_var(fmt::format("i{}", d));
        loops.push_back({i, min, n});
        binding = min == 0 ? Expr(i) : Expr(i) - int_imm(min);
      } else {
        Var i = make_var(fmt::format("i{}", d));
        loops.push_back({i, 0, n});
        binding = i;
      }
      block->iters.push_back({v, {int_imm(0), int_imm(n)}, axes[d].type, binding});
      vars.push_back(v);
    }
    fill(*block, vars);
    if (rng_.chance(0.2)) block->annotations["note"] = AttrList{Attr(number), Attr("x"), Attr(0.5), Attr(true)};
    // Reductions keep their loops in order; spatial loops of other blocks may come in any.
    bool ordered = std::any_of(axes.begin(), axes.end(), [](const Axis& a) { return a.type != IterType::spatial; });
    if (!ordered) rng_.shuffle(std::span(loops));
    Stmt body = finish(std::move(block));
    for (size_t k = loops.size(); k-- > 0;) {
      static const ForKind kKinds[] = {ForKind::serial, ForKind::serial, ForKind::serial, ForKind::parallel,
                                       ForKind::unrolled};
      ForKind kind = ordered ? ForKind::serial : kKinds[rng_.below(std::size(kKinds))];
      AttrDict annotations;
      if (rng_.chance(0.1)) annotations["pragma_note"] = Attr(1);
      body = make_stmt<For>(loops[k].var, int_imm(loops[k].min), int_imm(loops[k].extent), Expr(), kind, std::string(),
                            annotations, body);
    }
    return body;
  }

  /// An element of `b` inside its bounds, made from variables with known extents; counted in `reads`.
  Expr element(const Buffer& b, const std::vector<Expr>& vars, const std::vector<Axis>& axes,
               std::vector<BufferRegion>& reads) {
    std::vector<Expr> index;
    Expr guard;
    for (size_t d = 0; d < b->shape.size(); ++d) {
      int64_t n = extent(b, d);
      std::vector<size_t> fitting;
      for (size_t a = 0; a < axes.size(); ++a)
        if (axes[a].extent <= n) fitting.push_back(a);
      if (fitting.empty() || rng_.chance(0.1)) {
        index.push_back(vars.empty() || rng_.chance(0.5) ? int_imm(rng_.between(0, n - 1))
                                                         : floor_mod(vars[rng_.below(vars.size())], n));
        continue;
      }
      size_t a = pick(fitting);
      Expr i = vars[a];
      if (axes[a].extent == n && n > 1 && rng_.chance(0.15)) {  // a neighbour, guarded
        guard = and_of(guard, less(i, int_imm(n - 1)));
        i = i + 1;
      } else if (axes[a].extent < n && rng_.chance(0.5)) {
        i = i + (n - axes[a].extent);
      } else if (rng_.chance(0.1)) {
        i = int_imm(n - 1) - i;
        if (axes[a].extent < n) i = vars[a];
      }
      index.push_back(i);
    }
    BufferRegion r{b, {}};
    for (const Expr& i : index) r.region.push_back({i, int_imm(1)});
    add_region(reads, r);
    Expr value = load(b, std::move(index));
    return guard ? if_then_else(guard, value, zero_of(b->dtype)) : value;
  }
  static void add_region(std::vector<BufferRegion>& list, const BufferRegion& r) {
    for (BufferRegion& old : list) {
      if (!old.buffer.same_as(r.buffer)) continue;
      for (size_t d = 0; d < r.region.size(); ++d) {
        if (old.region[d].min->hash == r.region[d].min->hash) continue;
        old.region[d] = {int_imm(0), r.buffer->shape[d]};
      }
      return;
    }
    list.push_back(r);
  }

  /// A value of type `t` over one to three elements.
  Expr value(DType t, const std::vector<Expr>& vars, const std::vector<Axis>& axes, std::vector<BufferRegion>& reads) {
    Expr out;
    int terms = static_cast<int>(rng_.between(1, 3));
    for (int k = 0; k < terms; ++k) {
      Expr x = rng_.chance(0.15) ? (vars.empty() ? int_imm(3) : vars[rng_.below(vars.size())])
                                 : element(pick(readable_), vars, axes, reads);
      x = cast(t, x);
      if (rng_.chance(0.2))
        x = t.is_float() ? (t == kFloat32 ? call("sqrt", {call("abs", {x})}) : call("abs", {x}))
                         : max_of(x, const_of(1, t));
      switch (out ? rng_.below(4) : 9) {
        case 0:
          out = out + x;
          break;
        case 1:
          out = out - x;
          break;
        case 2:
          out = out * x;
          break;
        case 3:
          out = select(less(out, x), out, x);
          break;
        default:
          out = x;
      }
    }
    if (rng_.chance(0.3)) out = out + const_of(static_cast<double>(rng_.between(-3, 3)), t);
    if (rng_.chance(0.2)) out = out * const_of(t.is_float() ? 0.5 : 3, t);
    return out;
  }

  std::vector<Axis> spatial_axes(const Buffer& out) {
    std::vector<Axis> axes;
    for (size_t d = 0; d < out->shape.size(); ++d) axes.push_back({extent(out, d), IterType::spatial});
    return axes;
  }
  static BufferRegion point(const Buffer& b, const std::vector<Expr>& index) {
    BufferRegion r{b, {}};
    for (const Expr& i : index) r.region.push_back({i, int_imm(1)});
    return r;
  }

  Stmt elementwise(const Buffer& out, int number) {
    std::vector<Axis> axes = spatial_axes(out);
    return nest(number, axes, [&](Block& b, const std::vector<Expr>& vars) {
      b.body = make_stmt<Store>(out, vars, value(out->dtype, vars, axes, b.reads));
      b.writes.push_back(point(out, vars));
    });
  }

  Stmt update(const Buffer& out, int number) {
    std::vector<Axis> axes = spatial_axes(out);
    std::vector<Buffer> readable = readable_;
    std::erase_if(readable_, [&](const Buffer& b) { return b.same_as(out); });
    Stmt s = nest(number, axes, [&](Block& b, const std::vector<Expr>& vars) {
      b.reads.push_back(point(out, vars));
      Expr old = load(out, vars), other = value(out->dtype, vars, axes, b.reads);
      b.body = make_stmt<Store>(out, vars, rng_.chance(0.5) ? old + other : max_of(old, other));
      b.writes.push_back(point(out, vars));
    });
    readable_ = std::move(readable);
    return s;
  }

  Stmt reduction(const Buffer& out, int number) {
    std::vector<Axis> axes = spatial_axes(out);
    size_t spatial = axes.size();
    for (int64_t k = rng_.between(1, 2); k > 0; --k)
      axes.push_back({kExtents[rng_.below(std::size(kExtents))], IterType::reduction});
    return nest(number, axes, [&](Block& b, const std::vector<Expr>& vars) {
      std::vector<Expr> index(vars.begin(), vars.begin() + static_cast<std::ptrdiff_t>(spatial));
      Expr old = load(out, index), x = value(out->dtype, vars, axes, b.reads);
      bool sum = rng_.chance(0.7);
      b.init = make_stmt<Store>(out, index, sum ? zero_of(out->dtype) : const_of(-100, out->dtype));
      b.body = make_stmt<Store>(out, index, sum ? old + x : max_of(old, x));
      b.writes.push_back(point(out, index));
    });
  }

  Rng rng_;
  bool integers_;
  std::vector<Buffer> params_, readable_;
};

inline ProgramRef random_program(Rng rng, bool integers = false) { return RandomProgram(rng, integers).make(); }

}  // namespace tilewright
