// Refusals of the primitives, driven by the registry: what a primitive declares has a golden
// (tests/golden/schedule/refusals/<primitive>_<code>.txt), what a golden shows is declared, and handles that are of the
// wrong kind, expired, or inside an init are refused by every primitive that takes one.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "ir/equal.h"
#include "ir/parse.h"
#include "schedule/primitive.h"
#include "schedule/schedule.h"

namespace tilewright {
namespace {

/// "split_no-factors", "split_no-factors.symbolic" → {"split", "no-factors"}.
std::pair<std::string, std::string> parts_of(const std::string& file) {
  std::string stem = file.substr(0, file.find('.'));
  size_t at = stem.rfind('_');
  return {stem.substr(0, at), stem.substr(at + 1)};
}

struct RefusalGolden {
  std::string file, primitive, code, header, message;
};

std::vector<RefusalGolden> refusal_goldens() {
  std::vector<RefusalGolden> out;
  const std::string folder = std::string(TW_SOURCE_DIR) + "/tests/golden/schedule/refusals";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    RefusalGolden g;
    g.file = entry.path().filename().string();
    std::tie(g.primitive, g.code) = parts_of(g.file);
    std::ifstream text(entry.path());
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with("# refused: ")) g.header = line.substr(11);
      if (line.starts_with("error: ")) g.message = line.substr(7);
    }
    out.push_back(std::move(g));
  }
  return out;
}

TEST(Refusals, EveryGoldenShowsADeclaredCodeOfThePrimitiveInItsName) {
  for (const RefusalGolden& g : refusal_goldens()) {
    SCOPED_TRACE(g.file);
    const Primitive* p = find_primitive(g.primitive);
    ASSERT_TRUE(p) << "no primitive is called " << g.primitive;
    EXPECT_TRUE(declares(*p, g.code)) << g.primitive << " does not declare " << g.code;
    EXPECT_EQ(g.header, g.code);
    EXPECT_TRUE(g.message.starts_with(g.primitive + ": ")) << "another instruction is refused: " << g.message;
  }
}

TEST(Refusals, EveryDeclaredCodeHasAGolden) {
  std::set<std::string> shown;
  for (const RefusalGolden& g : refusal_goldens()) shown.insert(g.primitive + "_" + g.code);
  for (const Primitive* p : all_primitives())
    for (const RefusalCode* code : p->refusals.codes())
      EXPECT_TRUE(shown.count(p->name + "_" + code->text))
          << "tests/golden/schedule/refusals/" << p->name << "_" << code->text << ".txt is missing";
}

// --- handles ---------------------------------------------------------------------------------------------------------

constexpr const char* kReduction = R"(
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 16), "float32"), C: T.Buffer((8,), "float32")):
    for i0, i1, k in T.grid(2, 4, 16):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i0 * 4 + i1)
            vk = T.axis.reduce(16, k)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
)";

bool takes_handle(ArgType t) {
  return t == ArgType::block || t == ArgType::loop || t == ArgType::block_or_loop || t == ArgType::loops ||
         t == ArgType::blocks || t == ArgType::block_list_or_loop;
}

/// A value of the type; handles are `block` and `loop`.
TraceValue some_value(ArgType type, Symbol block, Symbol loop) {
  switch (type) {
    case ArgType::block:
    case ArgType::block_or_loop:
      return block;
    case ArgType::loop:
      return loop;
    case ArgType::loops:
      return TraceList{loop};
    case ArgType::blocks:
    case ArgType::block_list_or_loop:
      return TraceList{block};
    case ArgType::integer:
      return 0;
    case ArgType::boolean:
      return false;
    case ArgType::text:
      return "global";
    case ArgType::buffer:
      return TraceList{"read", 0};
    case ArgType::side:
      return "read";
    case ArgType::index_map: {
      auto map = std::make_unique<IndexMap>();
      map->inputs.push_back(make_var("i"));
      map->outputs.push_back(map->inputs[0]);
      return IndexMapRef(map.release());
    }
    case ArgType::factors:
    case ArgType::int_list:
    case ArgType::float_list:
      return TraceList{};
    default:
      return nullptr;
  }
}

Instruction call_with(const Primitive& p, Symbol block, Symbol loop) {
  Instruction out;
  out.kind = &p;
  for (const ArgSpec& spec : p.inputs) out.inputs.push_back(some_value(spec.type, block, loop));
  for (const ArgSpec& spec : p.attrs) out.attrs.push_back(spec.fallback.value_or(some_value(spec.type, block, loop)));
  return out;
}

std::vector<const Primitive*> primitives_with_handles() {
  std::vector<const Primitive*> out = all_primitives();
  std::erase_if(out, [](const Primitive* p) {
    return std::none_of(p->inputs.begin(), p->inputs.end(), [](const ArgSpec& s) { return takes_handle(s.type); });
  });
  return out;
}

class Handles : public ::testing::Test {
 protected:
  void SetUp() override {
    auto parsed = parse_program(kReduction, "program");
    ASSERT_TRUE(parsed);
    program = parsed->program;
  }
  void expect_refused(Schedule& s, const Primitive& p, Instruction instruction, const RefusalCode& code) {
    const Hash64 hash = structural_hash(s.function());
    auto applied = s.apply(std::move(instruction));
    ASSERT_FALSE(applied) << p.name;
    EXPECT_EQ(applied.error().code(), code.text) << p.name << ": " << applied.error().diagnostic().message;
    EXPECT_EQ(structural_hash(s.function()), hash) << p.name;
  }
  ProgramRef program;
};

TEST_F(Handles, ExpiredOnesAreRefusedByEveryPrimitive) {
  for (const Primitive* p : primitives_with_handles()) {
    Schedule s(program);
    BlockRV block = *s.get_sblock("C");
    std::vector<LoopRV> loops = *s.get_loops(block);
    ASSERT_TRUE(s.fuse({loops[0], loops[1]}));
    const Symbol never{1000, SymbolKind::block};
    expect_refused(s, *p, call_with(*p, never, loops[0]), codes::handle_expired);
  }
}

TEST_F(Handles, OnesOfTheWrongKindAreRefusedByEveryPrimitive) {
  for (const Primitive* p : primitives_with_handles()) {
    Schedule s(program);
    BlockRV block = *s.get_sblock("C");
    const Symbol integer = *s.sample_categorical({1}, {1.0});
    Instruction instruction = call_with(*p, block, s.get_loops(block)->front());
    for (size_t i = 0; i < p->inputs.size(); ++i) {
      if (!takes_handle(p->inputs[i].type)) continue;
      const bool list = instruction.inputs[i].get<TraceList>() != nullptr;
      instruction.inputs[i] = list ? TraceValue(TraceList{integer}) : TraceValue(integer);
      expect_refused(s, *p, instruction, list ? wrong_argument_type : codes::handle_of_wrong_kind);
      break;
    }
  }
}

TEST_F(Handles, OnesInsideAnInitAreRefusedByEveryPrimitiveThatDoesMoreThanLook) {
  for (const Primitive* p : primitives_with_handles()) {
    if (p->name == "get_loops" || p->name == "get_child_blocks") continue;
    Schedule s(program);
    ASSERT_TRUE(s.blockize((*s.get_loops(*s.get_sblock("C")))[1]));
    BlockRV init = *s.get_sblock("C_init");
    expect_refused(s, *p, call_with(*p, init, s.get_loops(init)->front()), codes::inside_an_init);
  }
}

}  // namespace
}  // namespace tilewright
