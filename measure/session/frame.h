// Frames on a socket pair: u32 little-endian length, then that many bytes; at most 1 MiB. Descriptors travel beside the
// first byte of a frame. Anything out of form makes the channel `garbage`; its owner kills the peer.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "measure/process/fd.h"

namespace tilewright::measure {

class FrameSocket {
 public:
  static constexpr size_t max_frame = 1 << 20;
  static constexpr size_t max_descriptors = 64;  ///< waiting to be taken; a peer that sends more is out of form
  enum class State { open, closed, garbage };

  FrameSocket() = default;
  explicit FrameSocket(Fd socket);

  int fd() const { return socket_.get(); }
  State state() const { return state_; }
  bool wants_write() const { return !out_.empty(); }

  /// Queues a frame and writes what the socket takes now. The descriptors are sent with it.
  void send(std::string_view payload, std::vector<Fd> descriptors = {});
  /// Writes what the socket takes now.
  void flush();
  /// Reads what is there without waiting.
  void receive();
  /// The next whole frame that was received.
  std::optional<std::string> next();
  /// The next descriptor that was received; an empty Fd if there is none.
  Fd take_descriptor();

  /// Flushes everything and waits for the next frame, up to `ms` (-1: for ever). Nothing: time is up, or not open any
  /// more.
  std::optional<std::string> wait(int ms = -1);
  /// Waits until everything is written or the peer is gone.
  void drain();

 private:
  struct Out {
    std::string bytes;
    std::vector<Fd> descriptors;
    size_t done = 0;
  };
  Fd socket_;
  State state_ = State::closed;
  std::deque<Out> out_;
  std::string in_;
  size_t in_done_ = 0;  ///< bytes of in_ already handed out
  std::deque<Fd> descriptors_;
};

}  // namespace tilewright::measure
