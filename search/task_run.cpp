#include "search/task_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "costmodel/features/schema.h"
#include "database/record.h"
#include "search/baseline.h"

namespace tilewright {

namespace {

/// The least time that the calibrated device can take: by arithmetic, by memory traffic (cold only: warm operands may
/// be in a cache), by an empty launch. Nothing where the program's operations are not known.
void set_roofline(TaskStart& e, const Task& task, const measure::Calibration& c, Mode mode) {
  if (task.flop <= 0 && task.min_bytes <= 0) return;
  auto consider = [&](double ns, const char* bound) {
    if (!(ns > 0) || !std::isfinite(ns) || (e.roofline_ns && *e.roofline_ns >= ns)) return;
    e.roofline_ns = ns;
    e.bound = bound;
  };
  const Function* main = task.program->main();
  std::string dtype =
      main && !main->params.empty() && main->params[0].buffer ? main->params[0].buffer->dtype.str() : "";
  auto peak = c.flops_per_s.find(dtype);
  if (peak == c.flops_per_s.end()) return;
  consider(task.flop / peak->second * 1e9, "compute");
  if (mode == Mode::cold) consider(task.min_bytes / c.stream_bytes_per_s * 1e9, "memory");
  consider(c.launch_ns, "launch");
}

/// A task whose rounds bring nothing valid is stopped (product: a dead end).
constexpr int kBarrenRounds = 3;

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

Trial make_trial(size_t task, std::string trace) {
  Trial t;
  t.task = task;
  t.trace = std::move(trace);
  t.trace_key = content_key(t.trace);
  return t;
}

}  // namespace

TaskRun::TaskRun(size_t index, const Task& task, const TunerOptions& options, Hooks hooks, Space space)
    : index_(index), task_(task), options_(options), hooks_(std::move(hooks)), space_(std::move(space)) {
  report_.name = task.name;
  progress_.weight = task.weight;
}

Result<std::unique_ptr<TaskRun>> TaskRun::create(size_t index, const Task& task, const TunerOptions& options,
                                                 Hooks hooks) {
  Result<Space> space = make_space(task, options);
  std::unique_ptr<TaskRun> run(
      new TaskRun(index, task, options, std::move(hooks), space ? std::move(*space) : Space()));
  std::string name = options.strategy;
  if (name.empty()) name = run->space_.has_skeleton() ? "evolutionary" : "replay_func";
  const auto& strategies = Registry<StrategyFactory>::instance();
  const StrategyFactory* factory = strategies.find(name);
  if (!factory) {
    std::string hint = strategies.suggestion(name);
    Refusal r(strategy_unknown, fmt::format("no search strategy is called \"{}\"", name));
    return refuse(hint.empty() ? r : r.with_help(fmt::format("did you mean \"{}\"?", hint)));
  }
  if (factory->uses_model) {
    ModelOptions model;
    model.parameters = options.preset == "metaschedule" ? "metaschedule" : "tilewright";
    TW_TRY(const FeatureSchema* schema, feature_schema("tvm164"));
    model.schema = schema->hash;
    model.spread = false;  // evolutionary search ranks by the mean alone
    model.target_kind = task.target.is_cpu() ? "cpu" : "cuda";
    TW_TRY(run->model_, make_cost_model(options.cost_model.empty() ? "gbdt" : options.cost_model, model));
  }
  run->context_.reset(new StrategyContext{task, run->space_, run->model_.get(), options.seed, options.threads,
                                          options.population, options.generations, run->hooks_.pause,
                                          run->hooks_.give_up, options.preset != "metaschedule"});
  run->strategy_ = factory->make(*run->context_);
  if (!space)
    run->fail(
        space.error().with_note([name = task.name] { return Note{"while the space of " + name + " was made", {}}; }));
  return run;
}

TaskStart task_start(const Task& task, size_t index, const TunerOptions& options) {
  TaskStart e;
  e.task = static_cast<int64_t>(index);
  e.name = task.name;
  e.program = task.program_text;
  e.workload_key = workload_key(task.program_text, e.ir_version);
  e.anchor_key = e.workload_key;
  e.shape = task.name;
  e.flops = task.flop;
  e.bytes = task.min_bytes;
  e.target_name = task.target.name;
  e.target = task.target.text();
  e.environment = options.environment;
  e.target_key = text_key(target_text(e.target, e.environment));
  auto device = e.environment.find("device");
  e.target_class = target_class(task.target.arch, device == e.environment.end() ? std::string() : device->second);
  e.mode = options.mode;
  e.weight = task.weight;
  if (task.trials > 0) e.trials = task.trials;
  return e;
}

void TaskRun::announce(const measure::Calibration& calibration) {
  TaskStart e = task_start(task_, index_, options_);
  e.sketches = static_cast<int64_t>(space_.sketches().size());
  set_roofline(e, task_, calibration, options_.mode);
  hooks_.emit(e);
  for (const Refusal& w : space_.warnings())
    warn(w.code(), fmt::format("{}: {}", task_.name, w.diagnostic().message), w.diagnostic().help);
  if (failure_) warn(failure_->code(), failure_->diagnostic().message, failure_->diagnostic().help);
}

void TaskRun::warn(std::string_view code, std::string message, std::string help) const {
  Warning w;
  w.code = code;
  w.message = std::move(message);
  w.help = std::move(help);
  w.task = static_cast<int64_t>(index_);
  hooks_.emit(w);
}

/// The task is not tuned; what it would have had is left to the others.
void TaskRun::fail(const Refusal& why) {
  failure_ = why;
  end(std::string(why.code()));
}

std::vector<Trial> TaskRun::baseline_trials() const {
  std::vector<Trial> trials;
  if (index_ < options_.baselines.size() && !options_.baselines[index_].empty())
    trials.push_back(make_trial(index_, options_.baselines[index_]));
  else
    for (const Schedule& s : baseline_schedules(task_)) trials.push_back(make_trial(index_, trace_to_json(s.trace())));
  for (Trial& t : trials) t.origin = "baseline";
  return trials;
}

/// The fastest one counts; a time that the machine disturbed only where there is no other.
void TaskRun::take_baselines(std::vector<Trial> trials, const std::vector<JobResult>& results) {
  for (size_t i = 0; i < results.size(); ++i) {
    const JobResult& r = results[i];
    if (r.status == TrialStatus::unspecified) continue;  // stopped before it ran
    if (info(r.status).owner != Owner::environment && r.status != TrialStatus::ok)
      return fail(Refusal(baseline_fails, fmt::format("{}: the untuned program ends with {}{}{}", task_.name,
                                                      to_string(r.status), r.detail.empty() ? "" : ": ", r.detail))
                      .with_help("run `tilewright doctor`, and `tilewright opt` on the program"));
    const bool ok = r.status == TrialStatus::ok;
    if (r.median_ns <= 0 || (baseline_ok_ && !ok)) continue;
    if (report_.baseline_ns && baseline_ok_ == ok && *report_.baseline_ns <= r.median_ns) continue;
    baseline_ = trials[i];
    baseline_.number = r.trial;
    baseline_ok_ = ok;
    report_.baseline_ns = r.median_ns;
  }
  if (baseline_ok_) {
    incumbent_ns_ = *report_.baseline_ns;
  } else if (!results.empty() && results[0].status != TrialStatus::unspecified) {
    // The machine would not settle: go on without a number to compare with, and say so.
    warn("baseline-not-timed",
         fmt::format("the untuned program of {} could not be timed: {} {}", task_.name, to_string(results[0].status),
                     results[0].detail),
         "run `tilewright doctor`");
  } else if (!results.empty()) {
    warn("baseline-not-timed",
         fmt::format("the untuned program of {} was not checked and timed within the budget", task_.name),
         "a longer --budget");
  }
}

std::pair<Proposal, std::vector<JobResult>> TaskRun::recall(const Earlier& earlier) {
  Proposal p;
  p.task = index_;
  std::vector<JobResult> results;
  std::vector<std::string> traces;
  for (const Recorded& r : earlier.results)
    if (r.task == index_) traces.push_back(r.trace), results.push_back(r.result);
  std::vector<std::optional<Candidate>> found = candidates_of(*context_, traces, "record");
  std::vector<JobResult> taken;
  std::set<Hash64> there;
  for (size_t k = 0; k < found.size() && planned_ < limit(); ++k) {
    if (!found[k] || !there.insert(found[k]->program_hash).second) continue;
    Trial t = make_trial(index_, traces[k]);
    t.number = results[k].trial;
    t.origin = found[k]->origin;
    t.sketch = space_.sketches()[found[k]->sketch].name;
    p.trials.push_back(std::move(t));
    p.candidates.push_back(std::move(*found[k]));
    taken.push_back(std::move(results[k]));
    ++planned_;
  }
  if (planned_ >= limit()) {
    close("trials");
    return {std::move(p), std::move(taken)};
  }
  std::vector<RunSeeded> seeds;
  traces.clear();
  for (const RunSeeded& seed : earlier.seeds)
    if (seed.task == static_cast<int64_t>(index_)) seeds.push_back(seed), traces.push_back(seed.trace);
  found = candidates_of(*context_, traces, "seed");
  for (size_t k = 0; k < found.size(); ++k) {
    if (!found[k] || !there.insert(found[k]->program_hash).second) continue;
    hooks_.emit(seeds[k]);
    seeds_.push_back(std::move(*found[k]));
  }
  return {std::move(p), std::move(taken)};
}

Proposal TaskRun::propose(int64_t round) {
  // Sizes follow what is planned, not what has arrived: they are the same however fast results come.
  const int64_t left = limit() - planned_;
  const int n = static_cast<int>(std::min<int64_t>(left, planned_ < 64 ? options_.first_batch : options_.batch));
  Proposal p;
  p.task = index_;
  p.round = round;
  std::set<Hash64> seeded;
  for (; !seeds_.empty() && static_cast<int>(p.candidates.size()) < n; seeds_.pop_front()) {
    seeded.insert(seeds_.front().program_hash);
    p.candidates.push_back(std::move(seeds_.front()));
  }
  if (static_cast<int>(seeded.size()) < n)
    for (Candidate& c : strategy_->ask(n - static_cast<int>(seeded.size()), progress_.rounds))
      if (!seeded.contains(c.program_hash)) p.candidates.push_back(std::move(c));
  if (hooks_.give_up()) return p;
  ++progress_.rounds;
  RoundStart e;
  e.round = round;
  e.task = static_cast<int64_t>(index_);
  e.candidates = static_cast<int64_t>(p.candidates.size());
  hooks_.emit(e);
  report_refusals(round, p.candidates.size() - seeded.size());
  for (const Candidate& c : p.candidates) {
    Trial t = make_trial(index_, trace_to_json(c.trace));
    t.round = round;
    t.origin = c.origin;
    t.sketch = c.sketch < 0 ? "" : space_.sketches()[c.sketch].name;
    p.trials.push_back(std::move(t));
  }
  planned_ += static_cast<int64_t>(p.candidates.size());
  if (p.candidates.empty()) close("the space is exhausted");
  if (planned_ >= limit()) close("trials");
  return p;
}

/// The funnel of a round: what was replayed and refused, and how many of the rest were chosen.
void TaskRun::report_refusals(int64_t round, size_t chosen) {
  CandidatesRefused e;
  e.round = round;
  e.task = static_cast<int64_t>(index_);
  e.stage = "replayed";
  const Refusals& now = strategy_->refusals();
  for (const auto& [code, n] : now.counts) {
    int64_t more = n - seen_refusals_.counts[code];
    if (more == 0) continue;
    e.reasons[code] = more;
    e.lost += more;
    if (!seen_refusals_.examples.contains(code)) e.examples[code] = now.examples.at(code);
  }
  e.kept = strategy_->evaluated() - seen_evaluated_ - e.lost;
  seen_refusals_ = now;
  seen_evaluated_ = strategy_->evaluated();
  hooks_.emit(e);
  CandidatesRefused selected;
  selected.round = round;
  selected.task = e.task;
  selected.stage = "selected";
  selected.kept = static_cast<int64_t>(chosen);
  selected.lost = e.kept - selected.kept;
  hooks_.emit(selected);
}

std::vector<Settled> TaskRun::settle(const Proposal& p, const std::vector<JobResult>& results,
                                     const std::vector<bool>& known) {
  std::vector<Settled> settled;
  int64_t ok = 0, at_fault = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const JobResult& r = results[i];
    if (r.status == TrialStatus::unspecified) continue;  // stopped, or the budget was spent, before it was measured
    Trial trial = p.trials[i];
    trial.number = r.trial;  // a known result keeps the number under which it was measured
    Settled x{p.candidates[i], r.status, r.median_ns * 1e-9, false};
    x.cut_short = std::count(r.flags.begin(), r.flags.end(), "cut_short") > 0;
    ++report_.trials;
    if (r.status == TrialStatus::ok) {
      ++ok;
      take_ok(trial, x, r);
    } else {
      ++report_.failed[std::string(to_string(r.status))];
      at_fault += info(r.status).owner != Owner::environment;
    }
    watch(r, known[i]);
    settled.push_back(std::move(x));
  }
  if (ok > 0)
    barren_rounds_ = 0;
  else if (at_fault > 0 && ++barren_rounds_ == kBarrenRounds)
    stop(fmt::format("{} rounds without a valid candidate", kBarrenRounds));
  progress_.best_after.push_back(good_.empty() ? std::numeric_limits<double>::infinity() : good_.front().seconds);
  if (options_.until_no_gain && report_.trials < limit() && no_gain(progress_.best_after))
    end(fmt::format("no gain in {} rounds", kPatience));
  return settled;
}

