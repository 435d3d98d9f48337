#include "ir/equal.h"

#include <unordered_map>

#include "ir/operation.h"

namespace tilewright {

namespace {

// Walks two trees in step. Binders pair their variables and buffers; uses must agree with the pairing.
class Compare {
 public:
  Compare(bool map_free, Difference* difference) : map_free_(map_free), difference_(difference) {}

  bool exprs(const Expr& a, const Expr& b) {
    if (!a || !b) return !a && !b;
    if (a->kind != b->kind || a->dtype != b->dtype) return differ(a.get(), b.get(), "kind or type");
    if (const VarNode* va = as<VarNode>(a)) return use(va, as<VarNode>(b)) || differ(a.get(), b.get(), "variable");
    switch (a->kind) {
#define TW_EXPR(Node)     \
  case ExprKind::k##Node: \
    return nodes(static_cast<const Node&>(*a), static_cast<const Node&>(*b));
#define TW_STMT(Node)
#include "ir/nodes.def"
#undef TW_EXPR
#undef TW_STMT
    }
    return false;
  }

  bool stmts(const Stmt& a, const Stmt& b) {
    if (!a || !b) return (!a && !b) || differ(a.get(), b.get(), "a statement on one side only");
    if (a->kind != b->kind) return differ(a.get(), b.get(), "kind of statement");
    switch (a->kind) {
#define TW_EXPR(Node)
#define TW_STMT(Node)     \
  case StmtKind::k##Node: \
    return nodes(static_cast<const Node&>(*a), static_cast<const Node&>(*b));
#include "ir/nodes.def"
#undef TW_EXPR
#undef TW_STMT
    }
    return false;
  }

  bool functions(const Function& a, const Function& b) {
    if (a.params.size() != b.params.size()) return differ(&a, &b, "number of parameters");
    for (size_t i = 0; i < a.params.size(); ++i) {
      const Param &pa = a.params[i], &pb = b.params[i];
      if (!pa.buffer != !pb.buffer) return differ(&a, &b, "kind of parameter");
      if (pa.buffer ? !bind(pa.buffer, pb.buffer) : !bind(pa.var, pb.var)) return differ(&a, &b, "type of parameter");
    }
    if (a.return_type != b.return_type) return differ(&a, &b, "return type");
    if (a.attrs != b.attrs) return differ(&a, &b, "function attributes");
    return stmts(a.body, b.body);
  }

  bool differ(const void* a, const void* b, const char* what) {
    if (difference_ && difference_->what.empty()) *difference_ = {a, b, what};
    return false;
  }

 private:
  bool use(const VarNode* a, const VarNode* b) {
    auto it = vars_.find(a);
    if (it != vars_.end()) return it->second == b;
    if (!map_free_) return a == b && !vars_back_.count(b);
    return pair(a, b);
  }
  bool pair(const VarNode* a, const VarNode* b) {
    if (a->dtype != b->dtype) return false;
    auto [back, fresh] = vars_back_.emplace(b, a);
    if (!fresh && back->second != a) return false;
    vars_[a] = b;
    return true;
  }
  bool bind(const Var& a, const Var& b) {
    if (!a || !b) return !a && !b;
    if (a->dtype != b->dtype) return false;
    vars_[a.get()] = b.get();
    vars_back_[b.get()] = a.get();
    return true;
  }
  bool bind(const Buffer& a, const Buffer& b) {
    if (a->dtype != b->dtype || a->scope != b->scope || a->align != b->align || a->offset_factor != b->offset_factor)
      return false;
    bool saved = map_free_;
    map_free_ = true;  // symbolic extents and strides are bound by the buffer that names them first
    bool equal = fields(a->shape, b->shape) && fields(a->strides, b->strides) &&
                 exprs(a->elem_offset, b->elem_offset) && use(a->data.get(), b->data.get());
    map_free_ = saved;
    buffers_[a.get()] = b.get();
    return equal;
  }

  // Fields. Loads, regions and stores use buffers; names take no part.
  bool fields(const Expr& a, const Expr& b) { return exprs(a, b); }
  bool fields(const Stmt& a, const Stmt& b) { return stmts(a, b); }
  bool fields(const Buffer& a, const Buffer& b) {
    auto it = buffers_.find(a.get());
    if (it != buffers_.end()) return it->second == b.get();
    if (a.same_as(b)) return true;
    return map_free_ && bind(a, b);
  }
  bool fields(const AttrDict& a, const AttrDict& b) { return a == b; }
  template <class T>
  bool fields(const std::vector<T>& a, const std::vector<T>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)
      if (!fields(a[i], b[i])) return false;
    return true;
  }
  template <class T>
    requires Reflected<T>
  bool fields(const T& a, const T& b) {
    return all_field_pairs(a, b, [this](const auto& fa, const auto& fb) { return this->fields(fa, fb); });
  }
  template <class T>
    requires(!Reflected<T>)
  bool fields(const T& a, const T& b) {
    return a == b;
  }

