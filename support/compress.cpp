#include "support/compress.h"

#include <zstd.h>

#include <fmt/format.h>

#include <memory>

#include "support/check.h"

namespace tilewright {

std::string compress(std::string_view bytes, int level) {
  std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  size_t size = ZSTD_compress2(context.get(), out.data(), out.size(), bytes.data(), bytes.size());
  TW_CHECK(!ZSTD_isError(size), "zstd: {}", ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

Result<std::string> decompress(std::string_view frame, size_t limit) {
  unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
    return refuse(compressed_data_damaged, "expected a zstd frame with its content size");
  if (size > limit)
    return refuse(compressed_data_damaged,
                  fmt::format("expected at most {} bytes of content, the frame says {}", limit, size));
  std::string out(size, '\0');
  size_t got = ZSTD_decompress(out.data(), out.size(), frame.data(), frame.size());
  if (ZSTD_isError(got)) return refuse(compressed_data_damaged, fmt::format("zstd: {}", ZSTD_getErrorName(got)));
  if (got != size)
    return refuse(compressed_data_damaged, fmt::format("expected {} bytes of content, found {}", size, got));
  return out;
}

}  // namespace tilewright
