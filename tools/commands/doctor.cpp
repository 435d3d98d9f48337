// tilewright doctor: what of this machine makes tuning fail or its times uncertain. The checks are in tools/doctor/.
#include "tools/doctor/doctor.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <fstream>

#include "support/component.h"
#include "support/json.h"
#include "tools/command.h"

namespace tilewright::tools {

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  return line;
}

std::optional<std::string> output_of(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1 </dev/null").c_str(), "r");
  if (!pipe) return std::nullopt;
  std::string out;
  std::array<char, 4096> buffer{};
  for (size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) out.append(buffer.data(), n);
  return pclose(pipe) == 0 ? std::optional(out) : std::nullopt;
}

namespace {

constexpr const char* level_names[] = {"ok", "note", "warning", "error"};

int run(Tool& tool, const Arguments& arguments) {
  DoctorContext context{arguments.has("--gpu"), tool.globals().target, tool.globals().database,
                        arguments.get("--runner")};
  Json list = Json::array();
  std::array<int, 4> counts{};
  for (const auto& [name, entry] : Registry<DoctorCheck>::instance().entries()) {
    if (entry.value.slow && arguments.has("--fast")) continue;
    for (const Finding& f : entry.value.look(context)) {
      const auto level = static_cast<size_t>(f.level);
      ++counts[level];
      tool.print(fmt::format("{:<8} {:<16} {}\n", level_names[level], f.check, f.value));
      if (!f.why.empty()) tool.print(fmt::format("         why: {}\n", f.why));
      if (!f.fix.empty()) tool.print(fmt::format("         fix: {}\n", f.fix));
      list.push_back(
          {{"check", f.check}, {"level", level_names[level]}, {"value", f.value}, {"why", f.why}, {"fix", f.fix}});
    }
  }
  for (const Plugin& plugin : open_plugins()) {
    ++counts[0];
    tool.print(fmt::format("{:<8} {:<16} {} ({})\n", level_names[0], "plug-in", plugin.name, plugin.path));
    list.push_back({{"check", "plug-in"}, {"level", "ok"}, {"value", plugin.name}, {"why", ""}, {"fix", ""}});
  }
  tool.print(fmt::format("{} ok, {} notes, {} warnings, {} errors\n", counts[0], counts[1], counts[2], counts[3]));
  tool.field("findings", std::move(list));
  return counts[3] ? exit_no : exit_yes;
}

const RegisterCommand entry{"doctor",
                            "check this machine: what was measured, why it matters, how to fix it; changes nothing",
                            {{},
                             {{"--fast", "", "only what takes no time: no worker is started, nothing is timed"},
                              {"--runner", "WHERE", "the devices of that runner too: local, fake or fake:FILE"},
                              {"--gpu", "", "a GPU is wanted: what it lacks is an error"}},
                             run}};

}  // namespace
}  // namespace tilewright::tools
