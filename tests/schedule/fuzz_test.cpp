// Random sequences of registered primitives with random arguments on random programs and kernels. Every applied step is
// executed against the original; a refusal leaves program and trace as they were; nothing throws; at the end program
// and trace are taken through their texts. TILEWRIGHT_FUZZ_CASES sets the number of sequences, TILEWRIGHT_FUZZ_ALL goes
// on after a failure, TILEWRIGHT_FUZZ_COUNTS prints what was applied and refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "ir/equal.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "schedule/intrinsics/intrinsic.h"
#include "schedule/primitive.h"
#include "schedule/schedule.h"
#include "tests/ir/execution.h"
#include "tests/ir/random_program.h"
#include "tests/schedule/random_kernels.h"
#include "tests/seed.h"

namespace tilewright {
namespace {

constexpr int kSteps = 10;
constexpr int64_t kStepLimit = 10'000;  // a program that takes more loop iterations is left out
constexpr int64_t kGrowth = 64;         // a schedule that recomputes so much more ends the sequence

/// Random arguments for any primitive, from its record alone; mostly sensible, so that many are applied.
class Arguments {
 public:
  Arguments(Schedule& s, Rng& rng) : s_(s), rng_(rng) {}

  Instruction draw(const Primitive& p) {
    Instruction out;
    out.kind = &p;
    block_ = nullptr;
    loop_ = nullptr;
    mapped_rank_ = 0;
    for (const ArgSpec& spec : p.inputs) {
      if (spec.type == ArgType::loops)
        out.inputs.emplace_back(loops(p.name == "reorder"));
      else if (spec.type == ArgType::factors)
        out.inputs.emplace_back(factors());
      else
        out.inputs.push_back(value(p, spec));
    }
    for (const ArgSpec& spec : p.attrs) out.attrs.push_back(value(p, spec));
    return out;
  }

  void remember(const std::vector<Symbol>& outputs) {
    for (Symbol o : outputs)
      if (o.number >= 0)
        (o.kind == SymbolKind::block ? blocks_ : o.kind == SymbolKind::loop ? loops_ : ints_).push_back(o);
  }
  /// Handles of everything that there is now.
  void refresh() {
    const TreeIndex& tree = s_.state().tree();
    std::vector<std::string> names;
    for (Place p : tree.blocks()) names.push_back(tree.block(p)->name);
    blocks_.clear();
    loops_.clear();
    for (const std::string& name : names) {
      auto b = s_.get_sblock(name, s_.function().name);
      if (!b) continue;
      blocks_.push_back(*b);
      if (auto l = s_.get_loops(*b))
        for (LoopRV x : *l) loops_.push_back(x);
    }
  }