void TaskRun::take_ok(const Trial& trial, const Settled& x, const JobResult& r) {
  ++report_.ok;
  auto at = std::upper_bound(good_.begin(), good_.end(), x.seconds,
                             [](double seconds, const Good& g) { return seconds < g.seconds; });
  const bool best = at == good_.begin();
  const bool first = good_.empty();
  good_.insert(at, {x.seconds, trial});
  const double previous_ns = first ? 0 : good_[good_.size() > 1 ? 1 : 0].seconds * 1e9;
  if (good_.size() > static_cast<size_t>(std::max(options_.finalists, 1))) good_.pop_back();
  if (!best) return;
  Best e;
  e.task = static_cast<int64_t>(index_);
  e.trial = trial.number;
  e.trace_key = trial.trace_key;
  e.stage = r.stage;
  e.median_ns = r.median_ns;
  e.ci_lo_ns = r.ci_lo_ns;
  e.ci_hi_ns = r.ci_hi_ns;
  if (!first) e.previous_ns = previous_ns;
  e.origin = trial.origin;
  hooks_.emit(e);
  incumbent_ns_ = incumbent_ns_ > 0 ? std::min(incumbent_ns_, r.median_ns) : r.median_ns;
}

/// The circuit breaker sees results in slot order. Failures of the machine that an earlier start of the run met say
/// nothing about the machine now.
void TaskRun::watch(const JobResult& r, bool known) {
  if (stopped_ || !machine_failure_.empty()) return;
  const bool machine = info(r.status).owner == Owner::environment;
  if (known && machine) return;
  measure::Outcome outcome;
  outcome.status = r.status;
  outcome.exec = r.exec;
  breaker_.tell(outcome);
  switch (breaker_.tripped(!machine)) {
    case measure::CircuitBreaker::Trip::no:
      return;
    case measure::CircuitBreaker::Trip::task:
      return stop(breaker_.text());
    case measure::CircuitBreaker::Trip::device:
      machine_failure_ = breaker_.text();
  }
}

