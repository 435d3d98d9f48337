// evolutionary: a population from the best measured candidates and fresh samples is mutated for a few generations under
// the cost model; the best unseen ones are measured (search.md §6.2; its constants).
#include <fmt/format.h>

#include <algorithm>

#include "search/mutators/mutator.h"
#include "search/strategies/strategy.h"

namespace tilewright {

namespace {

struct Constants {
  int init_min_unmeasured = 50, max_fail = 5, genetic_max_fail = 10, empty_rounds = 5;
  double init_measured_ratio = 0.2, mutate_prob = 0.85, eps_greedy = 0.05;
};
enum Stream : uint64_t { kSample = 1, kParent = 2, kMutate = 3, kGreedy = 4, kReplayElite = 5 };

class Evolutionary : public SearchStrategy {
 public:
  explicit Evolutionary(const StrategyContext& context) : context_(context), evaluator_(context_) {}

  std::vector<Candidate> ask(int n, int round) override {
    if (context_.space.sketches().empty()) return {};
    for (int i = 0; i < constants_.empty_rounds && !context_.give_up(); ++i) {
      // Each try has random streams of its own.
      std::vector<Candidate> picked = search(n, static_cast<uint64_t>(round) | static_cast<uint64_t>(i) << 32);
      if (!picked.empty()) return picked;
    }
    return {};
  }

  void tell(const std::vector<Settled>& settled) override {
    for (const Settled& s : settled) {
      sent_.insert(s.candidate.program_hash);
      if (s.status == TrialStatus::ok && s.candidate.sketch >= 0) good_.push_back(s);
    }
    std::stable_sort(good_.begin(), good_.end(),
                     [](const Settled& a, const Settled& b) { return a.seconds < b.seconds; });
    size_t most = static_cast<size_t>(constants_.init_measured_ratio * context_.population);
    if (good_.size() > most) good_.resize(most);
  }

 private:
  /// One round of evolution; nothing: it met only programs that were sent before.
  std::vector<Candidate> search(int n, uint64_t round) {
    const bool trained = context_.model && context_.model->trained();
    // Small batches are taken from small populations: a round of eight is not worth a thousand replays.
    size_ = context_.spread ? std::min(context_.population, std::max(constants_.init_min_unmeasured, 8 * n))
                            : context_.population;
    std::vector<Candidate> measured = elites();
    std::vector<Candidate> unmeasured = sample(size_ - static_cast<int>(measured.size()), round);
    std::vector<Candidate> population = measured;
    population.insert(population.end(), unmeasured.begin(), unmeasured.end());
    if (population.empty()) return {};
    std::vector<Candidate> best;  // the heap of the round: unseen programs, best first
    std::set<Hash64> in_best;
    // Without a model all picks are random ones (`pick`), and nothing would guide a generation.
    const int generations = context_.spread && !trained ? 0 : context_.generations;
    for (int generation = 0; generation <= generations; ++generation) {
      if (generation > 0) population = evolve(population, round, generation);
      score(population, round, generation);
      for (const Candidate& c : population)
        if (!sent_.count(c.program_hash) && in_best.insert(c.program_hash).second) best.push_back(c);
      std::stable_sort(best.begin(), best.end(),
                       [](const Candidate& a, const Candidate& b) { return a.predicted > b.predicted; });
      if (static_cast<int>(best.size()) > n) best.resize(n);
    }
    return pick(best, unmeasured, n, round);
  }

  std::vector<Candidate> elites() const {
    std::vector<Candidate> out;
    const size_t most = static_cast<size_t>(constants_.init_measured_ratio * size_);
    for (const Settled& s : good_) {
      if (out.size() == most) break;
      out.push_back(s.candidate);
      out.back().origin = "elite";
    }
    return out;
  }

  /// Fresh samples: batches until enough are legal, or too many batches were barren.
  std::vector<Candidate> sample(int batch, uint64_t round) {
    std::vector<Candidate> out;
    for (int attempt = 0, barren = 0;
         static_cast<int>(out.size()) < constants_.init_min_unmeasured && barren < constants_.max_fail; ++attempt) {
      Rng rng = Rng::keyed(context_.seed, context_.task.key, round, static_cast<uint64_t>(attempt), kSample);
      std::vector<Draft> drafts;
      for (int i = 0; i < batch; ++i)
        drafts.push_back({static_cast<SketchId>(rng.below(context_.space.sketches().size())), std::nullopt, "sample"});
      evaluated_ += batch;
      size_t before = out.size();
      for (auto& c : evaluator_.evaluate(drafts, round, kSample * 1000 + static_cast<uint64_t>(attempt),
                                         context_.model != nullptr, refusals_))
        if (c) out.push_back(std::move(*c));
      if (out.size() == before) ++barren;
    }
    return out;
  }

  void score(std::vector<Candidate>& population, uint64_t round, int generation) const {
    if (!context_.model || !context_.model->trained()) {
      Rng rng = Rng::keyed(context_.seed, context_.task.key, round, static_cast<uint64_t>(generation), kGreedy * 7);
      for (Candidate& c : population) c.predicted = static_cast<float>(rng.uniform());
      return;
    }
    FeatureBlock block;
    for (const Candidate& c : population) block.append(c.program_hash, c.features);
    Scores scores;
    context_.model->predict(block, scores);
    for (size_t i = 0; i < population.size(); ++i)
      population[i].predicted = std::max(0.0f, scores.mu[i]) * scores.valid[i];
  }

