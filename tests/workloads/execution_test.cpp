// Every operator, executed by the interpreter at small odd shapes, against loop nests in double that are written here
// anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "ir/interpret/interpret.h"
#include "support/diagnostic.h"
#include "workloads/operator.h"

namespace tilewright {
namespace {

using Index = std::vector<int64_t>;

double at(const Tensor& t, const Index& index) {
  int64_t linear = 0;
  for (size_t d = 0; d < index.size(); ++d) linear = linear * t.shape[d] + index[d];
  return t.get(linear);
}
/// 0 outside the given dimensions' extents.
double at_or_zero(const Tensor& t, const Index& index) {
  for (size_t d = 0; d < index.size(); ++d)
    if (index[d] < 0 || index[d] >= t.shape[d]) return 0;
  return at(t, index);
}

/// Runs the operator on random inputs (the last parameter, the output, is poisoned) and compares each element.
void check(const std::string& text, const std::function<double(const std::vector<Tensor>&, const Index&)>& expected,
           double tolerance = 2e-6) {
  Result<Workload> w = make_workload(text);
  ASSERT_TRUE(w) << render_text(w.error().diagnostic());
  const Function& f = *w->program->main();
  std::vector<Tensor> args = make_arguments(f, InputSet::random, 11);
  fill_bytes(args.back(), 0xff);
  Result<InterpretStats> stats = interpret(f, args);
  ASSERT_TRUE(stats) << text << "\n" << render_text(stats.error().diagnostic());
  const Tensor& out = args.back();
  Index index(out.shape.size(), 0);
  for (int64_t i = 0; i < out.size(); ++i) {
    int64_t rest = i;
    for (size_t d = index.size(); d-- > 0; rest /= out.shape[d]) index[d] = rest % out.shape[d];
    const double e = expected(args, index);
    ASSERT_LE(std::abs(out.get(i) - e), tolerance * (1 + std::abs(e)))
        << text << " element " << i << ": expected " << e << ", found " << out.get(i);
  }
  // Independent of the order of everything that may run in any order.
  for (Order order : {Order::reverse, Order::random}) {
    std::vector<Tensor> again = make_arguments(f, InputSet::random, 11);
    ASSERT_TRUE(interpret(f, again, {.order = order, .seed = 5})) << text;
    EXPECT_TRUE(expect_equal(out, again.back())) << text;
  }
}

double sum(int64_t n, const std::function<double(int64_t)>& term) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += term(i);
  return total;
}

constexpr double kHalf = 2e-3, kBrain = 1.6e-2;  // relative error of one rounding to float16, bfloat16, doubled

TEST(WorkloadExecution, Gemm) {
  for (const char* layout : {"nn", "nt", "tn", "tt"})
    for (auto [dtype, tolerance] : {std::pair("float32", 2e-6),
                                    {"float64", 1e-14},
                                    {"float16", kHalf},
                                    {"bfloat16", kBrain},
                                    {"e4m3", kBrain},
                                    {"e5m2", kBrain},
                                    {"int8", 0.0},
                                    {"uint8", 0.0}}) {
      const std::string l = layout;
      check(
          "gemm:m=5,n=7,k=9,layout=" + l + ",dtype=" + dtype,
          [&](const std::vector<Tensor>& t, const Index& p) {
            return sum(9, [&](int64_t k) {
              return at(t[0], l[0] == 'n' ? Index{p[0], k} : Index{k, p[0]}) *
                     at(t[1], l[1] == 'n' ? Index{k, p[1]} : Index{p[1], k});
            });
          },
          tolerance);
    }
  check(
      "gemm:m=5,n=7,k=9,layout=nt,dtype=uint8,dtype_b=int8",
      [](const std::vector<Tensor>& t, const Index& p) {
        return sum(9, [&](int64_t k) { return at(t[0], {p[0], k}) * at(t[1], {p[1], k}); });
      },
      0);
  check("gemm:m=1,n=1,k=1", [](const std::vector<Tensor>& t, const Index&) { return t[0].get(0) * t[1].get(0); });
}

TEST(WorkloadExecution, BatchedAndGroupedProducts) {
  check(
      "batch_gemm:b=3,m=4,n=5,k=6,layout=nt,dtype=float16",
      [](const std::vector<Tensor>& t, const Index& p) {
        return sum(6, [&](int64_t k) { return at(t[0], {p[0], p[1], k}) * at(t[1], {p[0], p[2], k}); });
      },
      kHalf);
  check("batch_gemm:b=3,m=4,n=5,k=6,layout=tn", [](const std::vector<Tensor>& t, const Index& p) {
    return sum(6, [&](int64_t k) { return at(t[0], {p[0], k, p[1]}) * at(t[1], {p[0], k, p[2]}); });
  });
  for (const char* layout : {"nt", "nn"})
    check(std::string("grouped_gemm:groups=3,m_per_group=2,n=5,k=6,layout=") + layout, [&](const std::vector<Tensor>& t,
                                                                                           const Index& p) {
      return sum(6, [&](int64_t k) {
        return at(t[0], {p[0], k}) * (layout[1] == 't' ? at(t[1], {p[0] / 2, p[1], k}) : at(t[1], {p[0] / 2, k, p[1]}));
      });
    });
  check("grouped_gemm:groups=1,m_per_group=3,n=2,k=4", [](const std::vector<Tensor>& t, const Index& p) {
    return sum(4, [&](int64_t k) { return at(t[0], {p[0], k}) * at(t[1], {0, p[1], k}); });
  });
  check("transpose_batch_gemm:b=2,seq=3,heads=4,d=5", [](const std::vector<Tensor>& t, const Index& p) {
    return sum(5, [&](int64_t d) { return at(t[0], {p[0], p[2], p[1], d}) * at(t[1], {p[0], p[3], p[1], d}); });
  });
}

TEST(WorkloadExecution, ProductsWithAnEpilogue) {
  auto product = [](const std::vector<Tensor>& t, const Index& p) {
    return sum(6, [&](int64_t k) { return at(t[0], {p[0], k}) * at(t[1], {k, p[1]}); });
  };
  check("mm_relu:m=4,n=5,k=6",
        [&](const std::vector<Tensor>& t, const Index& p) { return std::max(product(t, p), 0.0); });
  check(
      "gemm_bias_relu:m=4,n=5,k=6,dtype=bfloat16",
      [&](const std::vector<Tensor>& t, const Index& p) { return std::max(product(t, p) + at(t[2], {p[1]}), 0.0); },
      kBrain);
}

struct ConvCase {
  int64_t kernel, stride, pad, dilation, groups;
};
constexpr ConvCase kConvCases[] = {{1, 1, 0, 1, 1}, {3, 1, 1, 1, 1}, {3, 2, 1, 1, 1}, {3, 1, 2, 2, 1},
                                   {2, 3, 0, 1, 2}, {3, 2, 3, 2, 2}, {3, 1, 1, 1, 4}};
std::string conv_text(const ConvCase& c) {
  return ",kernel=" + std::to_string(c.kernel) + ",stride=" + std::to_string(c.stride) +
         ",pad=" + std::to_string(c.pad) + ",dilation=" + std::to_string(c.dilation);
}

TEST(WorkloadExecution, Convolutions) {
  for (const ConvCase& c : kConvCases) {
    const std::string more = conv_text(c) + ",groups=" + std::to_string(c.groups);
    const int64_t ci = 4, co = 8, cg = ci / c.groups, og = co / c.groups;
    auto source = [&](int64_t out, int64_t tap) { return out * c.stride - c.pad + tap * c.dilation; };
    check("conv1d:n=2,l=9,ci=4,co=8" + more, [&](const std::vector<Tensor>& t, const Index& p) {
      return sum(c.kernel, [&](int64_t r) {
        return sum(cg, [&](int64_t k) {
          return at_or_zero(t[0], {p[0], source(p[1], r), p[2] / og * cg + k}) * at(t[1], {r, k, p[2]});
        });
      });
    });
    check("conv1d:n=2,l=9,ci=4,co=8,layout=NCL" + more, [&](const std::vector<Tensor>& t, const Index& p) {
      return sum(c.kernel, [&](int64_t r) {
        return sum(cg, [&](int64_t k) {
          return at_or_zero(t[0], {p[0], p[1] / og * cg + k, source(p[2], r)}) * at(t[1], {p[1], k, r});
        });
      });
    });
    auto conv2d = [&](const std::vector<Tensor>& t, const Index& p) {
      return sum(c.kernel * c.kernel, [&](int64_t r) {
        const int64_t rh = r / c.kernel, rw = r % c.kernel;
        return sum(cg, [&](int64_t k) {
          return at_or_zero(t[0], {p[0], source(p[1], rh), source(p[2], rw), p[3] / og * cg + k}) *
                 at(t[1], {rh, rw, k, p[3]});
        });
      });
    };
    check("conv2d:n=2,h=7,w=6,ci=4,co=8" + more, conv2d);
    check("conv2d_bn_relu:n=1,h=7,w=6,ci=4,co=8" + more, [&](const std::vector<Tensor>& t, const Index& p) {
      return std::max((conv2d(t, p) + at(t[2], {p[3]})) * at(t[3], {p[3]}) + at(t[4], {p[3]}), 0.0);
    });
    check("conv2d:n=2,h=7,w=6,ci=4,co=8,layout=NCHW" + more, [&](const std::vector<Tensor>& t, const Index& p) {
      return sum(c.kernel * c.kernel, [&](int64_t r) {
        const int64_t rh = r / c.kernel, rw = r % c.kernel;
        return sum(cg, [&](int64_t k) {
          return at_or_zero(t[0], {p[0], p[1] / og * cg + k, source(p[2], rh), source(p[3], rw)}) *
                 at(t[1], {p[1], k, rh, rw});
        });
      });
    });
    check("conv3d:n=1,d=5,h=6,w=5,ci=4,co=8" + more, [&](const std::vector<Tensor>& t, const Index& p) {
      const int64_t k2 = c.kernel * c.kernel;
      return sum(c.kernel * k2, [&](int64_t r) {
        const int64_t rd = r / k2, rh = r / c.kernel % c.kernel, rw = r % c.kernel;
        return sum(cg, [&](int64_t k) {
          return at_or_zero(t[0], {p[0], source(p[1], rd), source(p[2], rh), source(p[3], rw), p[4] / og * cg + k}) *
                 at(t[1], {rd, rh, rw, k, p[4]});
        });
      });
    });
    check("depthwise_conv2d:n=2,h=7,w=6,c=5" + conv_text(c), [&](const std::vector<Tensor>& t, const Index& p) {
      return sum(c.kernel * c.kernel, [&](int64_t r) {
        const int64_t rh = r / c.kernel, rw = r % c.kernel;
        return at_or_zero(t[0], {p[0], source(p[1], rh), source(p[2], rw), p[3]}) * at(t[1], {rh, rw, p[3]});
      });
    });
    check("depthwise_conv2d:n=2,h=7,w=6,c=5,layout=NCHW" + conv_text(c),
          [&](const std::vector<Tensor>& t, const Index& p) {
            return sum(c.kernel * c.kernel, [&](int64_t r) {
              const int64_t rh = r / c.kernel, rw = r % c.kernel;
              return at_or_zero(t[0], {p[0], p[1], source(p[2], rh), source(p[3], rw)}) * at(t[1], {p[1], rh, rw});
            });
          });
  }
  check(
      "conv2d:n=1,h=5,w=5,ci=3,co=2,kernel=3,pad=1,dtype=int8",
      [](const std::vector<Tensor>& t, const Index& p) {
        return sum(27, [&](int64_t r) {
          const int64_t rh = r / 9, rw = r / 3 % 3, k = r % 3;
          return at_or_zero(t[0], {p[0], p[1] + rh - 1, p[2] + rw - 1, k}) * at(t[1], {rh, rw, k, p[3]});
        });
      },
      0);
}

TEST(WorkloadExecution, Conv2dTransposeScattersItsInput) {
  for (auto [kernel, stride, pad] : {std::tuple(4, 2, 1), {3, 1, 1}, {3, 2, 0}, {5, 3, 2}, {1, 1, 0}, {2, 3, 0}})
    check("conv2d_transpose:n=2,h=3,w=4,ci=3,co=2,kernel=" + std::to_string(kernel) +
              ",stride=" + std::to_string(stride) + ",pad=" + std::to_string(pad),
          [=](const std::vector<Tensor>& t, const Index& p) {
            double total = 0;  // all pairs of input element and tap that land on p
            for (int64_t i = 0; i < 3; ++i)
              for (int64_t j = 0; j < 4; ++j) {
                const int64_t rh = p[1] + pad - i * stride, rw = p[2] + pad - j * stride;
                if (rh < 0 || rh >= kernel || rw < 0 || rw >= kernel) continue;
                for (int64_t k = 0; k < 3; ++k) total += at(t[0], {p[0], i, j, k}) * at(t[1], {rh, rw, k, p[3]});
              }
            return total;
          });
}

TEST(WorkloadExecution, CapsuleConv2d) {
  for (int stride : {1, 2})
    check("capsule_conv2d:n=1,h=5,w=4,ci=3,co=2,capsule=2,kernel=3,pad=1,stride=" + std::to_string(stride),
          [=](const std::vector<Tensor>& t, const Index& p) {
            double total = 0;
            for (int64_t rh = 0; rh < 3; ++rh)
              for (int64_t rw = 0; rw < 3; ++rw)
                for (int64_t k = 0; k < 2; ++k)
                  for (int64_t c = 0; c < 3; ++c)
                    total += at_or_zero(t[0], {p[0], p[1] * stride + rh - 1, p[2] * stride + rw - 1, p[3], k, c}) *
                             at(t[1], {rh, rw, k, p[4], c, p[5]});
            return total;
          });
}

TEST(WorkloadExecution, WinogradEqualsTheDirectConvolution) {
  const std::vector<std::vector<double>> g2 = {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}};
  const std::vector<std::vector<double>> g4 = {{.25, 0, 0},
                                               {-1. / 6, -1. / 6, -1. / 6},
                                               {-1. / 6, 1. / 6, -1. / 6},
                                               {1. / 24, 1. / 12, 1. / 6},
                                               {1. / 24, -1. / 12, 1. / 6},
                                               {0, 0, 1}};
  for (int tile : {2, 4})
    for (int pad : {0, 1}) {
      const auto& g = tile == 2 ? g2 : g4;
      Result<Workload> w =
          make_workload("conv2d_winograd:n=2,h=9,w=8,ci=3,co=2,dtype=float64,pad=" + std::to_string(pad) +
                        ",tile=" + std::to_string(tile));
      ASSERT_TRUE(w) << render_text(w.error().diagnostic());
      const Function& f = *w->program->main();
      std::vector<Tensor> args = make_arguments(f, InputSet::random, 3);
      Tensor weight(kFloat64, {3, 3, 3, 2});  // [kh, kw, ci, co]
      fill(weight, InputSet::random, 4, 0);
      for (int64_t u = 0; u < tile + 2; ++u)
        for (int64_t v = 0; v < tile + 2; ++v)
          for (int64_t o = 0; o < 2; ++o)
            for (int64_t c = 0; c < 3; ++c) {
              double total = 0;
              for (int64_t a = 0; a < 3; ++a)
                for (int64_t b = 0; b < 3; ++b) total += g[u][a] * at(weight, {a, b, c, o}) * g[v][b];
              args[1].set(((u * (tile + 2) + v) * 2 + o) * 3 + c, total);
            }
      Result<InterpretStats> stats = interpret(f, args);
      ASSERT_TRUE(stats) << render_text(stats.error().diagnostic());
      for (int64_t n = 0; n < 2; ++n)
        for (int64_t h = 0; h < args[2].shape[1]; ++h)
          for (int64_t x = 0; x < args[2].shape[2]; ++x)
            for (int64_t o = 0; o < 2; ++o) {
              const double direct = sum(27, [&](int64_t r) {
                return at_or_zero(args[0], {n, h + r / 9 - pad, x + r / 3 % 3 - pad, r % 3}) *
                       at(weight, {r / 9, r / 3 % 3, r % 3, o});
              });
              EXPECT_NEAR(at(args[2], {n, h, x, o}), direct, 1e-12) << "tile " << tile << " pad " << pad;
            }
    }
}

