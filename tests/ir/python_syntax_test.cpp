// The syntax tree of Python text: shapes of expressions and statements, ranges, errors and recovery.
#include "ir/python_syntax.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::py {
namespace {

// A compact prefix form of trees, so that a test is one line.
std::string show(const Expr* e);
std::string show(Exprs items) {
  std::string out;
  for (const Expr* e : items) out += (out.empty() ? "" : " ") + show(e);
  return out;
}
std::string show(const Expr* e) {
  if (!e) return "_";
  switch (e->kind) {
    case ExprKind::kName:
      return std::string(as<Name>(e)->id);
    case ExprKind::kInteger:
      return fmt::format("{}", as<Integer>(e)->value);
    case ExprKind::kFloating:
      return fmt::format("{:#}", as<Floating>(e)->value);
    case ExprKind::kString:
      return fmt::format("'{}'", as<String>(e)->value);
    case ExprKind::kConstant:
      return fmt::format("const{}", static_cast<int>(as<Constant>(e)->value));
    case ExprKind::kAttribute:
      return fmt::format("{}.{}", show(as<Attribute>(e)->value), as<Attribute>(e)->name);
    case ExprKind::kSubscript:
      return fmt::format("{}[{}]", show(as<Subscript>(e)->value), show(as<Subscript>(e)->index));
    case ExprKind::kSlice:
      return fmt::format("{}:{}:{}", show(as<Slice>(e)->lower), show(as<Slice>(e)->upper), show(as<Slice>(e)->step));
    case ExprKind::kCall: {
      std::string args = show(as<Call>(e)->args);
      for (const Keyword& k : as<Call>(e)->keywords) args += fmt::format(" {}={}", k.name, show(k.value));
      return fmt::format("{}({})", show(as<Call>(e)->function), args);
    }
    case ExprKind::kTuple:
      return fmt::format("(tuple {})", show(as<Tuple>(e)->items));
    case ExprKind::kList:
      return fmt::format("(list {})", show(as<List>(e)->items));
    case ExprKind::kDict:
      return fmt::format("(dict {} : {})", show(as<Dict>(e)->keys), show(as<Dict>(e)->values));
    case ExprKind::kLambda: {
      std::string params;
      for (const Parameter& p : as<Lambda>(e)->params) params += fmt::format("{}{} ", p.starred ? "*" : "", p.name);
      return fmt::format("(lambda {}: {})", params, show(as<Lambda>(e)->body));
    }
    case ExprKind::kUnary:
      return fmt::format("({} {})", spelling(as<Unary>(e)->op), show(as<Unary>(e)->operand));
    case ExprKind::kBinary:
      return fmt::format("({} {} {})", spelling(as<Binary>(e)->op), show(as<Binary>(e)->a), show(as<Binary>(e)->b));
    case ExprKind::kCompare: {
      std::string out = "(" + show(as<Compare>(e)->items[0]);
      for (size_t i = 0; i < as<Compare>(e)->ops.size(); ++i)
        out += fmt::format(" {} {}", spelling(as<Compare>(e)->ops[i]), show(as<Compare>(e)->items[i + 1]));
      return out + ")";
    }
    case ExprKind::kConditional: {
      const Conditional* c = as<Conditional>(e);
      return fmt::format("(if {} {} {})", show(c->condition), show(c->then_value), show(c->else_value));
    }
    case ExprKind::kStarred:
      return "*" + show(as<Starred>(e)->value);
  }
  return "?";
}

std::string expression(const std::string& text) {
  Tree tree = parse_expression(text, "test");
  if (!tree.expression) return "error " + tree.errors.at(0).code + ": " + tree.errors.at(0).message;
  return show(tree.expression);
}

TEST(PythonSyntax, OperatorsBindAsInPython) {
  EXPECT_EQ(expression("a + b * c - d"), "(- (+ a (* b c)) d)");
  EXPECT_EQ(expression("(a + b) * c"), "(* (+ a b) c)");
  EXPECT_EQ(expression("-a ** -b"), "(- (** a (- b)))");
  EXPECT_EQ(expression("a // 16 % 4"), "(% (// a 16) 4)");
  EXPECT_EQ(expression("a << 1 | b & c ^ d"), "(| (<< a 1) (^ (& b c) d))");
  EXPECT_EQ(expression("not a and b or c < d <= e"), "(or (and (not a) b) (c < d <= e))");
  EXPECT_EQ(expression("a is not None"), "(a is not const0)");
  EXPECT_EQ(expression("a not in b"), "(a not in b)");
  EXPECT_EQ(expression("x if c else y if d else z"), "(if c x (if d y z))");
  EXPECT_EQ(expression("~a - +b"), "(- (~ a) (+ b))");
}

TEST(PythonSyntax, CallsSubscriptsAndDisplays) {
  EXPECT_EQ(expression("T.Buffer((4, 5), \"float32\", strides=[5, 1])"),
            "T.Buffer((tuple 4 5) 'float32' strides=(list 5 1))");
  EXPECT_EQ(expression("A[i, 0:4, ()]"), "A[(tuple i 0:4:_ (tuple ))]");
  EXPECT_EQ(expression("A[()]"), "A[(tuple )]");
  EXPECT_EQ(expression("A[i,]"), "A[(tuple i)]");
  EXPECT_EQ(expression("l[1:][::2]"), "l[1:_:_][_:_:2]");
  EXPECT_EQ(expression("lambda i, *j: (i // 16, i % 16,)"), "(lambda i *j : (tuple (// i 16) (% i 16)))");
  EXPECT_EQ(expression("{\"a\": 1, 'b': [True, None]}"), "(dict 'a' 'b' : 1 (list const1 const0))");
  EXPECT_EQ(expression("f(*a, k=1, **d)"), "f(*a k=1 =d)");
  EXPECT_EQ(expression("a, *b"), "(tuple a *b)");
  EXPECT_EQ(expression("(\n a,  # first\n b\n)"), "(tuple a b)");
}

TEST(PythonSyntax, Literals) {
  EXPECT_EQ(expression("0xFF + 1_000 + 0b101 + 0o17"), "(+ (+ (+ 255 1000) 5) 15)");
  EXPECT_EQ(expression("1.5e-3 + 2. + .5"), "(+ (+ 0.0015 2.0) 0.5)");
  EXPECT_EQ(expression("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(expression("18446744073709551616"),
            "error literal-out-of-range: expected an integer below 2**64, found 18446744073709551616");
  EXPECT_EQ(expression("'a\\n\\x41' \"b\" r'\\n'"), "'a\nAb\\n'");
  EXPECT_EQ(expression("\"\"\"x\n\"y\"\"\""), "'x\n\"y'");
  EXPECT_EQ(expression("'\\u00e9'"), "'é'");
}

TEST(PythonSyntax, ErrorsInExpressions) {
  EXPECT_EQ(expression("a +"), "error unexpected-token: expected an expression, found the end of the line");
  EXPECT_EQ(expression("f(a"), "error unexpected-token: expected `,` or `)`, found the end of the line");
  EXPECT_EQ(expression("f(a $ b)"), "error unexpected-token: unexpected character `$`");
  EXPECT_EQ(expression("f(k=1, 2)"),
            "error unexpected-token: expected a keyword argument, found a positional one after keywords");
  EXPECT_EQ(expression("[x for x in y]"), "error construct-not-supported: comprehensions are not read");
  EXPECT_EQ(expression("f'{x}'"), "error construct-not-supported: formatted strings are not read");
  EXPECT_EQ(expression("'abc"), "error unterminated-string: this string has no closing '");
  EXPECT_EQ(expression("12ab"), "error unexpected-token: expected a number, found `12ab`");
  EXPECT_EQ(expression("a b"), "error unexpected-token: expected the end of the expression, found `b`");
  EXPECT_EQ(expression(""), "error unexpected-token: expected an expression, found the end of the text");
}

TEST(PythonSyntax, NestingIsLimited) {
  EXPECT_EQ(expression(std::string(150, '(') + "a" + std::string(150, ')')), "a");
  std::string message = "error nesting-too-deep: expected at most 200 levels of nesting, found more";
  EXPECT_EQ(expression(std::string(300, '(') + "a" + std::string(300, ')')), message);
  EXPECT_EQ(expression(std::string(100000, '(')), message);
  EXPECT_EQ(expression(std::string(100000, '-') + "a"), message);
  EXPECT_EQ(expression(std::string(100000, '[')), message);
  std::string chain = "a";
  for (int i = 0; i < 3000; ++i) chain += " + a";
  EXPECT_EQ(expression(chain), "error nesting-too-deep: expected at most 1000 operators in a row, found more");
  std::string blocks;
  for (int i = 0; i < 300; ++i) blocks += std::string(static_cast<size_t>(i), ' ') + "if a:\n";
  Tree tree = parse_module(blocks, "test");
  ASSERT_FALSE(tree.errors.empty());
  EXPECT_EQ(tree.errors[0].code, "nesting-too-deep");
}

TEST(PythonSyntax, Statements) {
  Tree tree = parse_module(R"(
import a.b as c
from tvm.script import tir as T, ir as I
@dec
@dec2(1)
class X(Base):
    N = 3; M = 4
    def f[n](self, a: T.handle, *rest, k=1) -> None:
        """doc"""
        for i, j in T.grid(2, 3):
            with T.block("x") as b, y:
                A[i] += 1
                x: T.int32 = 5
            if a: pass
            elif b:
                return a, b
            else:
                while c: break
    # comment at another depth
        assert a, "m"
l1, = g()
a = b = 1)",
                           "test");
  ASSERT_TRUE(tree.errors.empty()) << render_text(tree.errors[0]);
  ASSERT_EQ(tree.body.size(), 5u);
  EXPECT_EQ(as<Import>(tree.body[0])->names[0].alias, "c");
  const Import* from = as<Import>(tree.body[1]);
  EXPECT_EQ(from->names[1].module, "tvm.script");
  EXPECT_EQ(from->names[1].name, "ir");
  EXPECT_EQ(from->names[1].alias, "I");
  const ClassDef* x = as<ClassDef>(tree.body[2]);
  ASSERT_TRUE(x);
  EXPECT_EQ(show(x->decorators), "dec dec2(1)");
  ASSERT_EQ(x->body.size(), 3u);
  const FunctionDef* f = as<FunctionDef>(x->body[2]);
  ASSERT_TRUE(f);
  EXPECT_EQ(f->type_params[0].name, "n");
  ASSERT_EQ(f->params.size(), 4u);
  EXPECT_EQ(show(f->params[1].annotation), "T.handle");
  EXPECT_TRUE(f->params[2].starred);
  EXPECT_EQ(show(f->params[3].default_value), "1");
  ASSERT_EQ(f->body.size(), 3u);
  const For* loop = as<For>(f->body[1]);
  EXPECT_EQ(show(loop->target), "(tuple i j)");
  const With* with = as<With>(loop->body[0]);
  EXPECT_EQ(with->items.size(), 2u);
  EXPECT_EQ(show(with->items[0].target), "b");
  EXPECT_EQ(as<AugmentedAssign>(with->body[0])->op, Op::add);
  EXPECT_EQ(show(as<AnnotatedAssign>(with->body[1])->annotation), "T.int32");
  const If* condition = as<If>(loop->body[1]);
  EXPECT_TRUE(as<Return>(as<If>(condition->orelse[0])->body[0]));
  EXPECT_TRUE(as<While>(as<If>(condition->orelse[0])->orelse[0]));
  EXPECT_EQ(show(as<Assign>(tree.body[3])->targets), "(tuple l1)");
  EXPECT_EQ(show(as<Assign>(tree.body[4])->targets), "a b");
}

TEST(PythonSyntax, RangesCoverTheSource) {
  Tree tree = parse_module("x = (a + b) * f(c,\n      d)\n", "test");
  const Assign* s = as<Assign>(tree.body[0]);
  EXPECT_EQ(tree.source->slice(s->range), "x = (a + b) * f(c,\n      d)");
  EXPECT_EQ(tree.source->slice(s->value->range), "(a + b) * f(c,\n      d)");
  EXPECT_EQ(tree.source->slice(as<Binary>(s->value)->a->range), "a + b");
  Span span = tree.source->span(s->value->range);
  EXPECT_EQ(span.line, 1);
  EXPECT_EQ(span.column, 5);
  EXPECT_EQ(span.end_column, 19);  // cut at the end of the line
}

TEST(PythonSyntax, ColumnsCountCharacters) {
  Tree tree = parse_module("x = \"é→\" + $\n", "test");
  ASSERT_EQ(tree.errors.size(), 1u);
  EXPECT_EQ(tree.errors[0].span.column, 12);
  EXPECT_EQ(tree.errors[0].span.end_column, 13);
}

std::vector<std::string> errors_of(const std::string& text) {
  std::vector<std::string> out;
  for (const Diagnostic& d : parse_module(text, "test").errors)
    out.push_back(fmt::format("{}:{} {}", d.span.line, d.span.column, d.code));
  return out;
}
using Lines = std::vector<std::string>;

TEST(PythonSyntax, RecoversAtTheNextStatementOfTheSameIndentation) {
  EXPECT_EQ(errors_of("for i in range(3:\n    a = $\nb = = 1\nc = (1,\n  2 3\n)\nd = 1\ne = )\n"),
            (Lines{"1:17 unexpected-token", "3:5 unexpected-token", "5:5 unexpected-token", "8:5 unexpected-token"}));
  Tree tree = parse_module("if a:\n    x = 1 +\n    y = 2\nz = 3\n", "test");
  EXPECT_EQ(tree.errors.size(), 1u);
  ASSERT_EQ(tree.body.size(), 2u);
  const If* s = as<If>(tree.body[0]);
  ASSERT_EQ(s->body.size(), 2u);
  ASSERT_TRUE(as<Invalid>(s->body[0]));
  EXPECT_EQ(as<Invalid>(s->body[0])->names[0], "x");
}

TEST(PythonSyntax, AnOpenBracketDoesNotSwallowTheRest) {
  Tree tree = parse_module("x = f(a,\n      b\ny = 1\nwith c:\n    pass\n", "test");
  ASSERT_EQ(tree.errors.size(), 1u);
  EXPECT_EQ(tree.errors[0].span.line, 3);
  ASSERT_EQ(tree.errors[0].notes.size(), 1u);
  EXPECT_EQ(tree.errors[0].notes[0].span.column, 6);
  EXPECT_EQ(tree.body.size(), 3u);
}

TEST(PythonSyntax, Indentation) {
  EXPECT_EQ(errors_of("if a:\n\tb = 1\n\tc = 2\n"), (Lines{"2:1 tab-in-indentation"}));
  EXPECT_EQ(errors_of("if a:\nb = 1\n"), (Lines{"2:1 bad-indentation"}));
  EXPECT_EQ(errors_of("a = 1\n    b = 2\n    c = 3\nd = 4\n"), (Lines{"2:1 bad-indentation"}));
  EXPECT_EQ(errors_of("if a:\n        b = 2\n    c = 3\n    d = 3\ne = 4\n"), (Lines{"3:1 bad-indentation"}));
}

TEST(PythonSyntax, ReportsAtMostTwentyErrors) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "a = )\n";
  EXPECT_EQ(errors_of(text).size(), 20u);
}

}  // namespace
}  // namespace tilewright::py
