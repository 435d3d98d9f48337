// tilewright show: programs, traces, and everything that is registered.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "costmodel/features/schema.h"
#include "ir/print.h"
#include "schedule/primitive.h"
#include "schedule/target.h"
#include "support/json.h"
#include "tools/command.h"
#include "tools/inputs.h"

namespace tilewright::tools {
namespace {

/// Lists that are named after registries.
struct Listing {
  const char* object;
  const char* registry;
};
constexpr Listing listings[] = {{"targets", "target"},         {"rules", "rule"},           {"postprocs", "postproc"},
                                {"mutators", "mutator"},       {"strategies", "strategy"},  {"passes", "pass"},
                                {"cost-models", "cost model"}, {"operations", "operation"}, {"spaces", "space"}};

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

int show_program(Tool& tool, const std::string& path, const Arguments& arguments) {
  int exit = exit_yes;
  auto parsed = read_program(tool, path, exit);
  if (!parsed) return exit;
  auto text = print_as(*parsed->program, arguments.get("--dialect") == "classic" ? Dialect::classic : Dialect::current);
  if (!text) return tool.fail(text.error());
  tool.print(*text);
  tool.field("program", *text);
  return exit_yes;
}

int show_trace(Tool& tool, const std::string& path, const Arguments& arguments) {
  auto text = read_file(path);
  if (!text) return tool.fail(text.error(), exit_usage);
  auto trace = parse_trace(*text, path);
  if (!trace) return tool.fail(trace.error(), exit_for_text(trace.error()));
  std::string json = trace_to_json(*trace);
  tool.print(arguments.get("--as", "trace") == "json" ? json + "\n" : trace_to_python(*trace));
  tool.field("trace", Json::parse(json));
  return exit_yes;
}

std::vector<std::string> objects() {
  std::vector<std::string> names{"program", "trace", "target", "primitives", "refusals", "features"};
  for (const Listing& l : listings) names.emplace_back(l.object);
  std::sort(names.begin(), names.end());
  return names;
}

int run(Tool& tool, const Arguments& arguments) {
  std::string as = arguments.get("--as", "trace"), dialect = arguments.get("--dialect", "current");
  if (as != "trace" && as != "json") return tool.usage(fmt::format("--as: expected trace or json, found \"{}\"", as));
  if (dialect != "current" && dialect != "classic")
    return tool.usage(fmt::format("--dialect: expected current or classic, found \"{}\"", dialect));
  std::string object = arguments.get("OBJECT"), name = arguments.get("NAME");
  if (object == "program" || object == "trace") {
    if (name.empty()) return tool.usage(fmt::format("show {}: expected a file, found none", object));
    return object == "program" ? show_program(tool, name, arguments) : show_trace(tool, name, arguments);
  }
  if (object == "target") return show_target(tool, name.empty() ? tool.globals().target : name);
  if (!name.empty()) return tool.usage(fmt::format("show {} takes no further argument, found \"{}\"", object, name));
  if (object == "primitives") return show_primitives(tool);
  if (object == "refusals") return show_refusals(tool);
  if (object == "features") return show_features(tool);
  for (const Listing& l : listings)
    if (object == l.object) return show_registry(tool, object, l.registry);
  if (std::error_code ec; object == "-" || std::filesystem::is_regular_file(object, ec))
    return show_program(tool, object, arguments);
  std::string near = did_you_mean(object, objects());
  std::string list;
  for (const std::string& o : objects()) list += (list.empty() ? "" : ", ") + o;
  return tool.usage(fmt::format("nothing to show is called \"{}\", and there is no such file", object),
                    near.empty() ? "show one of: " + list : fmt::format("did you mean \"{}\"?", near));
}

const RegisterCommand entry{
    "show",
    "print a program, a trace, or a list of what is there",
    {{{"OBJECT",
       "program, trace, target, primitives, refusals, features, targets, rules, postprocs, mutators, strategies, "
       "passes, cost-models, operations, spaces; or a program file"},
      {"NAME", "the file of a program or trace, the text of a target", false}},
     {{"--as", "FORM", "of a trace: trace (Python, default) or json"},
      {"--dialect", "D", "of a program: current (default) or classic"}},
     run}};

}  // namespace
}  // namespace tilewright::tools
