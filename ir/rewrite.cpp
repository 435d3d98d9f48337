#include "ir/rewrite.h"

#include "ir/build.h"

namespace tilewright {

namespace {

using OnExpr = std::function<Expr(const Expr&)>;
using OnStmt = std::function<Stmt(const Stmt&)>;

// map_field returns whether the field changed; `out` is written only then. One overload per field type.
template <class T>
bool map_field(const T&, T&, const OnExpr&, const OnStmt&)
  requires(!Reflected<T>)
{
  return false;
}
bool map_field(const Expr& in, Expr& out, const OnExpr& f, const OnStmt&) {
  if (!in) return false;
  Expr mapped = f(in);
  if (mapped.same_as(in)) return false;
  out = std::move(mapped);
  return true;
}
bool map_field(const Stmt& in, Stmt& out, const OnExpr&, const OnStmt& f) {
  if (!in) return false;
  Stmt mapped = f(in);
  if (mapped.same_as(in)) return false;
  out = std::move(mapped);
  return true;
}
template <class T>
  requires Reflected<T>
bool map_field(const T& in, T& out, const OnExpr& fe, const OnStmt& fs);
template <class T>
bool map_field(const std::vector<T>& in, std::vector<T>& out, const OnExpr& fe, const OnStmt& fs) {
  bool changed = false;
  for (size_t i = 0; i < in.size(); ++i) changed |= map_field(in[i], out[i], fe, fs);
  return changed;
}
template <class T>
  requires Reflected<T>
bool map_field(const T& in, T& out, const OnExpr& fe, const OnStmt& fs) {
  auto from = in.tw_fields();
  auto to = out.tw_fields();
  return [&]<size_t... I>(std::index_sequence<I...>) {
    bool changed = false;
    ((changed |= map_field(std::get<I>(from), std::get<I>(to), fe, fs)), ...);
    return changed;
  }(std::make_index_sequence<std::tuple_size_v<decltype(from)>>());
}

template <class Node, class Handle>
Handle map_node(const Handle& handle, const OnExpr& fe, const OnStmt& fs) {
  const Node& node = static_cast<const Node&>(*handle);
  auto copy = edit(node);
  if (!map_field(node, *copy, fe, fs)) return handle;
  if constexpr (std::is_same_v<Node, Seq>) return make_seq(std::move(copy->stmts));
  return finish(std::move(copy));
}

}  // namespace

Expr map_children(const Expr& e, const OnExpr& f) {
  static const OnStmt none;
  switch (e->kind) {
    case ExprKind::kVarNode:
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kStringImm:
      return e;
    case ExprKind::kCast:
      return map_node<Cast>(e, f, none);
    case ExprKind::kBinary: {  // rebuilt through the folding constructor: substitution then folds as it goes
      const Binary* node = as<Binary>(e);
      Expr a = f(node->a), b = f(node->b);
      return a.same_as(node->a) && b.same_as(node->b) ? e : binary(node->op, std::move(a), std::move(b));
    }
    case ExprKind::kNot:
      return map_node<Not>(e, f, none);
    case ExprKind::kSelect:
      return map_node<Select>(e, f, none);
    case ExprKind::kLoad:
      return map_node<Load>(e, f, none);
    case ExprKind::kRamp:
      return map_node<Ramp>(e, f, none);
    case ExprKind::kBroadcast:
      return map_node<Broadcast>(e, f, none);
    case ExprKind::kShuffle:
      return map_node<Shuffle>(e, f, none);
    case ExprKind::kLet:
      return map_node<Let>(e, f, none);
    case ExprKind::kCall:
      return map_node<Call>(e, f, none);
  }
  TW_UNREACHABLE();
}

Stmt map_children(const Stmt& s, const OnExpr& on_expr, const OnStmt& on_stmt) {
  switch (s->kind) {
#define TW_EXPR(Node)
#define TW_STMT(Node)     \
  case StmtKind::k##Node: \
    return map_node<Node>(s, on_expr, on_stmt);
#include "ir/nodes.def"
#undef TW_EXPR
#undef TW_STMT
  }
  TW_UNREACHABLE();
}

namespace {

class Substitute : public Rewriter {
 public:
  explicit Substitute(const VarMap& map) : map_(map) {}
  Expr operator()(const Expr& e) override {
    if (const VarNode* v = as<VarNode>(e)) {
      auto it = map_.find(v);
      return it == map_.end() ? e : it->second;
    }
    return Rewriter::operator()(e);
  }
  using Rewriter::operator();

