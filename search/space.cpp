#include "search/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/equal.h"
#include "schedule/primitive.h"
#include "schedule/sampling.h"
#include "search/mutators/mutator.h"

namespace tilewright {

namespace {

bool from_plugin(const std::string& name) { return name.find('.') != std::string::npos; }

/// Opening a plug-in is asking for it: its parts join the preset.
void add_plugin_parts(SpaceParts& p) {
  for (const auto& [name, rule] : Registry<ScheduleRule>::instance().entries())
    if (from_plugin(name)) p.rules.insert(std::find(p.rules.begin(), p.rules.end(), rule.value.before), name);
  for (const auto& [name, postproc] : Registry<Postproc>::instance().entries())
    if (from_plugin(name)) p.postprocs.push_back(name);
  for (const auto& [name, mutator] : Registry<Mutator>::instance().entries())
    if (from_plugin(name)) p.mutators.emplace_back(name, mutator.value.weight);
}

}  // namespace

Result<SpaceParts> parts_for(const std::string& preset, const Target& target) {
  if (preset != "tilewright" && preset != "metaschedule") {
    std::string hint = did_you_mean(preset, {"tilewright", "metaschedule"});
    Refusal r(preset_unknown,
              fmt::format("no search preset is called \"{}\"; there are tilewright and metaschedule", preset));
    return refuse(hint.empty() ? r : r.with_help(fmt::format("did you mean \"{}\"?", hint)));
  }
  SpaceParts p;
  p.rules = {"apply_custom_rule",
             "inline_constant_scalars",
             "auto_inline",
             "add_rfactor",
             "multi_level_tiling",
             "parallelize_vectorize_unroll",
             "random_compute_location"};
  if (preset == "tilewright") {
    // Before add_rfactor, which leaves re-associated reductions alone.
    p.rules.insert(p.rules.begin() + 3, {"row_fusion", "reassociate_reduction", "packed_tiling"});
    p.rules.insert(p.rules.begin() + 1, "one_core");
  }
  if (preset == "metaschedule") {  // one set, by what the target has
    const char* tiling = target.has("avx512vnni")                          ? "multi_level_tiling_with_vnni"
                         : target.has("avx512f") && target.has("avx512bw") ? "multi_level_tiling_with_avx512"
                                                                           : nullptr;
    if (tiling) p.rules.insert(std::find(p.rules.begin(), p.rules.end(), "multi_level_tiling"), tiling);
  }
  p.postprocs = {"disallow_dynamic_loop", "rewrite_parallel_vectorize_unroll", "rewrite_reduction_block",
                 "rewrite_tensorize", "rewrite_layout"};
  p.mutators = {{"tile_size", 0.9}, {"compute_location", 0.05}, {"unroll", 0.03}, {"parallel", 0.02}};
  if (preset == "metaschedule") p.max_sketches = 0;
  if (preset == "tilewright")
    p.mutators = {{"tile_size", 0.75}, {"compute_location", 0.05}, {"categorical", 0.18}, {"parallel", 0.02}};
  add_plugin_parts(p);
  return p;
}

namespace {

/// Blocks in post order (a block after those inside it).
void collect_post_order(const TreeIndex& tree, Place p, std::vector<std::string>& names) {
  for (Place child : tree.child_blocks(p)) collect_post_order(tree, child, names);
  names.push_back(tree.block(p)->name);
}

/// At most `most` of them, evenly spread: neighbours differ least.
void thin_out(std::vector<Schedule>& schedules, size_t most) {
  const size_t n = schedules.size();
  if (most == 0 || n <= most) return;
  for (size_t i = 0; i < most; ++i) schedules[i] = schedules[i * n / most];
  schedules.resize(most, schedules.front());
}

}  // namespace

Result<Space> Space::from_rules(const Task& task, const SpaceParts& parts) {
  Space space;
  space.parts_ = parts;
  Schedule start(task.program, task.key);
  std::vector<std::string> names;
  collect_post_order(start.state().tree(), 0, names);
  std::vector<BlockRV> blocks;
  for (const std::string& name : names) {
    auto block = start.get_sblock(name, start.function().name);
    if (!block) return refuse(block.error());
    blocks.push_back(*block);
  }
  RuleContext context{task.target};
  std::vector<Schedule> schedules{start};
  size_t most_made = 0;
  std::set<std::string> failing;
  // A bug in a rule costs its effect on one block, never the task.
  auto apply = [&](const std::string& name, const ScheduleRule& rule, const Schedule& s, BlockRV block) {
    try {
      return rule.apply(s, block, context);
    } catch (const std::exception& bug) {
      if (failing.insert(name).second)
        space.warnings_.push_back(Refusal(rule_fails, fmt::format("rule {}: {}", name, bug.what()))
                                      .with_help(fmt::format("leave it out with --no-rule {}", name)));
      return std::vector<Schedule>{s};
    }
  };
  for (const std::string& rule_name : parts.rules) {
    const ScheduleRule* rule = Registry<ScheduleRule>::instance().find(rule_name);
    TW_CHECK(rule, "rule {} is not registered", rule_name);
    std::vector<Schedule> next;
    // Depth first, last block first (root, then consumers before producers); results in reverse, as the reference
    // numbers them.
    struct Item {
      Schedule schedule;
      size_t left;
    };
    std::vector<Item> stack;
    for (const Schedule& s : schedules) stack.push_back({s, blocks.size()});
    while (!stack.empty()) {
      Item item = std::move(stack.back());
      stack.pop_back();
      if (item.left == 0) {
        next.push_back(std::move(item.schedule));
        continue;
      }
      BlockRV block = blocks[item.left - 1];
      auto alive = item.schedule.block(block);
      bool custom = alive && (*alive)->annotations.count("schedule_rule") > 0;
      if (!alive || (custom && rule_name != "apply_custom_rule")) {
        stack.push_back({std::move(item.schedule), item.left - 1});
        continue;
      }
      for (Schedule& result : apply(rule_name, *rule, item.schedule, block))
        stack.push_back({std::move(result), item.left - 1});
    }
    schedules = std::move(next);
    most_made = std::max(most_made, schedules.size());
    thin_out(schedules, parts.max_sketches);  // after every rule: what rules make multiplies
  }
  for (const Schedule& s : schedules) TW_TRY_VOID(space.add_sketch(without_decisions(s.trace()), ""));
  if (parts.max_sketches > 0 && most_made > parts.max_sketches)
    space.warnings_.push_back(
        Refusal(too_many_sketches, fmt::format("the rules made {} sketches or more; {} of them, evenly spread, are "
                                               "searched",
                                               most_made, space.sketches_.size()))
            .with_help("narrow the space with --no-rule, or write one with --space"));
  return space;
}

namespace {

/// Where `meta_schedule.parallel` is set to a number above 0.
std::optional<size_t> find_parallel_limit(const Trace& trace) {
  for (size_t i = 0; i < trace.instructions.size(); ++i) {
    const Instruction& x = trace.instructions[i];
    if (x.kind->name != "annotate") continue;
    auto* key = x.attrs[0].get<std::string>();
    auto* value = x.inputs[1].get<int64_t>();
    if (key && *key == "meta_schedule.parallel" && value && *value > 0) return i;
  }
  return std::nullopt;
}

TraceValue& parallel_limit(Trace& trace, const Sketch& sketch) {
  return trace.instructions[*sketch.parallel_limit].inputs[1];
}

}  // namespace

Status Space::add_sketch(const Trace& trace, std::string name) {
  Sketch sketch;
  sketch.trace = renumber(simplify(trace));
  if (name.empty()) sketch.parallel_limit = find_parallel_limit(sketch.trace);
  for (size_t i = 0; i < sketch.trace.instructions.size(); ++i) {
    if (!sketch.trace.instructions[i].kind->samples) continue;
    sketch.samplings.push_back(i);
    sketch.fixed.push_back(sketch.trace.instructions[i].decision);
  }
  Trace bare = without_decisions(sketch.trace);
  for (const Sketch& other : sketches_)
    if (without_decisions(other.trace) == bare) return {};
  sketch.trace = std::move(bare);
  sketch.id = static_cast<SketchId>(sketches_.size());
  sketch.name = name.empty() ? fmt::format("sketch {}", sketch.id) : std::move(name);
  sketches_.push_back(std::move(sketch));
  return {};
}

Result<Space> Space::from_schedule_file(const Task& task, const SpaceParts& parts, const std::string& text,
                                        const std::string& file) {
  auto names = schedule_functions(text, file);
  auto first_error = [](const std::vector<Diagnostic>& errors) {
    const Diagnostic& d = errors.at(0);
    const RefusalCode* code = find_refusal_code(d.code);
    return refuse(code ? *code : trace_malformed, [d] { return d; });
  };
  if (!names) return first_error(names.error());
  Space space;
  space.parts_ = parts;
  for (const std::string& name : *names) {
    Schedule s(task.program, task.key);
    auto ran = run_schedule_text(text, file, s, name);
    if (!ran) return first_error(ran.error());
    TW_TRY_VOID(space.add_sketch(s.trace_with_given_decisions(), name));  // decisions written in the file stay fixed
  }
  return space;
}

Result<Space> Space::from_function(const Task& task, const SpaceParts& parts, const std::string& name) {
  const SpaceFunction* f = Registry<SpaceFunction>::instance().find(name);
  if (!f) {
    std::string hint = Registry<SpaceFunction>::instance().suggestion(name);
    Refusal r(space_unknown, fmt::format("no space is registered as \"{}\"", name));
    return refuse(hint.empty() ? r : r.with_help(fmt::format("did you mean \"{}\"?", hint)));
  }
  Space space;
  space.parts_ = parts;
  Schedule a(task.program, task.key), b(task.program, task.key + 1);
  TW_TRY_VOID(f->apply(a));
  TW_TRY_VOID(f->apply(b));
  TW_TRY_VOID(space.add_sketch(a.trace_with_given_decisions(), name));
  if (!(without_decisions(renumber(simplify(a.trace()))) == without_decisions(renumber(simplify(b.trace())))))
    space.function_ = f->apply;
  return space;
}

Status Space::run_postprocs(Schedule& s, const Target& target) const {
  TW_TRY_VOID(s.enter_postproc());
  PostprocContext context{target};
  for (const std::string& name : parts_.postprocs) {
    const Postproc* p = Registry<Postproc>::instance().find(name);
    TW_CHECK(p, "postproc {} is not registered", name);
    TW_TRY_VOID(p->apply(s, context));
  }
  return {};
}

Result<Materialised> Space::materialise(const Task& task, const Sketch& sketch, const DecisionVector* decisions,
                                        Rng rng) const {
  Trace trace = sketch.trace;
  for (size_t i = 0; i < sketch.samplings.size(); ++i) {
    std::optional<TraceValue>& decision = trace.instructions[sketch.samplings[i]].decision;
    if (decisions)
      decision = (*decisions)[i];
    else if (sketch.fixed[i])
      decision = sketch.fixed[i];
  }
  if (decisions && sketch.parallel_limit) parallel_limit(trace, sketch) = decisions->back();
  Replayed replayed = replay(trace, task.program, rng);
  if (!replayed.refusals.empty()) return refuse(replayed.refusals[0].refusal);
  Materialised out{std::move(replayed.schedule), {}};
  for (size_t at : sketch.samplings) out.decisions.push_back(*out.schedule.trace().instructions[at].decision);
  if (sketch.parallel_limit) out.decisions.push_back(parallel_limit(trace, sketch));
  TW_TRY_VOID(run_postprocs(out.schedule, task.target));
  return out;
}

std::optional<std::pair<SketchId, DecisionVector>> Space::locate(const Trace& trace) const {
  for (const Sketch& sketch : sketches_) {
    if (trace.instructions.size() < sketch.trace.instructions.size()) continue;
    Trace head;
    head.instructions.assign(trace.instructions.begin(),
                             trace.instructions.begin() + static_cast<int64_t>(sketch.trace.instructions.size()));
    DecisionVector decisions;
    for (size_t at : sketch.samplings)
      if (head.instructions[at].decision) decisions.push_back(*head.instructions[at].decision);
    if (decisions.size() != sketch.samplings.size()) continue;
    if (sketch.parallel_limit) {
      Instruction& annotation = head.instructions[*sketch.parallel_limit];
      if (annotation.inputs.size() != 2) continue;
      decisions.push_back(annotation.inputs[1]);
      annotation.inputs[1] = sketch.trace.instructions[*sketch.parallel_limit].inputs[1];
    }
    if (renumber(without_decisions(head)) == sketch.trace) return std::pair(sketch.id, std::move(decisions));
  }
  return std::nullopt;
}

Result<Materialised> Space::run_function(const Task& task, Rng rng) const {
  TW_CHECK(function_);
  Materialised out{Schedule(task.program), {}};
  out.schedule.reseed(rng);
  TW_TRY_VOID(function_(out.schedule));
  TW_TRY_VOID(run_postprocs(out.schedule, task.target));
  return out;
}

double Space::size(const Task& task, const Sketch& sketch) const {
  auto sample = materialise(task, sketch, nullptr, Rng(task.key));
  if (!sample) return 0;
  double points = 1;
  for (size_t i = 0; i < sketch.samplings.size(); ++i) {
    const Instruction& instruction = sample->schedule.trace().instructions[sketch.samplings[i]];
    const std::string& name = instruction.kind->name;
    if (name == "sample_perfect_tile") {
      int64_t extent = 1;
      for (const TraceValue& f : *sample->decisions[i].get<TraceList>())
        extent *= std::max<int64_t>(*f.get<int64_t>(), 1);
      points *= count_perfect_tiles(extent, static_cast<int>(*instruction.attrs[0].get<int64_t>()),
                                    *instruction.attrs[1].get<int64_t>());
    } else if (name == "sample_categorical") {
      points *= static_cast<double>(instruction.attrs[0].get<TraceList>()->size());
    }
  }
  return points;
}

}  // namespace tilewright
