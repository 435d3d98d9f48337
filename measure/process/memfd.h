// Bulk data between processes: anonymous files, sealed so that no holder can change what another one reads.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "measure/process/fd.h"
#include "support/result.h"

namespace tilewright::measure {

TW_REFUSAL_CODE(memory_file_failed, "memory-file-failed", "an anonymous file cannot be made, sealed or mapped");

/// An anonymous file with `bytes`, sealed against every change.
Result<Fd> sealed_memfd(const char* name, std::string_view bytes);
/// Seals a file that was written piece by piece.
Status seal(const Fd& fd);
/// An open descriptor of its own for the same file, close-on-exec.
Fd duplicate(const Fd& fd);

/// A read-only mapping of a whole sealed file. Refused if the file is not sealed: its sender could change it later.
class Mapping {
 public:
  static Result<Mapping> of(const Fd& fd);
  Mapping() = default;
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();
  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
};

}  // namespace tilewright::measure