  template <class Node>
  bool nodes(const Node& a, const Node& b) {
    return fields(a, b) || differ(&a, &b, "content");
  }
  bool nodes(const For& a, const For& b) {
    bool header = exprs(a.min, b.min) && exprs(a.extent, b.extent) && exprs(a.step, b.step) &&
                  a.loop_kind == b.loop_kind && a.thread == b.thread && a.annotations == b.annotations &&
                  bind(a.var, b.var);
    return header ? stmts(a.body, b.body) : differ(&a, &b, "loop header");
  }
  bool nodes(const Let& a, const Let& b) {
    return exprs(a.value, b.value) && bind(a.var, b.var) && exprs(a.body, b.body);
  }
  bool nodes(const Bind& a, const Bind& b) {
    return exprs(a.value, b.value) && bind(a.var, b.var) && stmts(a.body, b.body);
  }
  bool nodes(const AttrStmt& a, const AttrStmt& b) {
    // env_thread variables are introduced by their attribute
    const VarNode *va = as<VarNode>(a.node), *vb = as<VarNode>(b.node);
    bool node_equal = va && vb ? use(va, vb) || pair(va, vb) : exprs(a.node, b.node);
    return (node_equal && a.key == b.key && exprs(a.value, b.value)) ? stmts(a.body, b.body)
                                                                     : differ(&a, &b, "attribute");
  }
  bool nodes(const Allocate& a, const Allocate& b) {
    return bind(a.buffer, b.buffer) && a.annotations == b.annotations ? stmts(a.body, b.body)
                                                                      : differ(&a, &b, "allocation");
  }
  bool nodes(const DeclBuffer& a, const DeclBuffer& b) {
    return bind(a.buffer, b.buffer) ? stmts(a.body, b.body) : differ(&a, &b, "buffer declaration");
  }
  bool nodes(const Block& a, const Block& b) {
    if (a.iters.size() != b.iters.size()) return differ(&a, &b, "number of block iters");
    for (size_t i = 0; i < a.iters.size(); ++i)
      if (!exprs(a.iters[i].binding, b.iters[i].binding)) return differ(&a, &b, "block binding");
    if (!exprs(a.predicate, b.predicate)) return differ(&a, &b, "block predicate");
    for (size_t i = 0; i < a.iters.size(); ++i) {
      const Iter &x = a.iters[i], &y = b.iters[i];
      if (x.type != y.type || !fields(x.dom, y.dom) || !bind(x.var, y.var)) return differ(&a, &b, "block iter");
    }
    if (a.allocs.size() != b.allocs.size() || a.matches.size() != b.matches.size())
      return differ(&a, &b, "number of block allocations");
    for (size_t i = 0; i < a.allocs.size(); ++i)
      if (!bind(a.allocs[i], b.allocs[i])) return differ(&a, &b, "block allocation");
    for (size_t i = 0; i < a.matches.size(); ++i)
      if (!fields(a.matches[i].source, b.matches[i].source) || !bind(a.matches[i].buffer, b.matches[i].buffer))
        return differ(&a, &b, "match_buffer");
    if (!fields(a.reads, b.reads)) return differ(&a, &b, "block reads");
    if (!fields(a.writes, b.writes)) return differ(&a, &b, "block writes");
    if (!(a.annotations == b.annotations)) return differ(&a, &b, "block annotations");
    return stmts(a.init, b.init) && stmts(a.body, b.body);
  }

  bool map_free_;
  Difference* difference_;
  std::unordered_map<const VarNode*, const VarNode*> vars_, vars_back_;
  std::unordered_map<const BufferNode*, const BufferNode*> buffers_;
};

// Variables and buffers hash as the order in which they are first met.
class HashTree {
 public:
  Hash64 function(const Function& f) {
    Hash64 h = hash_field(f.attrs);
    for (const Param& p : f.params) h = hash_combine(h, p.buffer ? field(p.buffer) : field(Expr(p.var)));
    h = hash_combine(h, f.return_type.key());
    return hash_combine(h, field(f.body));
  }

