// tilewright opt: text in, text out. Applies a trace or passes to a program and prints the result; the driver for
// goldens and bug reports.
#include <fmt/format.h>

#include <fstream>
#include <span>
#include <sstream>

#include "ir/analysis/dependences.h"
#include "ir/equal.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "lowering/pipeline.h"
#include "schedule/target.h"
#include "support/append_file.h"
#include "support/json.h"
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/text_diff.h"

namespace tilewright::tools {
namespace {

TW_REFUSAL_CODE(step_breaks_program, "step-breaks-program", "a step of a trace left a program that is not well-formed");

int compare_programs(Tool& tool, const std::string& first, const std::string& second) {
  int exit = exit_yes;
  auto a = read_program(tool, first, exit, Verified::no);
  if (!a) return exit;
  auto b = read_program(tool, second, exit, Verified::no);
  if (!b) return exit;
  Difference difference;
  bool equal = structural_equal(*a->program, *b->program, &difference);
  tool.field("equal", equal);
  if (equal) return exit_yes;
  auto place = [](const std::string& file, const SourceMap& spans, const void* node) {
    Span at = spans.find(node);
    return at.line ? fmt::format("{}:{}:{}", file, at.line, at.column) : file;
  };
  std::string at_a = place(first, a->spans, difference.a), at_b = place(second, b->spans, difference.b);
  tool.field("difference", Json{{"a", at_a}, {"b", at_b}, {"what", difference.what}});
  tool.print(fmt::format("{} {}: {}\n", at_a, at_b, difference.what));
  return exit_no;
}

const char* iter_type_name(IterType type) {
  switch (type) {
    case IterType::spatial:
      return "spatial";
    case IterType::reduction:
      return "reduction";
    case IterType::scan:
      return "scan";
    case IterType::opaque:
      return "opaque";
  }
  TW_UNREACHABLE();
}

/// The properties of a block that primitives ask for, one a line: "name: yes" or "name: no (why)".
int check_block(Tool& tool, const Function& function, const std::string& name) {
  TreeIndex tree(function.body);
  std::vector<Place> places = tree.blocks_named(name);
  if (places.empty()) {
    std::vector<std::string> names;
    for (Place p : tree.blocks()) names.push_back(tree.block(p)->name);
    std::string near = did_you_mean(name, names);
    Refusal missing(not_found, fmt::format("function {} has no block \"{}\"", function.name, name));
    return tool.fail(near.empty() ? missing : missing.with_help(fmt::format("did you mean \"{}\"?", near)));
  }
  Json blocks = Json::array();
  for (Place p : places) {
    Json iters = Json::object();
    std::string list;
    for (const Iter& iter : tree.block(p)->iters) {
      iters[iter.var->name] = iter_type_name(iter.type);
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", iter.var->name, iter_type_name(iter.type));
    }
    Json row = {{"block", name}, {"iters", iters}};
    tool.print(fmt::format("block \"{}\"\n  iters: {}\n", name, list.empty() ? "none" : list));
    if (tree.enclosing_block(p) != kNoPlace) {
      BlockScope scope(tree, tree.enclosing_block(p));
      auto say = [&](const char* property, const std::optional<Violation>& violation) {
        row[property] = violation ? Json(describe(*violation, tree)) : Json(true);
        tool.print(violation ? fmt::format("  {}: no ({})\n", property, describe(*violation, tree))
                             : fmt::format("  {}: yes\n", property));
      };
      auto flag = [&](const char* property, bool holds) {
        row[property] = holds;
        tool.print(fmt::format("  {}: {}\n", property, holds ? "yes" : "no"));
      };
      flag("affine_binding", scope.affine_binding(p));
      flag("region_cover", scope.region_cover(p));
      say("stage_pipeline", scope.check_stage_pipeline());
      say("complete", scope.check_complete(p));
      say("reduction", scope.check_reduction(p));
    }
    blocks.push_back(std::move(row));
  }
  tool.field("blocks", std::move(blocks));
  return exit_yes;
}

std::vector<std::string> split_commas(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');)
    if (!part.empty()) out.push_back(part);
  return out;
}

/// --verify-each and --print-changed: looks at the program after every step of a trace and every pass.
class Watcher {
 public:
  Watcher(Tool& tool, const Arguments& arguments, const Program& start)
      : tool_(tool),
        verify_(arguments.has("--verify-each")),
        changes_(arguments.has("--print-changed")),
        before_(print(start)) {}

