#include "search/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "costmodel/features/extract.h"
#include "costmodel/features/schema.h"
#include "ir/equal.h"
#include "search/baseline.h"
#include "search/measuring.h"

namespace tilewright {

using Clock = std::chrono::steady_clock;

struct Tuner::Impl {
  struct TaskState {
    std::unique_ptr<CostModel> model;
    std::unique_ptr<StrategyContext> context;
    std::unique_ptr<SearchStrategy> strategy;
    Trial baseline;
    std::vector<std::pair<Settled, Trial>> good;  ///< ok trials, best first
    TaskReport report;
    int rounds = 0;
  };
  std::vector<Task> tasks;
  TunerOptions options;
  measure::Measurer& measurer;
  Observer& observer;
  Known known;
  std::vector<Space> spaces;
  std::vector<TaskState> states;
  std::vector<TaskProgress> progress;
  std::vector<double> incumbent_ns;
  std::unique_ptr<TaskScheduler> scheduler;
  std::unique_ptr<Measuring> measuring;
  int64_t next_trial = 0, seq = 0;
  Clock::time_point start = Clock::now();
  RunReport report;

  Impl(std::vector<Task> t, TunerOptions o, measure::Measurer& m, Observer& ob, Known k)
      : tasks(std::move(t)),
        options(std::move(o)),
        measurer(m),
        observer(ob),
        known(std::move(k)),
        next_trial(options.first_trial) {}

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start).count(); }
  void emit(EventBody body) { observer.on_event({++seq, elapsed(), std::move(body)}); }

  Status set_up();
  void start_task(size_t i);
  Status measure_baselines();
  void round(size_t i, int64_t number);
  void learn(size_t i, int64_t number, const std::vector<Settled>& settled);
  void settle(size_t i, const Trial& trial, const Settled& settled, const JobResult& result);
  void finish_task(size_t i, const std::string& reason);
  bool out_of_time() const;
};