 private:
  const VarMap& map_;
};

class ReplaceBuffers : public Rewriter {
 public:
  explicit ReplaceBuffers(const BufferMap& map) : map_(map) {
    for (const auto& [from, to] : map) data_.emplace(from->data.get(), to->data);
  }
  Expr operator()(const Expr& e) override {
    if (const VarNode* v = as<VarNode>(e)) {
      auto it = data_.find(v);
      return it == data_.end() ? e : Expr(it->second);
    }
    Expr mapped = Rewriter::operator()(e);
    const Load* node = as<Load>(mapped);
    if (!node) return mapped;
    auto it = map_.find(node->buffer.get());
    return it == map_.end() ? mapped : load(it->second, node->indices);
  }
  Stmt operator()(const Stmt& s) override {
    Stmt mapped = Rewriter::operator()(s);
    if (const Store* node = as<Store>(mapped)) return swap(mapped, *node, &Store::buffer);
    if (const Allocate* node = as<Allocate>(mapped)) return swap(mapped, *node, &Allocate::buffer);
    if (const DeclBuffer* node = as<DeclBuffer>(mapped)) return swap(mapped, *node, &DeclBuffer::buffer);
    if (const Block* node = as<Block>(mapped)) return block(mapped, *node);
    return mapped;
  }

 private:
  Buffer map(const Buffer& b) const {
    auto it = map_.find(b.get());
    return it == map_.end() ? b : it->second;
  }
  template <class Node>
  Stmt swap(const Stmt& s, const Node& node, Buffer Node::* field) const {
    Buffer mapped = map(node.*field);
    if (mapped.same_as(node.*field)) return s;
    auto copy = edit(node);
    copy.get()->*field = mapped;
    return finish(std::move(copy));
  }
  Stmt block(const Stmt& s, const Block& node) const {
    auto copy = edit(node);
    bool changed = false;
    auto visit = [&](Buffer& b) {
      Buffer mapped = map(b);
      changed |= !mapped.same_as(b);
      b = mapped;
    };
    for (BufferRegion& r : copy->reads) visit(r.buffer);
    for (BufferRegion& r : copy->writes) visit(r.buffer);
    for (Buffer& b : copy->allocs) visit(b);
    for (MatchBuffer& m : copy->matches) {
      visit(m.buffer);
      visit(m.source.buffer);
    }
    return changed ? Stmt(finish(std::move(copy))) : s;
  }
  const BufferMap& map_;
  std::unordered_map<const VarNode*, Var> data_;
};

class Refresh : public Rewriter {
 public:
  Expr operator()(const Expr& e) override {
    if (const VarNode* v = as<VarNode>(e)) {
      auto it = vars_.find(v);
      return it == vars_.end() ? e : it->second;
    }
    if (const Let* let = as<Let>(e)) {
      Expr value = (*this)(let->value);
      Var fresh = renew(let->var);
      return make<Let>(e->dtype, fresh, value, (*this)(let->body));
    }
    Expr mapped = Rewriter::operator()(e);
    return mapped;
  }
  Stmt operator()(const Stmt& s) override {
    if (const For* loop = as<For>(s)) {
      auto copy = edit(*loop);
      copy->min = (*this)(loop->min);
      copy->extent = (*this)(loop->extent);
      if (loop->step) copy->step = (*this)(loop->step);
      copy->var = renew(loop->var);
      copy->id = fresh_loop_id();
      copy->body = (*this)(loop->body);
      return finish(std::move(copy));
    }
    if (const Bind* bind = as<Bind>(s)) {
      Expr value = (*this)(bind->value);
      Var fresh = renew(bind->var);
      return make_stmt<Bind>(fresh, value, (*this)(bind->body));
    }
    if (const Block* block = as<Block>(s)) {
      auto copy = edit(*block);
      for (Iter& iter : copy->iters) iter.binding = (*this)(iter.binding);
      for (Iter& iter : copy->iters) iter.var = renew(iter.var);
      for (Buffer& b : copy->allocs) b = renew(b);
      copy->id = fresh_block_id();
      return Rewriter::operator()(Stmt(finish(std::move(copy))));
    }
    if (const Allocate* alloc = as<Allocate>(s)) {
      auto copy = edit(*alloc);
      copy->buffer = renew(alloc->buffer);
      return Rewriter::operator()(Stmt(finish(std::move(copy))));
    }
    return Rewriter::operator()(s);
  }
  const BufferMap& buffers() const { return buffers_; }

