// The build pipeline of real targets: program text → trace replayed → lowered → object → shared object. And the second
// opinion on reference outputs: the interpreter, on sampled elements.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>

#include "codegen/codegen.h"
#include "ir/interpret/interpret.h"
#include "ir/parse.h"
#include "lowering/pipeline.h"
#include "measure/check/compare.h"
#include "measure/check/inputs.h"
#include "measure/check/program_plan.h"
#include "measure/check/reference_program.h"
#include "measure/worker/pipeline.h"
#include "schedule/schedule.h"
#include "schedule/target.h"
#include "support/rng.h"

namespace tilewright::measure {

namespace {

using Clock = std::chrono::steady_clock;

uint32_t us_since(Clock::time_point begin) {
  return static_cast<uint32_t>(std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin).count());
}

tl::unexpected<BuildFailure> fail(TrialStatus status, const Refusal& refusal) {
  return tl::unexpected(BuildFailure{status, render_text(refusal.diagnostic()), std::string(refusal.code())});
}

std::string text_of(const std::vector<Diagnostic>& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics) out += render_text(d);
  return out;
}

/// The function that the trace makes of the program, or why it does not apply.
tl::expected<FunctionRef, BuildFailure> scheduled(const ProgramRef& program, const BuildRequest& request) {
  if (request.naive) {
    ProgramRef reference = reference_program(program);
    const Function* main = reference->main();
    if (!main) return tl::unexpected(BuildFailure{TrialStatus::replay_refused, "the program has no main function", ""});
    return FunctionRef(main);
  }
  auto function = schedulable_function(*program);
  if (request.trace.empty()) {
    const Function* main = function ? *function : program->main();
    if (!main) return tl::unexpected(BuildFailure{TrialStatus::replay_refused, "the program has no main function", ""});
    return FunctionRef(main);
  }
  auto trace = trace_from_json(request.trace);
  if (!trace) return fail(TrialStatus::replay_refused, trace.error());
  if (!function) return fail(TrialStatus::replay_refused, function.error());
  Replayed replayed = replay(*trace, program, Rng(0));
  if (!replayed.refusals.empty()) return fail(TrialStatus::replay_refused, replayed.refusals.front().refusal);
  return FunctionRef(&replayed.schedule.function());
}

tl::expected<BuildProduct, BuildFailure> build(const BuildRequest& request) {
  auto begin = Clock::now();
  auto parsed = parse_program(request.program, "program");
  if (!parsed) return tl::unexpected(BuildFailure{TrialStatus::internal_error, text_of(parsed.error()), ""});
  auto target = parse_target(request.target);
  if (!target) return fail(TrialStatus::rejected, target.error());
  auto function = scheduled(parsed->program, request);
  if (!function) return tl::unexpected(function.error());
  BuildProduct product;
  const Function* main = parsed->program->main();
  auto plan = plan_checks(main ? *main : **function);
  if (!plan) return fail(TrialStatus::internal_error, plan.error());
  product.plan = *plan;
  product.report.replay_us = us_since(begin);

  begin = Clock::now();
  auto options = lowering::LowerOptions::parse(request.options.options);
  if (!options) return fail(TrialStatus::rejected, options.error());
  // The reference keeps every rounding of the program: what a schedule may fuse is measured against it.
  if (request.naive) options->fp_contract = false;
  auto lowered = lowering::lower(**function, *target, *options);
  if (!lowered) return fail(TrialStatus::lower_refused, lowered.error());
  product.report.lower_us = us_since(begin);

  begin = Clock::now();
  auto wants = [&](const char* dump) {
    return std::find(request.options.dumps.begin(), request.options.dumps.end(), dump) != request.options.dumps.end();
  };
  codegen::CodegenOptions codegen_options{wants("llvm"), wants("llvm-raw"), wants("asm")};
  auto object = codegen::compile(*lowered, *target, codegen_options);
  if (!object) return fail(TrialStatus::build_error, object.error());
  product.report.codegen_us = us_since(begin);

  begin = Clock::now();
  std::vector<std::string> objects{object->object};
  auto linked = codegen::link_shared(objects);
  if (!linked) return fail(TrialStatus::build_error, linked.error());
  product.report.assemble_us = us_since(begin);
  product.artifact = std::move(*linked);
  product.entry = {object->entry, static_cast<uint64_t>(object->workspace_bytes),
                   static_cast<uint64_t>(object->workspace_slice_bytes)};
  auto toolchain = codegen::toolchain(*target);
  if (!toolchain) return fail(TrialStatus::build_error, toolchain.error());
  product.report.toolchain = std::move(*toolchain);
  product.report.warnings = object->report.notes;
  if (wants("llvm")) product.report.dumps["llvm"] = object->llvm_ir;
  if (wants("llvm-raw")) product.report.dumps["llvm-raw"] = object->llvm_ir_raw;
  if (wants("asm")) product.report.dumps["asm"] = object->assembly;
  return product;
}

