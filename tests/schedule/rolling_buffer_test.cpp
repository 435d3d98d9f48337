// rolling_buffer on random stencils: tiles, halos, orders of the outer loops and the loop that the producer moves under
// are drawn; random programs hardly ever have an axis that rolls.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "schedule/schedule.h"
#include "tests/ir/execution.h"
#include "tests/seed.h"

namespace tilewright {
namespace {

struct Stencil {
  std::vector<int64_t> extent, tile, halo;
  std::string text;
};

/// B[v] = A[v] …, C[v] = B[v] + B[v + halo] …
Stencil random_stencil(Rng& rng) {
  Stencil s;
  const size_t rank = 1 + rng.below(2);
  std::string inner, outer, iters, shifted, letters, kinds;
  for (size_t d = 0; d < rank; ++d) {
    s.tile.push_back(rng.between(1, 4));
    s.extent.push_back(s.tile[d] * rng.between(1, 4));
    s.halo.push_back(rng.between(0, 3));
    const char* comma = d ? ", " : "";
    outer += fmt::format("{}{}", comma, s.extent[d]);
    inner += fmt::format("{}{}", comma, s.extent[d] + s.halo[d]);
    iters += fmt::format("{}v{}", comma, d);
    shifted += fmt::format("{}v{} + {}", comma, d, s.halo[d]);
    letters += fmt::format("{}i{}", comma, d);
    kinds += "S";
  }
  if (rank == 1) outer += ",", inner += ",";
  const std::string names = rank == 1 ? "v0," : iters;
  s.text = fmt::format(R"(
@T.prim_func(s_tir=True)
def main(A: T.Buffer(({inner}), "int32"), C: T.Buffer(({outer}), "int32")):
    B = T.sblock_alloc_buffer(({inner}), "int32")
    for {letters} in T.grid({inner}):
        with T.sblock("B"):
            {names} = T.axis.remap("{kinds}", [{letters}])
            B[{iters}] = A[{iters}] * 3 + v0
    for {letters} in T.grid({outer}):
        with T.sblock("C"):
            {names} = T.axis.remap("{kinds}", [{letters}])
            C[{iters}] = B[{iters}] - B[{shifted}] * 2
)",
                       fmt::arg("inner", inner), fmt::arg("outer", outer), fmt::arg("letters", letters),
                       fmt::arg("names", names), fmt::arg("kinds", kinds), fmt::arg("iters", iters),
                       fmt::arg("shifted", shifted));
  return s;
}

TEST(RollingBuffer, KeepsTheMeaningOfRandomStencils) {
  int applied = 0;
  const uint64_t seed = test_seed(20261201);
  for (uint64_t k = 0; k < 300; ++k) {
    SCOPED_TRACE(fmt::format("{}, case {}", repeat_with(seed), k));
    Rng rng = Rng::keyed(seed, 5, k);
    const Stencil stencil = random_stencil(rng);
    auto parsed = parse_program(stencil.text, "stencil");
    ASSERT_TRUE(parsed) << render_text(parsed.error().at(0)) << stencil.text;
    Schedule s(parsed->program, k);
    const BlockRV b = *s.get_sblock("B"), c = *s.get_sblock("C");
    std::vector<LoopRV> loops = *s.get_loops(c), outer, inner;
    for (size_t d = 0; d < loops.size(); ++d) {
      auto parts = s.split(loops[d], TraceList{nullptr, stencil.tile[d]});
      ASSERT_TRUE(parts);
      outer.push_back((*parts)[0]);
      inner.push_back((*parts)[1]);
    }
    rng.shuffle(std::span(outer));
    std::vector<LoopRV> order = outer;
    order.insert(order.end(), inner.begin(), inner.end());
    ASSERT_TRUE(s.reorder(order));
    ASSERT_TRUE(s.compute_at(b, order[rng.below(outer.size() + 1)]));
    if (!s.call("rolling_buffer", {{"block", b}, {"write_buffer_index", 0}})) continue;
    ++applied;
    EXPECT_TRUE(equal_by_execution(*parsed->program->main(), s.function())) << print(s.function());
    if (HasFailure()) return;
  }
  EXPECT_GT(applied, 100);
}

}  // namespace
}  // namespace tilewright
