// How diagnostics look: whatever text a user brings, the terminal gets printable lines of a bounded length.
#include "support/diagnostic.h"

#include <gtest/gtest.h>

#include "support/printable.h"

namespace tilewright {
namespace {

std::string rendered(const std::string& text, int column, int end_column) {
  return render_text({"code", "message", {"a.py", 3, column, end_column, text}, {}, ""});
}

TEST(Diagnostic, ControlBytesAreShownNotSent) {
  EXPECT_EQ(printable("a\x1b[2Jb\nc\td\x7f"), "a\\x1b[2Jb\nc d\\x7f");
  EXPECT_EQ(printable("gr\u00f6\u00dfe \u03a3 \U0001f600"), "gr\u00f6\u00dfe \u03a3 \U0001f600");
  EXPECT_EQ(printable("\xff\xc3(\xc2\x85"), "\\xff\\xc3(\\xc2\\x85");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  std::string text = render_text({"c", "bad \x1b[31m", {"f\x07.py", 1, 2, 3, "x\x1by"}, {{"n\x08", {}}}, "h\r"});
  for (char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << text;
}

TEST(Diagnostic, TheCaretStaysUnderItsText) {
  EXPECT_EQ(rendered("    x = yy + 1", 9, 11), "error: message  [code]\n  a.py:3:9\n    x = yy + 1\n        ^^\n");
  // Escapes are wider than the characters that they stand for; letters beyond ASCII are not.
  EXPECT_EQ(rendered("\x1b = yy", 5, 7), "error: message  [code]\n  a.py:3:5\n    \\x1b = yy\n           ^^\n");
  EXPECT_EQ(rendered("\u00e4 = yy", 5, 7), "error: message  [code]\n  a.py:3:5\n    \u00e4 = yy\n        ^^\n");
  // The end of a line.
  EXPECT_EQ(rendered("x =", 4, 5), "error: message  [code]\n  a.py:3:4\n    x =\n       ^\n");
}

TEST(Diagnostic, LongLinesAreCutRoundTheCaret) {
  const std::string line = std::string(5000, 'a') + "HERE" + std::string(5000, 'b');
  for (auto [column, end] : {std::pair{5001, 5005}, {1, 3}, {10000, 10004}, {1, 10004}}) {
    std::string text = rendered(line, column, end);
    size_t begin = 0;
    for (size_t at; (at = text.find('\n', begin)) != std::string::npos; begin = at + 1)
      EXPECT_LE(at - begin, 140u) << text;
    EXPECT_NE(text.find('^'), std::string::npos) << text;
  }
  std::string middle = rendered(line, 5001, 5005);
  EXPECT_NE(middle.find("HERE"), std::string::npos) << middle;
  const size_t source = middle.find("...a"), caret = middle.find("^^^^");
  ASSERT_NE(source, std::string::npos) << middle;
  const size_t next = middle.find('\n', source) + 1 + 4;
  EXPECT_EQ(middle.find("HERE") - source, caret - next) << middle;
}

}  // namespace
}  // namespace tilewright
