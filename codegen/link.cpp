// Shared objects without LLVM: the system linker as a subprocess, and dlopen through a memory file.
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "codegen/codegen.h"

extern char** environ;

namespace tilewright::codegen {

namespace {

// A file that lives in memory; /proc/self/fd/N names it for this process and its children.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : fd_(memfd_create(name, 0)) {}
  MemoryFile(MemoryFile&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  MemoryFile(const MemoryFile&) = delete;
  ~MemoryFile() {
    if (fd_ >= 0) close(fd_);
  }
  bool ok() const { return fd_ >= 0; }
  std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }
  bool write_all(const std::string& bytes) const {
    for (size_t done = 0; done < bytes.size();) {
      ssize_t n = ::write(fd_, bytes.data() + done, bytes.size() - done);
      if (n <= 0) return false;
      done += static_cast<size_t>(n);
    }
    return true;
  }
  std::string read_all() const {
    std::string bytes(static_cast<size_t>(std::max<off_t>(0, lseek(fd_, 0, SEEK_END))), '\0');
    ssize_t n = pread(fd_, bytes.data(), bytes.size(), 0);
    bytes.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return bytes;
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

std::string find_linker() {
  if (const char* chosen = std::getenv("TILEWRIGHT_LINKER"); chosen && *chosen) return chosen;
  std::string path = std::getenv("PATH") ? std::getenv("PATH") : "/usr/bin:/bin";
  for (const char* name : {"mold", "ld.lld", "ld"}) {
    for (size_t at = 0; at <= path.size();) {
      size_t colon = std::min(path.find(':', at), path.size());
      std::string file = path.substr(at, colon - at) + "/" + name;
      if (access(file.c_str(), X_OK) == 0) return file;
      at = colon + 1;
    }
  }
  return {};
}

// Runs a program to its end with stdout and stderr in `log`; -1 if it could not be started.
int run(std::vector<std::string> words, const MemoryFile& log) {
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, log.fd(), 1);
  posix_spawn_file_actions_adddup2(&actions, log.fd(), 2);
  pid_t pid = 0;
  int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error) return -1;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Linkers write a temporary file beside their output, so it needs a real directory: memory-backed where there is one.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    for (const char* base : {"/dev/shm", "/tmp"}) {
      path_ = fmt::format("{}/tilewright-XXXXXX", base);
      if (mkdtemp(path_.data())) return;
    }
    path_.clear();
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    std::error_code ignored;
    if (ok()) std::filesystem::remove_all(path_, ignored);
  }
  bool ok() const { return !path_.empty(); }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

class SharedCode : public LoadedCode {
 public:
  explicit SharedCode(void* handle) : handle_(handle) {}
  ~SharedCode() override { dlclose(handle_); }
  void* symbol(const std::string& name) const override { return dlsym(handle_, name.c_str()); }

 private:
  void* handle_;
};

}  // namespace

Result<std::string> link_shared(std::span<const std::string> objects) {
  std::string linker = find_linker();
  if (linker.empty())
    return refuse(Refusal(linker_missing, "none of ld.lld, mold and ld is in PATH")
                      .with_help("install binutils, or set TILEWRIGHT_LINKER"));
  std::vector<MemoryFile> inputs;
  MemoryFile log("tilewright-link.log");
  ScratchDirectory scratch;
  std::string output = scratch.file("out.so");
  // No -z defs: the scalar libm functions are resolved when the object is loaded (codegen checks the list of symbols).
  std::vector<std::string> words{linker, "-shared", "--build-id=none", "-z", "relro", "-z", "noexecstack",
                                 "-o",   output};
  for (const std::string& object : objects) {
    inputs.emplace_back("tilewright.o");
    if (!inputs.back().ok() || !inputs.back().write_all(object))
      return refuse(link_failed, "no memory for an object file");
    words.push_back(inputs.back().path());
  }
  if (!scratch.ok() || !log.ok()) return refuse(link_failed, "no memory for the shared object");
  int code = run(words, log);
  if (code != 0) return refuse(link_failed, fmt::format("{} ended with {}: {}", linker, code, log.read_all()));
  std::ifstream in(output, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

Result<std::unique_ptr<LoadedCode>> load_shared(const std::string& bytes) {
  MemoryFile file("tilewright.so");
  if (!file.ok() || !file.write_all(bytes)) return refuse(load_failed, "no memory for the shared object");
  void* handle = dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return refuse(load_failed, dlerror());
  return std::make_unique<SharedCode>(handle);
}

}  // namespace tilewright::codegen
