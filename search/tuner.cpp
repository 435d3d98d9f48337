#include "search/tuner.h"

#include <fmt/format.h>

#include <algorithm>

#include "search/measuring.h"
#include "search/task_run.h"

namespace tilewright {

using Clock = std::chrono::steady_clock;

namespace {

// Whatever the budget is, for without them a run has nothing to say; several times what small programs take on a busy
// machine.
constexpr double kFirstBaseline_s = 30, kLeastShootout_s = 10;

class Stopwatch {
 public:
  explicit Stopwatch(double& into) : into_(into), start_(Clock::now()) {}
  ~Stopwatch() { into_ += std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  double& into_;
  Clock::time_point start_;
};

}  // namespace

struct Tuner::Impl {
  std::vector<Task> tasks;
  TunerOptions options;
  measure::Measurer& measurer;
  Observer& observer;
  const std::atomic<bool>& stop;
  Known known;
  Earlier earlier;
  std::unique_ptr<TaskScheduler> scheduler;
  std::vector<std::unique_ptr<TaskRun>> runs;  ///< by task
  std::unique_ptr<Measuring> measuring;
  int64_t next_trial = 0, next_round = 0, seq = 0;
  bool baseline = false;  ///< untuned programs are being measured: up to cut_s, not only while there is time to search
  double cut_s = 0;       ///< with a budget: jobs that are still in flight then are cut
  Clock::time_point start = Clock::now();
  RunReport report;

  Impl(std::vector<Task> t, TunerOptions o, measure::Measurer& m, Observer& ob, Known k, Earlier e,
       const std::atomic<bool>& s)
      : tasks(std::move(t)),
        options(std::move(o)),
        measurer(m),
        observer(ob),
        stop(s),
        known(std::move(k)),
        earlier(std::move(e)),
        next_trial(options.first_trial) {}

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start).count(); }
  void emit(EventBody body) { observer.on_event({++seq, elapsed(), std::move(body)}); }
  /// A tenth of the budget, at most a minute, is kept for the shoot-out.
  double reserve_s() const { return std::min(60.0, 0.1 * options.budget_s); }
  bool past(double seconds) const { return options.budget_s > 0 && elapsed() > seconds; }
  bool give_up() const { return stop || past(options.budget_s - reserve_s()); }

  Status set_up();
  void measure_baselines();
  Status some_task_can_be_tuned() const;
  void recall();
  void search();
  std::unique_ptr<Proposal> propose();
  void begin(Proposal&);
  std::vector<Settled> collect(const Proposal&);
  void learn(const Proposal&, const std::vector<Settled>&);
  void pause_campaign(const std::string& reason);
  RunReport conclude();
};

Status Tuner::Impl::set_up() {
  const bool reference = options.preset == "metaschedule";
  if (reference) options.first_batch = options.batch = 64;
  // Half of MetaSchedule's: on spaces that are built tightly more candidates cost time and find nothing.
  if (options.population <= 0) options.population = reference ? 512 : 256;
  if (options.lag < 0) options.lag = reference ? 0 : 1;
  TW_TRY_VOID(parts_for(options.preset, tasks.at(0).target));
  const TaskSchedulerFactory* factory = Registry<TaskSchedulerFactory>::instance().find(options.scheduler);
  if (!factory) return refuse(scheduler_unknown, fmt::format("no task scheduler is called \"{}\"", options.scheduler));
  scheduler = factory->make(options.seed);
  measuring = std::make_unique<Measuring>(
      tasks, options, measurer, [this](EventBody e) { emit(std::move(e)); }, known,
      [this] { return baseline ? !stop && !past(cut_s) : !give_up(); }, [this] { return past(cut_s); }, stop);
  // Between two pieces of search: results are taken, jobs leave, and a timing gets the quiet that it asked for.
  auto pause = [this] {
    measuring->pump(std::chrono::milliseconds(0));
    measurer.park_while_quiet();
  };
  for (size_t i = 0; i < tasks.size(); ++i) {
    TW_TRY(auto run,
           TaskRun::create(i, tasks[i], options,
                           {pause, [this] { return give_up(); }, [this](EventBody e) { emit(std::move(e)); }}));
    runs.push_back(std::move(run));
  }
  return some_task_can_be_tuned();
}

void Tuner::Impl::measure_baselines() {
  for (size_t i = 0; i < tasks.size() && !stop; ++i) {
    if (runs[i]->failure()) continue;
    std::vector<Trial> trials = runs[i]->baseline_trials();
    for (Trial& t : trials) t.number = next_trial++;
    baseline = i == 0;
    cut_s = std::max(options.budget_s, baseline ? kFirstBaseline_s : 0);
    runs[i]->take_baselines(trials, measuring->run(trials, std::vector<double>(tasks.size(), 0)));
  }
  baseline = false;
  cut_s = options.budget_s;
}

/// A task that cannot be tuned costs only itself, unless there is no other.
Status Tuner::Impl::some_task_can_be_tuned() const {
  for (const auto& run : runs)
    if (!run->failure()) return {};
  return refuse(*runs.front()->failure());
}

/// What earlier runs measured counts as if it had been measured now, and the search learns from it.
void Tuner::Impl::recall() {
  for (size_t i = 0; i < tasks.size() && !stop; ++i) {
    auto [p, results] = runs[i]->recall(earlier);
    if (results.empty()) continue;
    for (size_t k = 0; k < results.size(); ++k) {
      if (p.trials[k].number < 0) p.trials[k].number = next_trial++;
      results[k] = measuring->reuse(p.trials[k], std::move(results[k]));
    }
    learn(p, runs[i]->settle(p, results, std::vector<bool>(results.size(), true)));
  }
}

