// The one place that names zstd: frames of bytes in memory.
#pragma once

#include <string>
#include <string_view>

#include "support/result.h"

namespace tilewright {

TW_REFUSAL_CODE(compressed_data_damaged, "compressed-data-damaged",
                "a zstd frame cannot be read, or unpacks to more than its limit");

/// One zstd frame with content size and checksum. Same bytes and level, same frame.
std::string compress(std::string_view bytes, int level = 3);
/// The content of one whole frame of at most `limit` bytes.
Result<std::string> decompress(std::string_view frame, size_t limit = size_t{1} << 30);

}  // namespace tilewright