 private:
  template <class T>
  const T& pick(const std::vector<T>& items) {
    return items[rng_.below(items.size())];
  }
  TraceValue block() {
    if (blocks_.empty()) return Symbol{0, SymbolKind::block};
    Symbol s = pick(blocks_);
    if (is_root(s) && rng_.chance(0.9)) s = pick(blocks_);  // most primitives refuse it
    if (!block_)
      if (auto b = s_.block(s)) block_ = *b;
    return s;
  }
  bool is_root(Symbol s) const {
    auto b = s_.block(s);
    return b && *b == s_.function().root();
  }
  /// Blocks that follow each other in the text.
  TraceList neighbours() {
    TraceList out;
    if (blocks_.empty()) return out;
    for (size_t i = rng_.below(blocks_.size()), n = 1 + rng_.below(3); n > 0 && i < blocks_.size(); --n, ++i)
      out.emplace_back(blocks_[i]);
    return out;
  }
  TraceValue loop() {
    if (loops_.empty()) return Symbol{0, SymbolKind::loop};
    Symbol s = pick(loops_);
    for (int tries = 0; tries < 3 && block_ && above_block(s); ++tries) s = pick(loops_);  // to move the block under it
    if (auto l = s_.loop(s)) loop_ = *l;
    return s;
  }
  bool above_block(Symbol s) const {
    auto l = s_.loop(s);
    const TreeIndex& tree = s_.state().tree();
    const Place p = tree.find(block_->id);
    return !l || (p != kNoPlace && tree.contains(s_.state().place(**l), p));
  }
  /// A run of loops above one block, sometimes shuffled or from anywhere.
  TraceList loops(bool shuffled) {
    TraceList out;
    if (blocks_.empty() || rng_.chance(0.1)) {
      for (uint64_t n = rng_.below(4); n > 0 && !loops_.empty(); --n) out.emplace_back(pick(loops_));
      return out;
    }
    auto above = s_.get_loops(BlockRV{pick(blocks_)});
    if (!above || above->empty()) return out;
    size_t begin = rng_.below(above->size()), n = 1 + rng_.below(above->size() - begin);
    std::vector<LoopRV> chosen(above->begin() + static_cast<ptrdiff_t>(begin),
                               above->begin() + static_cast<ptrdiff_t>(begin + n));
    if (shuffled) rng_.shuffle(std::span(chosen));
    if (shuffled && rng_.chance(0.3)) chosen.pop_back();
    for (LoopRV l : chosen) out.emplace_back(l);
    return out;
  }
  TraceList factors() {
    if (!ints_.empty() && rng_.chance(0.2)) {
      TraceList out;
      for (uint64_t n = 1 + rng_.below(3); n > 0; --n) out.emplace_back(pick(ints_));
      return out;
    }
    TraceList out;
    for (uint64_t n = 1 + rng_.below(3); n > 0; --n) out.emplace_back(rng_.between(rng_.chance(0.05) ? -1 : 1, 5));
    if (rng_.chance(0.6)) out[rng_.below(out.size())] = nullptr;
    return out;
  }
  int64_t rank_of_block_buffer() {
    if (block_ && !block_->writes.empty() && rng_.chance(0.8))
      return static_cast<int64_t>(block_->writes[0].region.size());
    return rng_.between(0, 4);
  }
  /// A factor of the iter's extent: a map with gaps would leave elements of the copy unwritten, which the interpreter
  /// takes for an error wherever they are copied on.
  int64_t factor(const std::vector<int64_t>& extents, int64_t i) {
    int64_t f = rng_.between(2, 4);
    return i < static_cast<int64_t>(extents.size()) && extents[static_cast<size_t>(i)] % f != 0 ? 1 : f;
  }
  IndexMapRef index_map(int64_t arity, const std::vector<int64_t>& extents = {}) {
    auto map = std::make_unique<IndexMap>();
    std::vector<Expr> values;
    std::map<const ExprNode*, int64_t> number;
    for (int64_t i = 0; i < arity; ++i) {
      map->inputs.push_back(make_var(fmt::format("i{}", i)));
      values.emplace_back(map->inputs.back());
      number[values.back().get()] = i;
    }
    rng_.shuffle(std::span(values));
    for (Expr& v : values) {
      double shape = rng_.uniform();
      int64_t f = factor(extents, number[v.get()]);
      if (shape < 0.25) {
        map->outputs.push_back(floor_div(v, f));
        map->outputs.push_back(floor_mod(v, f));
      } else if (shape < 0.32) {
        map->outputs.push_back(v * f);
      } else if (shape < 0.37) {
        map->outputs.push_back(rng_.chance(0.2) ? v - f : v + f);
      } else if (shape < 0.42) {
        continue;
      } else {
        map->outputs.push_back(v);
      }
    }
    if (values.size() >= 2 && rng_.chance(0.1)) map->outputs = {values[0] * 16 + values[1]};
    mapped_rank_ = map->outputs.size();
    return IndexMapRef(map.release());
  }
  /// A constant at every index of the layout drawn before.
  IndexMapRef pad_value() {
    auto map = std::make_unique<IndexMap>();
    for (size_t i = 0; i < mapped_rank_; ++i) map->inputs.push_back(make_var(fmt::format("i{}", i)));
    map->outputs.push_back(int_imm(rng_.between(-2, 2)));
    return IndexMapRef(map.release());
  }
  std::string text(const std::string& name) {
    static const std::vector<std::string> scopes{"global", "global", "global",     "shared",
                                                 "shared", "local",  "shared.dyn", "nowhere"};
    static const std::vector<std::string> keys{
        "pragma_auto_unroll_max_step", "meta_schedule.parallel", "note", "pragma_note",
        "tilewright.nothing",          "meta_schedule.vectorize"};
    static const std::vector<std::string> axes{"threadIdx.x", "blockIdx.x", "vthread", "threadIdx.z", "thread"};
    if (name == "thread_axis") return pick(axes);
    if (name == "ann_key") return pick(keys);
    if (name == "tensor_intrin") return pick(Registry<TensorIntrinsic>::instance().names());
    if (name == "name") return block_name();
    return pick(scopes);
  }
  std::string block_name() {
    const TreeIndex& tree = s_.state().tree();
    if (rng_.chance(0.1)) return "nothing";
    return tree.block(tree.blocks()[rng_.below(tree.blocks().size())])->name;
  }