namespace {

class Stopwatch {
 public:
  explicit Stopwatch(double& into) : into_(into), start_(Clock::now()) {}
  ~Stopwatch() { into_ += std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  double& into_;
  Clock::time_point start_;
};

Result<Space> make_space(const Task& task, const TunerOptions& o) {
  TW_TRY(SpaceParts parts, parts_for(o.preset, task.target));
  for (const std::string& rule : o.without_rules) std::erase(parts.rules, rule);
  if (!o.space_text.empty()) return Space::from_schedule_file(task, parts, o.space_text, o.space_file);
  if (!o.space.empty()) return Space::from_function(task, parts, o.space);
  return Space::from_rules(task, parts);
}

// A round without 0.5 % says little, five in a row say that the search has settled (search.md §8).
constexpr size_t kPatience = 5;
constexpr double kGain = 0.005;

bool no_gain(const std::vector<double>& best_after) {
  const size_t n = best_after.size();
  return n > kPatience && best_after[n - 1] > (1 - kGain) * best_after[n - 1 - kPatience];
}

Trial make_trial(size_t task, int64_t number, std::string trace) {
  Trial t;
  t.task = task;
  t.number = number;
  t.trace = std::move(trace);
  t.trace_key = content_key(t.trace);
  return t;
}

}  // namespace

Status Tuner::Impl::set_up() {
  const bool reference = options.preset == "metaschedule";
  if (reference) options.first_batch = options.batch = 64;
  TW_TRY_VOID(parts_for(options.preset, tasks.at(0).target));
  const TaskSchedulerFactory* sched = Registry<TaskSchedulerFactory>::instance().find(options.scheduler);
  if (!sched) return refuse(scheduler_unknown, fmt::format("no task scheduler is called \"{}\"", options.scheduler));
  scheduler = sched->make(options.seed);
  for (const Task& task : tasks) {
    TW_TRY(Space space, make_space(task, options));
    spaces.push_back(std::move(space));
  }
  states.resize(tasks.size());
  progress.resize(tasks.size());
  incumbent_ns.assign(tasks.size(), 0);
  for (size_t i = 0; i < tasks.size(); ++i) {
    std::string name = options.strategy;
    if (name.empty()) name = spaces[i].has_skeleton() ? "evolutionary" : "replay_func";
    const StrategyFactory* factory = Registry<StrategyFactory>::instance().find(name);
    if (!factory) {
      std::string hint = Registry<StrategyFactory>::instance().suggestion(name);
      Refusal r(strategy_unknown, fmt::format("no search strategy is called \"{}\"", name));
      return refuse(hint.empty() ? r : r.with_help(fmt::format("did you mean \"{}\"?", hint)));
    }
    TaskState& s = states[i];
    if (factory->uses_model) {
      ModelOptions model;
      model.parameters = reference ? "metaschedule" : "tilewright";
      TW_TRY(const FeatureSchema* schema, feature_schema("tvm164"));
      model.schema = schema->hash;
      model.target_kind = tasks[i].target.is_cpu() ? "cpu" : "cuda";
      TW_TRY(s.model, make_cost_model(options.cost_model.empty() ? "gbdt" : options.cost_model, model));
    }
    s.context.reset(new StrategyContext{tasks[i], spaces[i], s.model.get(), options.seed, options.threads,
                                        [this] { measurer.park_while_quiet(); }});
    s.strategy = factory->make(*s.context);
    s.report.name = tasks[i].name;
    progress[i].weight = tasks[i].weight;
  }
  return {};
}

void Tuner::Impl::start_task(size_t i) {
  const Task& task = tasks[i];
  TaskStart e;
  e.task = static_cast<int64_t>(i);
  e.name = task.name;
  e.program = task.program_text;
  e.workload_key = content_key(fmt::format("{}\n{}", task.program_text, e.ir_version));
  e.anchor_key = e.workload_key;
  e.shape = task.name;
  e.flops = task.flop;
  e.bytes = task.min_bytes;
  e.target_name = task.target.name;
  e.target = task.target.text();
  e.target_key = content_key(e.target);
  e.target_class = content_key(task.target.arch);
  e.mode = options.mode;
  e.weight = task.weight;
  e.sketches = static_cast<int64_t>(spaces[i].sketches().size());
  emit(e);
}

Status Tuner::Impl::measure_baselines() {
  for (size_t i = 0; i < tasks.size(); ++i) {
    Trial t = make_trial(i, next_trial++,
                         i < options.baselines.size() && !options.baselines[i].empty()
                             ? options.baselines[i]
                             : trace_to_json(baseline_schedule(tasks[i]).trace()));
    t.origin = "baseline";
    states[i].baseline = t;
    JobResult r = measuring->run({t}, incumbent_ns).at(0);
    if (r.status == TrialStatus::unspecified) return {};  // stopped before it ran
    if (r.status != TrialStatus::ok && info(r.status).owner == Owner::environment) {
      // The machine would not settle: go on without a number to compare with, and say so.
      Warning w;
      w.code = "baseline-not-timed";
      w.message = fmt::format("the untuned program of {} could not be timed: {} {}", tasks[i].name, to_string(r.status),
                              r.detail);
      w.help = "run `tilewright doctor`";
      w.task = static_cast<int64_t>(i);
      emit(w);
      if (r.median_ns > 0) states[i].report.baseline_ns = r.median_ns;
      continue;
    }
    if (r.status != TrialStatus::ok)
      return refuse(Refusal(baseline_fails, fmt::format("{}: the untuned program ends with {}{}{}", tasks[i].name,
                                                        to_string(r.status), r.detail.empty() ? "" : ": ", r.detail))
                        .with_help("run `tilewright doctor`, and `tilewright opt` on the program"));
    states[i].baseline.number = r.trial;
    states[i].report.baseline_ns = r.median_ns;
    incumbent_ns[i] = r.median_ns;
  }
  return {};
}

bool Tuner::Impl::out_of_time() const {
  if (options.budget_s <= 0) return false;
  return elapsed() > options.budget_s - std::min(60.0, 0.1 * options.budget_s);
}

void Tuner::Impl::settle(size_t i, const Trial& trial, const Settled& settled, const JobResult& result) {
  TaskState& s = states[i];
  ++s.report.trials;
  if (settled.status != TrialStatus::ok) {
    ++s.report.failed[std::string(to_string(settled.status))];
    return;
  }
  ++s.report.ok;
  auto better = std::upper_bound(s.good.begin(), s.good.end(), settled.seconds,
                                 [](double x, const auto& g) { return x < g.first.seconds; });
  const bool best = better == s.good.begin();
  s.good.insert(better, {settled, trial});
  if (!best) return;
  Best e;
  e.task = static_cast<int64_t>(i);
  e.trial = trial.number;
  e.trace_key = trial.trace_key;
  e.stage = result.stage;
  e.median_ns = result.median_ns;
  e.ci_lo_ns = result.ci_lo_ns;
  e.ci_hi_ns = result.ci_hi_ns;
  if (s.good.size() > 1) e.previous_ns = s.good[1].first.seconds * 1e9;
  e.origin = trial.origin;
  emit(e);
  incumbent_ns[i] = std::min(incumbent_ns[i] > 0 ? incumbent_ns[i] : result.median_ns, result.median_ns);
}

void Tuner::Impl::learn(size_t i, int64_t number, const std::vector<Settled>& settled) {
  TaskState& s = states[i];
  s.strategy->tell(settled);
  if (!s.model) return;
  Stopwatch watch(report.seconds["train"]);
  std::vector<Sample> samples;
  for (const Settled& x : settled) {
    if (info(x.status).label == ModelLabel::none) continue;  // says nothing about the candidate
    Sample sample;
    sample.task = tasks[i].key;
    sample.key = x.candidate.program_hash;
    sample.rows = x.candidate.features;
    if (sample.rows.values.empty()) continue;
    sample.label = x.status != TrialStatus::ok ? Label::invalid : x.cut_short ? Label::lower_bound : Label::measured;
    sample.seconds = x.seconds;
    samples.push_back(std::move(sample));
  }
  if (!s.model->update(samples)) return;
  ModelReport fit = s.model->report();
  ModelFit e;
  e.round = number;
  e.task = static_cast<int64_t>(i);
  e.samples = static_cast<int64_t>(fit.samples);
  e.model = s.model->digest();
  for (const MetricValue& m : fit.incoming) e.metrics[std::string(m.name)] = m.value;
  emit(e);
}

void Tuner::Impl::round(size_t i, int64_t number) {
  TaskState& s = states[i];
  const int64_t left = options.trials - s.report.trials;
  const int n = static_cast<int>(std::min<int64_t>(left, s.report.trials < 64 ? options.first_batch : options.batch));
  std::vector<Candidate> candidates;
  {
    Stopwatch watch(report.seconds["search"]);
    candidates = s.strategy->ask(n, s.rounds);
  }
  ++s.rounds;
  RoundStart e;
  e.round = number;
  e.task = static_cast<int64_t>(i);
  e.candidates = static_cast<int64_t>(candidates.size());
  emit(e);
  if (candidates.empty()) return finish_task(i, "the space is exhausted");
  std::vector<Trial> trials;
  for (const Candidate& c : candidates) {
    Trial t = make_trial(i, next_trial++, trace_to_json(c.trace));
    t.round = number;
    t.origin = c.origin;
    t.sketch = c.sketch < 0 ? "" : spaces[i].sketches()[c.sketch].name;
    trials.push_back(std::move(t));
  }
  std::vector<JobResult> results;
  {
    Stopwatch watch(report.seconds["measure"]);
    results = measuring->run(trials, incumbent_ns);
  }
  std::vector<Settled> settled;
  for (size_t k = 0; k < results.size(); ++k) {
    if (results[k].status == TrialStatus::unspecified) continue;  // not run: the user stopped
    trials[k].number = results[k].trial;  // a known result keeps the number under which it was measured
    Settled x{candidates[k], results[k].status, results[k].median_ns * 1e-9, false};
    x.cut_short = std::count(results[k].flags.begin(), results[k].flags.end(), "cut_short") > 0;
    settle(i, trials[k], x, results[k]);
    settled.push_back(std::move(x));
  }
  learn(i, number, settled);
  progress[i].rounds = s.rounds;
  progress[i].best_after.push_back(s.good.empty() ? std::numeric_limits<double>::infinity()
                                                  : s.good.front().first.seconds);
  if (s.report.trials >= options.trials) finish_task(i, "trials");
  if (options.until_no_gain && no_gain(progress[i].best_after))
    finish_task(i, fmt::format("no gain in {} rounds", kPatience));
}

void Tuner::Impl::finish_task(size_t i, const std::string& reason) {
  if (progress[i].finished) return;
  progress[i].finished = true;
  states[i].report.stop_reason = reason;
  states[i].report.refused = states[i].strategy->refusals();
}

Tuner::Tuner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tuner::~Tuner() = default;
const std::vector<Task>& Tuner::tasks() const { return impl_->tasks; }
const Space& Tuner::space(size_t task) const { return impl_->spaces[task]; }

Result<std::unique_ptr<Tuner>> Tuner::create(std::vector<Task> tasks, TunerOptions options, measure::Measurer& measurer,
                                             Observer& observer, Known known) {
  TW_CHECK(!tasks.empty());
  auto impl = std::make_unique<Impl>(std::move(tasks), std::move(options), measurer, observer, std::move(known));
  TW_TRY_VOID(impl->set_up());
  return std::unique_ptr<Tuner>(new Tuner(std::move(impl)));
}

Result<RunReport> Tuner::run() {
  Impl& m = *impl_;
  m.start = Clock::now();
  m.measuring = std::make_unique<Measuring>(
      m.tasks, m.options, m.measurer, [&m](EventBody e) { m.emit(std::move(e)); }, m.known, stop_);
  for (size_t i = 0; i < m.tasks.size(); ++i) m.start_task(i);
  TW_TRY_VOID(m.measure_baselines());
  m.report.stop_reason = "trials";
  for (int64_t number = 0; !stop_; ++number) {
    if (m.out_of_time()) {
      m.report.stop_reason = "budget";
      break;
    }
    std::optional<size_t> task = m.scheduler->next(m.progress);
    if (!task) break;
    m.round(*task, number);
  }
  if (stop_) m.report.stop_reason = "interrupted";
  for (size_t i = 0; i < m.tasks.size(); ++i) {
    m.finish_task(i, m.report.stop_reason);
    conclude(i);
  }
  m.report.measured = m.measuring->measured();
  m.report.reused = m.measuring->reused();
  RunEnd end;
  end.reason = m.report.stop_reason;
  for (const auto& s : m.states) {
    end.trials += s.report.trials;
    end.ok += s.report.ok;
    for (const auto& [status, n] : s.report.failed) end.failed += n, end.failures[status] += n;
    m.report.tasks.push_back(s.report);
  }
  end.elapsed_s = m.elapsed();
  for (const auto& [what, s] : m.report.seconds) end.seconds[what] = s;
  m.emit(end);
  return m.report;
}

void Tuner::conclude(size_t i) {
  Impl& m = *impl_;
  Impl::TaskState& s = m.states[i];
  TaskReport& r = s.report;
  if (s.good.empty()) {
    r.verdict = "no valid candidate";
  } else {
    // Contender 0 is the best of the screening; the untuned program takes part.
    std::vector<Trial> contenders;
    for (const auto& [settled, trial] : s.good) {
      if (static_cast<int>(contenders.size()) >= m.options.finalists) break;
      contenders.push_back(trial);
    }
    contenders.push_back(s.baseline);
    size_t winner = 0;
    std::optional<measure::Outcome> final_outcome;
    if (!stop_) final_outcome = m.measuring->shoot_out(i, contenders);
    r.best_ns = s.good.front().first.seconds * 1e9;
    r.verdict = "best of the screening";
    if (final_outcome && !final_outcome->measurements.empty()) {
      double best = std::numeric_limits<double>::infinity();
      for (const measure::Measurement& x : final_outcome->measurements)
        if (x.n > 0 && x.median < best) best = x.median, winner = static_cast<size_t>(x.contender);
      r.verdict = "confirmed";
      // Within half a percent of contender 0, contender 0 is kept: a winner is never picked by noise.
      for (const measure::Paired& p : final_outcome->paired)
        if (static_cast<size_t>(p.contender) == winner && winner != 0 && p.ratio > 0.995)
          winner = 0, r.verdict = "tied: kept the incumbent";
      for (const measure::Measurement& x : final_outcome->measurements)
        if (static_cast<size_t>(x.contender) == winner)
          r.best_ns = x.median, r.best_lo_ns = x.ci_lo, r.best_hi_ns = x.ci_hi;
      for (const measure::Measurement& x : final_outcome->measurements)
        if (static_cast<size_t>(x.contender) + 1 == contenders.size() && x.n > 0) r.baseline_ns = x.median;
    }
    r.best_trace = contenders[winner].trace;
    r.best_trial = contenders[winner].number;
    if (winner + 1 == contenders.size()) r.verdict = "the untuned program is the fastest";
  }
  TaskDone e;
  e.task = static_cast<int64_t>(i);
  e.reason = r.stop_reason;
  e.trials = r.trials;
  e.ok = r.ok;
  for (const auto& [status, n] : r.failed) e.failed += n, e.failures[status] = n;
  if (r.best_trial >= 0) e.best_trial = r.best_trial;
  e.best_ns = r.best_ns;
  m.emit(e);
}

}  // namespace tilewright
