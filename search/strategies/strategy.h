// SearchStrategy: proposes candidates and learns from their outcomes. ask() and tell() work in rounds: a round's
// candidates come in slot order, and tell() gives the whole round in slot order, failures included. Given the same
// tells, the same candidates come out for any number of threads.
#pragma once

#include <memory>
#include <set>

#include "costmodel/model.h"
#include "search/space.h"
#include "support/trial.h"

namespace tilewright {

struct Candidate {
  SketchId sketch = -1;  ///< -1: made by a schedule function without a skeleton
  DecisionVector decisions;
  Trace trace;              ///< complete, post-processed
  Hash64 program_hash = 0;  ///< structural hash of the post-processed function
  FeatureRows features;
  float predicted = 0;            ///< model score; 0 without a model
  const char* origin = "sample";  ///< sample, mutate, crossover, elite, seed
};

struct Settled {
  Candidate candidate;
  TrialStatus status = TrialStatus::unspecified;
  double seconds = 0;  ///< > 0 when status is ok
  bool cut_short = false;
};

struct StrategyContext {
  const Task& task;
  const Space& space;
  CostModel* model;  ///< null: none
  uint64_t seed = 0;
  int threads = 1;
  int population = 512, generations = 4;  ///< of evolutionary search
  /// Called between pieces of work: measuring goes on, and a timing that needs the machine quiet gets it.
  std::function<void()> pause;
  /// True: nobody wants the answer any more (the run stops); what ask() returns then is thrown away.
  std::function<bool()> give_up;
  bool spread = false;  ///< random picks spread over the sketches (not what MetaSchedule does)
};

/// Refused candidates by code, with the first message of each.
struct Refusals {
  std::map<std::string, int64_t> counts;
  std::map<std::string, std::string> examples;
};

class SearchStrategy {
 public:
  virtual ~SearchStrategy() = default;
  /// Up to n candidates for round `round`; fewer, or none, when the space is exhausted.
  virtual std::vector<Candidate> ask(int n, int round) = 0;
  virtual void tell(const std::vector<Settled>&) = 0;
  /// Refusals met while sampling and mutating, since the start.
  const Refusals& refusals() const { return refusals_; }
  /// Candidates that were replayed, since the start.
  int64_t evaluated() const { return evaluated_; }

 protected:
  Refusals refusals_;
  int64_t evaluated_ = 0;
};

struct StrategyFactory {
  static constexpr const char* registry_name = "strategy";
  std::function<std::unique_ptr<SearchStrategy>(const StrategyContext&)> make;
  bool uses_model = false;
};

/// Replays, post-processes, hashes and (with features) describes candidates, in parallel; results in slot order.
struct Draft {
  SketchId sketch = 0;
  std::optional<DecisionVector> decisions;  ///< absent: fresh
  const char* origin = "sample";
};
class Evaluator {
 public:
  explicit Evaluator(const StrategyContext& context) : context_(context) {}
  /// One result per draft; nothing where the candidate was refused (counted by code).
  std::vector<std::optional<Candidate>> evaluate(const std::vector<Draft>&, uint64_t round, uint64_t purpose,
                                                 bool features, Refusals& refusals) const;

 private:
  const StrategyContext& context_;
};

/// Candidates for traces of earlier runs, in the order given; nothing where a trace is not of this space any more.
std::vector<std::optional<Candidate>> candidates_of(const StrategyContext&, const std::vector<std::string>& traces,
                                                    const char* origin);

}  // namespace tilewright
