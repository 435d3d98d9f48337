// The reader of program text: syntax tree (python_syntax.h) → IR. Private to ir/parse*.cpp; the public face is parse.h.
//   parse_module.cpp  modules, functions, parameters      parse_buffer.cpp  buffers, accesses, regions
//   parse_stmt.cpp    statements                          parse_block.cpp   blocks, axes, signatures
//   parse_expr.cpp    operators, types, literals          parse_call.cpp    T.<name>(…) expressions
//   parse_attr.cpp    annotation values, argument lists
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include "ir/build.h"
#include "ir/equal.h"
#include "ir/parse.h"
#include "ir/text_codes.h"

namespace tilewright::text {

/// A value with the mark of Python's untyped numbers: literals take the type of what they meet. Null `e`: an error was
/// reported.
struct Operand {
  Expr e;
  bool literal = false;
  explicit operator bool() const { return static_cast<bool>(e); }
};

struct Poison {};  ///< its definition had an error: uses are silent
struct EnvThread {
  std::string axis;
  DType dtype;
};
/// `x: T.int32 = e` that is assigned again: one element of a local buffer, used by name.
struct Cell {
  Buffer buffer;
};
using Meaning = std::variant<Poison, Expr, Buffer, const py::Expr*, EnvThread, std::vector<Expr>, Cell>;
/// What a name stands for: a value, a buffer, a constant (its syntax), a thread axis that is not launched yet, several
/// values.
struct Binding {
  Meaning meaning;
  TextRange where;
  int level = 0;
};

/// The arguments of a call, sorted into named slots; absent ones are null.
struct Args {
  std::array<const py::Expr*, 14> slot{};
  std::vector<const py::Expr*> rest;  ///< positional ones after the slots, where the signature ends in "*"
  const py::Expr* operator[](size_t i) const { return slot[i]; }
};

/// A sequence of statements, some of which enclose all that follow them (let, allocation, attribute).
class Body {
 public:
  using Open = std::function<Stmt(Stmt)>;
  void add(Stmt s) { parts_.back().stmts.push_back(std::move(s)); }
  void open(Open f) {
    parts_.back().open = std::move(f);
    parts_.emplace_back();
  }
  size_t openings() const { return parts_.size() - 1; }
  Stmt finish();

 private:
  struct Part {
    std::vector<Stmt> stmts;
    Open open;
  };
  std::vector<Part> parts_{1};
};

/// The block whose statements are being read; the function's root when there is none around.
struct BlockFrame {
  std::unique_ptr<Block> node = std::make_unique<Block>();
  bool has_reads = false, has_writes = false, is_root = false;
  int level = 0;  ///< scope level of its direct statements
  TextRange where;
};

class Reader {
 public:
  Reader(const py::Tree& tree, ErrorList& errors) : tree_(tree), errors_(errors), spans_(tree.source) {}

  ProgramRef program();
  SourceMap take_spans() { return std::move(spans_); }
  Diagnostics take_warnings() { return std::move(warnings_); }
  /// Before program(): see Extents.
  void fix(const Extents& extents) { extents_ = extents; }
  /// After program(): values that nothing took.
  Diagnostics unused_extents() const;

  // For expressions outside programs.
  void define(std::string_view name, Meaning, TextRange where = {});
  Operand operand(const py::Expr*);
  Expr value(const py::Expr* e) { return concrete(operand(e), e); }
  std::optional<ParsedLambda> lambda(const py::Lambda&, int arity);

 private:
  // --- errors and names (parse_attr.cpp, parse_expr.cpp)
  Diagnostic& error(const RefusalCode&, TextRange, std::string message);
  Note note(std::string message, TextRange where) { return errors_.note(std::move(message), where); }
  Operand fail(const RefusalCode& code, TextRange where, std::string message) {
    error(code, where, std::move(message));
    return {};
  }
  std::string source_of(const py::Expr*) const;  ///< for helps that can be pasted
  const Binding* find(std::string_view name);
  const Binding* resolve(const py::Name&);                           ///< reports undefined-name
  void define_new(std::string_view name, Meaning, TextRange where);  ///< reports duplicate-name within one scope
  void poison(const py::Expr* target);
  struct Scope {
    explicit Scope(Reader& r) : reader(r), undo(r.undo_.size()) { ++r.level_; }
    ~Scope() { reader.leave(undo); }
    Reader& reader;
    size_t undo;
  };
  void leave(size_t undo);
  /// The name after `T.` ("axis.spatial"), or "" when the expression is not of the language. Valid until the next call.
  std::string_view t_name(const py::Expr*);
  std::string_view callee(const py::Expr* e) {
    const py::Call* c = py::as<py::Call>(e);
    return c ? t_name(c->function) : std::string_view{};
  }
  bool is_module_alias(std::string_view name, bool ir) const;
  const py::Expr* constant(const py::Expr*);  ///< follows names of top-level constants

