// The only file that sees toml++.
#include "tools/campaign.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>

namespace tilewright::tools {

namespace {

TW_REFUSAL_CODE(campaign_malformed, "campaign-malformed",
                "a campaign or suite file is not TOML, or a value has the wrong kind");
TW_REFUSAL_CODE(campaign_key_unknown, "campaign-key-unknown", "a table of a campaign file has no key of that name");

class Reader {
 public:
  Reader(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  tl::expected<Campaign, std::vector<Diagnostic>> read(bool only_settings) {
    toml::table root;
    try {
      root = toml::parse(text_, file_);
    } catch (const toml::parse_error& e) {
      std::string what(e.description());
      if (!what.empty() && what[0] == 'E') what[0] = 'e';
      error(campaign_malformed, e.source(), std::move(what));
      return tl::unexpected(std::move(errors_));
    }
    const std::vector<std::string> groups = setting_groups();
    for (auto&& [key, node] : root) {
      if (std::find(groups.begin(), groups.end(), key.str()) != groups.end())
        read_group(std::string(key.str()), node);
      else if (only_settings)
        unknown(key, groups);
      else if (key == "campaign")
        read_settings(node);
      else if (key == "task")
        each(node, [&](const toml::table& t) { read_task(t); });
      else if (key == "workload")
        each(node, [&](const toml::table& t) { read_workload(t); });
      else if (key != "format" && key != "roofline" && key != "exhaustive") {
        std::vector<std::string> known{"campaign", "task", "workload"};
        known.insert(known.end(), groups.begin(), groups.end());
        unknown(key, known);
      }
    }
    if (!only_settings && errors_.empty() && out_.tasks.empty()) {
      Diagnostic d{campaign_malformed.text, "expected at least one [[task]] or [[workload]], found none", {}, {}, ""};
      d.span.file = file_;
      errors_.push_back(d);
    }
    if (!errors_.empty()) return tl::unexpected(std::move(errors_));
    return std::move(out_);
  }

 private:
  Span span(const toml::source_region& at) const {
    Span s{file_, static_cast<int>(at.begin.line), static_cast<int>(at.begin.column), 0, ""};
    s.text = source_line(text_, s.line);
    s.end_column = at.end.line == at.begin.line ? static_cast<int>(at.end.column) : static_cast<int>(s.text.size()) + 1;
    return s;
  }
  /// What stands there, as far as it is one line.
  std::string text_at(const toml::source_region& at) const {
    const Span s = span(at);
    return s.text.substr(s.column - 1, s.end_column - s.column);
  }
  void error(const RefusalCode& code, const toml::source_region& at, std::string message, std::string help = "") {
    errors_.push_back({code.text, std::move(message), span(at), {}, std::move(help)});
  }
  void unknown(const toml::key& key, const std::vector<std::string>& known) {
    std::string near = did_you_mean(key.str(), known);
    error(campaign_key_unknown, key.source(), fmt::format("no key \"{}\" is known here", key.str()),
          near.empty() ? "" : fmt::format("did you mean \"{}\"?", near));
  }

  template <class F>
  void each(const toml::node& node, F f) {
    const toml::array* rows = node.as_array();
    if (!rows) return error(campaign_malformed, node.source(), "expected an array of tables");
    for (const toml::node& row : *rows)
      if (const toml::table* t = row.as_table())
        f(*t);
      else
        error(campaign_malformed, row.source(), "expected a table");
  }

  /// A scalar as the text that flags and operators take.
  std::string scalar(const toml::node& node) {
    if (auto* s = node.as_string()) return s->get();
    if (auto* i = node.as_integer()) return fmt::format("{}", i->get());
    if (auto* f = node.as_floating_point()) return fmt::format("{}", f->get());
    if (auto* b = node.as_boolean()) return b->get() ? "true" : "false";
    error(campaign_malformed, node.source(), "expected a number, text or boolean");
    return "";
  }
  std::vector<std::string> list(const toml::node& node) {
    std::vector<std::string> out;
    if (const toml::array* items = node.as_array())
      for (const toml::node& item : *items) out.push_back(scalar(item));
    else
      out.push_back(scalar(node));
    return out;
  }

  /// Calls per job.
  double weight(const toml::node& node) {
    std::optional<double> value = node.is_number() ? node.value<double>() : std::nullopt;
    if (value && *value > 0 && std::isfinite(*value)) return *value;
    error(campaign_malformed, node.source(), "weight: expected a number above 0, found " + text_at(node.source()));
    return 1;
  }

  int64_t trials(const toml::node& node) {
    if (node.is_integer() && node.value_or(int64_t{0}) >= 1) return node.value_or(int64_t{0});
    error(campaign_malformed, node.source(),
          "trials: expected a whole number of at least 1, found " + text_at(node.source()));
    return 0;
  }

  void setting(std::string name, const toml::key& key, const toml::node& value) {
    Span place = span(key.source());
    Span end = span(value.source());
    if (end.line == place.line) place.end_column = end.end_column;
    out_.settings.push_back({std::move(name), scalar(value), place});
  }
  void read_settings(const toml::node& node) {
    const toml::table* t = node.as_table();
    if (!t) return error(campaign_malformed, node.source(), "expected a table");
    static const std::vector<std::pair<std::string, std::string>> shortcuts{{"seed", "search.seed"},
                                                                            {"budget", "search.budget"},
                                                                            {"trials", "search.trials"},
                                                                            {"effort", "effort"},
                                                                            {"until-no-gain", "search.until_no_gain"},
                                                                            {"runner", "measure.runner"},
                                                                            {"strategy", "search.strategy"},
                                                                            {"cost-model", "search.cost_model"},
                                                                            {"baseline", "search.baseline"},
                                                                            {"database", "database.url"}};
    for (auto&& [key, value] : *t) {
      auto shortcut = std::find_if(shortcuts.begin(), shortcuts.end(), [&](const auto& s) { return key == s.first; });
      if (key == "name")
        out_.name = scalar(value);
      else if (key == "target")
        out_.targets = list(value);
      else if (key == "plugins")
        out_.plugins = list(value);
      else if (shortcut != shortcuts.end())
        setting(shortcut->second, key, value);
      else {
        std::vector<std::string> known{"name", "target", "plugins"};
        for (const auto& [name, setting] : shortcuts) known.push_back(name);
        unknown(key, known);
      }
    }
  }
  void read_group(const std::string& group, const toml::node& node) {
    const toml::table* t = node.as_table();
    if (!t) return error(campaign_malformed, node.source(), "expected a table");
    for (auto&& [key, value] : *t) setting(fmt::format("{}.{}", group, key.str()), key, value);
  }

  void read_workload(const toml::table& t) {
    CampaignTask task;
    task.place = span(t.source());
    for (auto&& [key, value] : t) {
      if (key == "id")
        task.id = scalar(value);
      else if (key == "op")
        task.op = scalar(value);
      else if (key == "tags")
        task.tags = list(value);
      else if (key == "weight")
        task.weight = weight(value);
      else if (key == "dims" && value.is_table())
        for (auto&& [name, x] : *value.as_table()) {
          task.parameters.emplace_back(name.str(), scalar(x));
          task.parameter_places[std::string(name.str())] = span(name.source());
        }
      else if (key == "layout" || key == "weight_layout" || key == "dtype" || key == "dtype_b" || key == "acc" ||
               key == "out")
        task.parameters.emplace_back(key.str(), scalar(value));
    }
    if (task.op.empty()) return error(campaign_malformed, t.source(), "a workload needs op, found none");
    out_.tasks.push_back(std::move(task));
  }

  /// The values of one parameter of a grid: at least one, none twice.
  std::vector<std::string> grid_values(const std::string& name, const toml::node& node) {
    std::vector<std::string> values = list(node);
    if (values.empty())
      error(campaign_malformed, node.source(), fmt::format("grid: expected at least one value for {}, found []", name),
            fmt::format("leave {} out to take its default, if it has one", name));
    for (size_t i = 0; i < values.size(); ++i)
      if (std::find(values.begin(), values.begin() + static_cast<int64_t>(i), values[i]) !=
          values.begin() + static_cast<int64_t>(i))
        error(campaign_malformed, node.source(),
              fmt::format("grid: expected each value of {} once, found {} twice", name, values[i]));
    return values;
  }

  void read_task(const toml::table& t) {
    CampaignTask task;
    task.place = span(t.source());
    const toml::table* grid = nullptr;
    for (auto&& [key, value] : t) {
      if (key == "op")
        task.op = scalar(value);
      else if (key == "file")
        task.file = scalar(value);
      else if (key == "tags")
        task.tags = list(value);
      else if (key == "weight")
        task.weight = weight(value);
      else if (key == "trials")
        task.trials = trials(value);
      else if (key == "args" && value.is_table())
        for (auto&& [name, x] : *value.as_table())
          if (x.is_integer() && x.value_or(int64_t{0}) >= 1)
            task.extents[std::string(name.str())] = x.value_or(int64_t{0});
          else
            error(campaign_malformed, x.source(), "args: expected a whole number of at least 1");
      else if (key == "args")
        error(campaign_malformed, value.source(), "args: expected a table such as { n = 4096 }");
      else if (key == "grid" && value.is_table())
        grid = value.as_table();
      else if (key == "grid")
        error(campaign_malformed, value.source(), "grid: expected a table such as { m = [1, 16], n = 4096 }");
      else
        unknown(key, {"op", "file", "grid", "args", "weight", "trials", "tags"});
    }
    if (task.op.empty() == task.file.empty())
      return error(campaign_malformed, t.source(),
                   fmt::format("a task needs one of op and file, found {}", task.op.empty() ? "none" : "both"));
    if (!task.extents.empty() && task.file.empty())
      return error(campaign_malformed, t.source(), "args belongs to a file; an operator takes its sizes from grid");
    if (grid && task.op.empty())
      return error(campaign_malformed, grid->source(), "grid belongs to an op, not to a file");
    std::vector<CampaignTask> product{task};
    if (grid)
      for (auto&& [name, value] : *grid) {
        for (CampaignTask& base : product) base.parameter_places[std::string(name.str())] = span(name.source());
        std::vector<CampaignTask> next;
        const std::vector<std::string> values = grid_values(std::string(name.str()), value);
        for (const CampaignTask& base : product)
          for (const std::string& x : values) {
            next.push_back(base);
            next.back().parameters.emplace_back(name.str(), x);
          }
        product = std::move(next);
      }
    for (CampaignTask& x : product) out_.tasks.push_back(std::move(x));
  }

  const std::string &text_, &file_;
  Campaign out_;
  std::vector<Diagnostic> errors_;
};

}  // namespace

tl::expected<Campaign, std::vector<Diagnostic>> read_campaign(const std::string& text, const std::string& file) {
  return Reader(text, file).read(false);
}

tl::expected<std::vector<CampaignSetting>, std::vector<Diagnostic>> read_configuration(const std::string& text,
                                                                                       const std::string& file) {
  auto read = Reader(text, file).read(true);
  if (!read) return tl::unexpected(read.error());
  return std::move(read->settings);
}

void apply_setting(TuneSettings& settings, const CampaignSetting& s, std::vector<Diagnostic>& errors) {
  std::string origin = fmt::format("{}:{}", s.place.file, s.place.line);
  Status set = s.name == "effort" ? set_effort(settings, s.value, origin).map([](const std::string&) {})
                                  : set_setting(settings, s.name, s.value, origin);
  if (set) return;
  errors.push_back(set.error().diagnostic());
  errors.back().span = s.place;
}

}  // namespace tilewright::tools
