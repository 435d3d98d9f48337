// unsafe_set_dtype: a buffer that the program allocates gets another element type; loads and stores convert.
//   B[v] = A[v] * 2.0;  C[v] = B[v]   →   B[v] = T.Cast("float16", A[v] * 2.0);  C[v] = T.Cast("float32", B[v])
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/rewrite_blocks.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(dtype_unknown, "dtype-unknown", "no element type of a buffer has that name");

class Convert : public Rewriter {
 public:
  Convert(Buffer from, Buffer to) : from_(std::move(from)), to_(std::move(to)) {}
  Expr operator()(const Expr& e) override {
    Expr mapped = Rewriter::operator()(e);
    const Load* node = as<Load>(mapped);
    if (!node || !node->buffer.same_as(from_)) return mapped;
    return cast(node->dtype, load(to_, node->indices));
  }
  Stmt operator()(const Stmt& s) override {
    Stmt mapped = Rewriter::operator()(s);
    const Store* node = as<Store>(mapped);
    if (!node || !node->buffer.same_as(from_)) return mapped;
    return make_stmt<Store>(to_, node->indices, cast(to_->dtype.with_lanes(node->value->dtype.lanes), node->value));
  }

 private:
  Buffer from_, to_;
};

Status apply(Context& c) {
  TW_TRY(const Block* block, c.block("block"));
  TW_TRY(BufferRegion region, region_of(c, block, c.integer("buffer_index"), true));
  const Buffer buffer = region.buffer;
  const std::string& name = c.text("dtype");
  std::optional<DType> dtype = DType::parse(name);
  if (!dtype || dtype->lanes != 1 || *dtype == kHandle || *dtype == kVoid)
    return c.refuse(dtype_unknown, fmt::format("expected an element type such as \"float16\", found \"{}\"", name),
                    block);
  const Place owner = allocating_block(c.state, c.state.place(*block), buffer);
  if (owner == kNoPlace)
    return c.refuse(codes::buffer_not_allocated_here, fmt::format("buffer {} is a parameter or an alias", buffer->name),
                    block);
  if (buffer->dtype == *dtype) return {};
  const Stmt at = c.state.tree().ref(owner);
  if (has_opaque_use(at, buffer))
    return c.refuse(codes::buffer_opaque_or_matched,
                    fmt::format("buffer {} is accessed through a pointer or a match_buffer", buffer->name), block);
  const Buffer converted = derive_buffer(buffer, [&](BufferNode& b) {
    b.dtype = *dtype;
    b.data = make_var(b.name, kHandle);
  });
  // The accesses first: what is left then are regions and the allocation.
  c.state.replace(at.get(), replace_buffers(Convert(buffer, converted)(at), {{buffer.get(), converted}}));
  return {};
}

const RegisterPrimitive entry{
    "unsafe_set_dtype",
    "gives a buffer another element type; loads and stores convert, so that values may change",
    {.kind = "UnsafeSetDType",
     .inputs = {{"block", ArgType::block, {}, "a block that writes the buffer"}},
     .attrs = {{"buffer_index", ArgType::integer, {}, "index of the write region"},
               {"dtype", ArgType::text, {}, "the new element type"}},
     .unsafe = true,
     .refusals = {labels::index, dtype_unknown, labels::alloc, codes::buffer_opaque_or_matched},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