  // --- arguments and attribute values (parse_attr.cpp)
  /// `signature`: "shape dtype? data? *": required, optional, variadic.
  std::optional<Args> arguments(const py::Call&, std::string_view function, std::string_view signature);
  std::optional<std::string> text_value(const py::Expr*, const char* what);
  std::optional<int64_t> int_value(const py::Expr*, const char* what);
  std::optional<bool> bool_value(const py::Expr*, const char* what);
  std::optional<DType> dtype_value(const py::Expr*);
  std::optional<DType> dtype_named(std::string_view name, TextRange where);
  std::optional<Attr> attr_value(const py::Expr*);
  std::optional<AttrDict> attr_dict(const py::Expr*);
  bool items_of(const py::Expr*,
                std::vector<const py::Expr*>& out);  ///< items of a tuple or list, or the expression itself

  // --- expressions (parse_expr.cpp, parse_call.cpp)
  Expr concrete(const Operand&, const py::Expr*);
  Expr typed(const Operand&, DType, TextRange);  ///< a literal as this type; other values unchanged
  Expr converted(const py::Expr*, DType);        ///< value converted as a store converts it
  Expr boolean(const py::Expr*);
  Expr integer(const py::Expr*);
  Operand literal_arithmetic(py::Op, const Expr& a, const Expr& b, TextRange);
  Operand arithmetic(py::Op, const Operand& a, const Operand& b, TextRange);
  Operand quotient(BinaryOp, const Expr& a, const Expr& b, TextRange);  ///< reports a constant divisor of zero
  bool unify(Operand& a, Operand& b, TextRange where);
  Operand unary(const py::Unary&);
  Operand compare(const py::Compare&);
  Operand logical(const py::Binary&);
  Operand name(const py::Name&);
  Operand attribute(const py::Attribute&);
  Operand call(const py::Call&);
  Operand language_call(const py::Call&, std::string_view name);
  Operand node_spelling(const py::Call&, std::string_view name, BinaryOp);
  Operand operation_call(const py::Call&, std::string_view name, const Operation*);
  Operand typed_constant(const py::Call&, std::string_view name, DType);
  Operand extern_call(const py::Call&, std::string_view name);
  Operand pointer_call(const py::Call&, std::string_view name);
  Operand structure_call(const py::Call&, std::string_view name);
  Operand method_call(const py::Call&, const py::Attribute&);
  Operand unknown_name(TextRange where, std::string_view name);
  std::optional<Expr> limit_value(std::string_view name, DType);
  bool operation_call_known(std::string_view name);
  Range range_between(Expr begin, Expr end);

  // --- buffers (parse_buffer.cpp)
  Buffer buffer(const py::Expr*, bool report = true);
  struct BufferSpec {
    DType dtype = kFloat32;
    std::vector<Expr> shape, strides;
    Expr elem_offset;
    Var data;
    std::string scope = "global";
    int align = 64, offset_factor = 0;
    AttrDict annotations;
  };
  std::optional<BufferSpec> buffer_spec(const Args&, size_t first_slot);
  Buffer make(std::string_view name, const BufferSpec&, TextRange);
  Expr extent(const py::Expr*);
  bool positive(const Expr& extent, const char* of, TextRange);  ///< reports a constant extent below 1
  bool addressable(const BufferSpec&, TextRange shape);          ///< reports a size of 2^63 bytes or more
  Operand load(const py::Subscript&);
  bool indices(const Buffer&, const py::Expr* index, TextRange, std::vector<Expr>& out);
  std::optional<BufferRegion> region(const py::Expr*);
  Expr pointer_to(const py::Expr* buffer_element, const py::Expr* indices, TextRange);
  Expr access_pointer(const Buffer&, const Args&, size_t first_slot);

  // --- modules and functions (parse_module.cpp)
  void imports(const py::Import&);
  void top_level(const py::Stmt*, Program&, bool in_class);
  void module_class(const py::ClassDef&, Program&);
  void module_call(const py::Call&, Program&);
  std::optional<bool> marked_function(const py::FunctionDef&,
                                      Function&);  ///< the s_tir mark; none: not a function of the language
  void function(const py::FunctionDef&, Program&);
  void scalar_parameter(const py::Parameter&, Function&);
  void buffer_parameter(const py::Parameter&, Param&);
  struct Facts {
    bool blocks = false, block_allocs = false;
    std::unordered_set<std::string_view> reassigned;
  };
  void scan(py::Stmts, Facts&);
  const py::With* root_statement(py::Stmts);

