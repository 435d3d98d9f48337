// Every allocated buffer shrinks to the box that is touched below its allocation.
#include "ir/analysis/regions.h"
#include "ir/build.h"
#include "ir/rewrite.h"
#include "lowering/index.h"
#include "lowering/pass.h"

namespace tilewright::lowering {

namespace {

class Shift : public Rewriter {
 public:
  Shift(const Buffer& from, Buffer to, const std::vector<Expr>& mins) : from_(from), to_(std::move(to)), mins_(mins) {}
  Expr operator()(const Expr& e) override {
    Expr mapped = Rewriter::operator()(e);
    const Load* node = as<Load>(mapped);
    return node && node->buffer.same_as(from_) ? load(to_, shifted(node->indices)) : mapped;
  }
  Stmt operator()(const Stmt& s) override {
    Stmt mapped = Rewriter::operator()(s);
    if (const Store* node = as<Store>(mapped); node && node->buffer.same_as(from_))
      return make_stmt<Store>(to_, shifted(node->indices), node->value);
    const Block* block = as<Block>(mapped);
    if (!block) return mapped;
    auto copy = edit(*block);
    bool changed = false;
    for (auto* list : {&copy->reads, &copy->writes})
      for (BufferRegion& r : *list) {
        if (!r.buffer.same_as(from_)) continue;
        changed = true;
        r.buffer = to_;
        for (size_t d = 0; d < r.region.size(); ++d) r.region[d].min = r.region[d].min - mins_[d];
      }
    return changed ? Stmt(finish(std::move(copy))) : mapped;
  }

 private:
  std::vector<Expr> shifted(std::vector<Expr> indices) const {
    for (size_t d = 0; d < indices.size(); ++d)
      if (!is_const(mins_[d], 0)) indices[d] = shift_index(indices[d], int_imm(0, mins_[d]->dtype) - mins_[d]);
    return indices;
  }
  const Buffer& from_;
  Buffer to_;
  const std::vector<Expr>& mins_;
};

class Compact : public Rewriter {
 public:
  using Rewriter::operator();
  Stmt operator()(const Stmt& s) override {
    if (const For* loop = as<For>(s)) {
      auto scope = analyzer_.scope();
      analyzer_.bind(*loop);
      return Rewriter::operator()(s);
    }
    const Allocate* alloc = as<Allocate>(s);
    if (!alloc) return Rewriter::operator()(s);
    Stmt body = (*this)(alloc->body);
    Stmt same = body.same_as(alloc->body) ? s : Stmt(make_stmt<Allocate>(alloc->buffer, alloc->annotations, body));
    const Buffer& buffer = alloc->buffer;
    if (!buffer->strides.empty() || buffer->elem_offset || buffer->shape.empty()) return same;
    std::optional<BufferRegion> touched = union_of(body, buffer);
    if (!touched) return same;
    std::vector<Expr> mins, shape;
    bool smaller = false;
    for (size_t d = 0; d < buffer->shape.size(); ++d) {
      Range r = analyzer_.simplify(touched->region[d]);
      int64_t extent = analyzer_.const_bounds(r.extent).max;
      std::optional<int64_t> old = const_int(buffer->shape[d]);
      bool shrink = extent != Interval::kMax && extent > 0 && (!old || extent < *old);
      mins.push_back(shrink ? r.min : int_imm(0, r.min->dtype));
      shape.push_back(shrink ? int_imm(extent, buffer->shape[d]->dtype) : buffer->shape[d]);
      smaller |= shrink;
    }
    if (!smaller) return same;
    Buffer compact = derive_buffer(buffer, [&](BufferNode& n) { n.shape = shape; });
    return make_stmt<Allocate>(compact, alloc->annotations, Shift(buffer, compact, mins)(body));
  }

 private:
  std::optional<BufferRegion> union_of(const Stmt& body, const Buffer& buffer) {
    std::optional<BufferRegion> all;
    for (const Access& a : accesses_of(body, buffer)) {
      if (!a.indices) return std::nullopt;
      for (const Expr& i : *a.indices)
        if (const Ramp* r = as<Ramp>(i); r && !is_const(r->stride, 1)) return std::nullopt;
      BufferRegion region = point_region(buffer, *a.indices);
      region = relax(region, a.loops, a.predicate, analyzer_);
      all = all ? region_union(*all, region, analyzer_) : region;
    }
    return all;
  }
  Analyzer analyzer_;
};

const Register<Pass> pass{"compact_buffers", "every buffer shrinks to what is touched below its allocation",
                          Pass{Form::opened,
                               Form::opened,
                               {"place_allocations"},
                               [](const FunctionRef& f, const PassContext&) -> Result<FunctionRef> {
                                 return with_body(*f, Compact()(f->body));
                               }}};

}  // namespace

}  // namespace tilewright::lowering
