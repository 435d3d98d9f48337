#include "support/events.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "support/json.h"
#include "support/rng.h"
#include "support/schema.h"

namespace tilewright {
namespace {

// Fills every field of a reflected struct with something random, empty values and odd text included.
struct Filler {
  Rng rng;

  void fill(int64_t& x) { x = static_cast<int64_t>(rng.next_u64()) >> rng.below(64); }
  void fill(uint64_t& x) { x = rng.next_u64() >> rng.below(64); }
  void fill(bool& x) { x = rng.chance(0.5); }
  void fill(double& x) {
    x = rng.chance(0.05) ? std::nan("") : std::ldexp(rng.uniform() - 0.5, static_cast<int>(rng.between(-300, 300)));
  }
  void fill(std::string& x) {
    static const char* pieces[] = {"a", "\"", "\\", "\n", "\x01", "é", "√", "𝛼", "{\"v\":1}", " ", "/"};
    x.clear();
    for (uint64_t i = rng.below(6); i > 0; --i) x += pieces[rng.below(std::size(pieces))];
  }
  void fill(Key128& x) { x = {rng.next_u64(), rng.next_u64() >> 40}; }
  void fill(Id64& x) { x.value = rng.next_u64() >> rng.below(64); }
  template <class T>
  void fill(std::optional<T>& x) {
    x.reset();
    if (rng.chance(0.5)) fill(x.emplace());
  }
  template <class T>
  void fill(std::vector<T>& x) {
    x.assign(rng.below(4), T{});
    for (T& item : x) fill(item);
  }
  template <class T>
  void fill(std::map<std::string, T>& x) {
    x.clear();
    for (uint64_t i = rng.below(4); i > 0; --i) {
      std::string key;
      fill(key);
      fill(x[key]);
    }
  }
  template <class E>
    requires std::is_enum_v<E>
  void fill(E& x) {
    auto all = all_values<E>();
    x = all[rng.below(all.size())];
  }
  template <Reflected T>
  void fill(T& x) {
    for_each_field(x, [&](auto& field) { fill(field); });
  }
};

template <size_t i = 0, class F>
void for_each_kind(F&& f) {
  if constexpr (i < std::variant_size_v<EventBody>) {
    f(std::variant_alternative_t<i, EventBody>{});
    for_each_kind<i + 1>(f);
  }
}

TEST(Events, EveryKindSurvivesTheRoundTrip) {
  constexpr uint64_t seed = 20261130;
  RecordProperty("seed", static_cast<int>(seed));
  std::set<std::string_view> kinds;
  for_each_kind([&](auto body) {
    kinds.insert(body.kind);
    Filler filler{Rng::keyed(seed, kinds.size())};
    for (int i = 0; i < 200; ++i) {
      filler.fill(body);
      Event event{filler.rng.between(1, 1'000'000), filler.rng.uniform() * 1e4, body};
      std::string line = to_line(event);
      EXPECT_EQ(line.find('\n'), line.npos);
      auto back = parse_line(line);
      ASSERT_TRUE(back) << render_text(back.error().diagnostic()) << line;
      ASSERT_TRUE(back->event);
      EXPECT_EQ(back->event->body.index(), event.body.index());
      EXPECT_EQ(to_line(*back->event), line);
    }
  });
  EXPECT_EQ(kinds.size(), std::variant_size_v<EventBody>) << "two kinds share a name";
}

TEST(Events, LineHasTheDocumentedForm) {
  JobResult result;
  result.task = 2;
  result.trial = 371;
  result.trace_key = {1, 0xab};
  result.status = TrialStatus::ok;
  result.stage = Stage::screen;
  result.median_ns = 31200.5;
  result.ci_lo_ns = 31000;
  result.ci_hi_ns = 31400;
  result.n = 30;
  result.verified = result.settled = true;
  EXPECT_EQ(to_line({912, 371.204, result}),
            R"({"v":1,"seq":912,"t":371.204,"kind":"job.result","task":2,"trial":371,"attempt":0,)"
            R"("trace_key":"000000000000000100000000000000ab","status":"ok","stage":"screen","median_ns":31200.5,)"
            R"("ci_lo_ns":31000.0,"ci_hi_ns":31400.0,"n":30,"verified":true,"settled":true,"finished_us":0})");
}

TEST(Events, UnknownKindsFieldsAndNamesAreSkipped) {
  auto kind = parse_line(R"({"v":1,"seq":7,"t":0.5,"kind":"moon.phase","phase":3})");
  ASSERT_TRUE(kind);
  EXPECT_EQ(kind->seq, 7);
  EXPECT_FALSE(kind->event);

  auto field = parse_line(R"({"v":1,"seq":8,"t":1,"kind":"registry.found","lost_s":2.5,"mood":{"a":[1]}})");
  ASSERT_TRUE(field);
  EXPECT_EQ(std::get<RegistryFound>(field->event->body).lost_s, 2.5);

  std::string line = to_line({1, 0, JobResult{}});
  line.replace(line.find(R"("status":"unspecified")"), 22, R"("status":"melted")");
  auto name = parse_line(line);
  ASSERT_TRUE(name);
  EXPECT_EQ(std::get<JobResult>(name->event->body).status, TrialStatus::unspecified);
}

TEST(Events, BadLinesAreRefusedWithTheField) {
  auto message = [](const char* line) {
    auto parsed = parse_line(line);
    return parsed ? "parsed" : parsed.error().diagnostic().message;
  };
  EXPECT_NE(message(R"({"v":1,"seq":7,"t":0.5,"ki)").find("cut line"), std::string::npos);
  EXPECT_NE(message("[]").find("JSON object"), std::string::npos);
  EXPECT_EQ(message(R"({"v":1,"t":0.5,"kind":"best"})"), "field \"seq\" is missing");
  EXPECT_EQ(message(R"({"v":2,"seq":1,"t":0.5,"kind":"best"})"), "the line has format version 2, this program reads 1");
  EXPECT_EQ(message(R"({"v":1,"seq":1,"t":0.5,"kind":"registry.found","lost_s":"long"})"),
            "registry.found: field \"lost_s\": expected a number, found \"long\"");
  EXPECT_EQ(message(R"({"v":1,"seq":1,"t":0.5,"kind":"registry.found"})"),
            "registry.found: field \"lost_s\" is missing");
  EXPECT_EQ(message(R"({"v":1,"seq":1.5,"t":0.5,"kind":"registry.found","lost_s":1})"),
            "field \"seq\": expected an integer in range, found 1.5");
  EXPECT_NE(
      message(R"({"v":1,"seq":1,"t":1,"kind":"model.fit","round":0,"task":0,"samples":1,"model":-1,"elapsed_s":1})")
          .find("unsigned"),
      std::string::npos);
  EXPECT_NE(message(R"({"v":1,"seq":1,"t":1,"kind":"best","task":99999999999999999999})").find("integer in range"),
            std::string::npos);
}

TEST(Events, TextThatIsNotUtf8IsStillALine) {
  Warning warning;
  warning.message = "bad \xff\xfe byte";
  auto back = parse_line(to_line({1, 0, warning}));
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<Warning>(back->event->body).message, "bad \uFFFD\uFFFD byte");
}

// A small validator for the part of JSON Schema that is generated: the schema must accept what is written.
bool valid(const Json& schema, const Json& value) {
  if (schema.contains("const")) return schema["const"] == value;
  if (schema.contains("enum"))
    return std::find(schema["enum"].begin(), schema["enum"].end(), value) != schema["enum"].end();
  if (schema["type"].is_array()) return value.is_number() || value.is_null();
  std::string type = schema["type"];
  if (type == "integer") return value.is_number_integer();
  if (type == "boolean") return value.is_boolean();
  if (type == "string") return value.is_string();
  if (type == "array")
    return std::all_of(value.begin(), value.end(), [&](auto& x) { return valid(schema["items"], x); });
  if (!value.is_object()) return false;
  if (schema.contains("additionalProperties"))
    return std::all_of(value.begin(), value.end(), [&](auto& x) { return valid(schema["additionalProperties"], x); });
  for (const Json& field : schema["required"])
    if (!value.contains(field)) return false;
  for (const auto& [field, x] : value.items())
    if (!schema["properties"].contains(field) || !valid(schema["properties"][field], x)) return false;
  return true;
}

TEST(Events, SchemaDescribesExactlyOneKindPerLine) {
  const auto* entry = Registry<Schema>::instance().find("events");
  ASSERT_NE(entry, nullptr);
  Json schema = Json::parse(entry->text());
  EXPECT_EQ(schema["oneOf"].size(), std::variant_size_v<EventBody>);
  Filler filler{Rng(7)};
  for_each_kind([&](auto body) {
    for (int i = 0; i < 20; ++i) {
      filler.fill(body);
      Json line = Json::parse(to_line({1, 2.5, body}));
      int matches = 0;
      for (const Json& kind : schema["oneOf"]) matches += valid(kind, line);
      EXPECT_EQ(matches, 1) << line.dump();
      line.erase("seq");
      for (const Json& kind : schema["oneOf"]) EXPECT_FALSE(valid(kind, line));
    }
  });
}

struct Recorder : Observer {
  std::vector<std::string> lines;
  void on_event(const Event& event) override { lines.push_back(to_line(event)); }
};

TEST(EventStream, NumbersOnAndTellsEveryObserver) {
  double now = 1.0000004;
  EventStream stream([&] { return now; }, 41);
  Recorder first, second;
  stream.add(first);
  stream.add(second);
  EXPECT_EQ(stream.emit(RegistryFound{"etcd://r", 1}), 42);
  now = 2;
  EXPECT_EQ(stream.emit(CampaignPaused{"too many retries", "tilewright tune --run r"}), 43);
  ASSERT_EQ(first.lines.size(), 2u);
  EXPECT_EQ(first.lines, second.lines);
  EXPECT_EQ(first.lines[0], R"({"v":1,"seq":42,"t":1.0,"kind":"registry.found","registry":"etcd://r","lost_s":1.0})");
}

TEST(TrialNames, EveryNameParsesBack) {
  for (TrialStatus s : all_values<TrialStatus>()) EXPECT_EQ(parse_name<TrialStatus>(to_string(s)), s);
  for (Stage s : all_values<Stage>()) EXPECT_EQ(parse_name<Stage>(to_string(s)), s);
  for (Mode m : all_values<Mode>()) EXPECT_EQ(parse_name<Mode>(to_string(m)), m);
  EXPECT_FALSE(parse_name<TrialStatus>("OK"));
  EXPECT_EQ(info(TrialStatus::wrong_result).owner, Owner::candidate);
}

TEST(Keys, HexParsesBackAndNothingElseDoes) {
  Key128 key = content_key("hello");
  EXPECT_EQ(Key128::from_hex(key.hex()), key);
  EXPECT_FALSE(Key128::from_hex(key.hex().substr(1)));
  EXPECT_FALSE(Key128::from_hex(key.hex().substr(1) + "g"));
  EXPECT_FALSE(parse_hex64("0x00000000000001"));
  EXPECT_FALSE(parse_hex64("-000000000000001"));
}

}  // namespace
}  // namespace tilewright
