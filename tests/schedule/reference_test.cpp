// The reference pages docs/reference/primitives/*.md are what the registry says of each primitive, with an executed
// example (a golden) and its refusals. `scripts/dev golden schedule` writes them anew.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "schedule/primitive.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = TW_SOURCE_DIR;
const fs::path kPages = kRoot / "docs/reference/primitives";
const fs::path kGoldens = kRoot / "tests/golden/schedule";

std::string read(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const char* type_text(ArgType type) {
  switch (type) {
    case ArgType::block:
      return "block";
    case ArgType::loop:
      return "loop";
    case ArgType::block_or_loop:
      return "block or loop";
    case ArgType::loops:
      return "loops";
    case ArgType::blocks:
      return "list of blocks";
    case ArgType::block_list_or_loop:
      return "loop or list of blocks";
    case ArgType::factors:
      return "list of integers or None";
    case ArgType::integer:
      return "integer";
    case ArgType::int_list:
      return "list of integers";
    case ArgType::float_list:
      return "list of numbers";
    case ArgType::boolean:
      return "bool";
    case ArgType::text:
      return "string";
    case ArgType::text_or_none:
      return "string or None";
    case ArgType::index_map:
      return "index map";
    case ArgType::index_map_or_none:
      return "index map, number or None";
    case ArgType::value:
      return "any value";
    case ArgType::buffer:
      return "buffer";
    case ArgType::side:
      return "\"read\" or \"write\"";
  }
  return "";
}

const char* result_text(OutputShape shape) {
  switch (shape) {
    case OutputShape::none:
      return "nothing";
    case OutputShape::one_block:
      return "a block";
    case OutputShape::two_blocks:
      return "two blocks";
    case OutputShape::blocks:
      return "a list of blocks";
    case OutputShape::one_loop:
      return "a loop";
    case OutputShape::loops:
      return "a list of loops";
    case OutputShape::one_int:
      return "an integer";
    case OutputShape::ints:
      return "a list of integers";
    case OutputShape::blocks_or_one:
      return "a block, or a list of blocks";
  }
  return "";
}

std::string default_text(const TraceValue& v) {
  if (v.is_none()) return "None";
  if (auto* x = v.get<bool>()) return *x ? "True" : "False";
  if (auto* x = v.get<int64_t>()) return fmt::format("{}", *x);
  if (auto* x = v.get<TraceList>(); x && x->empty()) return "[]";
  return v.get<std::string>() ? fmt::format("\"{}\"", *v.get<std::string>()) : "…";
}

std::vector<const ArgSpec*> arguments_of(const Primitive& p) {
  std::vector<const ArgSpec*> out;
  if (p.python_order.empty()) {
    for (const ArgSpec& spec : p.inputs) out.push_back(&spec);
    for (const ArgSpec& spec : p.attrs) out.push_back(&spec);
  }
  for (const std::string& name : p.python_order) out.push_back(p.find(name));
  return out;
}

/// The golden that shows the primitive: the one of its name, else the first that calls it and is applied.
fs::path example_of(const Primitive& p) {
  const fs::path own = kGoldens / (p.name + ".txt");
  if (fs::exists(own)) return own;
  std::set<fs::path> all;
  for (const auto& entry : fs::directory_iterator(kGoldens))
    if (entry.path().extension() == ".txt") all.insert(entry.path());
  for (const fs::path& path : all)
    if (std::string text = read(path);
        text.find("sch." + p.name + "(") != std::string::npos && text.find("\n# after\n") != std::string::npos)
      return path;
  return {};
}

std::string section(const std::string& golden, const std::string& name, const std::string& next) {
  size_t begin = golden.find("# " + name + "\n");
  if (begin == std::string::npos) return "";
  begin += name.size() + 3;
  size_t end = next.empty() ? golden.size() : golden.find("\n# " + next + "\n", begin) + 1;
  return golden.substr(begin, end - begin);
}

std::string code_block(const std::string& title, const std::string& text) {
  return fmt::format("{}\n\n```python\n{}```\n\n", title, text);
}

std::string sentence(std::string doc) {
  doc[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(doc[0])));
  return doc;
}

std::string page(const Primitive& p, const std::string& doc) {
  std::string call, rows;
  for (const ArgSpec* spec : arguments_of(p)) {
    call += fmt::format("{}{}{}", call.empty() ? "" : ", ", spec->name,
                        spec->fallback ? "=" + default_text(*spec->fallback) : "");
    rows += fmt::format("| `{}` | {} | {} | {} |\n", spec->name, type_text(spec->type),
                        spec->fallback ? "`" + default_text(*spec->fallback) + "`" : "", spec->doc);
  }
  if (p.samples) {
    call += std::string(call.empty() ? "" : ", ") + "decision=None";
    rows += "| `decision` | what was drawn | `None` | taken instead of drawing |\n";
  }
  std::string out = fmt::format("# {}\n\n`sch.{}({})` returns {}. In traces: `{}`.\n\n{}.\n\n", p.name, p.name, call,
                                result_text(p.outputs), p.kind, sentence(doc));
  if (p.unsafe) out += "Values are kept only if the caller's promise holds; the search never draws it.\n\n";
  if (!rows.empty()) out += "| argument | type | default | meaning |\n|---|---|---|---|\n" + rows + "\n";
  if (fs::path example = example_of(p); !example.empty()) {
    const std::string golden = read(example);
    out += fmt::format("## Example\n\nExecuted by the tests (`tests/golden/schedule/{}`).\n\n",
                       example.filename().string());
    out += code_block("Before:", section(golden, "before", "trace"));
    out += code_block("Schedule:", section(golden, "trace", "after"));
    out += code_block("After:", section(golden, "after", ""));
  }
  if (!p.refusals.codes().empty()) {
    out += "## Refusals\n\n| code | when |\n|---|---|\n";
    for (const RefusalCode* code : p.refusals.codes()) out += fmt::format("| `{}` | {} |\n", code->text, code->doc);
    out += "\n";
  }
  return out.substr(0, out.size() - 1);
}

std::map<std::string, std::string> pages() {
  std::map<std::string, std::string> out;
  std::string index =
      "# Schedule primitives\n\nWritten from the registry by `scripts/dev golden schedule`; how to add one: "
      "[add-a-primitive](../../howto/add-a-primitive.md).\n\n| primitive | what it does |\n|---|---|\n";
  for (const auto& [name, entry] : Registry<Primitive>::instance().entries()) {
    out[name + ".md"] = page(entry.value, entry.doc);
    index += fmt::format("| [{}]({}.md) | {} |\n", name, name, entry.doc);
  }
  out["README.md"] = index;
  return out;
}

TEST(Reference, PagesOfPrimitivesSayWhatTheRegistrySays) {
  const bool update = std::getenv("TILEWRIGHT_UPDATE_GOLDEN") != nullptr;
  const std::map<std::string, std::string> wanted = pages();
  if (update) {
    fs::remove_all(kPages);
    fs::create_directories(kPages);
    for (const auto& [file, text] : wanted) std::ofstream(kPages / file) << text;
  }
  for (const auto& [file, text] : wanted)
    EXPECT_EQ(read(kPages / file), text) << file << ": `scripts/dev golden schedule` writes it anew";
  for (const auto& entry : fs::directory_iterator(kPages))
    EXPECT_TRUE(wanted.count(entry.path().filename().string())) << entry.path() << " belongs to no primitive";
}

}  // namespace
}  // namespace tilewright
