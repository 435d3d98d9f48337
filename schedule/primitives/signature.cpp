#include "schedule/primitives/signature.h"

#include <fmt/format.h>

namespace tilewright {

Result<bool> is_write_side(const Context& c, const Block* block) {
  const std::string& type = c.text("buf_type");
  if (type == "write" || type == "read") return type == "write";
  return c.refuse(buffer_type_unknown, fmt::format("expected \"read\" or \"write\", found \"{}\"", type), block);
}

}  // namespace tilewright
