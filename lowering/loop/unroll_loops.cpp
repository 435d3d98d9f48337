// Unrolling: loops of kind `unrolled`; loops below `pragma_auto_unroll_max_step` whose code fits; and loops that index
// a small private buffer, because only constant indices let it live in registers.
#include <fmt/format.h>

#include <set>

#include "ir/build.h"
#include "ir/rewrite.h"
#include "ir/simplify/analyzer.h"
#include "ir/visit.h"
#include "lowering/cleanup.h"
#include "lowering/index.h"
#include "lowering/pass.h"

namespace tilewright::lowering {

namespace {

TW_REFUSAL_CODE(unroll_too_large, "unroll-too-large", "unrolling would make more code than max_code allows");

int64_t statements(const Stmt& s) {
  int64_t n = 0;
  walk_stmts(s, [&](const Stmt& c) {
    n += c->kind == StmtKind::kStore || c->kind == StmtKind::kEvaluate;
    return true;
  });
  return std::max<int64_t>(n, 1);
}

bool has_loop(const Stmt& s) {
  bool found = false;
  walk_stmts(s, [&](const Stmt& c) {
    found = found || as<For>(c) || as<While>(c);
    return !found;
  });
  return found;
}

// Loops whose variables index one of the register tiles: buffers that fit the target's vector registers, allocated in
// the function and reached only through loops of constant extent.
class RegisterLoops {
 public:
  RegisterLoops(const Stmt& body, const Target& target) {
    int64_t limit = int64_t{target.vector_registers} * target.vector_bits / 8;
    walk_stmts(body, [&](const Stmt& s) {
      const Allocate* a = as<Allocate>(s);
      int64_t bytes = a ? buffer_bytes(*a->buffer) : 0;
      if (bytes > 0 && bytes <= limit) consider(*a, target);
      return true;
    });
  }
  bool contains(const VarNode* v) const { return vars_.contains(v); }

 private:
  // A tile that needs more registers than this many times those that exist stays in memory: it would spill, and
  // promotion of hundreds of values across a loop takes LLVM minutes.
  static constexpr int64_t kOverCommit = 2;

  void consider(const Allocate& a, const Target& target) {
    std::set<const VarNode*> mine;
    int64_t available = std::max(1, target.vector_registers), width = std::max(64, target.vector_bits);
    for (const Access& access : accesses_of(a.body, a.buffer)) {
      if (!access.indices) return;
      int64_t copies = 1;
      for (const VarRange& loop : access.loops) {
        bool indexes = false;
        for (const Expr& i : *access.indices) indexes = indexes || uses_var(i, loop.var.get());
        if (!indexes) continue;
        std::optional<int64_t> extent = const_int(loop.range.extent);
        if (!extent) return;
        copies *= *extent;
        mine.insert(loop.var.get());
      }
      for (const Expr& i : *access.indices)
        for (const Var& v : vars_of(i))
          if (!mine.contains(v.get()) && !v->dtype.is_handle()) return;  // a variable from outside: never constant
      int64_t lanes = access.indices->empty() ? 1 : access.indices->back()->dtype.lanes;
      int64_t registers = (lanes * a.buffer->dtype.bits + width - 1) / width;  // a scalar takes a whole one
      if (copies * registers > kOverCommit * available) return;
    }
    vars_.insert(mine.begin(), mine.end());
  }
  std::set<const VarNode*> vars_;
};

class Unroll : public Rewriter {
 public:
  Unroll(const RegisterLoops& registers, const PassContext& context) : registers_(registers), context_(context) {}
  std::optional<Refusal> refusal;
  using Rewriter::operator();
  Stmt operator()(const Stmt& s) override {
    if (refusal) return s;
    if (const AttrStmt* a = as<AttrStmt>(s); a && a->key == "pragma_auto_unroll_max_step") {
      int64_t saved = std::exchange(max_step_, const_int(a->value).value_or(0));
      Stmt body = (*this)(a->body);
      max_step_ = saved;
      return body;
    }
    if (const AttrStmt* a = as<AttrStmt>(s); a && a->key.starts_with("pragma_unroll")) return (*this)(a->body);
    const For* loop = as<For>(s);
    if (!loop) return Rewriter::operator()(s);
    int64_t saved = max_step_;
    if (auto it = loop->annotations.find("pragma_auto_unroll_max_step"); it != loop->annotations.end())
      if (const int64_t* n = it->second.get<int64_t>()) max_step_ = *n;
    Stmt mapped = Rewriter::operator()(s);
    loop = as<For>(mapped);
    Stmt result = loop ? expand(mapped, *loop) : mapped;
    max_step_ = saved;
    return result;
  }

 private:
  Stmt expand(const Stmt& s, const For& loop) {
    std::optional<int64_t> extent = const_int(loop.extent);
    bool asked = loop.loop_kind == ForKind::unrolled;
    if (asked && !extent) {
      context_.note(fmt::format("loop {} of unknown extent is not unrolled", loop.var->name));
      auto copy = edit(loop);
      copy->loop_kind = ForKind::serial;
      return finish(std::move(copy));
    }
    if (!extent || (loop.loop_kind != ForKind::serial && !asked)) return s;
    bool tile = registers_.contains(loop.var.get());
    bool fits = max_step_ > 0 && !has_loop(loop.body) && statements(loop.body) * *extent <= max_step_;
    if (!asked && !tile && !fits) return s;
    int64_t size = statements(loop.body) * *extent;
    total_ += size;
    if (size > context_.options.max_code || total_ > 4 * context_.options.max_code) {
      refusal = Refusal(unroll_too_large, fmt::format("unrolling loop {} makes {} statements, more than max_code = {}",
                                                      loop.var->name, size, context_.options.max_code));
      return s;
    }
    int64_t min = const_int(loop.min).value_or(0);
    std::vector<Stmt> copies;
    for (int64_t i = 0; i < *extent; ++i) {
      Stmt copy = substitute(loop.body, {{loop.var.get(), int_imm(min + i, loop.var->dtype)}});
      copies.push_back(i + 1 < *extent && has_binding(copy) ? refresh(copy) : copy);
    }
    return make_seq(std::move(copies));
  }
  // Loops, lets and allocations need fresh names in each copy.
  static bool has_binding(const Stmt& s) {
    bool found = false;
    walk_stmts(s, [&](const Stmt& c) {
      found = found || as<For>(c) || as<Bind>(c) || as<Allocate>(c);
      return !found;
    });
    return found;
  }
  const RegisterLoops& registers_;
  const PassContext& context_;
  int64_t max_step_ = 0, total_ = 0;
};

const Register<Pass> pass{"unroll_loops", "unrolled loops, automatic unrolling, loops over register tiles",
                          Pass{Form::flat,
                               Form::flat,
                               {"vectorize_loops"},
                               [](const FunctionRef& f, const PassContext& context) -> Result<FunctionRef> {
                                 RegisterLoops registers(f->body, context.target);
                                 Unroll unroll(registers, context);
                                 Stmt body = unroll(f->body);
                                 if (unroll.refusal) return refuse(*unroll.refusal);
                                 return with_body(*f, drop_dead(body));
                               }}};

}  // namespace

}  // namespace tilewright::lowering