  TraceValue value(const Primitive& p, const ArgSpec& spec) {
    if (spec.fallback && rng_.chance(0.3)) return *spec.fallback;
    switch (spec.type) {
      case ArgType::block:
        return block();
      case ArgType::loop:
        return loop();
      case ArgType::block_or_loop:
        return rng_.chance(0.5) ? block() : loop();
      case ArgType::block_list_or_loop:
        return rng_.chance(0.7) ? loop() : TraceValue(neighbours());
      case ArgType::blocks: {
        TraceList list;
        for (uint64_t n = rng_.below(3); n > 0; --n) list.push_back(block());
        return list;
      }
      case ArgType::integer:
        if (spec.name == "n") return rng_.between(0, 4);
        if (spec.name.ends_with("buffer_index") && block_ && rng_.chance(0.9)) {
          const bool read = spec.name.starts_with("read");
          const size_t regions = (read ? block_->reads : block_->writes).size();
          return static_cast<int64_t>(regions ? rng_.below(regions) : 0);
        }
        return rng_.chance(0.7) ? TraceValue(rng_.between(-1, 1)) : TraceValue(rng_.between(-3, 5));
      case ArgType::int_list: {
        TraceList list;
        size_t n = block_ && rng_.chance(0.9) ? block_->iters.size() : rng_.below(4);
        if (p.name == "reorder_block_iter_var") {
          std::vector<int64_t> order;
          for (size_t i = 0; i < n; ++i) order.push_back(static_cast<int64_t>(i));
          rng_.shuffle(std::span(order));
          return TraceValue(order);
        }
        for (size_t i = 0; i < n; ++i) list.emplace_back(rng_.between(rng_.chance(0.05) ? 0 : 1, 5));
        return list;
      }
      case ArgType::float_list: {
        TraceList list;
        for (uint64_t n = rng_.below(4); n > 0; --n) list.emplace_back(rng_.uniform());
        return list;
      }
      case ArgType::boolean:
        // Two promises that only the caller can keep are not made.
        if (spec.name == "disable_predication" || spec.name == "assume_injective_transform") return false;
        return rng_.chance(0.5);
      case ArgType::text:
        return text(spec.name);
      case ArgType::text_or_none:
        return nullptr;
      case ArgType::index_map: {
        std::vector<int64_t> extents;
        if (block_ && p.name != "transform_layout")
          for (const Iter& iter : block_->iters) extents.push_back(const_int(iter.dom.extent).value_or(1));
        return index_map(p.name == "transform_layout" ? rank_of_block_buffer()
                         : block_                     ? static_cast<int64_t>(block_->iters.size())
                                                      : rng_.between(0, 3),
                         extents);
      }
      case ArgType::index_map_or_none:
        return rng_.chance(0.5) ? TraceValue(pad_value()) : TraceValue();
      case ArgType::value:
        return rng_.chance(0.7) ? TraceValue(rng_.between(0, 64)) : TraceValue("text");
      case ArgType::buffer:
        return TraceList{rng_.chance(0.5) ? "read" : "write", rng_.between(0, 1)};
      case ArgType::side:
        return rng_.chance(0.5) ? "read" : "write";
      case ArgType::loops:
      case ArgType::factors:
        break;
    }
    return nullptr;
  }

