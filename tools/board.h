// Board: the state of a run as a screen shows it, added up from the run's events. progress.h draws it; the summary at
// the end of a run reads it too.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "database/replay.h"
#include "support/events.h"
#include "tools/funnel.h"

namespace tilewright::tools {

/// "31.2 us", three digits.
std::string nice_time(double ns);
/// Share of the roofline that a time reaches. Nothing without a roofline, or beyond it: where operands stay in caches
/// or a kernel runs on one core, what was calibrated for the whole machine is no bound.
std::optional<double> roof_share(std::optional<double> roofline_ns, std::optional<double> best_ns);
/// "06:11"
std::string clock_text(double seconds);
/// "2 317"
std::string grouped(int64_t n);
/// "run_timeout 11, wrong_result 5"
std::string counts_text(const std::map<std::string, int64_t>& counts);

struct BoardTask {
  std::string name;
  double weight = 1;
  int64_t limit = 0;  ///< trials
  std::optional<double> baseline_ns, best_ns, roofline_ns;
  std::optional<double> accuracy;     ///< of the model, on the incoming batch before it was trained on
  std::set<int64_t> baseline_trials;  ///< the untuned program; the fastest counts
  int64_t best_trial = -1;
  int64_t trials = 0, ok = 0;  ///< settled, without the baselines
  std::vector<double> best_after;
  std::string done;  ///< why the task ended; empty: it has not
};

/// One event as a line for people.
struct Note {
  std::string text;
  bool warning = false;
};

class Board {
 public:
  /// `names` and `weights` by task; `before`: what earlier starts of the run left.
  Board(std::string run, std::vector<BoardTask> tasks, const RunState& before);

  /// Takes an event in; the line that it deserves, if any.
  std::optional<Note> apply(const Event&);

  const std::vector<BoardTask>& tasks() const { return tasks_; }
  int64_t trials() const { return trials_; }
  int64_t ok() const { return ok_; }
  const std::map<std::string, int64_t>& failures() const { return failures_; }
  int64_t done() const;
  double now() const { return now_; }            ///< run time of the last event
  double device_s() const { return device_s_; }  ///< busy on devices, in this start
  double rate() const;                           ///< settled trials per second of this start
  /// "731 trials 9.2/s ok 712 failed 19 (run_timeout 11, …) 3 tasks, 1 done"
  std::string status() const;
  const Funnel& funnel(size_t task) const { return funnels_[task]; }
  /// The result of a trial that counts; null: it has none.
  const JobResult* result(int64_t trial) const;

 private:
  std::optional<Note> take(const JobResult&, bool say);
  void take_final(const JobResult&);
  std::string run_;
  std::vector<BoardTask> tasks_;
  std::vector<Funnel> funnels_;
  std::map<int64_t, JobResult> results_;
  std::map<std::string, int64_t> failures_;
  int64_t trials_ = 0, ok_ = 0, trials_before_ = 0;
  double now_ = 0, started_ = 0, device_s_ = 0;
};

struct TableStyle {
  bool utf8 = true;
  int width = 100, height = 24;
};
/// The table of a run that goes on: what runs (cut so that how to resume it is always there), a line per task, the sum,
/// and at most `height` lines in all. `elapsed` and `budget` (0: none) in seconds of the run.
std::vector<std::string> board_table(const Board&, const std::string& command, const std::string& resume,
                                     const std::string& last, double elapsed, double budget, const TableStyle&);

}  // namespace tilewright::tools