TEST(WorkloadExecution, RowOperators) {
  for (auto [dtype, tolerance] :
       {std::pair("float32", 1e-5), {"float64", 1e-12}, {"float16", kHalf}, {"bfloat16", kBrain}}) {
    const std::string shape = std::string(":m=3,n=17,dtype=") + dtype;
    auto row = [](const Tensor& x, int64_t i) {
      std::vector<double> out;
      for (int64_t j = 0; j < 17; ++j) out.push_back(at(x, {i, j}));
      return out;
    };
    check(
        "softmax" + shape,
        [&](const std::vector<Tensor>& t, const Index& p) {
          const std::vector<double> x = row(t[0], p[0]);
          return std::exp(x[p[1]]) / sum(17, [&](int64_t j) { return std::exp(x[j]); });
        },
        tolerance);
    check(
        "layernorm" + shape,
        [&](const std::vector<Tensor>& t, const Index& p) {
          const std::vector<double> x = row(t[0], p[0]);
          const double mean = sum(17, [&](int64_t j) { return x[j]; }) / 17;
          const double variance = sum(17, [&](int64_t j) { return (x[j] - mean) * (x[j] - mean); }) / 17;
          return (x[p[1]] - mean) / std::sqrt(variance + 1e-5) * at(t[1], {p[1]}) + at(t[2], {p[1]});
        },
        tolerance);
    check(
        "rmsnorm" + shape,
        [&](const std::vector<Tensor>& t, const Index& p) {
          const std::vector<double> x = row(t[0], p[0]);
          return x[p[1]] / std::sqrt(sum(17, [&](int64_t j) { return x[j] * x[j]; }) / 17 + 1e-5) * at(t[1], {p[1]});
        },
        tolerance);
    check(
        "silu_mul" + shape,
        [](const std::vector<Tensor>& t, const Index& p) {
          const double x = at(t[0], p);
          return x / (1 + std::exp(-x)) * at(t[0], {p[0], p[1] + 17});
        },
        tolerance);
    check(
        "reduce_sum" + shape,
        [&](const std::vector<Tensor>& t, const Index& p) {
          const std::vector<double> x = row(t[0], p[0]);
          return sum(17, [&](int64_t j) { return x[j]; });
        },
        tolerance);
    check(
        "reduce_max" + shape,
        [&](const std::vector<Tensor>& t, const Index& p) {
          const std::vector<double> x = row(t[0], p[0]);
          return *std::max_element(x.begin(), x.end());
        },
        0);
    check(
        "transpose2d" + shape, [](const std::vector<Tensor>& t, const Index& p) { return at(t[0], {p[1], p[0]}); }, 0);
    check(
        "bias_gelu" + shape,
        [](const std::vector<Tensor>& t, const Index& p) {
          const double z = at(t[0], p) + at(t[1], {p[1]});
          return z * (1 + std::erf(z / std::sqrt(2.0))) / 2;
        },
        tolerance);
    check(
        std::string("norm2:b=2,m=3,n=5,dtype=") + dtype,
        [](const std::vector<Tensor>& t, const Index& p) {
          return std::sqrt(
              sum(15, [&](int64_t i) { return at(t[0], {p[0], i / 5, i % 5}) * at(t[0], {p[0], i / 5, i % 5}); }));
        },
        tolerance);
    check(
        std::string("add:n=19,dtype=") + dtype,
        [](const std::vector<Tensor>& t, const Index& p) { return at(t[0], p) + at(t[1], p); }, tolerance);
  }
}