  bool active() const { return verify_ || changes_; }
  /// False: the program is not well-formed, which is a bug of that step; it has been reported.
  bool after(const std::string& step, const Program& program, bool has_blocks) {
    std::string now = print(program);
    if (changes_ && now != before_) tool_.say(fmt::format("# after {}\n{}", step, line_diff(before_, now)));
    before_ = std::move(now);
    // The verifier knows programs with blocks; after lowering has opened them other rules hold.
    if (!verify_ || !has_blocks) return true;
    std::vector<Diagnostic> errors = verify(program);
    if (errors.empty()) return true;
    tool_.fail(errors);
    tool_.fail(Refusal(step_breaks_program, fmt::format("the program is not well-formed after {}", step))
                   .with_help("please report this with the program and the trace"));
    return false;
  }

 private:
  Tool& tool_;
  bool verify_, changes_;
  std::string before_;
};

/// Goes through the applied trace again, one instruction at a time.
bool watch_trace(Watcher& watcher, const Trace& trace, const ProgramRef& program, const ScheduleOptions& options) {
  if (!watcher.active()) return true;
  Schedule schedule(program, 0, options);
  for (size_t i = 0; i < trace.instructions.size(); ++i) {
    if (!schedule.apply(trace.instructions[i], true)) return true;  // reported by whoever applied it first
    if (!watcher.after(fmt::format("step {}: {}", i, trace_line(trace, i)), *schedule.program(), true)) return false;
  }
  return true;
}

int run_passes(Tool& tool, ProgramRef& program, const std::string& names, Watcher& watcher) {
  auto target = parse_target(tool.globals().target);
  if (!target) return tool.fail(target.error(), exit_usage);
  auto options = lower_options(tool.globals());
  if (!options) return tool.fail(options.error(), exit_usage);
  auto function = schedulable_function(*program);
  const Function* chosen = function ? *function : program->main();
  if (!chosen) return tool.fail(function.error());
  std::vector<std::string> list = split_commas(names);
  for (size_t n = watcher.active() ? 1 : list.size(); n <= list.size(); ++n) {
    std::vector<std::string> notes;
    auto result = lowering::run_passes(*chosen, std::span(list).first(n), {*target, *options, &notes});
    if (!result) return tool.fail(result.error());
    ProgramRef lowered = with_function(*program, *result);
    if (watcher.active() && !watcher.after("pass " + list[n - 1], *lowered, false)) return exit_bug;
    if (n < list.size()) continue;
    for (const std::string& note : notes) tool.say(fmt::format("note: {}\n", note));
    program = lowered;
  }
  return exit_yes;
}

int emit(Tool& tool, const Program& program, const Trace& trace, const std::string& what, Dialect dialect) {
  auto text = print_as(program, dialect);
  if (!text) return tool.fail(text.error());
  std::string json = trace_to_json(trace);
  tool.field("program", *text);
  tool.field("trace", Json::parse(json));
  if (what == "program") tool.print(*text);
  if (what == "trace") tool.print(trace_to_python(trace));
  if (what == "json") tool.print(json + "\n");
  return exit_yes;
}

int run(Tool& tool, const Arguments& arguments) {
  if (auto pair = arguments.all("--equal"); !pair.empty()) return compare_programs(tool, pair[0], pair[1]);
  if (!arguments.has("FILE"))
    return tool.usage("expected a program file (or - for standard input), found none",
                      "tilewright opt --help says what it takes");
  std::string what = arguments.get("--emit", "program"), dialect = arguments.get("--dialect", "current");
  if (what != "program" && what != "trace" && what != "json")
    return tool.usage(fmt::format("--emit: expected program, trace or json, found \"{}\"", what));
  if (dialect != "current" && dialect != "classic")
    return tool.usage(fmt::format("--dialect: expected current or classic, found \"{}\"", dialect));
  std::string mode = arguments.get("--mode", "ours");
  if (mode != "ours" && mode != "tvm" && mode != "strict")
    return tool.usage(fmt::format("--mode: expected ours, tvm or strict, found \"{}\"", mode));
  if (arguments.has("--update") && arguments.get("FILE") == "-")
    return tool.usage("--update writes FILE, and standard input is none");
  auto seed = read_number(tool, "--seed", arguments.get("--seed", "0"));
  if (!seed) return exit_usage;

  int exit = exit_yes;
  auto parsed = read_program(tool, arguments.get("FILE"), exit);
  if (!parsed) return exit;
  ProgramRef program = parsed->program;
  Watcher watcher(tool, arguments, *program);
  Trace trace;
  std::string trace_file = arguments.get("--trace", arguments.get("--schedule"));
  if (!trace_file.empty()) {
    auto text = read_file(trace_file);
    if (!text) return tool.fail(text.error(), exit_usage);
    if (auto function = schedulable_function(*program); !function) return tool.fail(function.error());
    ScheduleOptions options;
    if (!use_target(tool, options)) return exit_usage;
    options.tvm_mode = mode == "tvm";
    if (options.tvm_mode) options.repair = RepairMode::tvm;
    if (mode == "strict") options.repair = RepairMode::refuse;
    Applied applied = apply_trace_text(tool, *text, trace_file, program, *seed, options);
    if (!applied.errors.empty()) {
      if (applied.refused_at) tool.field("refused_at", *applied.refused_at);
      return tool.fail(applied.errors, exit_for_text(applied.errors));
    }
    if (!watch_trace(watcher, applied.schedule.trace(), program, options)) return exit_bug;
    program = applied.schedule.program();
    trace = applied.schedule.trace();
  }
  if (arguments.has("--pass"))
    if (int failed = run_passes(tool, program, arguments.get("--pass"), watcher)) return failed;
  if (arguments.has("--check-block")) {
    const Function* function = program->main();
    if (!function) return tool.fail(schedulable_function(*program).error());
    return check_block(tool, *function, arguments.get("--check-block"));
  }
  if (arguments.has("--update")) {
    std::string file = arguments.get("FILE");
    auto text = print_as(*program, dialect == "classic" ? Dialect::classic : Dialect::current);
    if (!text) return tool.fail(text.error());
    std::ofstream out(file, std::ios::binary);
    out << *text;
    if (!out.flush())
      return tool.fail(Refusal(file_write_failed, fmt::format("cannot write {}", file)), exit_environment);
    tool.field("updated", file);
    return exit_yes;
  }
  return emit(tool, *program, trace, what, dialect == "classic" ? Dialect::classic : Dialect::current);
}

const RegisterCommand entry{
    "opt",
    "apply a trace or lowering passes to a program and print the result",
    {{{"FILE", "program text; - reads standard input", false}},
     {{"--trace", "FILE", "apply this trace (JSON or Python) or schedule (plain calls)"},
      {"--schedule", "FILE", "the same as --trace"},
      {"--pass", "A,B", "then run these lowering passes"},
      {"--emit", "WHAT", "program (default), trace (Python) or json (trace as JSON)"},
      {"--dialect", "D", "current (default) or classic: the older names of constructs"},
      {"--seed", "N", "for decisions that the trace leaves open (default 0)"},
      {"--mode", "M", "decisions that do not fit are repaired as ours (default), as tvm does, or strict: refused"},
      {"--equal", "A B", "compare two programs up to names: exit 0, or 1 with the first difference", 2},
      {"--check-block", "NAME", "print the properties of a block"},
      {"--verify-each", "", "check the program after every step of the trace (exit 4 if a step breaks it)"},
      {"--print-changed", "", "print on stderr what every step and pass changed"},
      {"--update", "", "write the result to FILE instead of printing it"}},
     run}};

}  // namespace
}  // namespace tilewright::tools
