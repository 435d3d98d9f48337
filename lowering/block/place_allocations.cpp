// Each buffer moves down to the lowest common ancestor of its accesses, but not below a loop that carries its value
// from one iteration to the next, nor below a vectorized loop (its iterations run together and need separate elements).
#include "ir/analysis/regions.h"
#include "ir/build.h"
#include "ir/rewrite.h"
#include "ir/visit.h"
#include "lowering/index.h"
#include "lowering/pass.h"

namespace tilewright::lowering {

namespace {

bool touches(const Stmt& s, const VarNode* data) {
  bool found = false;
  walk(
      s,
      [&](const Expr& e) {
        const Load* l = as<Load>(e);
        found = found || (l && l->buffer->data.get() == data) || as<VarNode>(e) == data;
        return !found;
      },
      [&](const Stmt& c) {
        const Store* st = as<Store>(c);
        const DeclBuffer* d = as<DeclBuffer>(c);
        found = found || (st && st->buffer->data.get() == data) || (d && d->buffer->data.get() == data);
        return !found;
      });
  return found;
}

class Place : public Rewriter {
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
    return sink(*alloc, body);
  }

 private:
  // The statement with the allocation placed as deep as is legal.
  Stmt sink(const Allocate& alloc, const Stmt& s) {
    const VarNode* data = alloc.buffer->data.get();
    auto here = [&] { return Stmt(make_stmt<Allocate>(alloc.buffer, alloc.annotations, s)); };
    if (const Seq* seq = as<Seq>(s)) {
      std::vector<size_t> users;
      for (size_t i = 0; i < seq->stmts.size(); ++i)
        if (touches(seq->stmts[i], data)) users.push_back(i);
      if (users.empty()) return s;
      // Consecutive users get the allocation around them alone.
      std::vector<Stmt> items = seq->stmts;
      size_t first = users.front(), last = users.back();
      Stmt part = make_seq({items.begin() + static_cast<long>(first), items.begin() + static_cast<long>(last) + 1});
      if (first == 0 && last + 1 == items.size()) return here();
      Stmt placed = sink(alloc, part);
      items.erase(items.begin() + static_cast<long>(first), items.begin() + static_cast<long>(last) + 1);
      items.insert(items.begin() + static_cast<long>(first), placed);
      return make_seq(std::move(items));
    }
    if (const For* loop = as<For>(s)) {
      bool private_kind = loop->loop_kind == ForKind::serial || loop->loop_kind == ForKind::parallel ||
                          loop->loop_kind == ForKind::unrolled;
      if (!private_kind || carried(*loop, alloc.buffer)) return here();
      auto scope = analyzer_.scope();
      analyzer_.bind(*loop);
      auto copy = edit(*loop);
      copy->body = sink(alloc, loop->body);
      return finish(std::move(copy));
    }
    if (const Block* block = as<Block>(s)) {
      auto copy = edit(*block);
      copy->body = sink(alloc, block->body);
      return finish(std::move(copy));
    }
    if (const Allocate* other = as<Allocate>(s)) {
      auto copy = edit(*other);
      copy->body = sink(alloc, other->body);
      return finish(std::move(copy));
    }
    const If* branch = as<If>(s);
    if (branch && !branch->else_body) {
      auto copy = edit(*branch);
      copy->then_body = sink(alloc, branch->then_body);
      return finish(std::move(copy));
    }
    return here();
  }

  // Whether an iteration may read what an earlier one wrote: some read is not covered by writes that come before it.
  bool carried(const For& loop, const Buffer& buffer) {
    std::vector<Access> accesses = accesses_of(loop.body, buffer);
    auto scope = analyzer_.scope();
    analyzer_.bind(loop);
    std::optional<BufferRegion> written;
    for (const Access& a : accesses) {
      if (!a.indices) return true;
      BufferRegion point = point_region(buffer, *a.indices);
      for (const Expr& i : *a.indices)
        if (i->dtype.lanes > 1) return true;
      if (!a.write) {
        if (!written) return true;
        BufferRegion read = relax(point, a.loops, a.predicate, analyzer_);
        if (!region_covers(*written, read, analyzer_)) return true;
        continue;
      }
      if (std::optional<BufferRegion> sure = lower_bound(point, a.loops, a.predicate, analyzer_)) {
        // Only a box that contains the other keeps the union exact.
        if (!written || region_covers(*sure, *written, analyzer_)) written = sure;
      }
    }
    return false;
  }

  Analyzer analyzer_;
};

const Register<Pass> pass{
    "place_allocations", "each buffer is allocated at the lowest scope that is legal",
    Pass{Form::opened, Form::opened, {}, [](const FunctionRef& f, const PassContext&) -> Result<FunctionRef> {
           return with_body(*f, Place()(f->body));
         }}};

}  // namespace

}  // namespace tilewright::lowering
