#include "costmodel/features/extract.h"
#include "ir/equal.h"
#include "search/strategies/parallel.h"
#include "search/strategies/strategy.h"

namespace tilewright {

namespace {

TW_REFUSAL_CODE(candidate_internal_error, "internal-error",
                "a bug of ours, met while a candidate was made; the candidate is dropped");

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

std::vector<std::optional<Candidate>> Evaluator::evaluate(const std::vector<Draft>& drafts, uint64_t round,
                                                          uint64_t purpose, bool features, Refusals& refusals) const {
  std::vector<std::optional<Candidate>> out(drafts.size());
  std::vector<std::optional<Refusal>> refused(drafts.size());
  auto one = [&](size_t i) {
    const Draft& draft = drafts[i];
    Rng rng = Rng::keyed(context_.seed, context_.task.key, round, i, purpose ^ kStreamCandidate);
    try {
      auto m = draft.sketch < 0 ? context_.space.run_function(context_.task, rng)
                                : context_.space.materialise(context_.task, context_.space.sketches()[draft.sketch],
                                                             draft.decisions ? &*draft.decisions : nullptr, rng);
      if (!m) {
        refused[i] = m.error();
        return;
      }
      out[i] = describe(context_, draft.sketch, std::move(*m), draft.origin, features);
    } catch (const std::exception& bug) {
      // A bug in a postproc or primitive costs one candidate.
      refused[i] = Refusal(candidate_internal_error, bug.what());
    }
  };
  const size_t piece = 32;
  for (size_t begin = 0; begin < drafts.size(); begin += piece) {
    if (context_.pause) context_.pause();
    if (context_.give_up && context_.give_up()) break;
    size_t end = std::min(drafts.size(), begin + piece);
    parallel_for(begin, end, context_.threads, one);
  }
  for (const std::optional<Refusal>& r : refused) {
    if (!r) continue;
    std::string code(r->code());
    if (++refusals.counts[code] == 1) refusals.examples[code] = r->diagnostic().message;
  }
  return out;
}

std::vector<std::optional<Candidate>> candidates_of(const StrategyContext& context,
                                                    const std::vector<std::string>& traces, const char* origin) {
  std::vector<std::optional<Candidate>> out(traces.size());
  std::vector<Draft> drafts;
  std::vector<size_t> place;
  for (size_t i = 0; i < traces.size(); ++i) {
    auto trace = trace_from_json(std::string_view(traces[i]));
    auto at = trace ? context.space.locate(*trace) : std::nullopt;
    if (!at) continue;
    drafts.push_back({at->first, std::move(at->second), origin});
    place.push_back(i);
  }
  Refusals refusals;
  auto found = Evaluator(context).evaluate(drafts, 0, 0, context.model != nullptr, refusals);
  for (size_t k = 0; k < found.size(); ++k)
    if (found[k] && trace_to_json(found[k]->trace) == traces[place[k]]) out[place[k]] = std::move(found[k]);
  return out;
}

}  // namespace tilewright
