// Parameters of operators: names, defaults, refusals.
#include "workloads/operator.h"

#include <gtest/gtest.h>

#include "ir/verify.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

std::string refusal(std::string_view text) {
  Result<Workload> w = make_workload(text);
  return w ? "accepted as " + w->name : render_text(w.error().diagnostic());
}
std::string name(std::string_view text) {
  Result<Workload> w = make_workload(text);
  return w ? w->name : render_text(w.error().diagnostic());
}

TEST(Operator, NamesAreCanonical) {
  EXPECT_EQ(name("gemm:m=512,n=512,k=512,dtype=float32"), "gemm_512x512x512_float32");
  EXPECT_EQ(name("gemm:k=3,n=2,m=1"), "gemm_1x2x3_float32");
  EXPECT_EQ(name("gemm:m=1,n=2,k=3,dtype=bf16,layout=nt"), "gemm_1x2x3_nt_bfloat16");
  EXPECT_EQ(name("gemm:m=1,n=2,k=3,dtype=bf16,out=float32,acc=float32"), "gemm_1x2x3_bfloat16_out_float32");
  EXPECT_EQ(name("gemm:m=1,n=2,k=3,dtype=uint8,dtype_b=int8"), "gemm_1x2x3_uint8_int8");
  EXPECT_EQ(name("conv2d:n=1,h=8,w=8,ci=4,co=6,kernel=3,stride=2,pad=1,groups=2"),
            "conv2d_1x8x8x4x6_stride2_pad1_groups2_float32");
  EXPECT_EQ(name("conv2d:n=1,h=8,w=8,ci=4,co=6,layout=NCHW"), "conv2d_1x8x8x4x6_NCHW_float32");
}

TEST(Operator, TypesDeriveFromTheInputs) {
  auto types = [](const char* dtype) {
    const Workload w = *make_workload(std::string("gemm:m=2,n=2,k=2,dtype=") + dtype);
    return w.program->main()->params[2].buffer->dtype.str();
  };
  EXPECT_EQ(types("float32"), "float32");
  EXPECT_EQ(types("float16"), "float16");
  EXPECT_EQ(types("e4m3"), "bfloat16");
  EXPECT_EQ(types("int8"), "int32");
  EXPECT_EQ(types("float64"), "float64");
}

TEST(Operator, FiguresFollowTheConventions) {
  const Workload w = *make_workload("gemm:m=3,n=5,k=7,dtype=float16");
  EXPECT_EQ(w.flop, 2.0 * 3 * 5 * 7);
  EXPECT_EQ(w.min_bytes, 2 * (3 * 7 + 7 * 5 + 3 * 5));
  EXPECT_EQ(make_workload("gemm:m=3,n=5,k=7,dtype=int8")->min_bytes, 3 * 7 + 7 * 5 + 4 * 3 * 5);
}

TEST(Operator, UnknownNamesAnswerWithTheNearest) {
  EXPECT_EQ(refusal("conv2d:n=16,kernal=3,h=8,w=8,ci=4,co=4"),
            "error: operator conv2d has no parameter \"kernal\"  [unknown-parameter]\n"
            "help: did you mean \"kernel\"?  conv2d takes n, h, w, ci, co, kernel, stride, pad, dilation, groups, "
            "layout, weight_layout, "
            "dtype, dtype_b, acc, out\n");
  EXPECT_NE(refusal("gem:m=1,n=1,k=1").find("did you mean \"gemm\"?"), std::string::npos) << refusal("gem:m=1");
  EXPECT_NE(refusal("gem:m=1,n=1,k=1").find("[unknown-operator]"), std::string::npos);
  EXPECT_EQ(refusal("gemm:m=1,n=1"),
            "error: operator gemm needs k (length of the sums)  [parameter-missing]\n"
            "help: gemm takes m, n, k, layout, dtype, dtype_b, acc, out\n");
}

