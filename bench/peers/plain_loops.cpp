// What a programmer writes first: a straightforward loop nest, compiled with -O3 -march=native, on one thread.
#include <algorithm>
#include <cmath>

#include "bench/peers/peer.h"

namespace tilewright::bench {
namespace {

using In = const float* __restrict;
using Out = float* __restrict;

void gemm(In a, In b, Out c, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * n + j] = 0;
    for (int64_t l = 0; l < k; ++l)
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + l] * b[l * n + j];
  }
}

struct Window {
  int64_t n, h, w, kernel, stride, pad, dilation, oh, ow;
  explicit Window(const Problem& p)
      : n(p.size("n")),
        h(p.size("h")),
        w(p.size("w")),
        kernel(p.size("kernel", 3)),
        stride(p.size("stride", 1)),
        pad(p.size("pad", 0)),
        dilation(p.size("dilation", 1)),
        oh((h + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1),
        ow((w + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1) {}
  /// Calls body(output pixel, input pixel, tap) for all taps inside the image.
  template <class Body>
  void taps(Body body) const {
    for (int64_t b = 0; b < n; ++b)
      for (int64_t y = 0; y < oh; ++y)
        for (int64_t x = 0; x < ow; ++x)
          for (int64_t r = 0; r < kernel; ++r)
            for (int64_t s = 0; s < kernel; ++s) {
              int64_t iy = y * stride + r * dilation - pad, ix = x * stride + s * dilation - pad;
              if (iy >= 0 && iy < h && ix >= 0 && ix < w)
                body((b * oh + y) * ow + x, (b * h + iy) * w + ix, r * kernel + s);
            }
  }
};

void conv2d(In in, In weight, Out out, const Window& g, int64_t ci, int64_t co) {
  std::fill(out, out + g.n * g.oh * g.ow * co, 0.0f);
  g.taps([&](int64_t o, int64_t i, int64_t t) {
    for (int64_t c = 0; c < ci; ++c)
      for (int64_t f = 0; f < co; ++f) out[o * co + f] += in[i * ci + c] * weight[(t * ci + c) * co + f];
  });
}

void depthwise(In in, In weight, Out out, const Window& g, int64_t c) {
  std::fill(out, out + g.n * g.oh * g.ow * c, 0.0f);
  g.taps([&](int64_t o, int64_t i, int64_t t) {
    for (int64_t f = 0; f < c; ++f) out[o * c + f] += in[i * c + f] * weight[t * c + f];
  });
}

void softmax(In x, Out y, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m; ++i) {
    float most = x[i * n], sum = 0;
    for (int64_t j = 1; j < n; ++j) most = std::max(most, x[i * n + j]);
    for (int64_t j = 0; j < n; ++j) sum += y[i * n + j] = std::exp(x[i * n + j] - most);
    for (int64_t j = 0; j < n; ++j) y[i * n + j] /= sum;
  }
}

void layernorm(In x, In gamma, In beta, Out y, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m; ++i) {
    float sum = 0, squares = 0;
    for (int64_t j = 0; j < n; ++j) sum += x[i * n + j];
    float mean = sum / static_cast<float>(n);
    for (int64_t j = 0; j < n; ++j) squares += (x[i * n + j] - mean) * (x[i * n + j] - mean);
    float scale = 1 / std::sqrt(squares / static_cast<float>(n) + 1e-5f);
    for (int64_t j = 0; j < n; ++j) y[i * n + j] = (x[i * n + j] - mean) * scale * gamma[j] + beta[j];
  }
}

const float* in(void* const* b, int i) { return static_cast<const float*>(b[i]); }
float* out(void* const* b, int i) { return static_cast<float*>(b[i]); }

const Register<Peer> plain{
    "plain", "straightforward loops, -O3 -march=native, one thread", {[](const Problem& p) -> Run {
      const int64_t m = p.size("m"), n = p.size("n"), k = p.size("k"), ci = p.size("ci"), co = p.size("co"),
                    c = p.size("c");
      if (p.op == "gemm") return [=](void* const* b) { gemm(in(b, 0), in(b, 1), out(b, 2), m, n, k); };
      if (p.op == "conv2d")
        return [=, g = Window(p)](void* const* b) { conv2d(in(b, 0), in(b, 1), out(b, 2), g, ci, co); };
      if (p.op == "depthwise_conv2d")
        return [=, g = Window(p)](void* const* b) { depthwise(in(b, 0), in(b, 1), out(b, 2), g, c); };
      if (p.op == "softmax") return [=](void* const* b) { softmax(in(b, 0), out(b, 1), m, n); };
      if (p.op == "layernorm") return [=](void* const* b) { layernorm(in(b, 0), in(b, 1), in(b, 2), out(b, 3), m, n); };
      return {};
    }}};

}  // namespace
}  // namespace tilewright::bench
