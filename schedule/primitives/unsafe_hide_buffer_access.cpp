// unsafe_hide_buffer_access: regions disappear from a block's signature, and with them dependences.
//   T.reads(A[vi], B[vi])   →   ("read", [0])   T.reads(B[vi])
#include <fmt/format.h>

#include <set>

#include "schedule/primitive.h"
#include "schedule/primitives/signature.h"

namespace tilewright {
namespace {

Status apply(Context& c) {
  TW_TRY(const Block* block, c.block("block"));
  TW_TRY(bool write, is_write_side(c, block));
  std::set<int64_t> hidden;
  for (int64_t index : c.integers("buf_index_array")) {
    TW_TRY(BufferRegion region, region_of(c, block, index, write));
    hidden.insert(index);
  }
  auto copy = edit(*block);
  std::vector<BufferRegion>& regions = write ? copy->writes : copy->reads;
  for (auto it = hidden.rbegin(); it != hidden.rend(); ++it) regions.erase(regions.begin() + *it);
  c.state.replace(block, finish(std::move(copy)));
  return {};
}

const RegisterPrimitive entry{
    "unsafe_hide_buffer_access",
    "removes regions from a block's signature; the caller promises that no dependence is lost",
    {.kind = "UnsafeHideBufferAccess",
     .inputs = {{"block", ArgType::block, {}, "the block"},
                {"buf_type", ArgType::text, {}, "\"read\" or \"write\""},
                {"buf_index_array", ArgType::int_list, {}, "indices of the regions that go"}},
     .unsafe = true,
     .refusals = {buffer_type_unknown, labels::index},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