  // --- statements (parse_stmt.cpp)
  using OnOpen = std::function<void(Body::Open)>;
  Stmt sequence(py::Stmts);
  Stmt scoped(py::Stmts body) {
    Scope scope(*this);
    return sequence(body);
  }
  void statement(const py::Stmt*, Body&);
  void call_statement(const py::Call&, TextRange, Body&);
  void assign(const py::Assign&, Body&);
  bool assign_call(const py::Call&, std::string_view callee, const py::Name& target, TextRange, Body&);
  void bind_value(const py::Name&, Expr value, TextRange, Body&);
  void symbolic(const py::Name&, DType);
  /// The value given for an extent that is being declared, as a literal; null: none.
  const py::Expr* fixed(std::string_view name);
  void annotated(const py::AnnotatedAssign&, Body&);
  void augmented(const py::AugmentedAssign&, Body&);
  void store(const Buffer&, std::vector<Expr> index, const Operand& value, const py::Expr* from, TextRange, Body&);
  void method_statement(const py::Call&, const py::Attribute&, TextRange, Body&);
  void for_loop(const py::For&, Body&);
  struct LoopHeader {
    Expr min, extent, step;
    ForKind kind = ForKind::serial;
    std::string thread;
    AttrDict annotations;
  };
  bool loop_headers(const py::Expr* iterable, std::vector<LoopHeader>&);
  bool grid(const py::Call&, std::vector<LoopHeader>&);
  bool loop_bounds(const py::Expr* first, const py::Expr* second, const py::Expr* step, LoopHeader&);
  std::optional<std::string> thread_axis(const py::Expr*);
  Stmt loop(const Var&, LoopHeader, Stmt body, TextRange);
  void if_statement(const py::If&, Body&);
  void with(const py::With&, Body&);
  bool with_item(const py::WithItem&, const OnOpen&);
  void launch_thread(const py::Call&, const py::Expr* target, const OnOpen&);
  void attribute_statement(const py::Call&, const OnOpen&);
  void hint(const py::Call&, const OnOpen&);
  void flat_buffer(const py::Call&, std::string_view name, const py::Name& target, const OnOpen&);
  void add(Body& body, Stmt s, TextRange where) {
    spans_.add(s.get(), where);
    body.add(std::move(s));
  }

  // --- blocks (parse_block.cpp)
  void block(const py::With&, const py::Call&, Body&);
  bool block_statement(const py::Call&, std::string_view callee);  ///< T.reads, T.where …; false: not one of them
  Stmt finish_block(BlockFrame&);
  void axis(const py::Call&, std::string_view kind, const py::Expr* target);
  void remap(const py::Call&, const py::Expr* target);
  void add_iter(const py::Name&, Range dom, IterType, Expr binding);
  void regions(const py::Call&, bool reads);
  void init(const py::With&, Body&);
  void match_buffer(const py::Call&, const py::Name& target);
  void block_alloc(const py::Call&, std::string_view name, const py::Name& target);

  const py::Tree& tree_;
  ErrorList& errors_;
  SourceMap spans_;
  Extents extents_;
  std::vector<std::string> declared_extents_;
  Diagnostics warnings_;
  std::deque<py::Tree> subtrees_;   ///< of string extents: names point into their texts
  std::optional<TextRange> place_;  ///< where errors of a string extent are shown
  std::unordered_map<std::string_view, Binding> names_;
  std::vector<std::pair<std::string_view, std::optional<Binding>>> undo_;
  int level_ = 0;
  std::string path_;  ///< storage of t_name
  std::unordered_set<std::string_view> language_aliases_{"T"}, module_aliases_{"I"};
  bool default_s_tir_ = false;
  // the function being read
  Function* function_ = nullptr;
  const py::With* root_statement_ = nullptr;  ///< `with T.sblock("root"):` when it is the function's root
  BlockFrame* block_ = nullptr;
  Facts facts_;
  bool classic_allocs_ = false;  ///< T.alloc_buffer allocates in the block (older meaning)
  std::unordered_map<const VarNode*, Range> loops_;
};

/// The IR's operation of a Python operator, where there is one.
std::optional<BinaryOp> binary_op(py::Op);

}  // namespace tilewright::text
