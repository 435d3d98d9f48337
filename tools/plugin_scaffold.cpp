#include "tools/plugin_scaffold.h"

#include <algorithm>

#include "support/check.h"

namespace tilewright::tools {

namespace {

// NAME stands for the plug-in's name.
constexpr const char* kCMake =
    R"(# cmake -B build -DCMAKE_PREFIX_PATH=/where/tilewright/is/installed && cmake --build build
# tilewright plugin check build/libNAME.so
cmake_minimum_required(VERSION 3.25)
project(NAME LANGUAGES C CXX)
find_package(Tilewright 0.1 CONFIG REQUIRED)
tilewright_add_plugin(NAME SOURCES plugin.cpp KIND.cpp)
)";

constexpr const char* kPlugin = R"(#include "support/component.h"

TW_PLUGIN("NAME", "0.1")
)";

struct Kind {
  const char *name, *source;
};

constexpr Kind kKinds[] = {
    {"mutator", R"(// NAME.swap: exchanges two factors of a tile.
#include "search/mutators/mutator.h"

using namespace tilewright;

namespace {

/// Changes one decision of a candidate; false: there is nothing to change.
bool apply(const Sketch& sketch, DecisionVector& decisions, Rng& rng) {
  std::vector<size_t> tiles = decisions_of(sketch, "sample_perfect_tile");
  if (tiles.empty()) return false;
  const size_t which = tiles[rng.below(tiles.size())];
  TraceList factors = *decisions[which].get<TraceList>();
  const size_t a = rng.below(factors.size()), b = rng.below(factors.size());
  if (a == b) return false;
  std::swap(factors[a], factors[b]);
  decisions[which] = factors;
  return true;
}

const Register<Mutator> entry{"NAME.swap", "exchanges two factors of a tile", {.apply = apply, .weight = 0.1}};

}  // namespace
)"},
    {"rule", R"(// NAME.split_outer: a branch of the design space in which the outermost loop of a reduction is split.
#include "schedule/primitive.h"
#include "search/rules/block_queries.h"
#include "search/rules/rule.h"

using namespace tilewright;

namespace {

/// The schedules that the space goes on with: this one, and one with the loop split. A refused step leaves a branch out.
std::vector<Schedule> apply(Schedule s, BlockRV rv, const RuleContext&) {
  auto block = s.block(rv);
  if (!block || is_spatial(**block)) return {s};
  Schedule split = s;
  auto loops = split.get_loops(rv);
  if (!loops || loops->empty()) return {s};
  auto factors = split.sample_perfect_tile(loops->front(), 2, 16);
  if (!factors || !split.split(loops->front(), *factors)) return {s};
  return {s, split};
}

const Register<ScheduleRule> entry{"NAME.split_outer",
                                   "splits the outermost loop of a reduction",
                                   {.apply = apply, .before = "parallelize_vectorize_unroll"}};

}  // namespace
)"},
    {"space", R"(// NAME.space: a design space of its own, for `tilewright tune --space NAME.space`.
#include "schedule/schedule.h"
#include "search/space.h"

using namespace tilewright;

namespace {

/// Runs on the unscheduled program; what it samples is searched.
Status apply(Schedule& s) {
  TW_TRY(BlockRV block, s.get_sblock("C"));
  TW_TRY(std::vector<LoopRV> loops, s.get_loops(block));
  TW_TRY(std::vector<IntRV> tile, s.sample_perfect_tile(loops.front(), 2, 64));
  TW_TRY(std::vector<LoopRV> parts, s.split(loops.front(), tile));
  return s.parallel(parts.front());
}

const Register<SpaceFunction> entry{"NAME.space", "tiles the rows of C and runs the tiles in parallel", {apply}};

}  // namespace
)"},
    {"target", R"(// NAME-cpu: a processor as data. Everything looks it up by name: --target NAME-cpu:cores=4.
#include "schedule/target.h"

using namespace tilewright;

namespace {

Target make() {
  Target t = *Registry<Target>::instance().find("x86-64-v3");
  t.name = "NAME-cpu";
  t.l2_bytes = 2 << 20;
  return t;
}

const Register<Target> entry{"NAME-cpu", "an x86-64-v3 with 2 MiB of second-level cache", make()};

}  // namespace
)"}};

std::string filled(std::string text, const std::string& word, const std::string& value) {
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += value.size())
    text.replace(at, word.size(), value);
  return text;
}

}  // namespace

std::vector<std::string> scaffold_kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

std::vector<ExportFile> scaffold(const std::string& name, const std::string& kind) {
  auto found = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& k) { return kind == k.name; });
  TW_CHECK(found != std::end(kKinds), "no scaffold of kind {}", kind);
  return {{"CMakeLists.txt", filled(filled(kCMake, "KIND", kind), "NAME", name)},
          {"plugin.cpp", filled(kPlugin, "NAME", name)},
          {kind + ".cpp", filled(found->source, "NAME", name)}};
}

}  // namespace tilewright::tools
