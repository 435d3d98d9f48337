// Every stage of the pipeline prints as text that parses back, and means the same as the program it came from.
#include <gtest/gtest.h>

#include "ir/equal.h"
#include "ir/interpret/interpret.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "lowering/pipeline.h"

namespace tilewright::lowering {
namespace {

struct Sample {
  const char* name;
  const char* text;
};

const Sample samples[] = {
    {"mm_relu", R"(
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16, 12), "float32"), B: T.Buffer((12, 20), "float32"), Y: T.Buffer((16, 20), "float32")):
    C = T.sblock_alloc_buffer((16, 20))
    for i, j, k in T.grid(16, 20, 12):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(16, 20):
        with T.sblock("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.max(C[vi, vj], T.float32(0))
)"},
    {"tiled", R"(
@T.prim_func(s_tir=True)
def main(A: T.Buffer((13, 10), "float32"), B: T.Buffer((10, 37), "float32"), Y: T.Buffer((13, 37), "float32")):
    C = T.sblock_alloc_buffer((13, 37))
    for i0, j0 in T.grid(3, 3):
        for k0 in range(3):
            for k1 in T.unroll(4):
                for i1 in T.unroll(6):
                    for j1 in T.vectorized(16):
                        with T.sblock("C"):
                            vi = T.axis.spatial(13, i0 * 6 + i1)
                            vj = T.axis.spatial(37, j0 * 16 + j1)
                            vk = T.axis.reduce(10, k0 * 4 + k1)
                            T.where(i0 * 6 + i1 < 13 and j0 * 16 + j1 < 37 and k0 * 4 + k1 < 10)
                            with T.init():
                                C[vi, vj] = T.float32(0)
                            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
        for i1, j1 in T.grid(6, 16):
            with T.sblock("Y"):
                vi = T.axis.spatial(13, i0 * 6 + i1)
                vj = T.axis.spatial(37, j0 * 16 + j1)
                T.where(i0 * 6 + i1 < 13 and j0 * 16 + j1 < 37)
                Y[vi, vj] = T.max(C[vi, vj], T.float32(0))
)"},
    {"conv_padded", R"(
@T.prim_func(s_tir=True)
def main(X: T.Buffer((9, 9, 4), "float32"), W: T.Buffer((3, 3, 4, 8), "float32"), Y: T.Buffer((9, 9, 8), "float32")):
    P = T.sblock_alloc_buffer((11, 11, 4))
    for h, w, c in T.grid(11, 11, 4):
        with T.sblock("P"):
            vh, vw, vc = T.axis.remap("SSS", [h, w, c])
            P[vh, vw, vc] = T.if_then_else(1 <= vh and vh < 10 and 1 <= vw and vw < 10, X[vh - 1, vw - 1, vc], T.float32(0))
    for h in T.parallel(9):
        for w, rh, rw, rc in T.grid(9, 3, 3, 4):
            for o in T.vectorized(8):
                with T.sblock("Y"):
                    vh, vw, vo, vrh, vrw, vrc = T.axis.remap("SSSRRR", [h, w, o, rh, rw, rc])
                    with T.init():
                        Y[vh, vw, vo] = T.float32(0)
                    Y[vh, vw, vo] = Y[vh, vw, vo] + P[vh + vrh, vw + vrw, vrc] * W[vrh, vrw, vrc, vo]
)"},
    {"softmax", R"(
@T.prim_func(s_tir=True)
def main(A: T.Buffer((5, 64), "float32"), Y: T.Buffer((5, 64), "float32")):
    M = T.sblock_alloc_buffer((5, 8))
    R = T.sblock_alloc_buffer((5,))
    E = T.sblock_alloc_buffer((5, 64))
    S = T.sblock_alloc_buffer((5, 8))
    D = T.sblock_alloc_buffer((5,))
    for i in T.parallel(5):
        for k in range(8):
            for l in T.vectorized(8):
                with T.sblock("M"):
                    vi, vl, vk = T.axis.remap("SSR", [i, l, k])
                    with T.init():
                        M[vi, vl] = T.min_value("float32")
                    M[vi, vl] = T.max(M[vi, vl], A[vi, vk * 8 + vl])
        for l in range(8):
            with T.sblock("R"):
                vi, vl = T.axis.remap("SR", [i, l])
                with T.init():
                    R[vi] = T.min_value("float32")
                R[vi] = T.max(R[vi], M[vi, vl])
        for j in T.vectorized(64):
            with T.sblock("E"):
                vi, vj = T.axis.remap("SS", [i, j])
                E[vi, vj] = T.exp(A[vi, vj] - R[vi])
        for k in range(8):
            for l in T.vectorized(8):
                with T.sblock("S"):
                    vi, vl, vk = T.axis.remap("SSR", [i, l, k])
                    with T.init():
                        S[vi, vl] = T.float32(0)
                    S[vi, vl] = S[vi, vl] + E[vi, vk * 8 + vl]
        for l in range(8):
            with T.sblock("D"):
                vi, vl = T.axis.remap("SR", [i, l])
                with T.init():
                    D[vi] = T.float32(0)
                D[vi] = D[vi] + S[vi, vl]
        for j in T.vectorized(64):
            with T.sblock("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = E[vi, vj] / D[vi]
)"},
};

FunctionRef parse(const char* text) {
  auto parsed = parse_program(text, "sample");
  if (!parsed) throw InternalError(render_text(parsed.error().at(0)));
  return FunctionRef(parsed->program->main());
}

class Stages : public testing::TestWithParam<Sample> {};

TEST_P(Stages, PrintParseAndMeanTheSame) {
  FunctionRef f = parse(GetParam().text);
  std::vector<Tensor> expected = make_arguments(*f, InputSet::random, 11);
  ASSERT_TRUE(interpret(*f, expected));
  Target target = native_target();
  std::vector<std::pair<std::string, FunctionRef>> stages;
  Result<LoweredFunction> lowered = lower(
      *f, target, {}, [&](const std::string& pass, const FunctionRef& stage) { stages.emplace_back(pass, stage); });
  ASSERT_TRUE(lowered) << render_text(lowered.error().diagnostic());
  for (const auto& [pass, stage] : stages) {
    SCOPED_TRACE(pass);
    std::string text = print(*make_program({stage}));
    auto again = parse_program(text, pass);
    ASSERT_TRUE(again) << render_text(again.error().at(0)) << text;
    EXPECT_TRUE(structural_equal(*stage, *again->program->functions.at(0))) << text << "\n--- read back ---\n"
                                                                            << print(*again->program);
    std::vector<Tensor> args = make_arguments(*f, InputSet::random, 11);
    for (size_t i = 0; i < args.size(); ++i)  // flat stages take the same bytes as one dimension
      if (stage->params[i].buffer->rank() == 1) args[i].shape = {args[i].size()};
    Result<InterpretStats> ran = interpret(*stage, args);
    ASSERT_TRUE(ran) << render_text(ran.error().diagnostic()) << text;
    for (size_t i = 0; i < args.size(); ++i)
      EXPECT_EQ(expected[i].bytes, args[i].bytes) << "argument " << i << "\n" << text;
  }
}

TEST_P(Stages, LoweringTwiceGivesTheSameText) {
  std::string once, twice;
  for (std::string* out : {&once, &twice}) *out = print(*lower(*parse(GetParam().text), native_target())->function);
  EXPECT_EQ(once, twice);
}

TEST_P(Stages, PrivateBuffersArePlacedAndShrunk) {
  FunctionRef f = parse(GetParam().text);
  LoweredFunction lowered = *lower(*f, native_target());
  std::string text = print(*lowered.function);
  // What one iteration of the outermost tile needs; nothing of these samples needs the caller's workspace.
  EXPECT_EQ(lowered.workspace_size(4), 0) << text;
}

INSTANTIATE_TEST_SUITE_P(Samples, Stages, testing::ValuesIn(samples),
                         [](const auto& test_case) { return std::string(test_case.param.name); });

}  // namespace
}  // namespace tilewright::lowering
