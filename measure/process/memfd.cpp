#include "measure/process/memfd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace tilewright::measure {

namespace {

constexpr int all_seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

tl::unexpected<Refusal> failed(const char* what) {
  return refuse(memory_file_failed, fmt::format("{}: {}", what, std::strerror(errno)));
}

}  // namespace

Result<Fd> sealed_memfd(const char* name, std::string_view bytes) {
  Fd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return failed("memfd_create");
  for (size_t done = 0; done < bytes.size();) {
    ssize_t n = ::write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed("write to an anonymous file");
    done += static_cast<size_t>(n);
  }
  TW_TRY_VOID(seal(fd));
  return fd;
}

Status seal(const Fd& fd) {
  if (fcntl(fd.get(), F_ADD_SEALS, all_seals) != 0) return failed("sealing an anonymous file");
  return {};
}

Fd duplicate(const Fd& fd) { return Fd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 10)); }

Result<Mapping> Mapping::of(const Fd& fd) {
  if ((fcntl(fd.get(), F_GET_SEALS) & all_seals) != all_seals)
    return refuse(memory_file_failed, "a file that came from another process is not sealed");
  struct stat st;
  if (fstat(fd.get(), &st) != 0) return failed("fstat");
  Mapping mapping;
  if (st.st_size == 0) return mapping;
  auto size = static_cast<size_t>(st.st_size);
  void* p = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (p == MAP_FAILED) return failed("mmap");
  mapping.bytes_ = {static_cast<const char*>(p), size};
  return mapping;
}

Mapping::~Mapping() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

}  // namespace tilewright::measure
