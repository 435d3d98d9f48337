// Statements. Loops and blocks carry ids that survive rewriting; ids take no part in hashes or equality.
#pragma once

#include "ir/expr.h"

namespace tilewright {

enum class StmtKind : uint8_t {
#define TW_EXPR(Node)
#define TW_STMT(Node) k##Node,
#include "ir/nodes.def"
#undef TW_EXPR
#undef TW_STMT
};

struct StmtNode : RefCounted {
  StmtKind kind;
  Hash64 hash = 0;
  Hash64 type_key() const { return 0x5354; }

 protected:
  explicit StmtNode(StmtKind k) : kind(k) {}
};
using Stmt = Ref<StmtNode>;

#define TW_STMT_NODE(Node)                             \
  static constexpr StmtKind kKind = StmtKind::k##Node; \
  Node() : StmtNode(kKind) {}

enum class LoopId : uint64_t { none = 0 };
enum class BlockId : uint64_t { none = 0 };
/// Every new loop and block has its own; a copy (edit) keeps it, and is given a fresh one where both stay.
inline LoopId fresh_loop_id() { return static_cast<LoopId>(fresh_id()); }
inline BlockId fresh_block_id() { return static_cast<BlockId>(fresh_id()); }

/// buffer[indices] = value; a vector store when the last index is a Ramp.
struct Store : StmtNode {
  TW_STMT_NODE(Store)
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value;
  TW_FIELDS(buffer, indices, value)
};

/// Two or more statements; never nested directly (make_seq flattens).
struct Seq : StmtNode {
  TW_STMT_NODE(Seq)
  std::vector<Stmt> stmts;
  TW_FIELDS(stmts)
};

enum class ForKind : uint8_t { serial, parallel, vectorized, unrolled, thread_binding };

/// var runs over min, min + step, … while below min + extent (extent counts iterations when step is null).
struct For : StmtNode {
  TW_STMT_NODE(For)
  Var var;
  Expr min, extent;
  Expr step;  ///< null = 1
  ForKind loop_kind = ForKind::serial;
  std::string thread;  ///< thread axis ("blockIdx.x", "vthread", …) when loop_kind is thread_binding
  AttrDict annotations;
  Stmt body;
  LoopId id = fresh_loop_id();
  TW_FIELDS(var, min, extent, step, loop_kind, thread, annotations, body)
};

enum class IterType : uint8_t { spatial, reduction, scan, opaque };

/// A block iter: its variable, domain, type, and the value bound to it in each instance.
struct Iter {
  Var var;
  Range dom;
  IterType type = IterType::spatial;
  Expr binding;
  TW_FIELDS(var, dom, type, binding)
};

/// An alias of a region of another buffer, visible in the block.
struct MatchBuffer {
  Buffer buffer;
  BufferRegion source;
  TW_FIELDS(buffer, source)
};

/// A block with its bindings (schedule-language.md §2). `predicate` null = always; a skipped instance does nothing.
/// `init` (may be null) runs before the body in the instance whose reduction iters are all at their domain minimum.
struct Block : StmtNode {
  TW_STMT_NODE(Block)
  std::string name;
  std::vector<Iter> iters;
  Expr predicate;
  std::vector<BufferRegion> reads, writes;
  std::vector<Buffer> allocs;
  std::vector<MatchBuffer> matches;
  AttrDict annotations;
  Stmt init, body;
  BlockId id = fresh_block_id();
  TW_FIELDS(name, iters, predicate, reads, writes, allocs, matches, annotations, init, body)
};

struct If : StmtNode {
  TW_STMT_NODE(If)
  Expr condition;
  Stmt then_body, else_body;  ///< else_body may be null
  TW_FIELDS(condition, then_body, else_body)
};

struct While : StmtNode {
  TW_STMT_NODE(While)
  Expr condition;
  Stmt body;
  TW_FIELDS(condition, body)
};

/// `var = value`, immutable, visible in body.
struct Bind : StmtNode {
  TW_STMT_NODE(Bind)
  Var var;
  Expr value;
  Stmt body;
  TW_FIELDS(var, value, body)
};

struct Evaluate : StmtNode {
  TW_STMT_NODE(Evaluate)
  Expr value;
  TW_FIELDS(value)
};

struct Assert : StmtNode {
  TW_STMT_NODE(Assert)
  Expr condition;
  std::string message;
  TW_FIELDS(condition, message)
};

/// An attribute on the rest of the sequence; `node` is a variable, a string or null.
struct AttrStmt : StmtNode {
  TW_STMT_NODE(AttrStmt)
  Expr node;
  std::string key;
  Expr value;
  Stmt body;
  TW_FIELDS(node, key, value, body)
};

/// A flat allocation, visible in body.
struct Allocate : StmtNode {
  TW_STMT_NODE(Allocate)
  Buffer buffer;
  AttrDict annotations;
  Stmt body;
  TW_FIELDS(buffer, annotations, body)
};

/// A view `buffer` over its data pointer, visible in body.
struct DeclBuffer : StmtNode {
  TW_STMT_NODE(DeclBuffer)
  Buffer buffer;
  Stmt body;
  TW_FIELDS(buffer, body)
};

struct Break : StmtNode {
  TW_STMT_NODE(Break)
  TW_FIELDS()
};
struct Continue : StmtNode {
  TW_STMT_NODE(Continue)
  TW_FIELDS()
};
/// Ends the function (in a device function: the thread). value may be null.
struct Return : StmtNode {
  TW_STMT_NODE(Return)
  Expr value;
  TW_FIELDS(value)
};

Hash64 hash_field(const Stmt&);

template <class Node>
const Node* as(const Stmt& s) {
  return s && s->kind == Node::kKind ? static_cast<const Node*>(s.get()) : nullptr;
}

/// make_stmt<Store>(buffer, indices, value): fields in the order of TW_FIELDS.
template <class Node, class... Fields>
Ref<Node> make_stmt(Fields&&... values) {
  auto node = std::make_unique<Node>();
  node->tw_fields() = std::forward_as_tuple(std::forward<Fields>(values)...);
  return finish(std::move(node));
}

/// Flattens nested sequences and drops nulls; one statement stands alone; no statement gives `Evaluate(0)`.
Stmt make_seq(std::vector<Stmt> stmts);
/// The statements of a sequence, or the statement itself.
std::vector<Stmt> seq_items(const Stmt&);
bool is_no_op(const Stmt&);
/// A serial loop from 0.
Stmt make_loop(Var var, Expr extent, Stmt body, ForKind kind = ForKind::serial);

}  // namespace tilewright
