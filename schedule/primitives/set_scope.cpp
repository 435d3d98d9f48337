// set_scope: moves a buffer that the program allocates to another memory.
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

namespace tilewright {
namespace {

Status apply(Context& c) {
  TW_TRY(const Block* block, c.block("block"));
  TW_TRY(BufferRegion region, region_of(c, block, c.integer("buffer_index"), true));
  const std::string& scope = c.text("storage_scope");
  TW_TRY_VOID(check_scope_name(c, scope));
  Place owner = allocating_block(c.state, c.state.place(*block), region.buffer);
  if (owner == kNoPlace)
    return c.refuse(codes::buffer_not_allocated_here,
                    fmt::format("buffer {} is a parameter or an alias", region.buffer->name), block);
  if (region.buffer->scope == scope) return {};
  Buffer moved = derive_buffer(region.buffer, [&](BufferNode& b) {
    b.name = b.name + "_" + scope;
    b.scope = scope;
    b.data = make_var(b.name, kHandle);
  });
  Stmt at = c.state.tree().ref(owner);
  c.state.replace(at.get(), replace_buffers(at, {{region.buffer.get(), moved}}));
  return {};
}

const RegisterPrimitive entry{"set_scope",
                              "moves a buffer to another memory scope",
                              {.kind = "SetScope",
                               .inputs = {{"block", ArgType::block, {}, "a block that writes the buffer"}},
                               .attrs = {{"buffer_index", ArgType::integer, {}, "index of the write region"},
                                         {"storage_scope", ArgType::text, {}, "the new scope"}},
                               .refusals = {labels::index, labels::scope, labels::alloc},
                               .apply = apply}};

}  // namespace
}  // namespace tilewright