 private:
  Hash64 field(const Expr& e) {
    if (!e) return 0x4e;
    if (const VarNode* v = as<VarNode>(e)) return hash_combine(v->dtype.key(), number(vars_, v));
    Hash64 h = hash_combine(static_cast<Hash64>(e->kind) + 1, e->dtype.key());
    switch (e->kind) {
#define TW_EXPR(Node)     \
  case ExprKind::k##Node: \
    return hash_combine(h, field(static_cast<const Node&>(*e)));
#define TW_STMT(Node)
#include "ir/nodes.def"
#undef TW_EXPR
#undef TW_STMT
    }
    return h;
  }
  Hash64 field(const Stmt& s) {
    if (!s) return 0x53;
    Hash64 h = static_cast<Hash64>(s->kind) + 101;
    switch (s->kind) {
#define TW_EXPR(Node)
#define TW_STMT(Node)     \
  case StmtKind::k##Node: \
    return hash_combine(h, field(static_cast<const Node&>(*s)));
#include "ir/nodes.def"
#undef TW_EXPR
#undef TW_STMT
    }
    return h;
  }
  Hash64 field(const Var& v) { return field(Expr(v)); }
  Hash64 field(const Buffer& b) {
    size_t before = buffers_.size();
    Hash64 h = hash_combine(0x42, number(buffers_, b.get()));
    if (buffers_.size() == before) return h;
    h = hash_combine(hash_combine(h, b->dtype.key()), hash_text(b->scope));
    h = hash_combine(hash_combine(h, static_cast<uint64_t>(b->align)), static_cast<uint64_t>(b->offset_factor));
    return hash_combine(hash_combine(hash_combine(h, field(b->shape)), field(b->strides)), field(b->elem_offset));
  }
  Hash64 field(const Block& b) {
    auto copy = edit(b);
    copy->name.clear();
    return fields_of(*copy);
  }
  template <class T>
  Hash64 field(const std::vector<T>& items) {
    Hash64 h = items.size();
    for (const T& item : items) h = hash_combine(h, field(item));
    return h;
  }
  template <class T>
  Hash64 field(const T& x) {
    if constexpr (Reflected<T>)
      return fields_of(x);
    else
      return hash_field(x);
  }
  template <class T>
  Hash64 fields_of(const T& x) {
    Hash64 h = 0;
    for_each_field(x, [&](const auto& f) { h = hash_combine(h, field(f)); });
    return h;
  }
  template <class T>
  static uint64_t number(std::unordered_map<const T*, uint64_t>& table, const T* key) {
    return table.emplace(key, table.size()).first->second;
  }
  std::unordered_map<const VarNode*, uint64_t> vars_;
  std::unordered_map<const BufferNode*, uint64_t> buffers_;
};

}  // namespace

bool structural_equal(const Function& a, const Function& b, Difference* difference) {
  return Compare(true, difference).functions(a, b);
}

bool structural_equal(const Program& a, const Program& b, Difference* difference) {
  if (a.functions.size() != b.functions.size()) {
    if (difference) *difference = {&a, &b, "number of functions"};
    return false;
  }
  for (const FunctionRef& f : a.functions) {
    const Function* g = b.find(f->name);
    if (!g && a.functions.size() == 1) g = b.functions[0].get();
    if (!g) {
      if (difference) *difference = {f.get(), nullptr, "function " + f->name + " is missing"};
      return false;
    }
    if (!structural_equal(*f, *g, difference)) return false;
  }
  return true;
}

bool structural_equal(const Stmt& a, const Stmt& b, bool map_free, Difference* difference) {
  return Compare(map_free, difference).stmts(a, b);
}
bool structural_equal(const Expr& a, const Expr& b, bool map_free) { return Compare(map_free, nullptr).exprs(a, b); }

Hash64 structural_hash(const Function& f) { return HashTree().function(f); }

Hash64 structural_hash(const Program& p) {
  // The name of a lone function takes no part (structural_equal ignores it too).
  if (p.functions.size() == 1) return structural_hash(*p.functions[0]);
  std::map<std::string, Hash64> by_name;
  for (const FunctionRef& f : p.functions) by_name[f->name] = structural_hash(*f);
  Hash64 h = p.functions.size();
  for (const auto& [name, value] : by_name) h = hash_combine(hash_combine(h, hash_text(name)), value);
  return h;
}

bool same(const Expr& a, const Expr& b) {
  if (a.same_as(b)) return true;
  return a && b && a->hash == b->hash && Compare(false, nullptr).exprs(a, b);
}

}  // namespace tilewright
