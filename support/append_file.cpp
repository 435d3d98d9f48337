#include "support/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace tilewright {

FileCalls FileCalls::system() { return {::write, ::fdatasync}; }

AppendFile::AppendFile(std::string path, int fd, int64_t size, FileCalls calls)
    : path_(std::move(path)), fd_(fd), size_(size), calls_(std::move(calls)) {}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      pending_(std::move(other.pending_)),
      calls_(std::move(other.calls_)) {}

AppendFile::~AppendFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<AppendFile> AppendFile::open(const std::string& path, int64_t keep, FileCalls calls) {
  bool existed = ::access(path.c_str(), F_OK) == 0;
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return refuse(file_cannot_open, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  struct stat info{};
  ::fstat(fd, &info);
  AppendFile file(path, fd, info.st_size, std::move(calls));
  if (keep >= 0 && keep < file.size_) {
    if (::ftruncate(fd, keep) != 0) return file.failed("write", errno);
    file.size_ = keep;
  }
  if (!existed) {
    std::string directory = std::filesystem::path(path).parent_path();
    TW_TRY_VOID(sync_directory(directory.empty() ? "." : directory));
  }
  return file;
}

Status AppendFile::append(std::string_view record) {
  pending_ += record;
  return write_pending();
}

Status AppendFile::write_pending() {
  while (!pending_.empty()) {
    ssize_t n = calls_.write(fd_, pending_.data(), pending_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed("write", n < 0 ? errno : ENOSPC);
    size_ += n;
    pending_.erase(0, static_cast<size_t>(n));
  }
  return {};
}

Status AppendFile::sync_written() {
  while (calls_.sync(fd_) != 0)
    if (errno != EINTR) return failed("sync", errno);
  return {};
}

tl::unexpected<Refusal> AppendFile::failed(const char* what, int error) const {
  std::string message = fmt::format("cannot {} {}: {}", what, path_, std::strerror(error));
  if (error == ENOSPC || error == EDQUOT)
    return refuse(Refusal(disk_full, std::move(message)).with_help(fmt::format("make room: df -h {}", path_)));
  return refuse(what[0] == 's' ? file_sync_failed : file_write_failed, std::move(message));
}

Status sync_directory(const std::string& directory) {
  int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return refuse(file_cannot_open, fmt::format("cannot open {}: {}", directory, std::strerror(errno)));
  int failed = ::fsync(fd);
  int error = errno;
  ::close(fd);
  // Some file systems have no sync of directories; they answer EINVAL.
  if (failed && error != EINVAL)
    return refuse(file_sync_failed, fmt::format("cannot sync {}: {}", directory, std::strerror(error)));
  return {};
}

}  // namespace tilewright