void TaskRun::learn(int64_t round, const std::vector<Settled>& settled) {
  strategy_->tell(settled);
  if (!model_) return;
  std::vector<Sample> samples;
  for (const Settled& x : settled) {
    if (info(x.status).label == ModelLabel::none) continue;  // says nothing about the candidate
    Sample sample;
    sample.task = task_.key;
    sample.key = x.candidate.program_hash;
    sample.rows = x.candidate.features;
    if (sample.rows.values.empty()) continue;
    sample.label = x.status != TrialStatus::ok ? Label::invalid : x.cut_short ? Label::lower_bound : Label::measured;
    sample.seconds = x.seconds;
    samples.push_back(std::move(sample));
  }
  if (Status updated = model_->update(samples); !updated) {
    if (said_model_fails_) return;
    said_model_fails_ = true;  // once: the search goes on with what the model was
    Diagnostic d = updated.error().diagnostic();
    warn(updated.error().code(), fmt::format("the cost model of {} cannot be trained: {}", task_.name, d.message),
         d.help);
    return;
  }
  ModelReport fit = model_->report();
  ModelFit e;
  e.round = round;
  e.task = static_cast<int64_t>(index_);
  e.samples = static_cast<int64_t>(fit.samples);
  e.model = model_->digest();
  for (const MetricValue& m : fit.incoming) e.metrics[std::string(m.name)] = m.value;
  for (const MetricValue& m : fit.held_out) e.metrics["held-out " + std::string(m.name)] = m.value;
  hooks_.emit(e);
}

