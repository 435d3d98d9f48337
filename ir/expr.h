// Expressions, buffers and regions. Nodes are immutable and reference-counted; a node is made by `make<Node>(…)` and
// changed by copying (`edit`, then `finish`). Every node stores a hash of its content, in which variables and buffers
// count by their id: equal hashes mean the same computation on the same variables (the key of memo tables). Equality up
// to renaming is ir/equal.h. Read next: stmt.h, program.h, build.h (constructors with folding), visit.h, rewrite.h.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ir/dtype.h"
#include "support/check.h"
#include "support/hash.h"
#include "support/ref.h"
#include "support/reflect.h"

namespace tilewright {

enum class ExprKind : uint8_t {
#define TW_EXPR(Node) k##Node,
#define TW_STMT(Node)
#include "ir/nodes.def"
#undef TW_EXPR
#undef TW_STMT
};

struct ExprNode : RefCounted {
  ExprKind kind;
  DType dtype;
  Hash64 hash = 0;
  Hash64 type_key() const { return dtype.key(); }

 protected:
  explicit ExprNode(ExprKind k) : kind(k) {}
};
using Expr = Ref<ExprNode>;

/// A process-wide fresh number. Ids grow in creation order, which is the only thing that results may depend on.
uint64_t fresh_id();

#define TW_EXPR_NODE(Node)                             \
  static constexpr ExprKind kKind = ExprKind::k##Node; \
  Node() : ExprNode(kKind) {}

/// A scalar variable: loop variable, block iter, parameter, let. Identity is the id; the name is only a hint for
/// printing.
struct VarNode : ExprNode {
  TW_EXPR_NODE(VarNode)
  std::string name;
  uint64_t id = 0;
  TW_FIELDS(id)
};
using Var = Ref<VarNode>;

/// An integer, unsigned or bool constant (unsigned 64-bit values keep their bit pattern).
struct IntImm : ExprNode {
  TW_EXPR_NODE(IntImm)
  int64_t value = 0;
  TW_FIELDS(value)
};

/// A floating constant of any floating type, kept as the double that was written.
struct FloatImm : ExprNode {
  TW_EXPR_NODE(FloatImm)
  double value = 0;
  TW_FIELDS(value)
};

/// A string constant: only as an argument of a call.
struct StringImm : ExprNode {
  TW_EXPR_NODE(StringImm)
  std::string value;
  TW_FIELDS(value)
};

/// Value conversion: float → int truncates, int → float rounds to nearest even, narrower ints wrap.
struct Cast : ExprNode {
  TW_EXPR_NODE(Cast)
  Expr value;
  TW_FIELDS(value)
};

/// floor_div and floor_mod round towards minus infinity (the mod has the divisor's sign); trunc_* towards zero.
/// div is for floats. Comparisons and and/or give bool. and/or may evaluate both sides.
enum class BinaryOp : uint8_t {
  add,
  sub,
  mul,
  div,
  trunc_div,
  trunc_mod,
  floor_div,
  floor_mod,
  min,
  max,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or
};

/// Both operands have one type (lanes included).
struct Binary : ExprNode {
  TW_EXPR_NODE(Binary)
  BinaryOp op = BinaryOp::add;
  Expr a, b;
  TW_FIELDS(op, a, b)
};

struct Not : ExprNode {
  TW_EXPR_NODE(Not)
  Expr a;
  TW_FIELDS(a)
};

/// May evaluate both arms; `T.if_then_else` (a Call) evaluates one.
struct Select : ExprNode {
  TW_EXPR_NODE(Select)
  Expr condition, then_value, else_value;
  TW_FIELDS(condition, then_value, else_value)
};

struct BufferNode;
using Buffer = Ref<BufferNode>;

/// Reads one element, or lanes() elements when the last index is a Ramp or Broadcast. One integer index per dimension.
struct Load : ExprNode {
  TW_EXPR_NODE(Load)
  Buffer buffer;
  std::vector<Expr> indices;
  TW_FIELDS(buffer, indices)
};

/// base, base + stride, … (lanes values).
struct Ramp : ExprNode {
  TW_EXPR_NODE(Ramp)
  Expr base, stride;
  int lanes = 1;
  TW_FIELDS(base, stride, lanes)
};

struct Broadcast : ExprNode {
  TW_EXPR_NODE(Broadcast)
  Expr value;
  int lanes = 1;
  TW_FIELDS(value, lanes)
};

/// Lane i is lane indices[i] of the concatenated vectors.
struct Shuffle : ExprNode {
  TW_EXPR_NODE(Shuffle)
  std::vector<Expr> vectors, indices;
  TW_FIELDS(vectors, indices)
};

struct Let : ExprNode {
  TW_EXPR_NODE(Let)
  Var var;
  Expr value, body;
  TW_FIELDS(var, value, body)
};

struct Operation;  // ir/operation.h

/// Call of a registered operation (math, intrinsic, extern function…). `op` is never null and lives for ever.
struct Call : ExprNode {
  TW_EXPR_NODE(Call)
  const Operation* op = nullptr;
  std::vector<Expr> args;
  TW_FIELDS(op, args)
};

/// [min, min + extent).
struct Range {
  Expr min, extent;
  TW_FIELDS(min, extent)
};

/// Values of annotations and attributes: None, bool, int, float, str, list, dict, or an expression.
struct Attr;
using AttrList = std::vector<Attr>;
using AttrDict = std::map<std::string, Attr>;
struct Attr {
  std::variant<std::monostate, bool, int64_t, double, std::string, AttrList, AttrDict, Expr> value;

