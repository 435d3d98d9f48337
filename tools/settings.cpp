#include "tools/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "costmodel/model.h"
#include "lowering/options.h"
#include "search/rules/rule.h"
#include "search/scheduler/scheduler.h"
#include "search/space.h"
#include "search/strategies/strategy.h"
#include "tools/campaign.h"
#include "tools/inputs.h"

namespace tilewright::tools {

namespace {

template <class T>
bool to_number(const std::string& text, T& out, T least) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least) return false;
  out = value;
  return true;
}

template <auto Member, int Least>
bool set_number(TuneSettings& s, const std::string& text) {
  using T = std::remove_reference_t<decltype(s.tuner.*Member)>;
  return to_number(text, s.tuner.*Member, static_cast<T>(Least));
}
template <auto Member>
std::string get_number(const TuneSettings& s) {
  return fmt::format("{}", s.tuner.*Member);
}
template <auto Member>
bool set_text(TuneSettings& s, const std::string& text) {
  s.tuner.*Member = text;
  return true;
}
template <auto Member>
std::string get_text(const TuneSettings& s) {
  return s.tuner.*Member;
}

template <auto Member, int Least>
Setting number(std::string name, std::string unit, std::string doc, bool limit = false) {
  return {std::move(name),
          std::move(doc),
          limit,
          get_number<Member>,
          set_number<Member, Least>,
          fmt::format("a whole number of at least {}", Least),
          std::move(unit)};
}
template <auto Member>
Setting text(std::string name, std::string doc) {
  return {std::move(name), std::move(doc), false, get_text<Member>, set_text<Member>, "text", ""};
}
template <class T>
std::vector<std::string> registered() {
  return Registry<T>::instance().names();
}
/// The name of something that registers.
template <auto Member, class T>
Setting name_of(std::string name, std::string doc) {
  Setting s = text<Member>(std::move(name), std::move(doc));
  s.names = registered<T>;
  return s;
}

std::string get_rules(const TuneSettings& s) { return fmt::format("{}", fmt::join(s.tuner.without_rules, ",")); }
bool set_rules(TuneSettings& s, const std::string& value) {
  s.tuner.without_rules.clear();
  std::istringstream in(value);
  for (std::string rule; std::getline(in, rule, ',');)
    if (!rule.empty()) s.tuner.without_rules.push_back(rule);
  return true;
}

Setting preset_setting() {
  Setting s =
      text<&TunerOptions::preset>("search.preset", "set of rules, mutators and defaults: tilewright or metaschedule");
  s.names = [] { return std::vector<std::string>{"tilewright", "metaschedule"}; };
  return s;
}

bool set_budget(TuneSettings& s, const std::string& value) {
  if (value == "none") return s.tuner.budget_s = 0, true;
  auto seconds = parse_duration(value);
  if (!seconds || *seconds <= 0) return false;
  s.tuner.budget_s = *seconds;
  return true;
}
std::string get_budget(const TuneSettings& s) {
  return s.tuner.budget_s > 0 ? fmt::format("{}s", s.tuner.budget_s) : "none";
}

bool set_until_no_gain(TuneSettings& s, const std::string& value) {
  s.tuner.until_no_gain = value == "true";
  return value == "true" || value == "false";
}

bool set_mode(TuneSettings& s, const std::string& value) {
  auto mode = parse_name<Mode>(value);
  if (!mode || *mode == Mode::unspecified) return false;
  s.tuner.mode = *mode;
  return true;
}

bool set_runner(TuneSettings& s, const std::string& value) {
  if (value != "local" && value != "fake" && !value.starts_with("fake:")) return false;
  s.runner = value;
  return true;
}

}  // namespace

std::optional<double> parse_duration(const std::string& text) {
  size_t digits = 0;
  while (digits < text.size() && (std::isdigit(static_cast<unsigned char>(text[digits])) || text[digits] == '.'))
    ++digits;
  if (digits == 0 || digits > 12) return std::nullopt;
  const std::string number = text.substr(0, digits), unit = text.substr(digits);
  char* end = nullptr;
  double value = std::strtod(number.c_str(), &end);
  if (*end != '\0') return std::nullopt;
  if (unit.empty() || unit == "s") return value;
  if (unit == "m") return value * 60;
  if (unit == "h") return value * 3600;
  return std::nullopt;
}

