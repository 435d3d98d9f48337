// oneDNN 2.6 on its best terms: activations as the program has them, weights in the library's own layout, reordered off
// the clock. Its threads are OpenMP's: OMP_NUM_THREADS.
#include <dnnl.hpp>
#include <memory>

#include "bench/peers/peer.h"

namespace tilewright::bench {
namespace {

using dnnl::memory;

struct Engine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

void point_at(memory& m, void* data) { m.set_data_handle(data); }

Run convolution(const Problem& p) {
  int64_t n = p.size("n"), h = p.size("h"), w = p.size("w"), ci = p.size("ci"), co = p.size("co");
  int64_t kernel = p.size("kernel", 3), stride = p.size("stride", 1), pad = p.size("pad", 0);
  int64_t dilation = p.size("dilation", 1) - 1, groups = p.size("groups", 1);
  if (groups != 1) return {};
  int64_t reach = (kernel - 1) * (dilation + 1) + 1, oh = (h + 2 * pad - reach) / stride + 1,
          ow = (w + 2 * pad - reach) / stride + 1;
  auto e = std::make_shared<Engine>();
  memory::desc src({n, ci, h, w}, memory::data_type::f32, memory::format_tag::nhwc);
  memory::desc dst({n, co, oh, ow}, memory::data_type::f32, memory::format_tag::nhwc);
  memory::desc given({co, ci, kernel, kernel}, memory::data_type::f32, memory::format_tag::hwio);
  memory::desc any({co, ci, kernel, kernel}, memory::data_type::f32, memory::format_tag::any);
  dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, src,
                                       any, dst, {stride, stride}, {dilation, dilation}, {pad, pad}, {pad, pad});
  dnnl::convolution_forward::primitive_desc chosen(desc, e->engine);
  auto primitive = std::make_shared<dnnl::convolution_forward>(chosen);
  auto in = std::make_shared<memory>(src, e->engine, nullptr), out = std::make_shared<memory>(dst, e->engine, nullptr),
       weights = std::make_shared<memory>(chosen.weights_desc(), e->engine);
  auto reordered = std::make_shared<bool>(false);
  return [=](void* const* b) {
    if (!std::exchange(*reordered, true)) {
      memory plain(given, e->engine, b[1]);
      dnnl::reorder(plain, *weights).execute(e->stream, plain, *weights);
    }
    point_at(*in, b[0]);
    point_at(*out, b[2]);
    primitive->execute(e->stream, {{DNNL_ARG_SRC, *in}, {DNNL_ARG_WEIGHTS, *weights}, {DNNL_ARG_DST, *out}});
    e->stream.wait();
  };
}

Run softmax(const Problem& p) {
  auto e = std::make_shared<Engine>();
  memory::desc rows({p.size("m"), p.size("n")}, memory::data_type::f32, memory::format_tag::ab);
  dnnl::softmax_forward::desc desc(dnnl::prop_kind::forward_inference, rows, 1);
  auto primitive = std::make_shared<dnnl::softmax_forward>(dnnl::softmax_forward::primitive_desc(desc, e->engine));
  auto in = std::make_shared<memory>(rows, e->engine, nullptr),
       out = std::make_shared<memory>(rows, e->engine, nullptr);
  return [=](void* const* b) {
    point_at(*in, b[0]);
    point_at(*out, b[1]);
    primitive->execute(e->stream, {{DNNL_ARG_SRC, *in}, {DNNL_ARG_DST, *out}});
    e->stream.wait();
  };
}

Run layernorm(const Problem& p) {
  auto e = std::make_shared<Engine>();
  memory::desc rows({p.size("m"), p.size("n")}, memory::data_type::f32, memory::format_tag::ab);
  memory::desc column({p.size("n")}, memory::data_type::f32, memory::format_tag::a);
  dnnl::layer_normalization_forward::desc desc(
      dnnl::prop_kind::forward_inference, rows, 1e-5f,
      dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift);
  auto primitive = std::make_shared<dnnl::layer_normalization_forward>(
      dnnl::layer_normalization_forward::primitive_desc(desc, e->engine));
  auto in = std::make_shared<memory>(rows, e->engine, nullptr),
       out = std::make_shared<memory>(rows, e->engine, nullptr),
       scale = std::make_shared<memory>(column, e->engine, nullptr),
       shift = std::make_shared<memory>(column, e->engine, nullptr);
  return [=](void* const* b) {
    point_at(*in, b[0]);
    point_at(*scale, b[1]);
    point_at(*shift, b[2]);
    point_at(*out, b[3]);
    primitive->execute(e->stream,
                       {{DNNL_ARG_SRC, *in}, {DNNL_ARG_SCALE, *scale}, {DNNL_ARG_SHIFT, *shift}, {DNNL_ARG_DST, *out}});
    e->stream.wait();
  };
}

const Register<Peer> onednn{"onednn", "oneDNN's primitives", {[](const Problem& p) -> Run {
                              if (p.op == "conv2d") return convolution(p);
                              if (p.op == "softmax") return softmax(p);
                              if (p.op == "layernorm") return layernorm(p);
                              return {};
                            }}};

}  // namespace
}  // namespace tilewright::bench
