#include "measure/process/spawn.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "support/component.h"

extern char** environ;

namespace tilewright::measure {

namespace {

/// Descriptors ≥ 10, so that the dup2 steps below cannot overwrite one of them.
Fd high(Fd fd) { return Fd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 10)); }

/// The environment of a worker: without what changes thread counts or number formats behind our back.
std::vector<std::string> clean_environment() {
  static constexpr const char* dropped[] = {"OMP_",    "GOMP_", "KMP_", "MKL_",        "OPENBLAS_", "BLIS_",
                                            "VECLIB_", "LC_",   "LANG", "LD_PRELOAD=", "MALLOC_",   "GLIBC_TUNABLES="};
  std::vector<std::string> out;
  for (char** e = environ; *e; ++e) {
    bool drop = false;
    for (const char* prefix : dropped) drop |= std::strncmp(*e, prefix, std::strlen(prefix)) == 0;
    if (!drop) out.emplace_back(*e);
  }
  out.emplace_back("LC_ALL=C");
  out.emplace_back(std::string(child_mark) + "=1");
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

std::string Exit::text() const {
  if (signal == 0) return fmt::format("exit code {}", code);
  const char* abbreviation = sigabbrev_np(signal);
  return fmt::format("SIG{} ({})", abbreviation ? abbreviation : std::to_string(signal), strsignal(signal));
}

Result<Child> Child::spawn(const std::string& binary, const std::vector<std::string>& arguments) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return refuse(spawn_failed, fmt::format("socketpair: {}", std::strerror(errno)));
  Fd ours(pair[0]), theirs = high(Fd(pair[1]));
  // Not a pipe: nobody has to drain it, and its end survives the child.
  Fd output = high(Fd(memfd_create("worker-output", MFD_CLOEXEC)));
  if (!theirs || !output) return refuse(spawn_failed, fmt::format("cannot open descriptors: {}", std::strerror(errno)));
  fcntl(output.get(), F_SETFL, O_APPEND);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, output.get(), 2);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), 3);
  posix_spawn_file_actions_addclosefrom_np(&actions, 4);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);

  std::vector<std::string> argv{"tilewright"}, env = clean_environment();
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  argv.insert(argv.end(), {"--parent", std::to_string(getpid())});
  Child child;
  int error =
      posix_spawn(&child.pid_, binary.c_str(), &actions, &attributes, pointers(argv).data(), pointers(env).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    child.pid_ = -1;
    return refuse(spawn_failed, fmt::format("cannot start {}: {}", binary, std::strerror(error)));
  }
  child.pidfd_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, child.pid_, 0)));
  if (!child.pidfd_) return refuse(spawn_failed, fmt::format("pidfd_open: {}", std::strerror(errno)));
  child.socket_ = std::move(ours);
  child.output_ = std::move(output);
  return child;
}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pidfd_, other.pidfd_);
  std::swap(socket_, other.socket_);
  std::swap(output_, other.output_);
  return *this;
}

Child::~Child() {
  if (pid_ <= 0 || !pidfd_) return;
  kill();
  wait(10'000);
}

void Child::signal_group(int signal) const {
  if (pid_ > 0) ::kill(-pid_, signal);
}

void Child::kill() const { signal_group(SIGKILL); }

std::optional<Exit> Child::poll() {
  if (pid_ <= 0) return std::nullopt;
  siginfo_t si{};
  auto id = static_cast<id_t>(pidfd_.get());
  if (waitid(P_PIDFD, id, &si, WEXITED | WNOHANG | WNOWAIT) != 0 || si.si_pid == 0) return std::nullopt;
  signal_group(SIGKILL);  // its own children, before it is reaped and the group's number can be used again
  waitid(P_PIDFD, id, &si, WEXITED);
  pid_ = -1;
  pidfd_.reset();
  if (si.si_code == CLD_EXITED) return Exit{si.si_status, 0};
  return Exit{0, si.si_status};
}

std::optional<Exit> Child::wait(int ms) {
  if (pid_ <= 0) return std::nullopt;
  struct pollfd p{pidfd_.get(), POLLIN, 0};
  ::poll(&p, 1, ms);
  return poll();
}

std::string Child::output(size_t limit) const {
  struct stat st;
  if (!output_ || fstat(output_.get(), &st) != 0) return {};
  auto size = static_cast<size_t>(st.st_size);
  std::string text(std::min(size, limit), '\0');
  ssize_t n = pread(output_.get(), text.data(), text.size(), static_cast<off_t>(size - text.size()));
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

uint64_t Child::cpu_ms() const {
  clockid_t clock;
  timespec t;
  if (pid_ <= 0 || clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
  return static_cast<uint64_t>(t.tv_sec) * 1000 + static_cast<uint64_t>(t.tv_nsec) / 1'000'000;
}

uint64_t Child::resident_bytes() const {
  std::ifstream statm(fmt::format("/proc/{}/statm", pid_));
  uint64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

bool enter_child(pid_t parent, bool dies_with_parent) {
  if (dies_with_parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) return false;
  }
  close_range(4, ~0u, 0);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  std::signal(SIGINT, SIG_IGN);  // a terminal's Ctrl-C is the tuner's to handle
  std::signal(SIGPIPE, SIG_IGN);
  return true;
}

std::string default_binary() {
  Dl_info where;
  if (dladdr(reinterpret_cast<const void*>(&open_component), &where)) {
    auto library = std::filesystem::path(where.dli_fname).parent_path();
    auto candidate = (library / ".." / "bin" / "tilewright").lexically_normal();
    std::error_code ec;
    if (std::filesystem::exists(candidate, ec)) return candidate;
  }
  return "/proc/self/exe";
}

}  // namespace tilewright::measure
