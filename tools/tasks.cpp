#include "tools/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "support/component.h"
#include "tools/inputs.h"
#include "tools/measurable.h"
#include "workloads/operator.h"

namespace tilewright::tools {

namespace {

/// "gemm_512x512x512_float32" → "gemm 512x512x512 float32"; the operator's own underscores stay.
std::string label(const Workload& w) {
  std::string rest = w.name.starts_with(w.op + "_") ? w.name.substr(w.op.size() + 1) : "";
  std::replace(rest.begin(), rest.end(), '_', ' ');
  return rest.empty() ? w.name : w.op + " " + rest;
}

class Collector {
 public:
  Collector(Tool& tool, const TaskRequest& request, TuneSettings& settings)
      : tool_(tool), request_(request), settings_(settings) {}

  int collect() {
    targets_ = {tool_.globals().target};
    for (const std::string& op : request_.ops)
      if (int exit = add(make_workload(op), 1)) return exit;
    for (const std::string& file : request_.files)
      if (int exit = file.ends_with(".toml") ? campaign(file) : program(file, file, 1, request_.extents)) return exit;
    return exit_yes;
  }
  RequestedTasks take() { return std::move(out_); }

 private:
  int each_target(const std::function<void(const Target&)>& f) {
    for (const std::string& text : targets_) {
      auto target = parse_target(text);
      if (!target) return tool_.fail(target.error(), exit_usage);
      f(*target);
    }
    return exit_yes;
  }

  int add(const Result<Workload>& w, double weight) {
    if (!w) return tool_.fail(w.error(), exit_usage);
    if (out_.name.empty()) out_.name = slug(w->name);
    return each_target([&](const Target& target) {
      std::string name = label(*w);
      if (targets_.size() > 1) name += " " + target.name;
      out_.tasks.push_back(Task::make(name, w->program, target, w->flop, static_cast<double>(w->min_bytes), weight));
    });
  }

  int program(const std::string& path, const std::string& shown, double weight, const Extents& extents) {
    int exit = exit_yes;
    auto parsed = read_program(tool_, path, exit, Verified::yes, extents);
    if (!parsed) return exit;
    auto function = schedulable_function(*parsed->program);
    if (!function) return tool_.fail(function.error(), exit_usage);
    if (std::vector<Diagnostic> problems = check_measurable(**function, parsed->spans); !problems.empty())
      return tool_.fail(problems, exit_usage);
    std::string name = path == "-" ? "stdin" : std::filesystem::path(shown).stem().string();
    for (const auto& [extent, value] : extents) name += fmt::format(" {}={}", extent, value);
    if (out_.name.empty()) out_.name = slug(name);
    return each_target([&](const Target& target) {
      out_.tasks.push_back(
          Task::make(targets_.size() > 1 ? name + " " + target.name : name, parsed->program, target, 0, 0, weight));
    });
  }

  bool wanted(const CampaignTask& task) const {
    if (request_.only.empty()) return true;
    return std::any_of(request_.only.begin(), request_.only.end(), [&](const std::string& word) {
      return word == task.id || word == task.op ||
             std::find(task.tags.begin(), task.tags.end(), word) != task.tags.end();
    });
  }

  int campaign(const std::string& path) {
    auto text = read_file(path);
    if (!text) return tool_.fail(text.error(), exit_usage);
    auto read = read_campaign(*text, path);
    if (!read) return tool_.fail(read.error(), exit_usage);
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    for (const std::string& plugin : read->plugins)
      if (auto opened = open_plugin((folder / plugin).string()); !opened)
        return tool_.fail(opened.error(), exit_environment);
    std::vector<Diagnostic> errors;
    for (const CampaignSetting& s : read->settings) apply_setting(settings_, s, errors);
    if (!errors.empty()) return tool_.fail(errors, exit_usage);
    if (!read->targets.empty() && tool_.globals().target == "native") targets_ = read->targets;
    if (out_.name.empty())
      out_.name = slug(read->name.empty() ? std::filesystem::path(path).stem().string() : read->name);
    bool any = false;
    for (const CampaignTask& task : read->tasks) {
      if (!wanted(task)) continue;
      any = true;
      const size_t before = out_.tasks.size();
      int exit = task.op.empty() ? program((folder / task.file).string(), task.file, task.weight, task.extents)
                                 : from_operator(task);
      if (exit) return exit;
      for (size_t i = before; i < out_.tasks.size(); ++i) out_.tasks[i].trials = task.trials;
    }
    if (!any) return tool_.usage(fmt::format("--only: {} has no workload with that id, operator or tag", path));
    return exit_yes;
  }

  int from_operator(const CampaignTask& task) {
    Result<Workload> w = make_workload(task.op, task.parameters);
    if (w) return add(w, task.weight);
    Diagnostic d = w.error().diagnostic();
    if (!d.span.line) d.span = task.place;
    for (const auto& [name, place] : task.parameter_places)  // the parameter that the message names
      if (d.message.find("\"" + name + "\"") != std::string::npos ||
          d.message.find(" " + name + " ") != std::string::npos)
        d.span = place;
    return tool_.fail(std::vector<Diagnostic>{d}, exit_usage);
  }

  Tool& tool_;
  const TaskRequest& request_;
  TuneSettings& settings_;
  std::vector<std::string> targets_;
  RequestedTasks out_;
};

}  // namespace

std::string slug(const std::string& name) {
  std::string out;
  for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' ? c : '-';
  return out.substr(0, 60);
}

std::optional<RequestedTasks> read_tasks(Tool& tool, const TaskRequest& request, TuneSettings& settings, int& exit) {
  Collector collector(tool, request, settings);
  exit = collector.collect();
  if (exit) return std::nullopt;
  return collector.take();
}

}  // namespace tilewright::tools