namespace {

/// Options of lowering and code generation (lowering/options.h); they are part of what results are kept under.
void add_lower_settings(std::vector<Setting>& settings) {
  using lowering::LowerOptions;
  static const std::map<std::string_view, const char*> docs{
      {"fp_contract", "a*b + c may become one fused operation"},
      {"keep_rounding", "16-bit and 8-bit floats are rounded after each operation of the program"},
      {"denormals", "denormal numbers: as IEEE 754 says, or flushed to zero"},
      {"math", "precision of exp, log and the like"},
      {"index", "width of index arithmetic"},
      {"async_copy", "of GPUs: asynchronous copies"},
      {"smem_reuse", "of GPUs: buffers in shared memory may overlap"},
      {"sync", "of GPUs: where barriers come from"},
      {"check_bounds", "every access is tested, and a kernel that fails a test returns an error"},
      {"max_code", "statements of a lowered program; larger ones are refused"}};
  for_each_named_field(LowerOptions(), [&](std::string_view field, const auto&) {
    const std::string key(field);
    settings.push_back({"lower." + key, docs.at(field), false,
                        [key](const TuneSettings& s) {
                          auto given = s.tuner.lower.find(key);
                          return given == s.tuner.lower.end() ? LowerOptions::fallback(key) : given->second;
                        },
                        [key](TuneSettings& s, const std::string& value) {
                          if (!LowerOptions::parse({{key, value}})) return false;
                          if (value == LowerOptions::fallback(key))
                            s.tuner.lower.erase(key);
                          else
                            s.tuner.lower[key] = value;
                          return true;
                        },
                        LowerOptions::expected(field), ""});
  });
}

}  // namespace

const std::vector<Setting>& all_settings() {
  using O = TunerOptions;
  static const std::vector<Setting> settings = [] {
    std::vector<Setting> all{
        number<&O::batch, 1>("search.batch", "candidates", "per round from 64 results on"),
        {"search.budget", "wall time of the whole run, as 90s, 20m, 2h, or none", true, get_budget, set_budget,
         "a time such as 90s, 20m or 2h, or none", "time"},
        {"search.baseline",
         "what times are compared with: default (the untuned program), previous (the best of the last "
         "run of the same task), or the file of a trace",
         true, [](const TuneSettings& s) { return s.baseline; },
         [](TuneSettings& s, const std::string& value) { return s.baseline = value, !value.empty(); },
         "default, previous or a file", ""},
        name_of<&O::cost_model, CostModelFactory>("search.cost_model", "cost model; empty: gbdt"),
        number<&O::finalists, 1>("search.finalists", "candidates", "that the final comparison measures again", true),
        number<&O::first_batch, 1>("search.first_batch", "candidates", "per round below 64 results"),
        number<&O::generations, 0>("search.generations", "generations", "of evolutionary search in a round"),
        number<&O::lag, -1>("search.lag", "rounds",
                            "that the search is ahead of the measurements, so that both go on at the same time; "
                            "-1: as the preset says (tilewright 1, metaschedule 0)"),
        number<&O::population, 0>("search.population", "candidates",
                                  "of one generation of evolutionary search; 0: 512 with metaschedule, else 256"),
        preset_setting(),
        name_of<&O::scheduler, TaskSchedulerFactory>("search.scheduler",
                                                     "which task gets the next round: gradient or round-robin"),
        number<&O::seed, 0>("search.seed", "", "of the search and of the inputs"),
        name_of<&O::space, SpaceFunction>("search.space", "registered design space; empty: the rules"),
        text<&O::space_file>("search.space_file", "name of the schedule file that is the design space"),
        text<&O::space_text>("search.space_text", "text of that file"),
        name_of<&O::strategy, StrategyFactory>("search.strategy", "search strategy; empty: as the preset says"),
        number<&O::threads, 1>("search.threads", "threads", "of the search; results do not depend on it"),
        number<&O::trials, 1>("search.trials", "trials", "measured candidates per task", true),
        {"search.until_no_gain", "a task ends after five rounds without 0.5 % of gain", true,
         [](const TuneSettings& s) { return std::string(s.tuner.until_no_gain ? "true" : "false"); }, set_until_no_gain,
         "true or false", ""},
        {"search.without_rules", "rules that are left out, separated by commas", false, get_rules, set_rules, "names",
         "", registered<ScheduleRule>},
        {"database.reuse",
         "results of the same workload, target and protocol that the database holds: reuse or remeasure", false,
         [](const TuneSettings& s) { return std::string(s.reuse ? "reuse" : "remeasure"); },
         [](TuneSettings& s, const std::string& text) {
           s.reuse = text == "reuse";
           return s.reuse || text == "remeasure";
         },
         "reuse or remeasure", ""},
        {"database.url", "where results are kept: a path, sqlite:PATH or memory:; empty: the default place", true,
         [](const TuneSettings& s) { return s.database; },
         [](TuneSettings& s, const std::string& text) { return s.database = text, true; }, "text", ""},
        {"database.warm_start", "traces to measure first: auto (from the database), none, or a run", false,
         [](const TuneSettings& s) { return s.warm_start; },
         [](TuneSettings& s, const std::string& text) { return s.warm_start = text, !text.empty(); },
         "auto, none or a run", ""},
        {"measure.mode", "caches while timing: cold, warm or cold_sustained", false,
         [](const TuneSettings& s) { return std::string(to_string(s.tuner.mode)); }, set_mode,
         "cold, warm or cold_sustained", ""},
        {"measure.runner", "where candidates are measured: local, fake or fake:FILE", true,
         [](const TuneSettings& s) { return s.runner; }, set_runner, "local, fake or fake:FILE", ""},
        number<&O::run_threads, 1>("measure.threads", "threads",
                                   "of the measured kernel; the target's cores unless given"),
    };
    add_lower_settings(all);
    return all;
  }();
  return settings;
}

