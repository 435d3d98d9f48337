// sample_categorical: one of the candidates, by weight.
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/sampling_codes.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(candidates_empty, "candidates-empty", "sample_categorical was given no candidates");
TW_REFUSAL_CODE(probabilities_do_not_match, "probabilities-do-not-match",
                "there is not one probability for each candidate");
TW_REFUSAL_CODE(probability_not_positive, "probability-not-positive", "a probability is negative, or all are 0");

Status apply(Context& c) {
  std::vector<int64_t> candidates = c.integers("candidates");
  std::vector<double> weights;
  double sum = 0;
  for (const TraceValue& item : *c.value("probs").get<TraceList>()) {
    weights.push_back(item.get<double>() ? *item.get<double>() : static_cast<double>(*item.get<int64_t>()));
    if (!(weights.back() >= 0))
      return c.refuse(probability_not_positive, fmt::format("found probability {}", weights.back()));
    sum += weights.back();
  }
  if (candidates.empty()) return c.refuse(candidates_empty, "expected at least one candidate");
  if (weights.size() != candidates.size())
    return c.refuse(probabilities_do_not_match,
                    fmt::format("expected {} probabilities, found {}", candidates.size(), weights.size()));
  if (sum <= 0) return c.refuse(probability_not_positive, "the probabilities sum to 0");
  int64_t index = 0;
  if (c.decision()) {
    auto* decided = c.decision()->get<int64_t>();
    if (!decided) return c.refuse(wrong_argument_type, "expected an integer as decision");
    index = *decided;
    if (index < 0 || index >= static_cast<int64_t>(candidates.size()))
      return c.refuse(decision_out_of_range, fmt::format("decision {} of {} candidates", index, candidates.size()));
  } else {
    index = static_cast<int64_t>(c.schedule.rng().weighted(weights));
  }
  c.give(candidates[index]);
  c.decide(index);
  return {};
}

const RegisterPrimitive entry{
    "sample_categorical",
    "draws one of the candidates by weight; the decision is its index",
    {.kind = "SampleCategorical",
     .attrs = {{"candidates", ArgType::int_list, {}, "values to choose from"},
               {"probs", ArgType::float_list, {}, "weights; they need not sum to 1"}},
     .outputs = OutputShape::one_int,
     .output_kind = SymbolKind::integer,
     .pure = true,
     .samples = true,
     .refusals = {candidates_empty, probabilities_do_not_match, probability_not_positive, decision_out_of_range},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
