// A file that only grows, one whole record after the other, and that survives kill -9, a full disk and power loss: the
// journal of a run and the spool of an agent are such files.
//   append: when it returns, the record is with the kernel (kill -9 of this process cannot lose it);
//   sync:   when it returns, everything appended is on the disk.
// What cannot be written is kept and written by the next call, from the very byte where the last one stopped, so that a
// full disk costs nothing once somebody makes room; until then a reader sees a torn tail. A failed sync is final: after
// it the kernel may forget pages, and nothing that was not yet synced can be trusted.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "support/result.h"

namespace tilewright {

TW_REFUSAL_CODE(file_cannot_open, "file-cannot-open", "a file cannot be opened or created");
TW_REFUSAL_CODE(disk_full, "disk-full", "no space, or no quota, is left for a file");
TW_REFUSAL_CODE(file_write_failed, "file-write-failed", "a file cannot be written");
TW_REFUSAL_CODE(file_sync_failed, "file-sync-failed", "the disk refused data that was already accepted");

/// The system calls, replaceable so that tests can inject faults.
struct FileCalls {
  std::function<ssize_t(int, const void*, size_t)> write;
  std::function<int(int)> sync;
  static FileCalls system();
};

/// Not thread-safe; sync_written() may run beside append().
class AppendFile {
 public:
  /// Opens or creates `path` for appending; bytes beyond `keep` are cut off (-1: none).
  static Result<AppendFile> open(const std::string& path, int64_t keep = -1, FileCalls = FileCalls::system());
  AppendFile(AppendFile&&) noexcept;
  AppendFile& operator=(AppendFile&&) = delete;
  ~AppendFile();

  Status append(std::string_view record);
  /// Writes what an earlier call could not write.
  Status write_pending();
  bool has_pending() const { return !pending_.empty(); }
  /// Puts everything that was written on the disk.
  Status sync_written();
  int64_t size() const { return size_; }  ///< bytes in the file
  const std::string& path() const { return path_; }

 private:
  AppendFile(std::string path, int fd, int64_t size, FileCalls);
  tl::unexpected<Refusal> failed(const char* what, int error) const;
  std::string path_;
  int fd_;
  int64_t size_;
  std::string pending_;
  FileCalls calls_;
};

/// Puts a directory's entries on the disk, so that a file that was just created or renamed is found after power loss.
Status sync_directory(const std::string& directory);

}  // namespace tilewright