TEST(WorkloadExecution, Attention) {
  for (const char* mask : {"full", "causal"})
    check(
        std::string("attention:b=2,heads=2,seq=3,kv=5,d=4,mask=") + mask,
        [&](const std::vector<Tensor>& t, const Index& p) {
          const int64_t keys = mask[0] == 'c' ? p[2] + 5 - 3 + 1 : 5;
          auto weight = [&](int64_t j) {
            return std::exp(
                sum(4, [&](int64_t k) { return at(t[0], {p[0], p[1], p[2], k}) * at(t[1], {p[0], p[1], j, k}); }) / 2);
          };
          const double total = sum(keys, weight);
          return sum(keys, [&](int64_t j) { return weight(j) / total * at(t[2], {p[0], p[1], j, p[3]}); });
        },
        1e-5);
}

TEST(WorkloadExecution, SingleElementsOnDemandAgree) {
  // Intermediates, padding, rows that depend on whole rows: every operator whose blocks write at their spatial iters.
  for (const char* text : {"gemm:m=6,n=5,k=7,dtype=bfloat16",
                           "batch_gemm:b=2,m=3,n=4,k=5",
                           "grouped_gemm:groups=2,m_per_group=2,n=3,k=4",
                           "mm_relu:m=4,n=5,k=6",
                           "gemm_bias_relu:m=4,n=5,k=6",
                           "transpose_batch_gemm:b=1,seq=3,heads=2,d=4",
                           "conv1d:n=1,l=7,ci=2,co=3,pad=1,stride=2",
                           "conv2d:n=1,h=6,w=5,ci=4,co=4,pad=1,groups=2",
                           "conv3d:n=1,d=3,h=4,w=3,ci=2,co=2,pad=1",
                           "depthwise_conv2d:n=1,h=6,w=5,c=3,pad=1",
                           "conv2d_transpose:n=1,h=3,w=3,ci=2,co=2,kernel=4,stride=2,pad=1",
                           "capsule_conv2d:n=1,h=4,w=4,ci=2,co=2,capsule=2,pad=1",
                           "conv2d_bn_relu:n=1,h=5,w=5,ci=2,co=2,pad=1",
                           "conv2d_winograd:n=1,h=6,w=6,ci=2,co=2",
                           "softmax:m=3,n=9,dtype=float16",
                           "layernorm:m=3,n=9",
                           "rmsnorm:m=3,n=9",
                           "silu_mul:m=3,n=9",
                           "norm2:b=2,m=3,n=4",
                           "reduce_sum:m=4,n=9",
                           "reduce_max:m=4,n=9,dtype=bfloat16",
                           "transpose2d:m=3,n=4",
                           "add:n=9",
                           "bias_gelu:m=3,n=4",
                           "attention:b=1,heads=2,seq=3,kv=4,d=2,mask=causal"}) {
    Result<Workload> w = make_workload(text);
    ASSERT_TRUE(w) << render_text(w.error().diagnostic());
    const Function& f = *w->program->main();
    std::vector<Tensor> args = make_arguments(f, InputSet::random, 5), whole = args;
    ASSERT_TRUE(interpret(f, whole)) << text;
    std::vector<int64_t> wanted;
    for (int64_t i = 0; i < whole.back().size(); i += 3) wanted.push_back(i);
    Result<std::vector<double>> some = interpret_elements(f, args, static_cast<int>(args.size()) - 1, wanted);
    ASSERT_TRUE(some) << text << "\n" << render_text(some.error().diagnostic());
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ((*some)[i], whole.back().get(wanted[i])) << text << " element " << wanted[i];
  }
}

}  // namespace
}  // namespace tilewright
