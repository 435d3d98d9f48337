#include <cblas.h>

#include "bench/peers/peer.h"

namespace tilewright::bench {
namespace {

const Register<Peer> openblas{
    "openblas", "OpenBLAS's sgemm", {[](const Problem& p) -> Run {
      auto layout = p.words.find("layout");
      if (p.op != "gemm" || (layout != p.words.end() && layout->second != "nn")) return {};
      int m = static_cast<int>(p.size("m")), n = static_cast<int>(p.size("n")), k = static_cast<int>(p.size("k"));
      openblas_set_num_threads(p.threads);
      return [=](void* const* b) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1.0f, static_cast<const float*>(b[0]), k,
                    static_cast<const float*>(b[1]), n, 0.0f, static_cast<float*>(b[2]), n);
      };
    }}};

}  // namespace
}  // namespace tilewright::bench
