// Annotation keys, driven by their table: each is refused with a value of the wrong type, on a loop instead of a block
// (or the other way round), and, where it needs a certain kind of block or loop, on one of another kind. Legal ones:
// goldens annotate_gpu and pipeline.
#include "schedule/annotations.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "schedule/schedule.h"

namespace tilewright {
namespace {

constexpr const char* kPlain = R"(
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 16), "float32"), C: T.Buffer((8, 16), "float32")):
    for i in range(8):
        for j in range(16):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + T.float32(1)
)";

class Annotations : public ::testing::Test {
 protected:
  void SetUp() override {
    auto parsed = parse_program(kPlain, "program");
    ASSERT_TRUE(parsed);
    schedule.emplace(parsed->program);
    block = *schedule->get_sblock("B");
    loop = schedule->get_loops(block)->front();
  }
  std::string code(Symbol where, const char* key, TraceValue value) {
    Schedule copy = *schedule;
    Status done = copy.annotate(where, key, std::move(value));
    return done ? "" : std::string(done.error().code());
  }
  /// A value that the key takes, somewhere.
  static Attr legal(const AnnotationKey& row) {
    static const std::vector<Attr> kCandidates{Attr(1),
                                               Attr(64),
                                               Attr("tma"),
                                               Attr("tf32"),
                                               Attr("dsmem"),
                                               Attr("text"),
                                               Attr(AttrList{Attr(0)}),
                                               Attr(AttrList{Attr(8), Attr(1)}),
                                               Attr(AttrList{Attr(1), Attr(40), Attr(232)}),
                                               Attr(2)};
    for (const Attr& a : kCandidates)
      if (row.accepts(a)) return a;
    ADD_FAILURE() << row.key << " takes none of the candidates";
    return {};
  }
  std::optional<Schedule> schedule;
  BlockRV block;
  LoopRV loop;
};

TEST_F(Annotations, ValuesOfTheWrongTypeAreRefused) {
  for (const AnnotationKey& row : annotation_keys()) {
    const Symbol where = row.place == AnnotationPlace::loop ? Symbol(loop) : Symbol(block);
    EXPECT_EQ(code(where, row.key, TraceDict{{"a", 1}}), annotation_value_invalid.text) << row.key;
  }
}

TEST_F(Annotations, LoopsAndBlocksAreNotMixedUp) {
  for (const AnnotationKey& row : annotation_keys()) {
    if (row.place == AnnotationPlace::either) continue;
    const Symbol where = row.place == AnnotationPlace::loop ? Symbol(block) : Symbol(loop);
    EXPECT_EQ(code(where, row.key, to_trace_value(legal(row))), annotation_misplaced.text) << row.key;
  }
}

TEST_F(Annotations, BlocksAndLoopsOfAnotherKindAreRefused) {
  int sites = 0;
  for (const AnnotationKey& row : annotation_keys()) {
    if (!row.site) continue;
    ++sites;
    const Symbol where = row.place == AnnotationPlace::loop ? Symbol(loop) : Symbol(block);
    EXPECT_EQ(code(where, row.key, to_trace_value(legal(row))), annotation_misplaced.text) << row.key;
  }
  EXPECT_GT(sites, 15);
}

}  // namespace
}  // namespace tilewright
