#include "tools/stop.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <thread>

#include "support/check.h"

namespace tilewright::tools {

namespace {

constexpr std::array signals{SIGINT, SIGTERM, SIGHUP};
int wake_fd = -1;  // written by the handler, read by the watcher
std::atomic<int> signals_seen = 0;

void on_signal(int number) {
  if (++signals_seen > 1) _exit(128 + number);
  int saved = errno;
  char byte = 's';
  if (write(wake_fd, &byte, 1) < 0) _exit(128 + number);
  errno = saved;
}

}  // namespace

struct StopSignals::Watcher {
  std::array<int, 2> pipe{-1, -1};
  std::array<struct sigaction, signals.size()> before{};
  std::thread thread;
};

StopSignals::StopSignals(std::function<void()> first) : watcher_(std::make_unique<Watcher>()) {
  TW_CHECK(wake_fd < 0, "one at a time");
  TW_CHECK(pipe2(watcher_->pipe.data(), O_CLOEXEC) == 0);
  wake_fd = watcher_->pipe[1];
  signals_seen = 0;
  watcher_->thread = std::thread([fd = watcher_->pipe[0], first = std::move(first)] {
    char byte = 0;
    while (read(fd, &byte, 1) < 0 && errno == EINTR) {
    }
    if (byte == 's') first();
  });
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &action, &watcher_->before[i]);
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &watcher_->before[i], nullptr);
  close(watcher_->pipe[1]);  // ends the watcher's read
  watcher_->thread.join();
  close(watcher_->pipe[0]);
  wake_fd = -1;
}

}  // namespace tilewright::tools