void TaskRun::close(const std::string& reason) {
  progress_.finished = true;
  if (report_.stop_reason.empty()) report_.stop_reason = reason;
}

void TaskRun::end(const std::string& reason) {
  stopped_ = true;
  report_.stop_reason = reason;  // also when the last round was already planned
  progress_.finished = true;
}

/// An end that a person should know about.
void TaskRun::stop(const std::string& reason) {
  if (stopped_) return;
  end(reason);
  warn("task-stopped", fmt::format("{}: {}", task_.name, reason));
}

void TaskRun::conclude(Measuring* measuring) {
  TaskReport& r = report_;
  r.refused = strategy_->refusals().counts;
  if (failure_) {
    r.verdict = "not tuned: " + std::string(failure_->code());
  } else if (good_.empty() && !baseline_ok_) {
    r.verdict = "no valid candidate";
  } else if (good_.empty()) {
    r.verdict = "no valid candidate: the untuned program is kept";
    r.best_ns = r.baseline_ns;
    r.best_trace = baseline_.trace;
    r.best_trial = baseline_.number;
  } else {
    // Contender 0 is the best of the screening; the untuned program takes part, and wins only if it was verified.
    std::vector<Trial> contenders;
    for (const Good& g : good_) contenders.push_back(g.trial);
    const size_t untuned = contenders.size();
    if (!baseline_.trace.empty()) contenders.push_back(baseline_);
    size_t winner = 0;
    std::optional<measure::Outcome> outcome;
    if (measuring) outcome = measuring->shoot_out(contenders);
    if (baseline_ok_ && *r.baseline_ns < good_.front().seconds * 1e9) winner = untuned;
    r.best_ns = winner == untuned ? *r.baseline_ns : good_.front().seconds * 1e9;
    r.verdict = "best of the screening";
    if (outcome && !outcome->measurements.empty()) {
      double best = std::numeric_limits<double>::infinity();
      winner = 0;
      for (const measure::Measurement& x : outcome->measurements)
        if (x.n > 0 && x.median < best && (static_cast<size_t>(x.contender) != untuned || baseline_ok_))
          best = x.median, winner = static_cast<size_t>(x.contender);
      r.verdict = "confirmed";
      // Within half a percent of contender 0, contender 0 is kept: a winner is never picked by noise.
      for (const measure::Paired& p : outcome->paired)
        if (static_cast<size_t>(p.contender) == winner && winner != 0 && p.ratio > 0.995)
          winner = 0, r.verdict = "tied: kept the incumbent";
      for (const measure::Measurement& x : outcome->measurements)
        if (static_cast<size_t>(x.contender) == winner)
          r.best_ns = x.median, r.best_lo_ns = x.ci_lo, r.best_hi_ns = x.ci_hi;
      for (const measure::Measurement& x : outcome->measurements)
        if (static_cast<size_t>(x.contender) == untuned && x.n > 0 && !outcome->left_early(x.contender))
          r.baseline_ns = x.median;
    }
    r.best_trace = contenders[winner].trace;
    r.best_trial = contenders[winner].number;
    if (winner == untuned) r.verdict = "the untuned program is the fastest";
  }
  TaskDone e;
  e.task = static_cast<int64_t>(index_);
  e.reason = r.stop_reason;
  e.trials = r.trials;
  e.ok = r.ok;
  for (const auto& [status, n] : r.failed) e.failed += n, e.failures[status] = n;
  if (r.best_trial >= 0) e.best_trial = r.best_trial;
  e.best_ns = r.best_ns;
  hooks_.emit(e);
}

}  // namespace tilewright
