// The design space of a task: sketches (traces whose samplings are undecided) and the candidates that decide them.
#pragma once

#include "costmodel/feature_block.h"
#include "schedule/schedule.h"
#include "search/postprocs/postproc.h"
#include "search/rules/rule.h"
#include "search/task.h"

namespace tilewright {

using SketchId = int;
/// One value per sampling instruction of the sketch, in trace order; last, if the sketch has one, its parallel limit.
using DecisionVector = std::vector<TraceValue>;

struct Sketch {
  SketchId id = 0;
  std::string name;                              ///< of a schedule file's function, else "sketch N"
  Trace trace;                                   ///< without decisions, up to enter_postproc
  std::vector<size_t> samplings;                 ///< positions of sampling instructions
  std::vector<std::optional<TraceValue>> fixed;  ///< decisions that a schedule file fixes
  /// Position of the annotation that rules made of how many parallel jobs there may be: nothing samples it, and the
  /// mutator `parallel` changes it.
  std::optional<size_t> parallel_limit;
};

/// Names of the parts that a preset uses.
struct SpaceParts {
  std::vector<std::string> rules, postprocs;
  std::vector<std::pair<std::string, double>> mutators;  ///< name, weight
  size_t max_sketches = 64;                              ///< 0: no limit
};
/// Parts for a target: preset "tilewright" or "metaschedule", and what plug-ins added (names with a dot).
Result<SpaceParts> parts_for(const std::string& preset, const Target&);
TW_REFUSAL_CODE(preset_unknown, "preset-unknown", "no search preset has that name");
TW_REFUSAL_CODE(too_many_sketches, "too-many-sketches",
                "the rules made more sketches than are searched; of all, evenly spread ones are kept");
TW_REFUSAL_CODE(rule_fails, "rule-fails", "a schedule rule failed by a bug of its own; the block is left as it was");
TW_REFUSAL_CODE(space_unknown, "space-unknown", "no registered space and no schedule file has that name");

/// A replayed, post-processed candidate: what is measured.
struct Materialised {
  Schedule schedule;
  DecisionVector decisions;  ///< as repaired
};

class Space {
 public:
  /// Rules over all blocks of the function (post-order application, search.md §3).
  static Result<Space> from_rules(const Task&, const SpaceParts&);
  /// One sketch per function of a schedule file; decisions given there are fixed.
  static Result<Space> from_schedule_file(const Task&, const SpaceParts&, const std::string& text,
                                          const std::string& file);
  /// A registered C++ schedule function: run twice; the same instruction list gives one sketch.
  static Result<Space> from_function(const Task&, const SpaceParts&, const std::string& name);

  const std::vector<Sketch>& sketches() const { return sketches_; }
  const SpaceParts& parts() const { return parts_; }
  /// What a user should know about how the space was made; nothing of it ends a task.
  const std::vector<Refusal>& warnings() const { return warnings_; }
  /// False when the instruction list of a schedule function depends on sampled values: only replay_func can search it.
  bool has_skeleton() const { return !function_; }

  /// Replays the sketch with the decisions (empty: drawn from rng), then runs the postprocs. Thread-safe.
  Result<Materialised> materialise(const Task&, const Sketch&, const DecisionVector*, Rng) const;
  /// The sketch that a finished trace comes from, with its decisions; nothing if it is not of this space.
  std::optional<std::pair<SketchId, DecisionVector>> locate(const Trace&) const;
  /// Runs the schedule function itself once.
  Result<Materialised> run_function(const Task&, Rng) const;
  /// Number of points of a sketch (product over its samplings, for one random vector's extents), as a double.
  double size(const Task&, const Sketch&) const;

 private:
  Status add_sketch(const Trace&, std::string name);
  Status run_postprocs(Schedule&, const Target&) const;
  SpaceParts parts_;
  std::vector<Sketch> sketches_;
  std::vector<Refusal> warnings_;
  std::function<Status(Schedule&)> function_;
};

/// A design space written in C++ and registered by name (`--space NAME`).
struct SpaceFunction {
  static constexpr const char* registry_name = "space";
  std::function<Status(Schedule&)> apply;
};

}  // namespace tilewright
