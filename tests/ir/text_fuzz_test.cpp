// Properties of program text over random programs: parse(print(x)) = x, printing is a fixed point, the classic dialect
// reads back as the same program, derived signatures contain what is accessed; and over broken text: an error with a
// place or a valid program, never a crash. TILEWRIGHT_FUZZ_CASES sets the number of cases.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "ir/equal.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "ir/visit.h"
#include "tests/ir/random_program.h"
#include "tests/seed.h"

namespace tilewright {
namespace {

uint64_t seed() { return test_seed(20261130); }
uint64_t cases() {
  const char* text = std::getenv("TILEWRIGHT_FUZZ_CASES");
  return text ? std::strtoull(text, nullptr, 10) : 100;
}

TEST(TextFuzz, ParseOfPrintIsTheProgram) {
  for (uint64_t k = 0; k < cases(); ++k) {
    SCOPED_TRACE(fmt::format("{}, case {}", repeat_with(seed()), k));
    ProgramRef p = random_program(Rng::keyed(seed(), 1, k));
    std::string text = print(*p);
    auto parsed = parse_program(text, "printed");
    ASSERT_TRUE(parsed) << render_text(parsed.error()[0]) << text;
    Difference difference;
    ASSERT_TRUE(structural_equal(*p, *parsed->program, &difference)) << difference.what << "\n"
                                                                     << text << print(*parsed->program);
    ASSERT_EQ(structural_hash(*p), structural_hash(*parsed->program)) << text;
    ASSERT_EQ(print(*parsed->program), text);
    std::string classic = print(*p, {Dialect::classic, true});
    auto older = parse_program(classic, "classic");
    ASSERT_TRUE(older) << render_text(older.error()[0]) << classic;
    ASSERT_TRUE(structural_equal(*p, *older->program)) << classic;
    ASSERT_EQ(print(*older->program, {Dialect::classic, true}), classic);
  }
}

TEST(TextFuzz, RandomProgramsAreWellFormed) {
  for (uint64_t k = 0; k < cases(); ++k) {
    SCOPED_TRACE(fmt::format("{}, case {}", repeat_with(seed()), k));
    ProgramRef p = random_program(Rng::keyed(seed(), 1, k));
    std::vector<Diagnostic> errors = verify(*p);
    ASSERT_TRUE(errors.empty()) << render_text(errors[0]) << print(*p);
  }
}

// Without T.reads and T.writes the reader derives signatures; the verifier must find nothing outside them.
TEST(TextFuzz, DerivedSignaturesCoverTheBody) {
  for (uint64_t k = 0; k < cases(); ++k) {
    SCOPED_TRACE(fmt::format("{}, case {}", repeat_with(seed()), k));
    std::string text = print(*random_program(Rng::keyed(seed(), 1, k)));
    std::string bare;
    for (size_t at = 0; at < text.size();) {
      size_t end = text.find('\n', at) + 1;
      std::string_view line(text.data() + at, end - at);
      if (line.find("T.reads(") == std::string_view::npos && line.find("T.writes(") == std::string_view::npos)
        bare += line;
      at = end;
    }
    auto parsed = parse_program(bare, "bare");
    ASSERT_TRUE(parsed) << render_text(parsed.error()[0]) << bare;
    std::vector<Diagnostic> errors = verify(*parsed->program, &parsed->spans);
    ASSERT_TRUE(errors.empty()) << render_text(errors[0]) << print(*parsed->program);
  }
}

// Places of printed statements are where the text says.
TEST(TextFuzz, PlacesPointAtTheStatement) {
  for (uint64_t k = 0; k < 50; ++k) {
    SCOPED_TRACE(fmt::format("{}, case {}", repeat_with(seed()), k));
    ProgramRef p = random_program(Rng::keyed(seed(), 2, k));
    PrintedProgram printed = print_with_places(*p);
    ASSERT_EQ(printed.text, print(*p));
    walk_stmts(p->functions[0]->body, [&](const Stmt& s) {
      if (s->kind == StmtKind::kSeq) return true;
      Span span = printed.spans.find(s.get());
      EXPECT_GT(span.line, 0) << printed.text;
      if (const Store* store = as<Store>(s)) {
        EXPECT_NE(span.text.find(store->buffer->name), std::string::npos);
      }
      if (const Block* b = as<Block>(s)) {
        EXPECT_NE(span.text.find("\"" + b->name + "\""), std::string::npos);
      }
      return true;
    });
  }
}

std::vector<std::string> tokens_of(const std::string& text) {
  std::vector<std::string> out;
  auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (word(text[i]))
      while (end < text.size() && word(text[end])) ++end;
    else if (text[i] == '\n' || text[i] == ' ')
      while (end < text.size() && text[end] == ' ') ++end;
    out.push_back(text.substr(i, end - i));
    i = end;
  }
  return out;
}

TEST(TextFuzz, BrokenTextEndsInAnErrorWithAPlaceOrAProgram) {
  static const std::vector<std::string> kInserted{"(",
                                                  ")",
                                                  "[",
                                                  "]",
                                                  "{",
                                                  "\"",
                                                  "'",
                                                  "\n",
                                                  "\n    ",
                                                  "\t",
                                                  ":",
                                                  ",",
                                                  "=",
                                                  "==",
                                                  "+",
                                                  "-",
                                                  "*",
                                                  "//",
                                                  "%",
                                                  "0",
                                                  "-1",
                                                  "1e400",
                                                  "99999999999999999999",
                                                  "T.",
                                                  "T.sblock(\"x\")",
                                                  "for",
                                                  "in",
                                                  "with",
                                                  "if",
                                                  "else:",
                                                  "not",
                                                  "lambda x:",
                                                  "True",
                                                  "None",
                                                  "@",
                                                  "\\",
                                                  "\x80",
                                                  "#",
                                                  "T.int8(300)",
                                                  "A[()]",
                                                  "\"\"\"",
                                                  "...",
                                                  "T.float32(\"inf\")",
                                                  "return",
                                                  "range(3)"};
  int valid = 0;
  for (uint64_t k = 0; k < cases(); ++k) {
    Rng rng = Rng::keyed(seed(), 3, k);
    std::vector<std::string> tokens = tokens_of(print(*random_program(Rng::keyed(seed(), 4, k))));
    for (uint64_t n = rng.between(1, 3); n > 0; --n) {
      size_t at = rng.below(tokens.size());
      switch (rng.below(4)) {
        case 0:
          tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at));
          break;
        case 1:
          tokens.insert(tokens.begin() + static_cast<std::ptrdiff_t>(at), tokens[at]);
          break;
        case 2:
          std::swap(tokens[at], tokens[rng.below(tokens.size())]);
          break;
        default:
          tokens.insert(tokens.begin() + static_cast<std::ptrdiff_t>(at), kInserted[rng.below(kInserted.size())]);
      }
    }
    std::string text;
    for (const std::string& t : tokens) text += t;
    SCOPED_TRACE(fmt::format("{}, case {}\n{}", repeat_with(seed()), k, text));
    auto parsed = parse_program(text, "broken");
    if (parsed) {
      ++valid;
      std::string printed = print(*parsed->program);
      auto again = parse_program(printed, "printed");
      ASSERT_TRUE(again) << render_text(again.error()[0]) << printed;
      ASSERT_TRUE(structural_equal(*parsed->program, *again->program)) << printed << print(*again->program);
      verify(*parsed->program, &parsed->spans);
      continue;
    }
    ASSERT_FALSE(parsed.error().empty());
    ASSERT_LE(parsed.error().size(), ErrorList::kLimit);
    for (const Diagnostic& d : parsed.error()) {
      ASSERT_GE(d.span.line, 1) << d.message;
      ASSERT_GE(d.span.column, 1) << d.message;
      ASSERT_GT(d.span.end_column, d.span.column) << d.message;
      ASSERT_NE(find_refusal_code(d.code), nullptr) << d.code;
      ASSERT_FALSE(render_text(d).empty());
    }
  }
  EXPECT_LT(static_cast<uint64_t>(valid), cases());
}

}  // namespace
}  // namespace tilewright
