#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "costmodel/features/extract.h"
#include "ir/equal.h"
#include "search/strategies/strategy.h"

namespace tilewright {

namespace {

constexpr uint64_t kStreamCandidate =
    0x63616e64;  // purpose word of random streams: sampling and replay of one candidate

Candidate describe(const StrategyContext& context, SketchId sketch, Materialised m, const char* origin, bool features) {
  Candidate c;
  c.sketch = sketch;
  c.decisions = std::move(m.decisions);
  c.trace = m.schedule.trace();
  c.program_hash = structural_hash(m.schedule.function());
  c.origin = origin;
  if (features) c.features = extract_features(m.schedule.function(), context.task.target);
  return c;
}

}  // namespace

std::vector<std::optional<Candidate>> Evaluator::evaluate(const std::vector<Draft>& drafts, int round, uint64_t purpose,
                                                          bool features,
                                                          std::map<std::string, int64_t>& refusals) const {
  std::vector<std::optional<Candidate>> out(drafts.size());
  std::vector<std::string> refused(drafts.size());
  auto one = [&](size_t i) {
    const Draft& draft = drafts[i];
    Rng rng = Rng::keyed(context_.seed, context_.task.key, static_cast<uint64_t>(round), i, purpose ^ kStreamCandidate);
    try {
      auto m = draft.sketch < 0 ? context_.space.run_function(context_.task, rng)
                                : context_.space.materialise(context_.task, context_.space.sketches()[draft.sketch],
                                                             draft.decisions ? &*draft.decisions : nullptr, rng);
      if (!m) {
        refused[i] = std::string(m.error().code());
        return;
      }
      out[i] = describe(context_, draft.sketch, std::move(*m), draft.origin, features);
    } catch (const InternalError& bug) {
      refused[i] =
          "internal-error";  // a bug in a rule, postproc or primitive costs one candidate; it is counted by this name
    }
  };
  const size_t piece = 32;
  for (size_t begin = 0; begin < drafts.size(); begin += piece) {
    if (context_.pause) context_.pause();
    size_t end = std::min(drafts.size(), begin + piece);
    if (context_.threads <= 1) {
      for (size_t i = begin; i < end; ++i) one(i);
    } else {
      tbb::task_arena arena(context_.threads);
      arena.execute([&] { tbb::parallel_for(begin, end, one); });
    }
  }
  for (const std::string& code : refused)
    if (!code.empty()) ++refusals[code];
  return out;
}

}  // namespace tilewright
