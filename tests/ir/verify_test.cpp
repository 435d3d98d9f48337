// The structural verifier: what it reports, with a place, and what it must leave alone.
#include "ir/verify.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "ir/parse.h"
#include "ir/print.h"

namespace tilewright {
namespace {

std::string header =
    "@T.prim_func(s_tir=True)\ndef f(A: T.Buffer((16, 8), \"float32\"), B: T.Buffer((16,), \"float32\")):\n";

/// "code message @ underlined text" of each finding, one a line.
std::string findings(const std::string& body) {
  auto parsed = parse_program(header + body, "program");
  if (!parsed) return "does not parse: " + render_text(parsed.error()[0]);
  std::string out;
  for (const Diagnostic& d : verify(*parsed->program, &parsed->spans)) {
    std::string under = d.span.text.substr(static_cast<size_t>(d.span.column - 1),
                                           static_cast<size_t>(d.span.end_column - d.span.column));
    out += d.code + ": " + d.message + " @ " + under + "\n";
  }
  return out;
}

TEST(Verify, WellFormedProgramsHaveNoFindings) {
  EXPECT_EQ(findings(R"(
    for i, k in T.grid(16, 8):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
    for io, ii in T.grid(4, 5):
        with T.sblock("guarded"):
            vi = T.axis.spatial(16, io * 5 + ii)
            T.where(io * 5 + ii < 16)
            B[vi] = T.if_then_else(vi > 0, B[vi - 1], T.float32(0)) + T.Select(vi < 15, B[vi], T.float32(1))
)"),
            "");
}

TEST(Verify, AccessOutsideBuffer) {
  EXPECT_EQ(findings(R"(
    for i in range(16):
        B[i + 1] = A[i, i - 1]
)"),
            "access-outside-buffer: expected an index in [0, 16) in dimension 0 of buffer `B`, found 16 at i = 15 @ "
            "B[i + 1] = A[i, i - 1]\n"
            "access-outside-buffer: expected an index in [0, 8) in dimension 1 of buffer `A`, found -1 at i = 0 @ A[i, "
            "i - 1]\n");
  EXPECT_EQ(findings(R"(
    for io, ii in T.grid(4, 5):
        if io * 5 + ii < 18:
            B[io * 5 + ii] = 0
)"),
            "access-outside-buffer: expected an index in [0, 16) in dimension 0 of buffer `B`, found 17 at io = 3, ii "
            "= 2 @ B[io * 5 + ii] = 0\n");
  EXPECT_EQ(findings(R"(
    for i in range(13):
        B[T.Ramp(i, 1, 4)] = T.Broadcast(T.float32(0), 4)
        B[T.Ramp(i, 2, 4)] = T.Broadcast(T.float32(0), 4)
)"),
            "access-outside-buffer: expected an index in [0, 16) in dimension 0 of buffer `B`, found 18 at i = 12 @ "
            "B[T.Ramp(i, 2, 4)] = T.Broadcast(T.float32(0), 4)\n");
}

TEST(Verify, ConditionsProtectAccesses) {
  EXPECT_EQ(findings(R"(
    for i in range(20):
        if i < 16 and A[0, 0] > 1.0:
            B[i] = 0
        if i >= 16:
            continue
        B[i] = T.if_then_else(i < 8, A[0, i], A[0, i - 8])
    for i in range(20):
        if i == 16:
            break
        B[i] = 0
    for i in range(20):
        if B[0] > T.Cast("float32", i):
            B[i] = 0
)"),
            "");
  EXPECT_EQ(findings(R"(
    for i in range(16):
        B[i] = T.if_then_else(i < 8, A[0, 0], A[0, i - 7])
)"),
            "access-outside-buffer: expected an index in [0, 8) in dimension 1 of buffer `A`, found 8 at i = 15 @ A[0, "
            "i - 7]\n");
}

TEST(Verify, AxisValueOutsideDomain) {
  EXPECT_EQ(findings(R"(
    for i in range(17):
        with T.sblock("b"):
            vi = T.axis.spatial(16, i)
            T.reads()
            T.writes(B[0])
            B[0] = 0
)"),
            "axis-value-outside-domain: expected values in [0, 16) of axis `vi` of block \"b\", found 16 at i = 16 @ "
            "with T.sblock(\"b\")\n");
}

TEST(Verify, FirstReductionInstanceMustInitialise) {
  EXPECT_EQ(findings(R"(
    for i, k in T.grid(16, 8):
        with T.sblock("b"):
            vi = T.axis.spatial(16, i)
            vk = T.axis.reduce(8, 7 - k)
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
)"),
            "first-reduction-instance-not-first: expected the first instance of block \"b\" to have `vk` = 0, so that "
            "it initialises, found 7 @ with "
            "T.sblock(\"b\")\n");
}

TEST(Verify, InitNeedsAReductionAxis) {
  EXPECT_EQ(findings(R"(
    for i, k in T.grid(16, 8):
        with T.sblock("b"):
            vi, vk = T.axis.remap("SS", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
)"),
            "init-without-reduction: expected a reduction axis of block \"b\", which has an init, found none @ with "
            "T.sblock(\"b\")\n");
}

TEST(Verify, SignatureMustCoverTheBody) {
  EXPECT_EQ(findings(R"(
    for i in range(4):
        with T.sblock("b"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi, 0:4])
            T.writes()
            for j in range(5):
                B[vi] = A[vi, j]
)"),
            "signature-does-not-cover-body: block \"b\" writes buffer `B`, which its signature does not name @ B[vi] = "
            "A[vi, j]\n"
            "signature-does-not-cover-body: block \"b\" reads element 4 in dimension 1 of `A` at j = 4, its signature "
            "says [0, 4) @ A[vi, j]\n");
}

TEST(Verify, LaunchExtentsOfOneKernelAgree) {
  EXPECT_EQ(findings(R"(
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(4, thread="threadIdx.x"):
            B[t] = 0
        for t in T.thread_binding(8, thread="threadIdx.x"):
            B[t] = 1
    for b in T.thread_binding(3, thread="blockIdx.x"):
        B[b] = 0
)"),
            "launch-extents-disagree: expected an extent of 4 of \"threadIdx.x\" as in the same kernel before, found 8 "
            "@ for t in "
            "T.thread_binding(8, thread=\"threadIdx.x\")\n");
}

// Text cannot express these: rewrites can.
TEST(Verify, BrokenTreesAreFoundWithoutASourceText) {
  Buffer a = make_buffer("A", kFloat32, {int_imm(4)}), other = make_buffer("other", kFloat32, {int_imm(4)});
  Var i = make_var("i"), stray = make_var("stray");
  auto codes = [&](const Stmt& body) {
    auto f = std::make_unique<Function>();
    f->name = "f";
    f->params = {{make_var("h", kHandle), a, false}};
    f->schedulable = false;
    f->body = body;
    std::string out;
    for (const Diagnostic& d : verify(*make_program({FunctionRef(f.release())}))) {
      EXPECT_GT(d.span.line, 0) << d.message;
      out += d.code + " " + d.span.text.substr(d.span.text.find_first_not_of(' ')) + "\n";
    }
    return out;
  };
  EXPECT_EQ(codes(make_stmt<Store>(a, std::vector<Expr>{stray}, float_imm(0))),
            "variable-out-of-scope A[stray] = T.float32(0)\n");
  EXPECT_EQ(codes(make_loop(i, int_imm(4), make_stmt<Store>(a, std::vector<Expr>{i}, load(other, {i})))),
            "variable-out-of-scope A[i] = other[i]\n");
  EXPECT_EQ(codes(make_stmt<Store>(a, std::vector<Expr>{int_imm(0)}, int_imm(0))), "dtype-mismatch A[0] = 0\n");
  EXPECT_EQ(codes(make_stmt<Store>(a, std::vector<Expr>{int_imm(0), int_imm(0)}, float_imm(0))),
            "rank-mismatch A[0, 0] = T.float32(0)\n");
  Stmt store = make_stmt<Store>(a, std::vector<Expr>{i}, float_imm(0));
  EXPECT_EQ(codes(make_seq({make_loop(i, int_imm(4), store), store})), "variable-out-of-scope A[i] = T.float32(0)\n");
  EXPECT_EQ(
      codes(make_stmt<For>(i, int_imm(0), int_imm(4), int_imm(-1), ForKind::serial, std::string(), AttrDict(), store)),
      "loop-step-not-positive for i in range(0, 4, -1):\n");
  EXPECT_EQ(codes(make_loop(i, int_imm(0), store)), "extent-not-positive for i in range(0):\n");
  EXPECT_EQ(codes(make_stmt<If>(Expr(int_imm(1)), store, Stmt())).substr(0, 28), "dtype-mismatch if 1:\nvariabl");
}

TEST(Verify, AtMostTwentyFindings) {
  std::string body;
  for (int k = 0; k < 40; ++k) body += "    B[20] = 0\n";
  std::string all = findings(body);
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 20);
}

}  // namespace
}  // namespace tilewright
