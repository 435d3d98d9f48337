// tilewright show: programs, traces, and everything that is registered.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "codegen/codegen.h"
#include "costmodel/features/schema.h"
#include "costmodel/metrics.h"
#include "ir/operation.h"
#include "ir/print.h"
#include "schedule/intrinsics/intrinsic.h"
#include "schedule/primitive.h"
#include "schedule/target.h"
#include "search/space.h"
#include "support/component.h"
#include "support/json.h"
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/objects.h"
#include "tools/progress.h"
#include "tools/runner.h"
#include "tools/settings.h"
#include "workloads/operator.h"

namespace tilewright::tools {
namespace {

/// Lists that are named after registries.
struct Listing {
  const char* object;
  const char* registry;
};
constexpr Listing listings[] = {{"targets", "target"},         {"rules", "rule"},          {"postprocs", "postproc"},
                                {"mutators", "mutator"},       {"strategies", "strategy"}, {"passes", "pass"},
                                {"cost-models", "cost model"}, {"spaces", "space"}};

void table(Tool& tool, const std::vector<std::pair<std::string, std::string>>& rows) {
  size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.first.size());
  for (const auto& [name, doc] : rows)
    tool.print(doc.empty() ? name + "\n" : fmt::format("{:<{}}  {}\n", name, width, doc));
}

int show_registry(Tool& tool, const std::string& object, const std::string& registry) {
  std::vector<RegistryEntryInfo> all = all_registrations();
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::vector<std::pair<std::string, std::string>> rows;
  Json list = Json::array();
  for (const RegistryEntryInfo& e : all) {
    if (e.registry != registry) continue;
    rows.emplace_back(e.name, e.doc);
    list.push_back({{"name", e.name}, {"doc", e.doc}});
  }
  table(tool, rows);
  tool.field(object, std::move(list));
  return exit_yes;
}

std::string signature(const Primitive& p) {
  std::string out;
  auto add = [&](const ArgSpec& a) {
    out += fmt::format("{}{}{}", out.empty() ? "" : ", ", a.name, a.fallback ? "?" : "");
  };
  for (const ArgSpec& a : p.inputs) add(a);
  for (const ArgSpec& a : p.attrs) add(a);
  return fmt::format("{}({})", p.name, out);
}

int show_primitives(Tool& tool) {
  std::vector<std::pair<std::string, std::string>> rows;
  Json list = Json::array();
  const auto& entries = Registry<Primitive>::instance().entries();
  for (const Primitive* p : all_primitives()) {
    auto it = entries.find(p->name);
    std::string doc = it == entries.end() ? "" : it->second.doc;
    rows.emplace_back(signature(*p), doc);
    Json arguments = Json::array();
    for (const auto* specs : {&p->inputs, &p->attrs})
      for (const ArgSpec& a : *specs)
        arguments.push_back({{"name", a.name}, {"required", !a.fallback}, {"doc", a.doc}});
    list.push_back(
        {{"name", p->name}, {"kind", p->kind}, {"doc", doc}, {"samples", p->samples}, {"arguments", arguments}});
  }
  for (const auto& [name, doc] : rows) tool.print(fmt::format("{}\n    {}\n", name, doc));
  tool.field("primitives", std::move(list));
  return exit_yes;
}

int show_refusals(Tool& tool) {
  std::vector<std::pair<std::string, std::string>> rows;
  Json list = Json::array();
  for (const RefusalCode* code : all_refusal_codes()) {
    // The same code may be declared by several layers: one line.
    if (!rows.empty() && rows.back().first == code->text) continue;
    rows.emplace_back(code->text, code->doc);
    list.push_back({{"code", code->text}, {"doc", code->doc}});
  }
  table(tool, rows);
  tool.field("refusals", std::move(list));
  return exit_yes;
}

int show_features(Tool& tool) {
  auto schema = feature_schema("tvm164");
  if (!schema) return tool.fail(schema.error(), exit_bug);
  Json list = Json::array();
  for (const FeatureInfo& f : (*schema)->features) {
    tool.print(fmt::format("{:>3}  {:<36} {:<18} {}\n", f.slot, f.name, f.unit, f.doc));
    list.push_back({{"slot", f.slot}, {"name", f.name}, {"unit", f.unit}, {"doc", f.doc}});
  }
  tool.field("preset", (*schema)->preset);
  tool.field("features", std::move(list));
  return exit_yes;
}

int show_target(Tool& tool, const std::string& text) {
  auto target = parse_target(text);
  if (!target) return tool.fail(target.error(), exit_usage);
  const Target& t = *target;
  Json facts = {{"name", t.name}, {"text", t.text()}, {"arch", t.arch}, {"kind", t.is_cpu() ? "cpu" : "cuda"}};
  if (t.is_cpu()) {
    facts.update({{"cores", t.cores},
                  {"vector_bits", t.vector_bits},
                  {"vector_registers", t.vector_registers},
                  {"fma_pipes", t.fma_pipes},
                  {"fma_latency", t.fma_latency},
                  {"l1_bytes", t.l1_bytes},
                  {"l2_bytes", t.l2_bytes},
                  {"l3_bytes", t.l3_bytes}});
  } else {
    facts.update({{"sms", t.sms},
                  {"warp_size", t.warp_size},
                  {"max_threads_per_block", t.max_threads_per_block},
                  {"registers_per_sm", t.registers_per_sm},
                  {"shared_per_block", t.shared_per_block},
                  {"shared_per_sm", t.shared_per_sm},
                  {"l2_bytes", t.l2_bytes},
                  {"dram_bytes_per_s", t.dram_bytes_per_s}});
  }
  facts["features"] = t.features;
  for (const auto& [key, value] : facts.items())
    tool.print(fmt::format("{:<22} {}\n", key, value.is_string() ? value.get<std::string>() : value.dump()));
  tool.field("target", std::move(facts));
  return exit_yes;
}

/// A program file, or an operator's text "gemm:m=8,n=8,k=8".
std::optional<ProgramRef> workload_program(Tool& tool, const std::string& name, const Arguments& arguments, int& exit) {
  bool is_operator = names_operator(name);
  std::error_code ec;
  if (!is_operator && name != "-" && !std::filesystem::exists(name, ec)) {
    std::string near = did_you_mean(name, Registry<Operator>::instance().names());
    exit = tool.usage(
        fmt::format("no file and no operator is called \"{}\"", name),
        near.empty() ? "tilewright show ops lists the operators" : fmt::format("did you mean \"{}\"?", near));
    return std::nullopt;
  }
  if (!is_operator) {
    auto extents = read_extents(tool, arguments.all("--arg"));
    if (!extents) return exit = exit_usage, std::nullopt;
    auto parsed = read_program(tool, name, exit, Verified::yes, *extents);
    if (!parsed) return std::nullopt;
    return parsed->program;
  }
  auto workload = make_workload(name);
  if (workload) return workload->program;
  exit = tool.fail(workload.error(), exit_usage);
  return std::nullopt;
}

/// After the trace, if there is one. Nothing: it was reported.
std::optional<ProgramRef> scheduled(Tool& tool, const ProgramRef& program, const Arguments& arguments, int& exit) {
  std::string file = arguments.get("--trace");
  if (file.empty()) return program;
  auto text = read_file(file);
  if (!text) {
    exit = tool.fail(text.error(), exit_usage);
    return std::nullopt;
  }
  if (auto function = schedulable_function(*program); !function) {
    exit = tool.fail(function.error());
    return std::nullopt;
  }
  ScheduleOptions options;
  if (!use_target(tool, options)) return exit = exit_usage, std::nullopt;
  Applied applied = apply_trace_text(tool, *text, file, program, 0, options);
  if (applied.errors.empty()) return applied.schedule.program();
  exit = tool.fail(applied.errors, exit_for_text(applied.errors));
  return std::nullopt;
}

/// `lower`: options that the program was measured with.
int show_lowered(Tool& tool, const Program& program, const std::string& as, const std::string& target_text,
                 const std::map<std::string, std::string>& lower = {}) {
  auto target = parse_target(target_text);
  if (!target) return tool.fail(target.error(), exit_usage);
  const Function* function = program.main();
  if (!function) return tool.fail(schedulable_function(program).error());
  auto options = lower_options(tool.globals(), lower);
  if (!options) return tool.fail(options.error(), exit_usage);
  if (as != "lowered")
    if (Status generated = codegen::check_generated(*function, *target); !generated)
      return tool.fail(generated.error(), exit_environment);
  auto lowered = lowering::lower(*function, *target, *options);
  if (!lowered) return tool.fail(lowered.error());
  std::string text;
  if (as == "lowered") {
    text = print(*lowered->function);
  } else {
    codegen::CodegenOptions keep;
    keep.keep_llvm_ir = as == "llvm";
    keep.keep_assembly = as == "asm";
    auto compiled = codegen::compile(*lowered, *target, keep);
    if (!compiled)
      return tool.fail(compiled.error(), compiled.error().is(component_missing) ? exit_environment : exit_no);
    text = as == "llvm" ? compiled->llvm_ir : compiled->assembly;
  }
  tool.print(text);
  tool.field(as, text);
  return exit_yes;
}

int show_program(Tool& tool, const std::string& name, const Arguments& arguments) {
  int exit = exit_yes;
  auto program = workload_program(tool, name, arguments, exit);
  if (program) program = scheduled(tool, *program, arguments, exit);
  if (!program) return exit;
  std::string as = arguments.get("--as", "program");
  if (as != "program") return show_lowered(tool, **program, as, tool.globals().target);
  auto text = print_as(**program, arguments.get("--dialect") == "classic" ? Dialect::classic : Dialect::current);
  if (!text) return tool.fail(text.error());
  tool.print(*text);
  tool.field("program", *text);
  return exit_yes;
}

/// What a run from here would be set to. Nothing: it was reported.
std::optional<TuneSettings> settings_here(Tool& tool) {
  TuneSettings settings;
  std::vector<Diagnostic> errors = settings_from_configuration(settings, tool.globals().config);
  auto note = [&](const Status& status) {
    if (!status && errors.empty()) errors.push_back(status.error().diagnostic());
  };
  note(settings_from_environment(settings));
  for (const auto& [name, value] : tool.globals().settings) note(set_setting(settings, name, value, "--set"));
  note(check_names(settings));
  if (errors.empty()) return settings;
  tool.fail(errors, exit_usage);
  return std::nullopt;
}

/// A trace in the form that --as names.
Result<std::string> trace_as(const Trace& trace, const std::string& form) {
  if (form == "json") return trace_to_json(trace) + "\n";
  if (form != "tvm") return trace_to_python(trace);
  TW_TRY(std::string text, trace_to_tvm_json(trace));
  return text + "\n";
}

/// The sketches of a workload on a target, as traces without decisions; search.preset and search.without_rules say of
/// which rules.
int show_space(Tool& tool, const std::string& name, const Arguments& arguments) {
  int exit = exit_yes;
  auto program = workload_program(tool, name, arguments, exit);
  if (!program) return exit;
  auto target = parse_target(tool.globals().target);
  if (!target) return tool.fail(target.error(), exit_usage);
  Task task = Task::make(name, *program, *target);
  auto settings = settings_here(tool);
  if (!settings) return exit_usage;
  auto parts = parts_for(settings->tuner.preset, *target);
  if (!parts) return tool.fail(parts.error());
  for (const std::string& rule : settings->tuner.without_rules) std::erase(parts->rules, rule);
  auto space = Space::from_rules(task, *parts);
  if (!space) return tool.fail(space.error());
  Json list = Json::array();
  for (const Sketch& sketch : space->sketches()) {
    double size = space->size(task, sketch);
    auto text = trace_as(sketch.trace, arguments.get("--as"));
    if (!text) return tool.fail(text.error());
    tool.print(fmt::format("# {}: {} decisions, {:.4g} points\n", sketch.name, sketch.samplings.size(), size));
    tool.print(*text);
    list.push_back({{"name", sketch.name},
                    {"decisions", sketch.samplings.size()},
                    {"points", size},
                    {"trace", Json::parse(trace_to_json(sketch.trace))}});
  }
  tool.field("sketches", std::move(list));
  return exit_yes;
}

int show_trace(Tool& tool, const std::string& path, const Arguments& arguments) {
  auto text = read_file(path);
  if (!text) return tool.fail(text.error(), exit_usage);
  auto trace = parse_trace(*text, path);
  if (!trace) return tool.fail(trace.error(), exit_for_text(trace.error()));
  auto shown = trace_as(*trace, arguments.get("--as"));
  if (!shown) return tool.fail(shown.error());
  tool.print(*shown);
  tool.field("trace", Json::parse(trace_to_json(*trace)));
  return exit_yes;
}

/// A trial or a record: its trace, or what becomes of its program.
int show_subject(Tool& tool, const Subject& s, const Arguments& arguments) {
  std::string as = arguments.get("--as", "trace");
  if (as == "trace" || as == "json" || as == "tvm") {
    auto trace = trace_from_json(std::string_view(s.trace.empty() ? "[[],[]]" : s.trace));
    if (!trace) return tool.fail(trace.error());
    if (as == "trace")
      tool.print(fmt::format("# {}: {} on {}, {}{}\n", s.name, s.task, s.target.at("target"), to_string(s.status),
                             s.n ? ", " + nice_time(s.median_ns) : ""));
    auto shown = trace_as(*trace, as);
    if (!shown) return tool.fail(shown.error());
    tool.print(*shown);
    tool.field("trace", Json::parse(trace_to_json(*trace)));
    return exit_yes;
  }
  auto parsed = parse_program(s.program, s.name);
  if (!parsed) return tool.fail(parsed.error(), exit_usage);
  ProgramRef program = parsed->program;
  if (!s.trace.empty()) {
    Applied applied = apply_trace_text(tool, s.trace, s.name, program, 0, {});
    if (!applied.errors.empty()) return tool.fail(applied.errors, exit_for_text(applied.errors));
    program = applied.schedule.program();
  }
  if (as != "program") return show_lowered(tool, *program, as, s.target.at("target"), lower_options_of(s.target));
  auto text = print_as(*program, arguments.get("--dialect") == "classic" ? Dialect::classic : Dialect::current);
  if (!text) return tool.fail(text.error());
  tool.print(*text);
  tool.field("program", *text);
  return exit_yes;
}

/// A record, or a trial "RUN:N", "RUN:best", "RUN:best/TASK", "N".
bool names_subject(const std::string& object) {
  auto number = [](const std::string& s) {
    return !s.empty() && s.find_first_not_of("0123456789") == std::string::npos;
  };
  if (names_record(object) || number(object)) return true;
  size_t colon = object.rfind(':');
  if (colon == std::string::npos || names_operator(object)) return false;
  const std::string which = object.substr(colon + 1);
  return number(which) || which.starts_with("best") || find_run(object.substr(0, colon)).has_value();
}

int show_settings(Tool& tool) {
  auto found = settings_here(tool);
  if (!found) return exit_usage;
  const TuneSettings& settings = *found;
  const TuneSettings defaults;
  Json list = Json::array();
  auto shown = [](const std::string& value) { return value.empty() ? "-" : value; };
  tool.print(
      fmt::format("{:<22} {:<12} {:<12} {:<11} {:<16} {}\n", "setting", "value", "default", "unit", "origin", "doc"));
  for (const Setting& s : all_settings()) {
    std::string value = s.get(settings), fallback = s.get(defaults);
    auto origin = settings.origins.find(s.name);
    std::string from = origin == settings.origins.end() ? "default" : origin->second;
    tool.print(fmt::format("{:<22} {:<12} {:<12} {:<11} {:<16} {}\n", s.name, shown(value), shown(fallback),
                           shown(s.unit), from, s.doc));
    list.push_back({{"name", s.name},
                    {"value", value},
                    {"default", fallback},
                    {"unit", s.unit},
                    {"doc", s.doc},
                    {"origin", from}});
  }
  tool.field("settings", std::move(list));
  return exit_yes;
}

int show_metrics(Tool& tool) {
  Json list = Json::array();
  for (const auto& [name, metric] : Registry<ModelMetric>::instance().entries()) {
    const char* better = metric.value.higher_is_better ? "higher is better" : "lower is better";
    tool.print(fmt::format("{:<20} {:<10} {:<16} {}\n", name, metric.value.unit, better, metric.doc));
    list.push_back({{"name", name}, {"unit", metric.value.unit}, {"better", better}, {"doc", metric.doc}});
  }
  tool.field("metrics", std::move(list));
  return exit_yes;
}

/// What a Call may name: with `all`, mathematics too; else what stands for instructions of the hardware.
int show_operations(Tool& tool) {
  static constexpr const char* groups[] = {"math", "integer", "control", "pointer", "lanes", "extern_call", "hardware"};
  static constexpr const char* effects[] = {"pure", "reads", "opaque"};
  Json list = Json::array();
  for (const auto& [name, entry] : Registry<Operation>::instance().entries()) {
    const Operation& op = entry.value;
    const char* group = groups[static_cast<size_t>(op.group)];
    const char* effect = effects[static_cast<size_t>(op.effect)];
    std::string arguments = op.max_args < 0              ? fmt::format("{} or more", op.min_args)
                            : op.min_args == op.max_args ? fmt::format("{}", op.min_args)
                                                         : fmt::format("{} to {}", op.min_args, op.max_args);
    tool.print(fmt::format("T.{:<28} {:<11} {:<6} {:<10} {}\n", name, group, effect, arguments, entry.doc));
    list.push_back({{"name", name},
                    {"group", group},
                    {"effect", effect},
                    {"min_args", op.min_args},
                    {"max_args", op.max_args},
                    {"doc", entry.doc}});
  }
  tool.field("operations", std::move(list));
  return exit_yes;
}

int show_intrinsics(Tool& tool) {
  Json list = Json::array();
  for (const auto& [name, entry] : Registry<TensorIntrinsic>::instance().entries()) {
    tool.print(fmt::format("{:<24} {}\n{:<24} needs {}\n", name, entry.doc, "", entry.value.needs()));
    list.push_back({{"name", name}, {"doc", entry.doc}, {"features", entry.value.features}});
  }
  tool.field("intrinsics", std::move(list));
  return exit_yes;
}

/// Of every operator: what a kernel must move at least.
constexpr const char* kBytes = "every parameter once, in its stored type";

/// One line for every list of values that parameters may have.
std::string choices_of(const Operator& op) {
  std::vector<std::pair<std::vector<std::string>, std::string>> lists;
  for (const OperatorParameter& p : op.all_parameters()) {
    if (p.choices.empty()) continue;
    auto same = std::find_if(lists.begin(), lists.end(), [&](const auto& list) { return list.first == p.choices; });
    if (same == lists.end())
      lists.emplace_back(p.choices, p.name);
    else
      same->second += ", " + p.name;
  }
  std::string out;
  for (const auto& [values, names] : lists) out += fmt::format("    {}: {}\n", names, fmt::join(values, ", "));
  return out;
}

int show_ops(Tool& tool) {
  Json list = Json::array();
  for (const auto& [name, op] : Registry<Operator>::instance().entries()) {
    std::string signature;
    Json parameters = Json::array();
    for (const OperatorParameter& p : op.value.all_parameters()) {
      signature +=
          fmt::format("{}{}{}", signature.empty() ? "" : ",", p.name, p.fallback.empty() ? "" : "=" + p.fallback);
      parameters.push_back({{"name", p.name}, {"doc", p.doc}, {"default", p.fallback}, {"choices", p.choices}});
    }
    tool.print(fmt::format("{}:{}\n    {}\n{}    flop {}; bytes {}\n", name, signature, op.doc, choices_of(op.value),
                           op.value.flop_formula, kBytes));
    list.push_back({{"name", name},
                    {"doc", op.doc},
                    {"flop", op.value.flop_formula},
                    {"bytes", kBytes},
                    {"parameters", parameters}});
  }
  tool.field("ops", std::move(list));
  return exit_yes;
}

std::vector<std::string> objects() {
  std::vector<std::string> names{"ops",        "settings", "space",    "program", "trace",      "target",
                                 "primitives", "refusals", "features", "metrics", "intrinsics", "operations"};
  for (const Listing& l : listings) names.emplace_back(l.object);
  std::sort(names.begin(), names.end());
  return names;
}

/// The forms that --as may name.
const std::vector<std::string> kProgramForms{"program", "lowered", "llvm", "asm"}, kTraceForms{"trace", "json", "tvm"},
    kSubjectForms{"trace", "json", "tvm", "program", "lowered", "llvm", "asm"};

int check_form(Tool& tool, const Arguments& arguments, const std::vector<std::string>& forms) {
  std::string as = arguments.get("--as", forms[0]);
  if (std::find(forms.begin(), forms.end(), as) != forms.end()) return exit_yes;
  return tool.usage(fmt::format("--as: expected {}, found \"{}\"", fmt::join(forms, ", "), as));
}

int run(Tool& tool, const Arguments& arguments) {
  std::string dialect = arguments.get("--dialect", "current");
  if (dialect != "current" && dialect != "classic")
    return tool.usage(fmt::format("--dialect: expected current or classic, found \"{}\"", dialect));
  std::string object = arguments.get("OBJECT"), name = arguments.get("NAME", arguments.get("--op"));
  if (object == "program" || object == "trace" || object == "space") {
    if (int exit = check_form(tool, arguments, object == "program" ? kProgramForms : kTraceForms)) return exit;
    if (name.empty())
      return tool.usage(
          fmt::format("show {}: expected a file{}, found none", object, object == "trace" ? "" : " or an operator"));
    return object == "program" ? show_program(tool, name, arguments)
           : object == "trace" ? show_trace(tool, name, arguments)
                               : show_space(tool, name, arguments);
  }
  if (object == "target") return show_target(tool, name.empty() ? tool.globals().target : name);
  if (!name.empty()) return tool.usage(fmt::format("show {} takes no further argument, found \"{}\"", object, name));
  if (object == "primitives") return show_primitives(tool);
  if (object == "ops") return show_ops(tool);
  if (object == "settings") return show_settings(tool);
  if (object == "refusals") return show_refusals(tool);
  if (object == "features") return show_features(tool);
  if (object == "metrics") return show_metrics(tool);
  if (object == "intrinsics") return show_intrinsics(tool);
  if (object == "operations") return show_operations(tool);
  for (const Listing& l : listings)
    if (object == l.object) return show_registry(tool, object, l.registry);
  std::error_code ec;
  if (!std::filesystem::is_regular_file(object, ec) && names_subject(object)) {
    if (int exit = check_form(tool, arguments, kSubjectForms)) return exit;
    auto subject = find_subject(tool, object);
    return subject ? show_subject(tool, *subject, arguments)
                   : tool.fail(subject.error(), exit_of_name(subject.error()));
  }
  if (object == "-" || names_operator(object) || std::filesystem::is_regular_file(object, ec)) {
    if (int exit = check_form(tool, arguments, kProgramForms)) return exit;
    return show_program(tool, object, arguments);
  }
  std::vector<std::string> names = objects();
  std::string list = fmt::format("{}", fmt::join(names, ", "));
  for (const std::string& op : Registry<Operator>::instance().names()) names.push_back(op);
  std::string near = did_you_mean(object, names);
  return tool.usage(fmt::format("nothing to show is called \"{}\", and there is no such file", object),
                    near.empty() ? "show one of: " + list : fmt::format("did you mean \"{}\"?", near));
}

const RegisterCommand entry{
    "show",
    "print a program, a trace, or a list of what is there",
    {{{"OBJECT",
       "program FILE|OPERATOR, trace FILE, space FILE|OPERATOR, target [TEXT], ops, settings, primitives, refusals, "
       "features, metrics, intrinsics, operations, targets, rules, postprocs, mutators, strategies, passes, "
       "cost-models, spaces; or a FILE or OPERATOR by itself; or a trial (RUN:N, "
       "RUN:best) or record (r-...)"},
      {"NAME", "the file, operator (gemm:m=512,n=512,k=512) or target", false}},
     {{"--as", "FORM",
       "of a program: program (default), lowered, llvm or asm; of traces: trace (Python, default), json, "
       "or tvm (the JSON that TVM reads)"},
      {"--op", "NAME:K=V,...", "of a program or space: the operator, as tune takes it"},
      {"--arg", "NAME=N", "of a program file: value of a symbolic extent; may be repeated", 1, true},
      {"--trace", "FILE", "of a program: after this trace"},
      {"--dialect", "D", "of a program: current (default) or classic"}},
     run}};

}  // namespace
}  // namespace tilewright::tools