  Attr() = default;
  Attr(bool v) : value(v) {}
  Attr(int v) : value(static_cast<int64_t>(v)) {}
  Attr(int64_t v) : value(v) {}
  Attr(double v) : value(v) {}
  Attr(const char* v) : value(std::string(v)) {}
  Attr(std::string v) : value(std::move(v)) {}
  Attr(AttrList v) : value(std::move(v)) {}
  Attr(AttrDict v) : value(std::move(v)) {}
  Attr(Expr v) : value(std::move(v)) {}

  template <class T>
  const T* get() const {
    return std::get_if<T>(&value);
  }
  bool is_none() const { return std::holds_alternative<std::monostate>(value); }
};
/// Structural: expressions by content hash; int, float and bool are distinct.
bool operator==(const Attr& a, const Attr& b);
Hash64 hash_attr(const Attr&);

/// A named piece of memory. Element [i…] of a buffer without strides lies in row-major order.
struct BufferNode : RefCounted {
  std::string name;  ///< hint for printing; identity is the id
  uint64_t id = 0;
  Var data;     ///< the pointer (dtype handle); two buffers that share it are aliases
  DType dtype;  ///< element type
  std::vector<Expr> shape;
  std::vector<Expr> strides;     ///< in elements; empty = compact row-major
  Expr elem_offset;              ///< null = 0
  std::string scope = "global";  ///< schedule-language.md §1.2
  int align = 64;                ///< bytes
  int offset_factor = 0;         ///< elem_offset is a multiple of this many elements; 0 = no promise
  int rank() const { return static_cast<int>(shape.size()); }
};
/// A compact buffer with a fresh id and data variable.
Buffer make_buffer(std::string name, DType, std::vector<Expr> shape, std::string scope = "global");
/// The same contents under a fresh id, changed by `change(node)` before it is frozen.
template <class F>
Buffer derive_buffer(const Buffer& b, F&& change);

struct BufferRegion {
  Buffer buffer;
  std::vector<Range> region;  ///< one range per dimension
  TW_FIELDS(buffer, region)
};

// --- making nodes
// ------------------------------------------------------------------------------------------------------

Hash64 hash_field(const Expr&);
Hash64 hash_field(const Var&);
Hash64 hash_field(const Buffer&);
Hash64 hash_field(const std::string&);
Hash64 hash_field(double);
Hash64 hash_field(const AttrDict&);
Hash64 hash_field(const Operation*);
template <class T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
Hash64 hash_field(T x) {
  return static_cast<Hash64>(x);
}
template <class T>
  requires Reflected<T>
Hash64 hash_field(const T& x);
template <class T>
Hash64 hash_field(const std::vector<T>& items) {
  Hash64 h = items.size();
  for (const T& item : items) h = hash_combine(h, hash_field(item));
  return h;
}
template <class T>
  requires Reflected<T>
Hash64 hash_field(const T& x) {
  Hash64 h = 0;
  for_each_field(x, [&](const auto& field) { h = hash_combine(h, hash_field(field)); });
  return h;
}

/// Freezes a node that was just filled: computes its hash.
template <class Node>
Ref<Node> finish(std::unique_ptr<Node> node) {
  Hash64 h = hash_combine(static_cast<Hash64>(node->kind) + 1, node->type_key());
  for_each_field(*node, [&](const auto& field) { h = hash_combine(h, hash_field(field)); });
  node->hash = h;
  return Ref<Node>(node.release());
}

/// A private copy to change; freeze it with finish().
template <class Node>
std::unique_ptr<Node> edit(const Node& node) {
  return std::make_unique<Node>(node);
}

/// make<Binary>(dtype, op, a, b): fields in the order of TW_FIELDS.
template <class Node, class... Fields>
Ref<Node> make(DType dtype, Fields&&... values) {
  auto node = std::make_unique<Node>();
  node->dtype = dtype;
  node->tw_fields() = std::forward_as_tuple(std::forward<Fields>(values)...);
  return finish(std::move(node));
}

Var make_var(std::string name, DType dtype = kInt32);

/// The node as a Node, or null.
template <class Node>
const Node* as(const Expr& e) {
  return e && e->kind == Node::kKind ? static_cast<const Node*>(e.get()) : nullptr;
}

template <class F>
Buffer derive_buffer(const Buffer& b, F&& change) {
  auto node = std::make_unique<BufferNode>(*b);
  node->id = fresh_id();
  change(*node);
  return Buffer(node.release());
}

}  // namespace tilewright
