// Random integer expressions against a tree walk that knows no intervals: what the compiler proves (no wrap, no check
// needed, one address instruction for a sum) must never change a value.
#include <gtest/gtest.h>

#include <map>

#include "ir/print.h"
#include "support/rng.h"
#include "tests/ir/execution.h"
#include "tests/ir/small_programs.h"

namespace tilewright {
namespace {

int64_t wrapped(int64_t v, DType t) {
  if (t.is_bool()) return v != 0;
  if (t.bits == 64) return v;
  const int drop = 64 - t.bits;
  const uint64_t up = static_cast<uint64_t>(v) << drop;
  return t.is_int() ? static_cast<int64_t>(up) >> drop : static_cast<int64_t>(up >> drop);
}

/// Values are held sign- or zero-extended; uint64 as its bit pattern.
class TreeWalk {
 public:
  std::map<const VarNode*, int64_t> env;
  std::vector<int64_t> table;

  int64_t operator()(const Expr& e) const {
    if (const VarNode* v = as<VarNode>(e)) return env.at(v);
    if (const IntImm* i = as<IntImm>(e)) return i->value;
    if (const Cast* c = as<Cast>(e)) return wrapped((*this)(c->value), e->dtype);
    if (const Not* n = as<Not>(e)) return !(*this)(n->a);
    if (const Load* l = as<Load>(e)) return table.at(static_cast<size_t>((*this)(l->indices[0])));
    if (const Select* s = as<Select>(e)) return (*this)((*this)(s->condition) ? s->then_value : s->else_value);
    if (const Call* c = as<Call>(e)) return (*this)((*this)(c->args[0]) ? c->args[1] : c->args[2]);
    const Binary* b = as<Binary>(e);
    return wrapped(apply(b->op, (*this)(b->a), (*this)(b->b), b->a->dtype), e->dtype);
  }

 private:
  static int64_t apply(BinaryOp op, int64_t a, int64_t b, DType t) {
    using U = unsigned __int128;
    const __int128 x = t.is_uint() && t.bits == 64 ? static_cast<__int128>(static_cast<uint64_t>(a)) : a;
    const __int128 y = t.is_uint() && t.bits == 64 ? static_cast<__int128>(static_cast<uint64_t>(b)) : b;
    __int128 r = 0;
    switch (op) {
      case BinaryOp::add:
        r = x + y;
        break;
      case BinaryOp::sub:
        r = x - y;
        break;
      case BinaryOp::mul:
        r = static_cast<__int128>(static_cast<U>(x) * static_cast<U>(y));
        break;
      case BinaryOp::trunc_div:
        r = x / y;
        break;
      case BinaryOp::trunc_mod:
        r = x % y;
        break;
      case BinaryOp::floor_div:
        r = x / y - (x % y != 0 && (x < 0) != (y < 0));
        break;
      case BinaryOp::floor_mod:
        r = x % y + (x % y != 0 && (x < 0) != (y < 0) ? y : 0);
        break;
      case BinaryOp::min:
        r = std::min(x, y);
        break;
      case BinaryOp::max:
        r = std::max(x, y);
        break;
      case BinaryOp::eq:
        r = x == y;
        break;
      case BinaryOp::ne:
        r = x != y;
        break;
      case BinaryOp::lt:
        r = x < y;
        break;
      case BinaryOp::le:
        r = x <= y;
        break;
      case BinaryOp::gt:
        r = x > y;
        break;
      case BinaryOp::ge:
        r = x >= y;
        break;
      case BinaryOp::logical_and:
        r = x && y;
        break;
      case BinaryOp::logical_or:
        r = x || y;
        break;
      case BinaryOp::div:
        TW_UNREACHABLE();
    }
    return static_cast<int64_t>(static_cast<U>(r));
  }
};

class Generator {
 public:
  Generator(uint64_t seed, Var i, Var j, Buffer table)
      : rng_(seed), i_(std::move(i)), j_(std::move(j)), table_(std::move(table)) {}