const Setting* find_setting(std::string_view name) {
  for (const Setting& s : all_settings())
    if (s.name == name) return &s;
  return nullptr;
}

Status set_setting(TuneSettings& settings, const std::string& name, const std::string& value, std::string origin) {
  const Setting* setting = find_setting(name);
  if (!setting) {
    std::vector<std::string> names;
    for (const Setting& s : all_settings()) names.push_back(s.name);
    std::string near = did_you_mean(name, names);
    return refuse(Refusal(setting_unknown, fmt::format("no setting is called \"{}\"", name))
                      .with_help(near.empty() ? "tilewright show settings lists them"
                                              : fmt::format("did you mean \"{}\"?", near)));
  }
  if (!setting->set(settings, value))
    return refuse(setting_invalid, fmt::format("{}: expected {}, found \"{}\"", name, setting->expected, value));
  settings.origins[name] = std::move(origin);
  return {};
}

Status check_names(const TuneSettings& settings) {
  for (const Setting& s : all_settings()) {
    if (!s.names) continue;
    const std::vector<std::string> known = s.names();
    std::istringstream in(s.get(settings));
    for (std::string name; std::getline(in, name, ',');) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      auto origin = settings.origins.find(s.name);
      std::string near = did_you_mean(name, known);
      return refuse(
          Refusal(name_unknown,
                  fmt::format("{}: expected one of {}, found \"{}\"",
                              origin == settings.origins.end() ? s.name : origin->second,
                              known.empty() ? "no registered name" : fmt::format("{}", fmt::join(known, ", ")), name))
              .with_help(near.empty() ? fmt::format("`tilewright show settings` says what {} is", s.name)
                                      : fmt::format("did you mean \"{}\"?", near)));
    }
  }
  return {};
}

Status settings_from_environment(TuneSettings& settings) {
  for (const Setting& s : all_settings()) {
    std::string variable = "TILEWRIGHT_" + s.name;
    for (char& c : variable) c = c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (const char* value = std::getenv(variable.c_str()))
      TW_TRY_VOID(set_setting(settings, s.name, value, "environment " + variable));
  }
  return {};
}

Result<std::string> set_effort(TuneSettings& settings, const std::string& value, const std::string& origin) {
  // From a look (a minute for a small kernel) to a night; the gain stops most tasks long before the trials do.
  struct Effort {
    int trials, finalists;
    bool until_no_gain;
  };
  static constexpr Effort efforts[] = {
      {32, 4, true}, {96, 8, true}, {256, 8, true}, {1024, 8, true}, {4096, 16, false}};
  if (value.size() != 1 || value[0] < '1' || value[0] > '5')
    return refuse(setting_invalid, fmt::format("effort: expected 1 to 5, found \"{}\"", value));
  const Effort& e = efforts[value[0] - '1'];
  TW_TRY_VOID(set_setting(settings, "search.trials", fmt::format("{}", e.trials), origin));
  TW_TRY_VOID(set_setting(settings, "search.finalists", fmt::format("{}", e.finalists), origin));
  TW_TRY_VOID(set_setting(settings, "search.until_no_gain", e.until_no_gain ? "true" : "false", origin));
  return fmt::format("effort {} = trials {}, final {}{}", value, e.trials, e.finalists,
                     e.until_no_gain ? ", until-no-gain" : "");
}

std::vector<Diagnostic> settings_from_configuration(TuneSettings& settings, const std::string& given) {
  std::string file = given;
  if (file.empty()) {
    const char *base = std::getenv("XDG_CONFIG_HOME"), *home = std::getenv("HOME");
    if (base && *base)
      file = std::string(base) + "/tilewright/config.toml";
    else if (home && *home)
      file = std::string(home) + "/.config/tilewright/config.toml";
    std::error_code ec;
    if (file.empty() || !std::filesystem::is_regular_file(file, ec)) return {};
  }
  auto text = read_file(file);
  if (!text) return {text.error().diagnostic()};
  auto read = read_configuration(*text, file);
  if (!read) return read.error();
  std::vector<Diagnostic> errors;
  for (const CampaignSetting& s : *read) apply_setting(settings, s, errors);
  return errors;
}

std::vector<std::string> setting_groups() {
  std::vector<std::string> groups;
  for (const Setting& s : all_settings()) {
    std::string group = s.name.substr(0, s.name.find('.'));
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  return groups;
}

std::map<std::string, std::string> settings_as_text(const TuneSettings& settings) {
  std::map<std::string, std::string> out;
  for (const Setting& s : all_settings()) out[s.name] = s.get(settings);
  return out;
}

}  // namespace tilewright::tools