/// Corners, an even grid and random elements: which ones must not depend on the schedule, only on the shape.
std::vector<int64_t> sample_elements(int64_t n, uint64_t seed) {
  constexpr int64_t grid = 32, random = 256;
  std::vector<int64_t> out;
  if (n <= grid + random) {
    for (int64_t i = 0; i < n; ++i) out.push_back(i);
    return out;
  }
  for (int64_t i = 0; i < grid; ++i) out.push_back(i * (n - 1) / (grid - 1));
  Rng rng = Rng::keyed(seed, hash_text("reference-sample"));
  for (int64_t i = 0; i < random; ++i) out.push_back(static_cast<int64_t>(rng.below(static_cast<uint64_t>(n))));
  return out;
}

constexpr int64_t interpreter_steps = 1'000'000'000;

Status compare_elements(const BufferPlan& buffer, CheckSet set, std::string_view reference, std::span<const int64_t> at,
                        std::span<const double> values) {
  Tolerance tolerance = tolerance_of(buffer, set, rms(buffer, reference));
  const size_t width = reference.size() / static_cast<size_t>(buffer.elements());
  Tensor outputs(buffer.dtype, buffer.shape);
  std::memcpy(outputs.bytes.data(), reference.data(), reference.size());
  for (size_t i = 0; i < at.size(); ++i) {
    double found = outputs.get(at[i]), expected = values[i];
    bool same = std::isnan(expected) ? std::isnan(found)
                                     : found == expected || std::fabs(found - expected) <= tolerance.allowed(expected);
    if (!same && poisoned(reference.substr(static_cast<size_t>(at[i]) * width, width)))
      return refuse(
          Refusal(reference_disagrees,
                  fmt::format("the program seems to never write element {} of {}: it holds what it was filled with",
                              at[i], buffer.name))
              .with_help("every element of an output must be written"));
    if (!same)
      return refuse(reference_disagrees,
                    fmt::format("element {} of {} on the {} inputs: the compiled program gives {:.9g}, the "
                                "interpreter {:.9g}",
                                at[i], buffer.name, to_string(set), found, expected));
  }
  return {};
}

Result<std::string> verify(const VerifyRequest& request) {
  auto parsed = parse_program(request.program, "program");
  if (!parsed) return refuse(reference_disagrees, text_of(parsed.error()));
  const Function* function = parsed->program->main();
  if (!function) return refuse(reference_disagrees, "the program has no main function");
  std::string_view rest = request.reference;
  InterpretOptions options;
  options.step_limit = interpreter_steps;
  for (CheckSet set : request.plan.sets()) {
    std::vector<Tensor> arguments;
    for (size_t b = 0; b < request.plan.buffers.size(); ++b)
      arguments.push_back(request.plan.buffers[b].role == Role::output
                              ? Tensor(request.plan.buffers[b].dtype, request.plan.buffers[b].shape)
                              : make_input(request.plan, b, set, request.seed));
    std::optional<std::vector<Tensor>> whole;  // outputs of a complete run, where single elements cannot be asked for
    for (size_t b = 0; b < request.plan.buffers.size(); ++b) {
      const BufferPlan& buffer = request.plan.buffers[b];
      if (!buffer.is_output()) continue;
      std::string_view expected = rest.substr(0, buffer.bytes());
      rest.remove_prefix(buffer.bytes());
      std::vector<int64_t> at = sample_elements(buffer.elements(), request.seed);
      auto values = interpret_elements(*function, arguments, static_cast<int>(b), at, options);
      if (!values && values.error().is(not_demand_evaluable)) {
        if (!whole) {
          whole = arguments;
          auto ran = interpret(*function, *whole, options);
          if (!ran && ran.error().is(step_limit_reached)) return std::string("too large for the interpreter");
          if (!ran) return refuse(ran.error());
        }
        std::vector<double> taken;
        for (int64_t i : at) taken.push_back((*whole)[b].get(i));
        values = taken;
      }
      if (!values && values.error().is(step_limit_reached)) return std::string("too large for the interpreter");
      if (!values) return refuse(values.error());
      TW_TRY_VOID(compare_elements(buffer, set, expected, at, *values));
    }
  }
  return std::string();
}

const Register<BuildPipeline> pipeline{"default", "replay, lower, generate code, link", {build, verify}};

}  // namespace

}  // namespace tilewright::measure