  Expr value(DType t, int depth) {
    if (depth == 0 || rng_.below(6) == 0) return leaf(t);
    switch (rng_.below(10)) {
      case 0:
        return cast(t, value(any_type(), depth - 1));
      case 1:
        return make<Select>(t, condition(depth - 1), value(t, depth - 1), value(t, depth - 1));
      case 2:
        return call(t, operation("if_then_else"), {condition(depth - 1), value(t, depth - 1), value(t, depth - 1)});
      case 3: {
        constexpr BinaryOp divisions[] = {BinaryOp::floor_div, BinaryOp::floor_mod, BinaryOp::trunc_div,
                                          BinaryOp::trunc_mod};
        constexpr int64_t divisors[] = {1, 2, 3, 4, 7, 8, 16, -1, -3, -8};
        const int64_t d = divisors[rng_.below(t.is_uint() ? 7 : 10)];
        return make<Binary>(t, divisions[rng_.below(4)], value(t, depth - 1), int_imm(d, t));
      }
      case 4:
        return make<Binary>(t, rng_.below(2) ? BinaryOp::min : BinaryOp::max, value(t, depth - 1), value(t, depth - 1));
      default: {
        constexpr BinaryOp sums[] = {BinaryOp::add, BinaryOp::sub, BinaryOp::mul};
        return make<Binary>(t, sums[rng_.below(3)], value(t, depth - 1),
                            rng_.below(2) ? int_imm(rng_.between(-9, 9), t) : value(t, depth - 1));
      }
    }
  }
  DType any_type() {
    static const char* const names[] = {"int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"};
    return *DType::parse(names[rng_.below(7)]);
  }

 private:
  Expr leaf(DType t) {
    switch (rng_.below(4)) {
      case 0:
        return cast(t, i_);
      case 1:
        return cast(t, j_);
      case 2:
        return cast(t, load(table_, {i_}));
      default:
        return int_imm(rng_.chance(0.2) ? static_cast<int64_t>(rng_.next_u64()) : rng_.between(-20, 20), t);
    }
  }
  Expr condition(int depth) {
    const DType t = any_type();
    constexpr BinaryOp comparisons[] = {BinaryOp::eq, BinaryOp::ne, BinaryOp::lt,
                                        BinaryOp::le, BinaryOp::gt, BinaryOp::ge};
    Expr c = make<Binary>(kBool, comparisons[rng_.below(6)], value(t, depth), value(t, depth));
    if (rng_.below(4) == 0) c = make<Not>(kBool, c);
    if (depth > 0 && rng_.below(4) == 0)
      c = make<Binary>(kBool, rng_.below(2) ? BinaryOp::logical_and : BinaryOp::logical_or, c, condition(depth - 1));
    return c;
  }

  Rng rng_;
  Var i_, j_;
  Buffer table_;
};

TEST(InterpretFuzz, IntegerExpressionsEqualATreeWalk) {
  constexpr int64_t n = 6, m = 5;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    Var i = make_var("i"), j = make_var("j");
    Buffer table = make_buffer("table", kInt32, shape_of({n}));
    Generator generate(seed, i, j, table);
    const DType t = generate.any_type();
    Buffer out = make_buffer("out", t, shape_of({n, m}));
    const Expr e = generate.value(t, 5);
    FunctionRef f =
        make_function({table, out}, make_loop(i, int_imm(n), make_loop(j, int_imm(m), store(out, {i, j}, e))));
    std::vector<Tensor> args = {Tensor(kInt32, {n}), Tensor(t, {n, m})};
    fill(args[0], seed % 2 ? InputSet::random : InputSet::small, seed, 0);
    Result<InterpretStats> stats = interpret(*f, args);
    ASSERT_TRUE(stats) << "seed " << seed << ": " << print(e) << "\n" << render_text(stats.error().diagnostic());
    TreeWalk walk;
    for (int64_t k = 0; k < n; ++k) walk.table.push_back(args[0].get_int(k));
    for (int64_t a = 0; a < n; ++a)
      for (int64_t b = 0; b < m; ++b) {
        walk.env = {{i.get(), a}, {j.get(), b}};
        ASSERT_EQ(args[1].get_int(a * m + b), walk(e))
            << "seed " << seed << " at i = " << a << ", j = " << b << ": " << print(e);
      }
  }
}

}  // namespace
}  // namespace tilewright
