// Our side of the interop tests (ours.py asks): one JSON request a line, one JSON answer a line. A process of its own
// for every step of thousands of schedules would take longer than all the steps.
//   {"do":"workload","text":"gemm:m=8,n=8,k=8"}                       → {"program"}
//   {"do":"read","program"}                                            → {"program"} as we print it
//   {"do":"equal","a","b"}                                             → {"equal","what"}: up to names and spelling of
//   integers
//   {"do":"begin","program"} · {"do":"step","text"} · {"do":"undo"} → {"program"}: schedule calls, as a person writes
//   them
//   {"do":"trace"}                                                     → {"trace"} of these calls, as TVM reads it
//   {"do":"replay","program","trace"}                                  → {"program"}: a trace of the other system
//   {"do":"sample","program","target","preset","seed"}                 → {"sketches":[{"trace","program","after"}]}
// What is refused answers {"refused": code, "message"}.
#include <fmt/format.h>

#include <iostream>
#include <optional>

#include "ir/equal.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/simplify/analyzer.h"
#include "schedule/schedule.h"
#include "search/space.h"
#include "support/json.h"
#include "workloads/operator.h"

namespace tilewright {
namespace {

Json refused(const Diagnostic& d) { return {{"refused", d.code}, {"message", render_text(d)}}; }
Json refused(const Refusal& r) { return refused(r.diagnostic()); }

/// Parses a member of the request; on failure `answer` says why.
ProgramRef program_of(const Json& request, const char* member, Json& answer) {
  auto parsed = parse_program(request.at(member).get<std::string>(), member);
  if (parsed) return parsed->program;
  answer = refused(parsed.error().at(0));
  return nullptr;
}

/// Read anew, so that equal programs have their variables in equal order, and with integers simplified where they
/// stand.
ProgramRef normal(const Program& program) {
  auto parsed = parse_program(print(program), "normal");
  TW_CHECK(parsed, "a printed program does not parse");
  ProgramRef out = parsed->program;
  for (const FunctionRef& f : parsed->program->functions) {
    auto copy = std::make_unique<Function>(*with_body(*f, simplify(f->body)));
    auto symbol = copy->attrs.find("global_symbol");
    if (symbol != copy->attrs.end() && symbol->second == Attr(f->name)) copy->attrs.erase(symbol);
    out = with_function(*out, FunctionRef(copy.release()));
  }
  return out;
}

Json equal(const Json& request) {
  Json answer;
  ProgramRef a = program_of(request, "a", answer), b = a ? program_of(request, "b", answer) : nullptr;
  if (!b) return answer;
  if (structural_equal(*a, *b)) return {{"equal", true}};
  a = normal(*a);
  b = normal(*b);
  Difference difference;
  if (structural_equal(*a, *b, &difference)) return {{"equal", true}};
  return {{"equal", false}, {"what", difference.what}, {"a", print(*a)}, {"b", print(*b)}};
}

Json replayed(const Json& request) {
  Json answer;
  ProgramRef program = program_of(request, "program", answer);
  if (!program) return answer;
  auto trace = trace_from_json(request.at("trace"));
  if (!trace) return refused(trace.error());
  ReplayOptions options;
  options.schedule.tvm_mode = true;
  options.schedule.repair = RepairMode::refuse;
  Replayed out = replay(*trace, program, Rng(1), options);
  if (out.refusals.empty())
    return {{"program", print(*out.schedule.program())}, {"trace", Json::parse(trace_to_json(out.schedule.trace()))}};
  answer = refused(out.refusals[0].refusal);
  answer["at"] = out.refusals[0].instruction;
  return answer;
}

Json sampled(const Json& request) {
  Json answer;
  ProgramRef program = program_of(request, "program", answer);
  if (!program) return answer;
  auto target = parse_target(request.at("target").get<std::string>());
  if (!target) return refused(target.error());
  auto parts = parts_for(request.at("preset").get<std::string>(), *target);
  if (!parts) return refused(parts.error());
  Task task = Task::make("interop", program, *target);
  auto space = Space::from_rules(task, *parts);
  if (!space) return refused(space.error());
  Json sketches = Json::array();
  for (const Sketch& sketch : space->sketches()) {
    auto made = space->materialise(task, sketch, nullptr, Rng(request.at("seed").get<uint64_t>()));
    if (!made) {
      sketches.push_back(refused(made.error()));
      continue;
    }
    auto text = trace_to_tvm_json(simplify(made->schedule.trace()));
    sketches.push_back(text ? Json{{"trace", Json::parse(*text)}, {"program", print(*made->schedule.program())}}
                            : refused(text.error()));
  }
  return {{"sketches", sketches}};
}

class Server {
 public:
  Json answer(const Json& request) {
    const std::string what = request.at("do");
    if (what == "equal") return equal(request);
    if (what == "replay") return replayed(request);
    if (what == "sample") return sampled(request);
    if (what == "workload") {
      auto workload = make_workload(request.at("text").get<std::string>());
      return workload ? Json{{"program", print(*workload->program)}} : refused(workload.error());
    }
    if (what == "read") {
      Json answer;
      ProgramRef program = program_of(request, "program", answer);
      return program ? Json{{"program", print(*program)}} : answer;
    }
    if (what == "begin") return begin(request);
    TW_CHECK(schedule_, "no schedule has begun");
    if (what == "step") return step(request);
    if (what == "trace") return trace();
    TW_CHECK(what == "undo", "unknown request {}", what);
    schedule_ = before_;
    return state();
  }

 private:
  Json begin(const Json& request) {
    Json answer;
    ProgramRef program = program_of(request, "program", answer);
    if (!program) return answer;
    schedule_.emplace(program, 1);
    return state();
  }

  Json step(const Json& request) {
    Schedule next = *schedule_;
    if (auto ran = run_schedule_text(request.at("text").get<std::string>(), "step", next); !ran)
      return refused(ran.error().at(0));
    before_ = schedule_;
    schedule_ = std::move(next);
    return state();
  }

  Json trace() {
    auto text = trace_to_tvm_json(simplify(schedule_->trace()));
    return text ? Json{{"trace", Json::parse(*text)}} : refused(text.error());
  }

  /// The program, and of every block that its name finds what a random call needs to know.
  Json state() const {
    Json blocks = Json::array();
    const TreeIndex& tree = schedule_->state().tree();
    for (Place p : tree.blocks()) {
      const Block& block = *tree.block(p);
      if (p == 0 || tree.in_init(p) || tree.blocks_named(block.name).size() > 1) continue;
      Json loops = Json::array();
      for (const For* loop : tree.loop_nodes_above(p)) loops.push_back(const_int(loop->extent).value_or(0));
      auto ranks = [](const std::vector<BufferRegion>& regions) {
        Json out = Json::array();
        for (const BufferRegion& r : regions) out.push_back(r.region.size());
        return out;
      };
      blocks.push_back({{"name", block.name},
                        {"loops", loops},
                        {"iters", block.iters.size()},
                        {"reads", ranks(block.reads)},
                        {"writes", ranks(block.writes)}});
    }
    return {{"program", print(*schedule_->program())}, {"blocks", blocks}};
  }

  std::optional<Schedule> schedule_, before_;
};

}  // namespace
}  // namespace tilewright

int main() {
  tilewright::Server server;
  for (std::string line; std::getline(std::cin, line);) {
    tilewright::Json answer;
    try {
      answer = server.answer(tilewright::Json::parse(line));
    } catch (const std::exception& bug) {
      answer = {{"refused", "bug"}, {"message", bug.what()}};
    }
    std::cout << answer.dump() << std::endl;
  }
}