/// The next round of whichever task the scheduler picks. Nothing: all tasks are finished, or the run is to end.
std::unique_ptr<Proposal> Tuner::Impl::propose() {
  while (report.stop_reason.empty()) {
    std::vector<TaskProgress> progress;
    for (const auto& run : runs) progress.push_back(run->progress());
    std::optional<size_t> task = give_up() ? std::nullopt : scheduler->next(progress);
    if (!task) break;
    Stopwatch watch(report.seconds["search"]);
    auto p = std::make_unique<Proposal>(runs[*task]->propose(next_round));
    if (give_up()) break;  // cut short: not what a whole search would have proposed
    ++next_round;
    if (!p->candidates.empty()) return p;
  }
  if (report.stop_reason.empty() && give_up()) report.stop_reason = stop ? "interrupted" : "budget";
  return nullptr;
}

void Tuner::Impl::begin(Proposal& p) {
  for (Trial& t : p.trials) t.number = next_trial++;
  std::vector<double> incumbent_ns;
  for (const auto& run : runs) incumbent_ns.push_back(run->incumbent_ns());
  measuring->begin(p.trials, incumbent_ns);
}

std::vector<Settled> Tuner::Impl::collect(const Proposal& p) {
  std::vector<JobResult> results;
  {
    Stopwatch watch(report.seconds["measure"]);
    results = measuring->finish();
  }
  std::vector<bool> was_known;
  for (size_t i = 0; i < results.size(); ++i) was_known.push_back(measuring->was_known(i));
  TaskRun& run = *runs[p.task];
  std::vector<Settled> settled = run.settle(p, results, was_known);
  if (!run.machine_failure().empty()) pause_campaign(run.machine_failure());
  return settled;
}

void Tuner::Impl::learn(const Proposal& p, const std::vector<Settled>& settled) {
  Stopwatch watch(report.seconds["train"]);
  runs[p.task]->learn(p.round, settled);
}

/// Failures that are the machine's: a person must look at it.
void Tuner::Impl::pause_campaign(const std::string& reason) {
  if (!report.stop_reason.empty()) return;
  CampaignPaused e;
  e.reason = reason;
  e.resume = "run `tilewright doctor`, then go on with `tilewright tune --run RUN`";
  emit(e);
  report.stop_reason = "paused: " + reason;
}

/// While one round is measured, the next is asked for (lag 1) or waits for its results (lag 0). Either way what a
/// round sees is a matter of counting, not of time.
void Tuner::Impl::search() {
  std::unique_ptr<Proposal> flying;
  while (true) {
    if (flying && options.lag == 0) {
      learn(*flying, collect(*flying));
      flying.reset();
    }
    std::unique_ptr<Proposal> next = propose();
    std::vector<Settled> settled;
    if (flying) settled = collect(*flying);
    const bool dropped = next && (runs[next->task]->stopped() || !report.stop_reason.empty());
    if (next && !dropped) begin(*next);
    if (flying) learn(*flying, settled);  // beside the measurements of `next`
    if (!next) break;
    flying.reset();
    if (!dropped) flying = std::move(next);
  }
}

RunReport Tuner::Impl::conclude() {
  if (stop) report.stop_reason = "interrupted";
  std::string reason = report.stop_reason;
  cut_s = options.budget_s + std::max(reserve_s(), kLeastShootout_s);
  for (const auto& run : runs) {
    run->close(report.stop_reason);
    run->conclude(stop || past(cut_s) ? nullptr : measuring.get());
    // A run whose tasks all ended by themselves ended as they did.
    if (report.stop_reason.empty())
      reason = reason.empty() || reason == run->report().stop_reason ? run->report().stop_reason : "all tasks ended";
  }
  report.stop_reason = reason;
  report.measured = measuring->measured();
  report.reused = measuring->reused();
  RunEnd end;
  end.reason = report.stop_reason;
  for (const auto& run : runs) {
    const TaskReport& r = run->report();
    end.trials += r.trials;
    end.ok += r.ok;
    for (const auto& [status, n] : r.failed) end.failed += n, end.failures[status] += n;
    report.tasks.push_back(r);
  }
  end.elapsed_s = elapsed();
  for (const auto& [what, s] : report.seconds) end.seconds[what] = s;
  emit(end);
  return report;
}

Tuner::Tuner() = default;
Tuner::~Tuner() = default;
const std::vector<Task>& Tuner::tasks() const { return impl_->tasks; }
const Space& Tuner::space(size_t task) const { return impl_->runs[task]->space(); }

Result<std::unique_ptr<Tuner>> Tuner::create(std::vector<Task> tasks, TunerOptions options, measure::Measurer& measurer,
                                             Observer& observer, Known known, Earlier earlier) {
  TW_CHECK(!tasks.empty());
  std::unique_ptr<Tuner> tuner(new Tuner);
  tuner->impl_ = std::make_unique<Impl>(std::move(tasks), std::move(options), measurer, observer, std::move(known),
                                        std::move(earlier), tuner->stop_);
  TW_TRY_VOID(tuner->impl_->set_up());
  return tuner;
}

Result<RunReport> Tuner::run() {
  impl_->start = Clock::now();
  // Without a calibration nothing is compared with the roofline.
  auto calibration = impl_->measurer.calibrate("", impl_->options.run_threads);
  for (const auto& run : impl_->runs) run->announce(calibration ? *calibration : measure::Calibration());
  impl_->measure_baselines();
  TW_TRY_VOID(impl_->some_task_can_be_tuned());
  impl_->recall();
  impl_->search();
  return impl_->conclude();
}

}  // namespace tilewright
