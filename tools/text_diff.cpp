#include "tools/text_diff.h"

#include <algorithm>
#include <sstream>
#include <vector>

namespace tilewright::tools {

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

struct Line {
  char mark;
  const std::string* text;
};

/// By the longest common subsequence of what lies between the common head and tail.
std::vector<Line> edit_script(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  size_t head = 0, tail = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  while (tail + head < a.size() && tail + head < b.size() && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  const size_t n = a.size() - head - tail, m = b.size() - head - tail;
  std::vector<std::vector<uint32_t>> common(n + 1, std::vector<uint32_t>(m + 1));
  for (size_t i = n; i-- > 0;)
    for (size_t j = m; j-- > 0;)
      common[i][j] =
          a[head + i] == b[head + j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  std::vector<Line> out;
  for (size_t i = 0; i < head; ++i) out.push_back({' ', &a[i]});
  size_t i = 0, j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && a[head + i] == b[head + j]) {
      out.push_back({' ', &a[head + i]});
      ++i, ++j;
    } else if (j == m || (i < n && common[i + 1][j] >= common[i][j + 1])) {
      out.push_back({'-', &a[head + i++]});
    } else {
      out.push_back({'+', &b[head + j++]});
    }
  }
  for (size_t k = a.size() - tail; k < a.size(); ++k) out.push_back({' ', &a[k]});
  return out;
}

}  // namespace

std::string line_diff(const std::string& before, const std::string& after, size_t context) {
  if (before == after) return "";
  const std::vector<std::string> a = lines_of(before), b = lines_of(after);
  const std::vector<Line> script = edit_script(a, b);
  std::vector<bool> shown(script.size());
  for (size_t i = 0; i < script.size(); ++i)
    if (script[i].mark != ' ')
      for (size_t k = i < context ? 0 : i - context; k <= std::min(i + context, script.size() - 1); ++k)
        shown[k] = true;
  std::string out;
  bool gap = false;
  for (size_t i = 0; i < script.size(); ++i) {
    if (!shown[i]) {
      gap = true;
      continue;
    }
    if (gap && !out.empty()) out += "  ...\n";
    gap = false;
    out += std::string(1, script[i].mark) + " " + *script[i].text + "\n";
  }
  return out;
}

}  // namespace tilewright::tools
