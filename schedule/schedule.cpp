#include "schedule/schedule.h"

#include <fmt/format.h>

#include "ir/print.h"
#include "schedule/context.h"
#include "schedule/primitive.h"

namespace tilewright {

// --- state
// -------------------------------------------------------------------------------------------------------------

State::State(ProgramRef program, const Function* function) : program_(std::move(program)), function_(function) {}

const TreeIndex& State::tree() const {
  if (!tree_) tree_ = std::make_shared<const TreeIndex>(function_->body);
  return *tree_;
}

const Block* State::find(BlockId id) const {
  Place p = tree().find(id);
  return p == kNoPlace ? nullptr : tree().block(p);
}

const For* State::find(LoopId id) const {
  Place p = tree().find(id);
  return p == kNoPlace ? nullptr : tree().loop(p);
}

void State::replace(const StmtNode* from, const Stmt& to) { set_root(replace_stmt(root(), from, to)); }

void State::set_root(Stmt body) { set_function(with_body(*function_, std::move(body))); }

void State::set_function(FunctionRef function) {
  function_ = std::move(function);
  program_ = with_function(*program_, function_);
  tree_.reset();
}

// --- context
// -----------------------------------------------------------------------------------------------------------

const TraceValue& Context::argument(std::string_view name) const {
  const Primitive& p = *instruction_.kind;
  for (size_t i = 0; i < p.inputs.size(); ++i)
    if (p.inputs[i].name == name) return instruction_.inputs[i];
  for (size_t i = 0; i < p.attrs.size(); ++i)
    if (p.attrs[i].name == name) return instruction_.attrs[i];
  TW_UNREACHABLE("{} has no argument {}", p.name, name);
}

const TraceValue& Context::value(std::string_view name) const { return argument(name); }

/// What stands in the init of a block has no dependences of its own: it can be looked at, not scheduled.
template <class Node>
Result<const Node*> Context::schedulable(Result<const Node*> found) const {
  const bool looks = instruction_.kind->name == "get_loops" || instruction_.kind->name == "get_child_blocks";
  if (!found || looks || !state.tree().in_init(state.place(**found))) return found;
  return refuse(codes::inside_an_init, "it stands in the init of a block; decompose_reduction takes that out", *found);
}

Result<const Block*> Context::block(std::string_view name) const {
  return schedulable(schedule.block(*argument(name).get<Symbol>()));
}
Result<const For*> Context::loop(std::string_view name) const {
  return schedulable(schedule.loop(*argument(name).get<Symbol>()));
}

Result<std::vector<const For*>> Context::loops(std::string_view name) const {
  std::vector<const For*> out;
  for (const TraceValue& item : *argument(name).get<TraceList>()) {
    TW_TRY(const For* found, schedulable(schedule.loop(*item.get<Symbol>())));
    out.push_back(found);
  }
  return out;
}

Result<std::vector<const Block*>> Context::blocks(std::string_view name) const {
  std::vector<const Block*> out;
  for (const TraceValue& item : *argument(name).get<TraceList>()) {
    TW_TRY(const Block* found, schedulable(schedule.block(*item.get<Symbol>())));
    out.push_back(found);
  }
  return out;
}

Result<Context::BlockOrLoop> Context::block_or_loop(std::string_view name) const {
  BlockOrLoop out;
  if (argument(name).get<Symbol>()->kind == SymbolKind::block) {
    TW_TRY(out.block, block(name));
  } else {
    TW_TRY(out.loop, loop(name));
  }
  return out;
}

int64_t Context::integer(std::string_view name) const {
  const TraceValue& v = argument(name);
  if (auto* symbol = v.get<Symbol>()) return schedule.integer(*symbol);
  if (auto* flag = v.get<bool>()) return *flag;
  return *v.get<int64_t>();
}

bool Context::boolean(std::string_view name) const {
  const TraceValue& v = argument(name);
  if (auto* flag = v.get<bool>()) return *flag;
  return *v.get<int64_t>() != 0;
}

const std::string& Context::text(std::string_view name) const { return *argument(name).get<std::string>(); }

std::vector<int64_t> Context::integers(std::string_view name) const {
  std::vector<int64_t> out;
  for (const TraceValue& item : *argument(name).get<TraceList>())
    out.push_back(item.get<Symbol>() ? schedule.integer(*item.get<Symbol>()) : *item.get<int64_t>());
  return out;
}

std::vector<std::optional<int64_t>> Context::factors(std::string_view name) const {
  std::vector<std::optional<int64_t>> out;
  for (const TraceValue& item : *argument(name).get<TraceList>()) {
    if (item.is_none()) {
      out.push_back(std::nullopt);
    } else if (auto* symbol = item.get<Symbol>()) {
      // The −1 of a symbolic perfect tile acts as None.
      bool symbolic = symbol->number < 0;
      out.push_back(symbolic ? std::nullopt : std::optional(schedule.integer(*symbol)));
    } else {
      int64_t factor = *item.get<int64_t>();
      out.push_back(factor);
    }
  }
  return out;
}

IndexMapRef Context::index_map(std::string_view name) const {
  auto* map = argument(name).get<IndexMapRef>();
  return map ? *map : IndexMapRef();
}

Attr Context::attr(std::string_view name) const { return to_attr(argument(name)); }

Attr Context::to_attr(const TraceValue& v) const {
  if (auto* symbol = v.get<Symbol>()) return schedule.integer(*symbol);
  if (auto* x = v.get<bool>()) return *x;
  if (auto* x = v.get<int64_t>()) return *x;
  if (auto* x = v.get<double>()) return *x;
  if (auto* x = v.get<std::string>()) return *x;
  if (auto* list = v.get<TraceList>()) {
    AttrList out;
    for (const TraceValue& item : *list) out.push_back(to_attr(item));
    return out;
  }
  if (auto* dict = v.get<TraceDict>()) {
    AttrDict out;
    for (const auto& [key, item] : *dict) out[key] = to_attr(item);
    return out;
  }
  return {};
}

Status Context::repair(const std::string& from, const std::string& to, const StmtNode* place) const {
  if (schedule.options().repair == RepairMode::refuse) {
    Refusal refusal = refuse(decision_does_not_fit, fmt::format("decision {} does not fit", from), place).value();
    return tilewright::refuse(refusal.with_help(fmt::format("decision={} fits", to)));
  }
  schedule.note_repair(fmt::format("instruction {} ({}): decision {} was repaired to {}",
                                   schedule.trace().instructions.size(), instruction_.kind->name, from, to));
  return {};
}

tl::unexpected<Refusal> Context::refuse(const RefusalCode& code, std::string message, const StmtNode* place) const {
  // The closure keeps the program as it was, so that the place can be underlined whenever the text is read.
  return tilewright::refuse(
      Refusal(code, [name = instruction_.kind->name, message = std::move(message), program = state.program(), place] {
        Diagnostic d;
        d.message = name + ": " + message;
        if (place) d.notes.push_back({"in the program", locate(*program, place)});
        return d;
      }));
}

// --- schedule
// ----------------------------------------------------------------------------------------------------------

Result<const Function*> schedulable_function(const Program& program, const std::string& name) {
  const Function* f = name.empty() ? program.main() : program.find(name);
  if (f && f->schedulable && f->root()) return f;
  std::vector<std::string> names;
  for (const FunctionRef& g : program.functions) names.push_back(g->name);
  std::string listed = fmt::format("{}", fmt::join(names, ", "));
  if (!name.empty() && !f) {
    Refusal r(no_schedulable_function, fmt::format("the program has no function {}; it has {}", name, listed));
    std::string hint = did_you_mean(name, names);
    return refuse(hint.empty() ? r : r.with_help(fmt::format("did you mean \"{}\"?", hint)));
  }
  return refuse(
      Refusal(no_schedulable_function,
              fmt::format("expected one function with blocks, found {}", listed.empty() ? "none" : listed))
          .with_help("give it a body of blocks (`with T.sblock(…):`), and call it main if there are several"));
}

namespace {
const Function* required_function(const Program& program, const std::string& name) {
  auto f = schedulable_function(program, name);
  TW_CHECK(f, "{}", f.error().diagnostic().message);
  return *f;
}
}  // namespace

Schedule::Schedule(ProgramRef program, uint64_t seed, ScheduleOptions options)
    : state_(program, required_function(*program, options.function)), rng_(seed), options_(std::move(options)) {}

Result<const Block*> Schedule::block(Symbol s) const {
  if (s.kind != SymbolKind::block)
    return refuse(codes::handle_of_wrong_kind, "expected a block, found a loop or an integer");
  if (s.number >= 0 && s.number < static_cast<int>(symbols_.size()) && symbols_[s.number].defined)
    if (const Block* found = state_.find(static_cast<BlockId>(symbols_[s.number].id))) return found;
  return refuse(codes::handle_expired, fmt::format("block b{} does not exist any more", s.number));
}

Result<const For*> Schedule::loop(Symbol s) const {
  if (s.kind != SymbolKind::loop)
    return refuse(codes::handle_of_wrong_kind, "expected a loop, found a block or an integer");
  if (s.number >= 0 && s.number < static_cast<int>(symbols_.size()) && symbols_[s.number].defined)
    if (const For* found = state_.find(static_cast<LoopId>(symbols_[s.number].id))) return found;
  return refuse(codes::handle_expired, fmt::format("loop l{} does not exist any more", s.number));
}

int64_t Schedule::integer(Symbol s) const {
  TW_CHECK(s.kind == SymbolKind::integer);
  if (s.number < 0) return -1;
  TW_CHECK(s.number < static_cast<int>(symbols_.size()) && symbols_[s.number].defined, "v{} is not defined", s.number);
  return symbols_[s.number].integer;
}

namespace {

/// A number as a map from the results of `map`; other values stay as they are.
TraceValue constant_map(const TraceValue& value, const IndexMap& map) {
  Expr constant;
  if (auto* x = value.get<int64_t>()) constant = int_imm(*x);
  if (auto* x = value.get<double>()) constant = float_imm(*x);
  if (!constant) return value;
  auto out = std::make_unique<IndexMap>();
  for (size_t i = 0; i < map.outputs.size(); ++i) out->inputs.push_back(make_var(fmt::format("indices_{}", i)));
  out->outputs = {constant};
  return IndexMapRef(out.release());
}

/// The region that a buffer's name stands for: ("write", i) where it is written, else ("read", i).
Result<TraceValue> region_named(const Primitive& p, const Block& block, const std::string& name) {
  std::vector<std::pair<Buffer, TraceValue>> found;
  std::vector<std::string> names;
  auto look = [&](const std::vector<BufferRegion>& regions, const char* side) {
    for (size_t i = 0; i < regions.size(); ++i) {
      const Buffer& b = regions[i].buffer;
      names.push_back(b->name);
      if (b->name != name) continue;
      std::erase_if(found, [&](const auto& f) { return f.first.same_as(b); });
      found.emplace_back(b, TraceList{side, static_cast<int64_t>(i)});
    }
  };
  look(block.reads, "read");
  look(block.writes, "write");
  if (found.size() == 1) return found[0].second;
  if (found.size() > 1)
    return refuse(codes::buffer_name_ambiguous,
                  fmt::format("{}: block \"{}\" uses {} buffers called {}", p.name, block.name, found.size(), name));
  Refusal r(codes::buffer_name_not_found, fmt::format("{}: block \"{}\" has no buffer {}; it has {}", p.name,
                                                      block.name, name, fmt::join(names, ", ")));
  std::string hint = did_you_mean(name, names);
  return refuse(hint.empty() ? r : r.with_help(fmt::format("did you mean \"{}\"?", hint)));
}

}  // namespace

/// A buffer given by its name is recorded as the region that it is, a pad value given as a number as the function that
/// gives it everywhere.
Status Schedule::resolve_shorthands(Instruction& instruction) const {
  const Primitive& p = *instruction.kind;
  for (size_t i = 0; i < p.attrs.size(); ++i) {
    if (p.attrs[i].type == ArgType::index_map_or_none)
      for (const TraceValue& input : instruction.inputs)
        if (auto* map = input.get<IndexMapRef>()) instruction.attrs[i] = constant_map(instruction.attrs[i], **map);
    auto* name = instruction.attrs[i].get<std::string>();
    auto* handle = instruction.inputs.empty() ? nullptr : instruction.inputs[0].get<Symbol>();
    if (p.attrs[i].type != ArgType::buffer || !name || !handle) continue;
    TW_TRY(const Block* found, block(*handle));
    TW_TRY(instruction.attrs[i], region_named(p, *found, *name));
  }
  return {};
}

Result<std::vector<Symbol>> Schedule::apply(Instruction instruction, bool keep_outputs) {
  TW_TRY_VOID(resolve_shorthands(instruction));
  TW_TRY_VOID(check_arguments(instruction, symbols_));
  const bool given = instruction.decision.has_value();
  const ProgramRef before_program = state_.program();  // keeps the nodes alive that the primitive points into
  const State before = state_;
  Context context(*this, instruction);
  if (Status status = instruction.kind->apply(context); !status) {
    state_ = before;
    return refuse(std::move(status).error());
  }
  const std::vector<SymbolValue>& values = context.outputs();
  if (keep_outputs && values.size() != instruction.outputs.size()) {
    state_ = before;
    return refuse(output_count_differs, fmt::format("{} returned {} handles, the trace records {}",
                                                    instruction.kind->name, values.size(), instruction.outputs.size()));
  }
  if (!keep_outputs) {
    instruction.outputs.clear();
    int next = static_cast<int>(symbols_.size());
    for (const SymbolValue& v : values) instruction.outputs.push_back({v.defined ? next++ : -1, v.kind});
  }
  for (size_t i = 0; i < values.size(); ++i) {
    int number = instruction.outputs[i].number;
    instruction.outputs[i].kind = values[i].kind;
    if (number < 0) continue;
    if (number >= static_cast<int>(symbols_.size())) symbols_.resize(number + 1);
    symbols_[number] = values[i];
  }
  if (context.decided()) instruction.decision = context.decided();
  std::vector<Symbol> outputs = instruction.outputs;
  trace_.instructions.push_back(std::move(instruction));
  decision_given_.push_back(given);
  return outputs;
}

Trace Schedule::trace_with_given_decisions() const {
  Trace out = trace_;
  for (size_t i = 0; i < out.instructions.size(); ++i)
    if (!decision_given_[i]) out.instructions[i].decision.reset();
  return out;
}

Result<std::vector<Symbol>> Schedule::call(std::string_view primitive,
                                           std::vector<std::pair<std::string, TraceValue>> arguments,
                                           std::optional<TraceValue> decision) {
  const Primitive* p = find_primitive(primitive);
  TW_CHECK(p, "no primitive is called {}", primitive);
  TW_TRY(Instruction instruction, bind_arguments(*p, std::move(arguments)));
  instruction.decision = std::move(decision);
  return apply(std::move(instruction));
}

Replayed replay(const Trace& trace, ProgramRef program, Rng rng, const ReplayOptions& options) {
  Replayed out{Schedule(std::move(program), 0, options.schedule), {}};
  out.schedule.reseed(rng);
  for (size_t i = 0; i < trace.instructions.size(); ++i) {
    if (options.upto_postproc && trace.instructions[i].kind->kind == "EnterPostproc") break;
    Instruction instruction = trace.instructions[i];
    if (options.fresh_decisions) instruction.decision.reset();
    auto applied = out.schedule.apply(std::move(instruction), true);
    if (applied) continue;
    out.refusals.push_back({i, applied.error()});
    if (!options.skip_refusals) break;
  }
  return out;
}

}  // namespace tilewright
