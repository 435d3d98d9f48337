// replay_trace: each candidate draws a sketch and fresh decisions. replay_func: each candidate runs the schedule
// function once. No model: the baselines of every comparison, and the only way to search a function whose instruction
// list varies.
#include "search/strategies/strategy.h"

namespace tilewright {

namespace {

constexpr int kMaxFail = 100;  // tries for one slot (search.md §6.1)
constexpr uint64_t kStreamSketch = 0x736b6574;

class Replay : public SearchStrategy {
 public:
  Replay(const StrategyContext& context, bool function)
      : context_(context), evaluator_(context_), function_(function) {}

  std::vector<Candidate> ask(int n, int round) override {
    std::vector<Candidate> out;
    if (!function_ && context_.space.sketches().empty()) return out;
    for (int attempt = 0; attempt < kMaxFail && static_cast<int>(out.size()) < n && !context_.give_up(); ++attempt) {
      std::vector<Draft> drafts;
      int wanted = n - static_cast<int>(out.size());
      Rng rng = Rng::keyed(context_.seed, context_.task.key, static_cast<uint64_t>(round),
                           static_cast<uint64_t>(attempt), kStreamSketch);
      for (int i = 0; i < wanted; ++i)
        drafts.push_back({function_ ? -1 : static_cast<SketchId>(rng.below(context_.space.sketches().size())),
                          std::nullopt, "sample"});
      evaluated_ += wanted;
      for (auto& c :
           evaluator_.evaluate(drafts, static_cast<uint64_t>(round), static_cast<uint64_t>(attempt), false, refusals_))
        if (c && seen_.insert(c->program_hash).second) out.push_back(std::move(*c));
    }
    return out;
  }
  void tell(const std::vector<Settled>& settled) override {
    for (const Settled& s : settled) seen_.insert(s.candidate.program_hash);
  }

 private:
  StrategyContext context_;
  Evaluator evaluator_;
  bool function_;
  std::set<Hash64> seen_;
};

const Register<StrategyFactory> trace{
    "replay_trace",
    "random decisions, no model",
    {[](const StrategyContext& c) { return std::make_unique<Replay>(c, false); }, false}};
const Register<StrategyFactory> function{
    "replay_func",
    "the schedule function once per candidate, no model",
    {[](const StrategyContext& c) { return std::make_unique<Replay>(c, true); }, false}};

}  // namespace

}  // namespace tilewright