TEST(Operator, ImpossibleValuesAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"gemm:m=0,n=1,k=1", "m must be an integer from 1 to 536870912, found \"0\""},
      {"gemm:m=-4,n=1,k=1", "found \"-4\""},
      {"gemm:m=4.5,n=1,k=1", "found \"4.5\""},
      {"gemm:m=99999999999999999999,n=1,k=1", "found \"99999999999999999999\""},
      {"gemm:m=1,n=1,k=1,dtype=float31", "dtype must be one of float32"},
      {"gemm:m=1,n=1,k=1,layout=nm", "layout must be one of nn, nt, tn, tt, found \"nm\""},
      {"gemm:m=1,m=2,n=1,k=1", "m is given twice"},
      {"gemm:m=1,n=1,k=1,dtype=float32,dtype_b=int8", "different classes"},
      {"gemm:m=1,n=1,k=1,dtype=float32,acc=float16", "acc must hold float32, found float16"},
      {"gemm:m=1,n=1,k=1,dtype=float32,out=int32", "out must be of acc's class"},
      {"gemm:m=536870912,n=536870912,k=536870912,dtype=float64", "at most 1 TiB"},
      {"conv2d:n=1,h=8,w=8,ci=4,co=4,stride=0", "stride must be an integer from 1 to 1048576, found \"0\""},
      {"conv2d:n=1,h=8,w=8,ci=4,co=6,groups=4", "groups must divide ci and co, found groups 4 with ci 4 and co 6"},
      {"conv2d:n=1,h=2,w=8,ci=4,co=4,kernel=5,pad=1", "found a kernel that spans 5 and h = 2 with pad 1"},
      {"conv2d:n=1,h=8,w=8,ci=4,co=4,kernel=3,dilation=4", "found a kernel that spans 9 and h = 8 with pad 0"},
      {"conv2d:n=1,h=8,w=8,ci=4,co=4,layout=NCHW,weight_layout=HWIO",
       "weight_layout must be OIHW with layout NCHW, found HWIO"},
      {"conv2d:n=1,h=8,w=8,ci=4,co=4,layout=NWHC", "layout must be one of NHWC, NCHW, found \"NWHC\""},
      {"conv2d_transpose:n=1,h=4,w=4,ci=2,co=2,kernel=3,pad=3", "pad must be below kernel 3, found 3"},
      {"conv2d_winograd:n=1,h=8,w=8,ci=4,co=4,kernel=5", "kernel must be 3 and stride 1"},
      {"attention:b=1,heads=1,seq=8,kv=4,d=4,mask=causal", "kv must be at least seq"},
      {"depthwise_conv2d:n=1,h=8,w=8,c=4,weight_layout=CHW", "weight_layout must be HWC with layout NHWC"},
      {"softmax:m=4,n=4,dtype=int8", "dtype must be one of float32, float64, float16, bfloat16, found \"int8\""},
  };
  for (const auto& [text, expected] : cases) {
    const std::string message = refusal(text);
    EXPECT_NE(message.find(expected), std::string::npos) << text << "\n" << message;
    EXPECT_NE(message.find("[parameter-invalid]"), std::string::npos) << message;
  }
  for (const char* text : {"gemm:m", "gemm:m=", "gemm:=4", "gemm:m=1,,n=1"})
    EXPECT_NE(refusal(text).find("[workload-malformed]"), std::string::npos) << text << "\n" << refusal(text);
}

TEST(Operator, ExtremeSizesAreRefusedOrBuild) {
  // Every operator, each of its numbers at either end of its range: a refusal or a program, never an overflow.
  for (const auto& [name, entry] : Registry<Operator>::instance().entries()) {
    std::vector<const OperatorParameter*> numbers;
    const std::vector<OperatorParameter> parameters = entry.value.all_parameters();
    for (const OperatorParameter& p : parameters)
      if (p.kind == OperatorParameter::Kind::size || p.kind == OperatorParameter::Kind::integer) numbers.push_back(&p);
    for (uint64_t mask = 0; mask < uint64_t{1} << numbers.size(); ++mask) {
      ParameterList given;
      for (size_t i = 0; i < numbers.size(); ++i) {
        const int64_t most = numbers[i]->kind == OperatorParameter::Kind::size ? int64_t{1} << 29 : int64_t{1} << 20;
        given.emplace_back(numbers[i]->name, std::to_string(mask >> i & 1 ? most : numbers[i]->min));
      }
      Result<Workload> w = make_workload(name, given);
      if (!w) {
        EXPECT_TRUE(w.error().is(parameter_invalid)) << name << " " << mask << render_text(w.error().diagnostic());
        continue;
      }
      EXPECT_GT(w->min_bytes, 0) << name << " " << mask;
      EXPECT_GE(w->flop, 0) << name << " " << mask;
      auto errors = verify(*w->program, nullptr);
      EXPECT_TRUE(errors.empty()) << name << " " << mask << render_text(errors.front());
    }
  }
}

TEST(Operator, EveryOperatorIsDocumented) {
  const auto& entries = Registry<Operator>::instance().entries();
  EXPECT_GE(entries.size(), 25u);
  for (const auto& [name, entry] : entries) {
    EXPECT_FALSE(entry.doc.empty()) << name;
    EXPECT_FALSE(entry.value.flop_formula.empty()) << name;
    for (const OperatorParameter& p : entry.value.all_parameters())
      EXPECT_FALSE(p.doc.empty()) << name << " " << p.name;
  }
}

}  // namespace
}  // namespace tilewright
