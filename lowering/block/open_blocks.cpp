// Blocks lose their iters: bindings are substituted, predicates become `if`, allocations become statements around the
// body, aliases (match_buffer) become accesses of their source. A block keeps name, regions and annotations.
#include "ir/analysis/regions.h"
#include "ir/build.h"
#include "ir/rewrite.h"
#include "ir/visit.h"
#include "lowering/index.h"
#include "lowering/pass.h"

namespace tilewright::lowering {

namespace {

TW_REFUSAL_CODE(alias_not_resolvable, "alias-not-resolvable",
                "a match_buffer cannot be expressed as accesses of its source");

// Accesses of an alias become accesses of its source.
class ResolveAlias : public Rewriter {
 public:
  explicit ResolveAlias(const MatchBuffer& m) : match_(m) {
    // Unit dimensions of the source may be dropped in the alias: match dimensions from the last.
    int alias_rank = m.buffer->rank(), source_rank = m.source.buffer->rank();
    dimension_.assign(static_cast<size_t>(source_rank), -1);
    int a = alias_rank - 1;
    for (int d = source_rank - 1; d >= 0; --d) {
      bool unit = is_const(m.source.region[static_cast<size_t>(d)].extent, 1);
      if (a < 0 || (unit && d > a && !is_const(m.buffer->shape[static_cast<size_t>(a)], 1))) continue;
      dimension_[static_cast<size_t>(d)] = a--;
    }
    resolved_ = a < 0;
  }
  bool resolved() const { return resolved_; }
  Expr operator()(const Expr& e) override {
    Expr mapped = Rewriter::operator()(e);
    const Load* node = as<Load>(mapped);
    if (node && node->buffer.same_as(match_.buffer)) check_rows(node->indices);
    return node && node->buffer.same_as(match_.buffer) ? load(match_.source.buffer, indices(node->indices)) : mapped;
  }
  Stmt operator()(const Stmt& s) override {
    Stmt mapped = Rewriter::operator()(s);
    const Store* node = as<Store>(mapped);
    if (node && node->buffer.same_as(match_.buffer)) check_rows(node->indices);
    return node && node->buffer.same_as(match_.buffer)
               ? Stmt(make_stmt<Store>(match_.source.buffer, indices(node->indices), node->value))
               : mapped;
  }

 private:
  /// A vector that runs through whole rows of the alias must run through rows of the source that follow each other.
  void check_rows(const std::vector<Expr>& alias) {
    const std::vector<int> rows = whole_rows(*match_.buffer, alias);
    if (rows.empty()) return;
    const std::vector<int> of_source = whole_rows(*match_.source.buffer, indices(alias));
    resolved_ = resolved_ && of_source.size() >= rows.size() &&
                std::equal(rows.begin(), rows.end(), of_source.end() - static_cast<std::ptrdiff_t>(rows.size()));
  }
  std::vector<Expr> indices(const std::vector<Expr>& alias) const {
    std::vector<Expr> out;
    for (size_t d = 0; d < dimension_.size(); ++d) {
      const Expr& min = match_.source.region[d].min;
      out.push_back(dimension_[d] < 0 ? min : shift_index(alias[static_cast<size_t>(dimension_[d])], min));
    }
    return out;
  }
  const MatchBuffer& match_;
  std::vector<int> dimension_;
  bool resolved_ = true;
};

class OpenBlocks : public Rewriter {
 public:
  using Rewriter::operator();
  std::optional<Refusal> refusal;
  Stmt operator()(const Stmt& s) override {
    const Block* block = as<Block>(s);
    if (!block) return Rewriter::operator()(s);
    VarMap bindings;
    for (const Iter& iter : block->iters) bindings[iter.var.get()] = iter.binding;
    auto copy = edit(*block);
    copy->iters.clear();
    copy->predicate = nullptr;
    for (BufferRegion& r : copy->reads) r = substitute(r, bindings);
    for (BufferRegion& r : copy->writes) r = substitute(r, bindings);
    Stmt body = substitute(block->body, bindings);
    for (const MatchBuffer& m : block->matches) {
      MatchBuffer bound{m.buffer, substitute(m.source, bindings)};
      ResolveAlias alias(bound);
      if (alias.resolved()) body = alias(body);
      if (!alias.resolved()) {
        std::string name = m.buffer->name;
        refusal =
            Refusal(alias_not_resolvable,
                    "alias " + name + " has more dimensions than its source, or rows that are apart in the source");
        return s;
      }
    }
    copy->matches.clear();
    body = (*this)(body);
    for (size_t i = block->allocs.size(); i-- > 0;) body = make_stmt<Allocate>(block->allocs[i], AttrDict(), body);
    copy->allocs.clear();
    copy->body = body;
    Stmt opened = finish(std::move(copy));
    Expr predicate = substitute(block->predicate, bindings);
    return is_true(predicate) ? opened : Stmt(make_stmt<If>(predicate, opened, Stmt()));
  }
};

const Register<Pass> pass{
    "open_blocks", "bindings are substituted, predicates become if, allocations become statements",
    Pass{Form::scheduled, Form::opened, {}, [](const FunctionRef& f, const PassContext&) -> Result<FunctionRef> {
           OpenBlocks open;
           Stmt body = open(f->body);
           if (open.refusal) return refuse(*open.refusal);
           return with_body(*f, body);
         }}};

}  // namespace

}  // namespace tilewright::lowering
