#include "support/compress.h"

#include <fmt/format.h>
#include <zdict.h>
#include <zstd.h>

#include <vector>

#include "support/check.h"

namespace tilewright {

struct Compressor::Impl {
  ZSTD_CCtx* encoder = ZSTD_createCCtx();
  ZSTD_DCtx* decoder = ZSTD_createDCtx();
  uint32_t dictionary = 0;

  Impl(std::string_view bytes, int level) {
    TW_CHECK(encoder && decoder, "zstd: out of memory");
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_checksumFlag, 1);
    if (bytes.empty()) return;
    dictionary = ZDICT_getDictID(bytes.data(), bytes.size());
    TW_CHECK(dictionary != 0, "expected a zstd dictionary, found {} other bytes", bytes.size());
    ZSTD_CCtx_loadDictionary(encoder, bytes.data(), bytes.size());
    ZSTD_DCtx_loadDictionary(decoder, bytes.data(), bytes.size());
  }
  ~Impl() {
    ZSTD_freeCCtx(encoder);
    ZSTD_freeDCtx(decoder);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
};

Compressor::Compressor(std::string_view dictionary, int level) : impl_(std::make_unique<Impl>(dictionary, level)) {}
Compressor::Compressor(Compressor&&) noexcept = default;
Compressor& Compressor::operator=(Compressor&&) noexcept = default;
Compressor::~Compressor() = default;

std::string Compressor::compress(std::string_view bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  size_t n = ZSTD_compress2(impl_->encoder, out.data(), out.size(), bytes.data(), bytes.size());
  TW_CHECK(!ZSTD_isError(n), "zstd: {}", ZSTD_getErrorName(n));
  out.resize(n);
  return out;
}

Result<std::string> Compressor::decompress(std::string_view frame, size_t limit) {
  unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
    return refuse(compressed_data_damaged, fmt::format("{} bytes are not a whole zstd frame", frame.size()));
  if (size > limit)
    return refuse(compressed_data_damaged, fmt::format("expected at most {} bytes, the frame says {}", limit, size));
  uint32_t needed = ZSTD_getDictID_fromFrame(frame.data(), frame.size());
  if (needed && needed != impl_->dictionary)
    return refuse(compressed_data_damaged, fmt::format("needs dictionary {}, have {}", needed, impl_->dictionary));
  std::string out(size, '\0');
  size_t n = ZSTD_decompressDCtx(impl_->decoder, out.data(), out.size(), frame.data(), frame.size());
  if (ZSTD_isError(n)) return refuse(compressed_data_damaged, fmt::format("zstd: {}", ZSTD_getErrorName(n)));
  if (n != size)
    return refuse(compressed_data_damaged, fmt::format("expected {} bytes after expansion, found {}", size, n));
  return out;
}

uint32_t Compressor::dictionary_id() const { return impl_->dictionary; }

std::string compress(std::string_view bytes, int level) { return Compressor({}, level).compress(bytes); }

Result<std::string> decompress(std::string_view frame, size_t limit) { return Compressor().decompress(frame, limit); }

std::string train_dictionary(std::span<const std::string> samples, size_t size) {
  std::string all;
  std::vector<size_t> sizes;
  for (const std::string& sample : samples) {
    all += sample;
    sizes.push_back(sample.size());
  }
  std::string out(size, '\0');
  size_t n =
      ZDICT_trainFromBuffer(out.data(), out.size(), all.data(), sizes.data(), static_cast<unsigned>(sizes.size()));
  if (ZDICT_isError(n)) return {};
  out.resize(n);
  return out;
}

}  // namespace tilewright
