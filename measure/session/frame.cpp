#include "measure/session/frame.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "support/check.h"

namespace tilewright::measure {

FrameSocket::FrameSocket(Fd socket) : socket_(std::move(socket)), state_(State::open) {
  fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
}

void FrameSocket::send(std::string_view payload, std::vector<Fd> descriptors) {
  TW_CHECK(payload.size() <= max_frame, "a frame of {} bytes, at most {}", payload.size(), max_frame);
  TW_CHECK(descriptors.size() <= 16);
  if (state_ != State::open) return;
  Out out;
  auto n = static_cast<uint32_t>(payload.size());
  for (int shift = 0; shift < 32; shift += 8) out.bytes.push_back(static_cast<char>(n >> shift & 0xff));
  out.bytes += payload;
  out.descriptors = std::move(descriptors);
  out_.push_back(std::move(out));
  flush();
}

void FrameSocket::flush() {
  while (state_ == State::open && !out_.empty()) {
    Out& out = out_.front();
    iovec part{out.bytes.data() + out.done, out.bytes.size() - out.done};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(16 * sizeof(int))> control{};
    if (out.done == 0 && !out.descriptors.empty()) {
      size_t bytes = out.descriptors.size() * sizeof(int);
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(bytes);
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(bytes);
      for (size_t i = 0; i < out.descriptors.size(); ++i) {
        int fd = out.descriptors[i].get();
        std::memcpy(CMSG_DATA(header) + i * sizeof(int), &fd, sizeof(int));
      }
    }
    ssize_t n = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) state_ = State::closed;
      return;
    }
    out.done += static_cast<size_t>(n);
    if (out.done == out.bytes.size()) out_.pop_front();
  }
}

void FrameSocket::receive() {
  std::array<char, 65536> buffer;
  while (state_ == State::open) {
    iovec part{buffer.data(), buffer.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(16 * sizeof(int))> control;
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t n = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) state_ = State::closed;
      return;
    }
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        descriptors_.emplace_back(fd);
      }
    }
    if (n == 0) {
      state_ = State::closed;  // half a frame may be left: its sender is gone, and how it went says more
      return;
    }
    in_.append(buffer.data(), static_cast<size_t>(n));
    if (descriptors_.size() > max_descriptors || (message.msg_flags & MSG_CTRUNC)) {
      state_ = State::garbage;
      return;
    }
    if (in_.size() - in_done_ > 2 * max_frame) return;  // let the owner take frames first
  }
}

std::optional<std::string> FrameSocket::next() {
  size_t have = in_.size() - in_done_;
  if (have < 4) return std::nullopt;
  uint32_t n = 0;
  for (int i = 3; i >= 0; --i) n = n << 8 | static_cast<unsigned char>(in_[in_done_ + static_cast<size_t>(i)]);
  if (n > max_frame) {
    state_ = State::garbage;
    in_.clear();
    in_done_ = 0;
    return std::nullopt;
  }
  if (have < 4 + n) return std::nullopt;
  std::string frame = in_.substr(in_done_ + 4, n);
  in_done_ += 4 + n;
  if (in_done_ == in_.size() || in_done_ > max_frame) {
    in_.erase(0, in_done_);
    in_done_ = 0;
  }
  return frame;
}

Fd FrameSocket::take_descriptor() {
  if (descriptors_.empty()) return Fd();
  Fd fd = std::move(descriptors_.front());
  descriptors_.pop_front();
  return fd;
}

std::optional<std::string> FrameSocket::wait(int ms) {
  for (;;) {
    if (auto frame = next()) return frame;
    if (state_ != State::open) return std::nullopt;
    pollfd p{socket_.get(), static_cast<short>(POLLIN | (wants_write() ? POLLOUT : 0)), 0};
    int n = poll(&p, 1, ms);
    if (n == 0) return std::nullopt;
    if (n < 0 && errno != EINTR) return std::nullopt;
    if (p.revents & POLLOUT) flush();
    if (p.revents & (POLLIN | POLLHUP | POLLERR)) receive();
  }
}

void FrameSocket::drain() {
  while (state_ == State::open && !out_.empty()) {
    pollfd p{socket_.get(), POLLOUT, 0};
    if (poll(&p, 1, -1) < 0 && errno != EINTR) return;
    flush();
  }
}

}  // namespace tilewright::measure
