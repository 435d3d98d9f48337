// The one place that names zstd: frames of bytes in memory. Short texts of one family (traces, say) compress several
// times better with a dictionary that was trained on samples of them; a frame names its dictionary, so frames with and
// without one can be mixed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "support/result.h"

namespace tilewright {

TW_REFUSAL_CODE(compressed_data_damaged, "compressed-data-damaged",
                "a zstd frame cannot be read, lacks its dictionary, or unpacks to more than its limit");

/// One zstd frame with content size and checksum. Same bytes and level, same frame.
std::string compress(std::string_view bytes, int level = 3);
/// The content of one whole frame of at most `limit` bytes.
Result<std::string> decompress(std::string_view frame, size_t limit = size_t{1} << 30);

/// The same with a dictionary, and quicker for many short texts: contexts are kept between calls. Not thread-safe.
class Compressor {
 public:
  /// `dictionary`: bytes from train_dictionary(), or empty. Level 3 is zstd's default: higher levels gain under 5 % on
  /// texts of a few kB and cost several times more.
  explicit Compressor(std::string_view dictionary = {}, int level = 3);
  Compressor(Compressor&&) noexcept;
  Compressor& operator=(Compressor&&) noexcept;
  ~Compressor();

  std::string compress(std::string_view bytes);
  Result<std::string> decompress(std::string_view frame, size_t limit = size_t{1} << 30);
  uint32_t dictionary_id() const;  ///< 0: none

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A dictionary of at most `size` bytes for texts like `samples`; empty if the samples are too few or too small.
std::string train_dictionary(std::span<const std::string> samples, size_t size);

}  // namespace tilewright
