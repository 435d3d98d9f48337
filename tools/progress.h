// What a person sees while a run goes on: on a terminal one table that is redrawn in place, elsewhere one line per
// event that matters and a status line every 30 s. All of it goes to stderr.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "support/events.h"
#include "tools/board.h"
#include "tools/tool.h"

namespace tilewright::tools {

struct TuneRun;

enum class ProgressKind : uint8_t { live, plain, none, json };
/// --progress auto: live on a terminal that can move its cursor and is nobody's log (CI, TERM=dumb).
ProgressKind progress_kind(const Globals&);

class Progress : public Observer {
 public:
  Progress(Tool&, const TuneRun&, ProgressKind);
  ~Progress() override;
  void on_event(const Event&) override;
  /// Draws the last state and stops; afterwards the terminal is the caller's.
  void finish();
  const Board& board() const { return board_; }

 private:
  void tick();
  void line(double t, const std::string& text);
  void draw();
  void erase();
  double elapsed() const;
  void follow(const EventBody&);

  Tool& tool_;
  const ProgressKind kind_;
  const bool verbose_;
  std::string command_, resume_, last_;
  std::string where_;  ///< how to go on with the run; said once its folder is there
  std::string doing_;  ///< before the search begins; said when it takes a while
  double budget_;
  Board board_;
  TableStyle style_;
  int drawn_ = 0;  ///< lines of the table that are on the screen
  bool dirty_ = true, stop_ = false;
  double last_status_ = 0, event_t_ = 0;
  std::chrono::steady_clock::time_point event_at_ = std::chrono::steady_clock::now(), drawn_at_, said_at_ = event_at_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread ticker_;
};

}  // namespace tilewright::tools