  Schedule& s_;
  Rng& rng_;
  std::vector<Symbol> blocks_, loops_, ints_;
  const Block* block_ = nullptr;
  const For* loop_ = nullptr;
  size_t mapped_rank_ = 0;
};

struct Runs {
  std::vector<Tensor> inputs, expected;
};

/// Nothing: too large, or the program itself cannot be run.
std::optional<Runs> run_original(const Function& f, const std::vector<std::pair<std::string, int64_t>>& extents) {
  Runs r;
  r.inputs = make_arguments(f, InputSet::random, 1, extents);
  r.expected = r.inputs;
  if (!interpret(f, r.expected, {.step_limit = kStepLimit})) return std::nullopt;
  return r;
}

struct Comparison {
  bool too_long = false;  ///< nothing is known
  ::testing::AssertionResult same;
};

Comparison compare(const Function& f, const Runs& runs, Order order, uint64_t seed) {
  std::vector<Tensor> actual = runs.inputs;
  Result<InterpretStats> stats =
      interpret(f, actual, {.order = order, .seed = seed, .step_limit = kGrowth * kStepLimit});
  if (!stats && stats.error().code() == step_limit_reached.text) return {true, ::testing::AssertionSuccess()};
  if (!stats) return {false, ::testing::AssertionFailure() << render_text(stats.error().diagnostic())};
  for (size_t i = 0; i < actual.size(); ++i)
    if (Status same = expect_equal(runs.expected[i], actual[i]); !same)
      return {false, ::testing::AssertionFailure() << "parameter " << i << ": " << same.error().diagnostic().message};
  return {false, ::testing::AssertionSuccess()};
}

/// Changes the order in which a reduction adds up: exact for integers only.
bool reassociates(const Primitive& p) {
  static const std::set<std::string> kNames{"rfactor", "reorder", "transform_block_layout", "fuse_reduction_epilogue"};
  return kNames.contains(p.name);
}
/// A layout of a parameter is what callers pass: changed, the two programs cannot be compared on the same tensors.
bool same_signature(const Function& before, const Function& now) {
  for (size_t i = 0; i < before.params.size(); ++i)
    if (!before.params[i].buffer.same_as(now.params[i].buffer)) return false;
  return true;
}

uint64_t seed() { return test_seed(20261130); }
uint64_t cases(uint64_t otherwise) {
  const char* text = std::getenv("TILEWRIGHT_FUZZ_CASES");
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Count {
  int64_t applied = 0, refused = 0;
};

/// Each primitive but those that keep values only on a promise, and loop_partition, whose blocks without iters are not
/// always printed so that they are read as they were; those that change the program several times as often as those
/// that only look at it.
std::vector<const Primitive*> drawn_primitives() {
  std::vector<const Primitive*> out;
  for (const Primitive* p : all_primitives())
    if (!p->unsafe && p->name != "loop_partition") out.insert(out.end(), p->pure || p->inputs.empty() ? 1 : 4, p);
  return out;
}

struct Drawn {
  ProgramRef program;
  std::vector<std::pair<std::string, int64_t>> extents;
};

Drawn draw_program(Rng rng, bool integers) {
  if (rng.chance(0.5)) return {random_program(rng, integers), {}};
  RandomKernel kernel = RandomKernels(rng, integers).draw();
  auto parsed = parse_program(kernel.text, "kernel");
  if (!parsed) ADD_FAILURE() << render_text(parsed.error()[0]) << kernel.text;
  return {parsed ? parsed->program : nullptr, kernel.extents};
}

class ScheduleFuzz : public ::testing::Test {
 protected:
  /// One sequence; false after a failure.
  bool sequence(const Drawn& drawn, bool integers, Rng rng) {
    const ProgramRef& program = drawn.program;
    if (!program) return false;
    std::optional<Runs> runs = run_original(*program->main(), drawn.extents);
    if (!runs) return true;
    ++sequences;
    Schedule s(program, rng.next_u64());
    Arguments arguments(s, rng);
    arguments.refresh();
    static const std::vector<const Primitive*> primitives = drawn_primitives();
    Instruction last;
    try {
      for (int step = 0; step < kSteps; ++step) {
        const Primitive& p = *primitives[rng.below(primitives.size())];
        if (!integers && reassociates(p)) continue;
        Instruction instruction = arguments.draw(p);
        const Hash64 hash = structural_hash(s.function());
        const Schedule before = s;
        last = instruction;
        auto applied = s.apply(instruction);
        if (!applied) {
          ++counts[p.name].refused;
          ++codes[p.name + " " + std::string(applied.error().code())];
          const Refusal& refusal = applied.error();
          const bool renders = !rng.chance(0.05) || !refusal.diagnostic().message.empty();
          const bool untouched = structural_hash(s.function()) == hash &&
                                 s.trace().instructions.size() == before.trace().instructions.size();
          EXPECT_TRUE(renders && untouched) << p.name << " refused and changed the program, or without a word";
          EXPECT_TRUE(declares(p, refusal.code())) << p.name << " does not declare " << refusal.code();
          if (!renders || !untouched || !declares(p, refusal.code())) return false;
          continue;
        }
        if (!same_signature(before.function(), s.function())) {
          s = before;
          continue;
        }
        ++counts[p.name].applied;
        arguments.remember(*applied);
        if (structural_hash(s.function()) != hash) {
          Comparison now = compare(s.function(), *runs, Order::forward, 0);
          if (now.too_long) return true;
          if (!now.same) return report(s, now.same, p.name);
          if (rng.chance(0.5)) arguments.refresh();
        }
      }
      for (Order order : {Order::reverse, Order::random})
        if (Comparison now = compare(s.function(), *runs, order, 3); !now.same)
          return report(s, now.same, order == Order::reverse ? "reverse order" : "random order");
      return texts(s, program, static_cast<int>(rng.below(3)));
    } catch (const std::exception& e) {
      ADD_FAILURE() << (last.kind ? last.kind->name : "interpreter") << " throws " << e.what() << "\n"
                    << trace_to_python({{last}}) << trace_to_python(s.trace()) << print(*program)
                    << print(s.function());
      return false;
    }
  }

  /// Program and trace through their texts; one of the traces is replayed.
  bool texts(const Schedule& s, const ProgramRef& program, int replayed_form) {
    const std::string text = print(*s.program());
    auto parsed = parse_program(text, "scheduled");
    if (!parsed) return report(s, ::testing::AssertionFailure() << render_text(parsed.error()[0]), "parse of print");
    if (!structural_equal(*parsed->program, *s.program()))
      return report(s, ::testing::AssertionFailure() << print(*parsed->program), "parse of print");
    if (std::vector<Diagnostic> errors = verify(*s.program()); !errors.empty())
      return report(s, ::testing::AssertionFailure() << render_text(errors[0]), "verify");
    auto json = trace_from_json(trace_to_json(s.trace()));
    if (!json) return report(s, ::testing::AssertionFailure() << render_text(json.error().diagnostic()), "JSON trace");
    auto python = traces_from_python(trace_to_python(s.trace()), "trace");
    if (!python) return report(s, ::testing::AssertionFailure() << render_text(python.error().at(0)), "Python trace");
    const Trace all[] = {*json, python->at(0).trace, simplify(s.trace())};
    static constexpr const char* names[] = {"JSON trace", "Python trace", "simplified trace"};
    Replayed replayed = replay(all[replayed_form], program, Rng(2));
    if (!replayed.refusals.empty())
      return report(s, ::testing::AssertionFailure() << render_text(replayed.refusals[0].refusal.diagnostic()),
                    names[replayed_form]);
    if (structural_hash(replayed.schedule.function()) != structural_hash(s.function()))
      return report(s, ::testing::AssertionFailure() << print(replayed.schedule.function()), names[replayed_form]);
    return true;
  }

  bool report(const Schedule& s, const ::testing::AssertionResult& why, const std::string& where) {
    ADD_FAILURE() << where << ": " << why.message() << "\n" << trace_to_python(s.trace()) << print(s.function());
    return false;
  }

  void TearDown() override {
    if (!std::getenv("TILEWRIGHT_FUZZ_COUNTS")) return;
    fmt::print("{} sequences\n", sequences);
    for (const auto& [name, c] : counts) fmt::print("{:28} applied {:6} refused {:6}\n", name, c.applied, c.refused);
    for (const auto& [name, n] : codes) fmt::print("  {:60} {:6}\n", name, n);
  }

  int64_t sequences = 0;
  std::map<std::string, Count> counts;
  std::map<std::string, int64_t> codes;
};

TEST_F(ScheduleFuzz, RandomSequencesKeepTheMeaning) {
  for (uint64_t k = 0; k < cases(3000); ++k) {
    SCOPED_TRACE(fmt::format("{}, case {}", repeat_with(seed()), k));
    const bool integers = k % 2 == 0;
    const Drawn drawn = draw_program(Rng::keyed(seed(), 3, k), integers);
    if (!sequence(drawn, integers, Rng::keyed(seed(), 4, k)) && !std::getenv("TILEWRIGHT_FUZZ_ALL")) return;
  }
  // A fuzzer that applies nothing finds nothing.
  // These need programs that are hardly ever drawn: copies to shared memory under a loop, an axis that rolls
  // (rolling_buffer_test.cpp), a reduction that goes on, nests of equal loops.
  static const std::set<std::string> kRare{"pipeline",      "sample_pipeline_depth",   "rolling_buffer",
                                           "merge",         "fuse_reduction_epilogue", "decompose_padding",
                                           "loop_partition"};
  for (const Primitive* p : all_primitives()) {
    if (cases(3000) < 3000) break;
    if (p->unsafe || kRare.contains(p->name)) continue;
    EXPECT_GT(counts[p->name].applied, 0) << p->name << " was never applied";
  }
}

}  // namespace
}  // namespace tilewright
