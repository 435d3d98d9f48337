#include "ir/expr.h"

#include <atomic>
#include <bit>

#include "ir/build.h"
#include "ir/program.h"

namespace tilewright {

uint64_t fresh_id() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

Hash64 hash_field(const Expr& e) { return e ? e->hash : 0x4e; }
Hash64 hash_field(const Var& v) { return v ? v->hash : 0x56; }
Hash64 hash_field(const Buffer& b) { return b ? hash_combine(0x42, b->id) : 0x42; }
Hash64 hash_field(const Stmt& s) { return s ? s->hash : 0x53; }
Hash64 hash_field(const std::string& s) { return hash_text(s); }
Hash64 hash_field(double x) { return std::bit_cast<uint64_t>(x); }
Hash64 hash_field(const Operation* op) { return op ? hash_text(op->name) : 0; }

Hash64 hash_field(const AttrDict& dict) {
  Hash64 h = dict.size();
  for (const auto& [key, value] : dict) h = hash_combine(hash_combine(h, hash_text(key)), hash_attr(value));
  return h;
}

namespace {
struct AttrHash {
  Hash64 operator()(std::monostate) const { return 1; }
  Hash64 operator()(bool v) const { return v ? 3 : 2; }
  Hash64 operator()(int64_t v) const { return hash_combine(4, static_cast<uint64_t>(v)); }
  Hash64 operator()(double v) const { return hash_combine(5, std::bit_cast<uint64_t>(v)); }
  Hash64 operator()(const std::string& v) const { return hash_combine(6, hash_text(v)); }
  Hash64 operator()(const AttrList& v) const {
    Hash64 h = 7;
    for (const Attr& item : v) h = hash_combine(h, hash_attr(item));
    return h;
  }
  Hash64 operator()(const AttrDict& v) const { return hash_combine(8, hash_field(v)); }
  Hash64 operator()(const Expr& v) const { return hash_combine(9, hash_field(v)); }
};
}  // namespace

Hash64 hash_attr(const Attr& a) { return std::visit(AttrHash{}, a.value); }

bool operator==(const Attr& a, const Attr& b) {
  if (a.value.index() != b.value.index()) return false;
  if (auto* e = a.get<Expr>()) return hash_field(*e) == hash_field(*b.get<Expr>());
  if (auto* list = a.get<AttrList>()) return *list == *b.get<AttrList>();
  if (auto* dict = a.get<AttrDict>()) return *dict == *b.get<AttrDict>();
  return hash_attr(a) == hash_attr(b);
}

Var make_var(std::string name, DType dtype) {
  auto node = std::make_unique<VarNode>();
  node->dtype = dtype;
  node->name = std::move(name);
  node->id = fresh_id();
  return finish(std::move(node));
}

Buffer make_buffer(std::string name, DType dtype, std::vector<Expr> shape, std::string scope) {
  auto node = std::make_unique<BufferNode>();
  node->data = make_var(name, kHandle);
  node->name = std::move(name);
  node->id = fresh_id();
  node->dtype = dtype;
  node->shape = std::move(shape);
  node->scope = std::move(scope);
  return Buffer(node.release());
}

// --- statements ------------------------------------------------------------------------------------------------------

std::vector<Stmt> seq_items(const Stmt& s) {
  if (const Seq* seq = as<Seq>(s)) return seq->stmts;
  if (!s || is_no_op(s)) return {};
  return {s};
}

bool is_no_op(const Stmt& s) {
  if (!s) return true;
  const Evaluate* evaluate = as<Evaluate>(s);
  return evaluate && const_int(evaluate->value).has_value();
}

Stmt make_seq(std::vector<Stmt> stmts) {
  std::vector<Stmt> flat;
  for (const Stmt& s : stmts)
    for (const Stmt& item : seq_items(s)) flat.push_back(item);
  if (flat.empty()) return make_stmt<Evaluate>(int_imm(0));
  if (flat.size() == 1) return flat[0];
  return make_stmt<Seq>(std::move(flat));
}

Stmt make_loop(Var var, Expr extent, Stmt body, ForKind kind) {
  Expr zero = int_imm(0, var->dtype);
  return make_stmt<For>(std::move(var), zero, std::move(extent), Expr(), kind, std::string(), AttrDict(),
                        std::move(body));
}

// --- functions -------------------------------------------------------------------------------------------------------

const Function* Program::find(std::string_view function) const {
  for (const FunctionRef& f : functions)
    if (f->name == function) return f.get();
  return nullptr;
}

const Function* Program::main() const {
  if (const Function* f = find("main")) return f;
  const Function* only = nullptr;
  for (const FunctionRef& f : functions) {
    if (!f->schedulable) continue;
    if (only) return nullptr;
    only = f.get();
  }
  return only;
}

FunctionRef with_body(const Function& f, Stmt body) {
  auto copy = std::make_unique<Function>(f);
  copy->body = std::move(body);
  return FunctionRef(copy.release());
}

FunctionRef with_attr(const Function& f, const std::string& key, Attr value) {
  auto copy = std::make_unique<Function>(f);
  copy->attrs[key] = std::move(value);
  return FunctionRef(copy.release());
}

ProgramRef with_function(const Program& p, FunctionRef f) {
  auto copy = std::make_unique<Program>(p);
  for (FunctionRef& old : copy->functions)
    if (old->name == f->name) {
      old = std::move(f);
      return ProgramRef(copy.release());
    }
  copy->functions.push_back(std::move(f));
  return ProgramRef(copy.release());
}

ProgramRef make_program(std::vector<FunctionRef> functions, std::string name) {
  auto program = std::make_unique<Program>();
  program->functions = std::move(functions);
  program->name = std::move(name);
  return ProgramRef(program.release());
}

}  // namespace tilewright