  /// A generation: each slot picks a parent by roulette and mutates it, else keeps the parent.
  std::vector<Candidate> evolve(const std::vector<Candidate>& parents, uint64_t round, int generation) {
    std::vector<double> weights;
    for (const Candidate& c : parents) weights.push_back(std::max(1e-6, static_cast<double>(c.predicted)));
    std::vector<Candidate> next(size_);
    std::vector<bool> filled(size_, false);
    std::vector<size_t> last_parent(size_, 0);
    std::set<size_t> kept;
    for (int attempt = 0; attempt <= constants_.genetic_max_fail; ++attempt) {
      std::vector<Draft> drafts;
      std::vector<int> slots;
      for (int slot = 0; slot < size_; ++slot) {
        if (filled[slot]) continue;
        Rng rng = Rng::keyed(context_.seed, context_.task.key, round << 16 | static_cast<uint64_t>(generation),
                             static_cast<uint64_t>(slot) << 8 | static_cast<uint64_t>(attempt), kParent);
        size_t parent = rng.weighted(weights);
        last_parent[slot] = parent;
        if (!rng.chance(constants_.mutate_prob)) {
          if (kept.insert(parent).second) {
            next[slot] = parents[parent];
            filled[slot] = true;
          }
          continue;
        }
        DecisionVector decisions = parents[parent].decisions;
        if (!mutate(parents[parent].sketch, decisions, rng)) continue;
        drafts.push_back({parents[parent].sketch, std::move(decisions), "mutate"});
        slots.push_back(slot);
      }
      if (drafts.empty()) continue;
      evaluated_ += static_cast<int64_t>(drafts.size());
      uint64_t purpose = kMutate * 1000000 + static_cast<uint64_t>(generation * 100 + attempt);
      std::vector<std::optional<Candidate>> made =
          evaluator_.evaluate(drafts, round, purpose, context_.model != nullptr, refusals_);
      for (size_t i = 0; i < made.size(); ++i) {
        if (!made[i]) continue;
        next[slots[i]] = std::move(*made[i]);
        filled[slots[i]] = true;
      }
      if (std::find(filled.begin(), filled.end(), false) == filled.end()) break;
    }
    for (int slot = 0; slot < size_; ++slot)
      if (!filled[slot]) next[slot] = parents[last_parent[slot]];
    return next;
  }

  /// False: it does not apply here, or failed by a bug of its own, which is counted.
  bool mutate(SketchId sketch, DecisionVector& decisions, Rng& rng) {
    std::vector<double> weights;
    for (const auto& [name, weight] : context_.space.parts().mutators) weights.push_back(weight);
    if (weights.empty()) return false;
    const std::string& name = context_.space.parts().mutators[rng.weighted(weights)].first;
    const Mutator* mutator = Registry<Mutator>::instance().find(name);
    TW_CHECK(mutator, "mutator {} is not registered", name);
    try {
      return mutator->apply(context_.space.sketches()[sketch], decisions, rng);
    } catch (const std::exception& bug) {
      ++evaluated_;
      if (++refusals_.counts["internal-error"] == 1)
        refusals_.examples["internal-error"] = fmt::format("mutator {}: {}", name, bug.what());
      return false;
    }
  }

  /// The best, then a few random ones; each list stands in when the other is used up. With `spread`, the random ones
  /// come from the sketches of which fewest were sent, there is at least one in a batch, and while no model is trained
  /// all are random: a sketch of a dozen points would otherwise never be seen among millions.
  std::vector<Candidate> pick(const std::vector<Candidate>& best, const std::vector<Candidate>& unmeasured, int n,
                              uint64_t round) {
    Rng rng = Rng::keyed(context_.seed, context_.task.key, round, 0, kGreedy);
    std::vector<size_t> order(unmeasured.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    rng.shuffle(std::span<size_t>(order));
    std::vector<Candidate> out;
    size_t at_best = 0, at_random = 0;
    const bool trained = context_.model && context_.model->trained();
    int random = static_cast<int>(n * constants_.eps_greedy);
    if (context_.spread) random = trained ? std::max(1, random) : n;
    const int greedy = n - random;
    auto next_random = [&] {
      if (context_.spread)
        std::rotate(order.begin() + static_cast<std::ptrdiff_t>(at_random),
                    std::min_element(order.begin() + static_cast<std::ptrdiff_t>(at_random), order.end(),
                                     [&](size_t a, size_t b) {
                                       return sent_of_[unmeasured[a].sketch] < sent_of_[unmeasured[b].sketch];
                                     }),
                    order.end());
      return order[at_random++];
    };
    while (static_cast<int>(out.size()) < n && (at_best < best.size() || at_random < order.size())) {
      bool take_best = static_cast<int>(out.size()) < greedy ? at_best < best.size() : at_random >= order.size();
      const Candidate& c = take_best ? best[at_best++] : unmeasured[next_random()];
      if (!sent_.insert(c.program_hash).second) continue;
      ++sent_of_[c.sketch];
      out.push_back(c);
    }
    return out;
  }

  StrategyContext context_;
  Evaluator evaluator_;
  Constants constants_;
  int size_ = 0;  ///< of this round's population
  std::set<Hash64> sent_;
  std::map<SketchId, int64_t> sent_of_;  ///< number of candidates sent, by sketch
  std::vector<Settled> good_;
};

const Register<StrategyFactory> entry{
    "evolutionary",
    "a population mutated under the cost model",
    {[](const StrategyContext& c) { return std::make_unique<Evolutionary>(c); }, true}};

}  // namespace

}  // namespace tilewright