 private:
  Var renew(const Var& v) {
    Var fresh = make_var(v->name, v->dtype);
    vars_[v.get()] = fresh;
    return fresh;
  }
  Buffer renew(const Buffer& b) {
    Buffer fresh = derive_buffer(b, [&](BufferNode& n) { n.data = make_var(n.name, kHandle); });
    buffers_[b.get()] = fresh;
    return fresh;
  }
  VarMap vars_;
  BufferMap buffers_;
};

}  // namespace

Expr substitute(const Expr& e, const VarMap& map) { return !e || map.empty() ? e : Substitute(map)(e); }
Stmt substitute(const Stmt& s, const VarMap& map) { return !s || map.empty() ? s : Substitute(map)(s); }

BufferRegion substitute(const BufferRegion& r, const VarMap& map) {
  BufferRegion out = r;
  for (Range& range : out.region) range = {substitute(range.min, map), substitute(range.extent, map)};
  return out;
}

Stmt replace_buffers(const Stmt& s, const BufferMap& map) { return !s || map.empty() ? s : ReplaceBuffers(map)(s); }
Expr replace_buffers(const Expr& e, const BufferMap& map) { return !e || map.empty() ? e : ReplaceBuffers(map)(e); }

Stmt refresh(const Stmt& s) {
  Refresh rewriter;
  Stmt out = rewriter(s);
  return replace_buffers(out, rewriter.buffers());
}

namespace {

// Returns null when `from` is not below `s`, so that only the path is rebuilt.
Stmt replace_below(const Stmt& s, const StmtNode* from, const Stmt& to) {
  if (s.get() == from) return to ? to : make_seq({});
  Stmt replaced;
  auto try_child = [&](const Stmt& child) { return child ? replace_below(child, from, to) : Stmt(); };
  if (const For* loop = as<For>(s)) {
    if (!(replaced = try_child(loop->body))) return nullptr;
    auto copy = edit(*loop);
    copy->body = replaced;
    return finish(std::move(copy));
  }
  if (const Block* block = as<Block>(s)) {
    if ((replaced = try_child(block->body))) {
      auto copy = edit(*block);
      copy->body = replaced;
      return finish(std::move(copy));
    }
    if (!(replaced = try_child(block->init))) return nullptr;
    auto copy = edit(*block);
    copy->init = replaced;
    return finish(std::move(copy));
  }
  if (const Seq* seq = as<Seq>(s)) {
    for (size_t i = 0; i < seq->stmts.size(); ++i)
      if ((replaced = try_child(seq->stmts[i]))) {
        std::vector<Stmt> items = seq->stmts;
        items[i] = replaced;
        return make_seq(std::move(items));
      }
    return nullptr;
  }
  bool found = false;
  Stmt out = map_children(
      s, [](const Expr& e) { return e; },
      [&](const Stmt& child) {
        if (found || !(replaced = replace_below(child, from, to))) return child;
        found = true;
        return replaced;
      });
  return found ? out : Stmt();
}

}  // namespace

Stmt replace_stmt(const Stmt& root, const StmtNode* from, const Stmt& to) {
  Stmt out = replace_below(root, from, to);
  TW_CHECK(out, "the statement to replace is not in the tree");
  return out;
}

}  // namespace tilewright
