#include "measure/session/codec.h"

#include <fmt/format.h>

namespace tilewright::measure {

namespace {

template <class E, class W>
E as_enum(W value, E last) {
  auto n = static_cast<uint32_t>(value);
  return n <= static_cast<uint32_t>(last) ? static_cast<E>(n) : static_cast<E>(0);
}

void encode(const Measurement& m, record_wire::Measurement& w) {
  w.set_contender(static_cast<uint32_t>(m.contender));
  w.set_mode(static_cast<record_wire::Mode>(m.mode));
  w.set_stage(static_cast<record_wire::Stage>(m.stage));
  w.set_timer(static_cast<record_wire::Timer>(m.timer));
  w.set_n(m.n), w.set_marked(m.marked), w.set_discarded(m.discarded);
  w.set_launches_per_sample(m.launches_per_sample);
  w.set_min(m.min), w.set_q1(m.q1), w.set_median(m.median), w.set_q3(m.q3), w.set_mad(m.mad);
  w.set_ci_lo(m.ci_lo), w.set_ci_hi(m.ci_hi);
  w.set_clock_mhz(m.clock_mhz), w.set_clock_change_ppm(m.clock_change_ppm), w.set_cycles(m.cycles);
  w.set_throttle_reasons(m.throttle_reasons), w.set_canary_ratio(m.canary_ratio);
  w.set_incumbent_ratio(m.incumbent_ratio), w.set_overhead_ns(m.overhead_ns);
  w.set_cut_short(m.cut_short), w.set_coarse(m.coarse);
  for (float x : m.samples) w.add_samples(x);
}

Measurement decode(const record_wire::Measurement& w) {
  Measurement m;
  m.contender = static_cast<int>(w.contender());
  m.mode = as_enum(w.mode(), Mode::cold_sustained);
  m.stage = as_enum(w.stage(), Stage::explain);
  m.timer = as_enum(w.timer(), Timer::fake);
  m.n = w.n(), m.marked = w.marked(), m.discarded = w.discarded();
  m.launches_per_sample = w.launches_per_sample();
  m.min = w.min(), m.q1 = w.q1(), m.median = w.median(), m.q3 = w.q3(), m.mad = w.mad();
  m.ci_lo = w.ci_lo(), m.ci_hi = w.ci_hi();
  m.clock_mhz = w.clock_mhz(), m.clock_change_ppm = w.clock_change_ppm(), m.cycles = w.cycles();
  m.throttle_reasons = w.throttle_reasons(), m.canary_ratio = w.canary_ratio();
  m.incumbent_ratio = w.incumbent_ratio(), m.overhead_ns = w.overhead_ns();
  m.cut_short = w.cut_short(), m.coarse = w.coarse();
  m.samples.assign(w.samples().begin(), w.samples().end());
  return m;
}

void encode(const CheckReport& c, record_wire::CheckReport& w) {
  w.set_reference(c.reference);
  for (const std::string& set : c.sets) w.add_sets(set);
  w.set_elements(c.elements), w.set_mismatches(c.mismatches), w.set_unwritten(c.unwritten);
  w.set_max_abs(c.max_abs), w.set_max_rel(c.max_rel), w.set_tolerance(c.tolerance);
  for (const Mismatch& m : c.first) {
    auto* f = w.add_first();
    f->set_buffer(m.buffer), f->set_index(m.index);
    f->set_expected(m.expected), f->set_found(m.found), f->set_tolerance(m.tolerance);
  }
  w.set_red_zones_ok(c.red_zones_ok), w.set_inputs_unchanged(c.inputs_unchanged);
  w.set_after_timing_ok(c.after_timing_ok);
}

CheckReport decode(const record_wire::CheckReport& w) {
  CheckReport c;
  c.reference = w.reference();
  c.sets.assign(w.sets().begin(), w.sets().end());
  c.elements = w.elements(), c.mismatches = w.mismatches(), c.unwritten = w.unwritten();
  c.max_abs = w.max_abs(), c.max_rel = w.max_rel(), c.tolerance = w.tolerance();
  for (const auto& m : w.first()) c.first.push_back({m.buffer(), m.index(), m.expected(), m.found(), m.tolerance()});
  c.red_zones_ok = w.red_zones_ok(), c.inputs_unchanged = w.inputs_unchanged(), c.after_timing_ok = w.after_timing_ok();
  return c;
}

}  // namespace

std::string encode_id(const MeasurementId& id) {
  std::string out;
  auto put = [&](uint64_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift & 0xff));
  };
  put(id.campaign, 8), put(id.task, 2), put(id.trial, 4), put(id.attempt, 2);
  return out;
}

MeasurementId decode_id(const std::string& bytes) {
  MeasurementId id;
  if (bytes.size() != 16) return id;
  size_t at = 0;
  auto get = [&](int n) {
    uint64_t value = 0;
    while (n-- > 0) value = value << 8 | static_cast<unsigned char>(bytes[at++]);
    return value;
  };
  id.campaign = get(8);
  id.task = static_cast<uint16_t>(get(2));
  id.trial = static_cast<uint32_t>(get(4));
  id.attempt = static_cast<uint16_t>(get(2));
  return id;
}

void encode(const BuildReport& b, record_wire::BuildReport& w) {
  w.set_toolchain(b.toolchain), w.set_artifact(b.artifact), w.set_bytes(b.bytes);
  w.set_cpu_ms(b.cpu_ms), w.set_wall_ms(b.wall_ms), w.set_peak_mib(b.peak_mib);
  w.set_registers(b.registers), w.set_spill_bytes(b.spill_bytes), w.set_stack_bytes(b.stack_bytes);
  w.set_shared_static(b.shared_static), w.set_shared_dynamic(b.shared_dynamic), w.set_blocks_per_sm(b.blocks_per_sm);
  w.set_replay_us(b.replay_us), w.set_lower_us(b.lower_us), w.set_codegen_us(b.codegen_us);
  w.set_assemble_us(b.assemble_us), w.set_cached(b.cached), w.set_diagnostics(b.diagnostics);
  for (const std::string& code : b.warnings) w.add_warnings(code);
  for (const auto& [stage, text] : b.dumps) (*w.mutable_dumps())[stage] = text;
}

BuildReport decode(const record_wire::BuildReport& w) {
  BuildReport b;
  b.toolchain = w.toolchain(), b.artifact = w.artifact(), b.bytes = w.bytes();
  b.cpu_ms = w.cpu_ms(), b.wall_ms = w.wall_ms(), b.peak_mib = w.peak_mib();
  b.registers = w.registers(), b.spill_bytes = w.spill_bytes(), b.stack_bytes = w.stack_bytes();
  b.shared_static = w.shared_static(), b.shared_dynamic = w.shared_dynamic(), b.blocks_per_sm = w.blocks_per_sm();
  b.replay_us = w.replay_us(), b.lower_us = w.lower_us(), b.codegen_us = w.codegen_us();
  b.assemble_us = w.assemble_us(), b.cached = w.cached(), b.diagnostics = w.diagnostics();
  b.warnings.assign(w.warnings().begin(), w.warnings().end());
  b.dumps.insert(w.dumps().begin(), w.dumps().end());
  return b;
}

void encode(const Outcome& o, record_wire::Outcome& w) {
  w.set_measurement_id(encode_id(o.id));
  w.set_status(static_cast<record_wire::TrialStatus>(o.status));
  w.set_reject(static_cast<uint32_t>(o.reject));
  w.set_phase(o.phase), w.set_detail(o.detail), w.set_refusal_code(o.refusal_code);
  for (const BuildReport& b : o.builds) encode(b, *w.add_builds());
  for (const Measurement& m : o.measurements) encode(m, *w.add_measurements());
  for (const Paired& p : o.paired) {
    auto* x = w.add_paired();
    x->set_contender(static_cast<uint32_t>(p.contender)), x->set_rounds(p.rounds);
    x->set_ratio(p.ratio), x->set_lo(p.lo), x->set_hi(p.hi), x->set_sign_p(p.sign_p), x->set_left_early(p.left_early);
  }
  if (o.check) encode(*o.check, *w.mutable_check());
  if (o.counters) {
    auto* c = w.mutable_counters();
    c->set_set(o.counters->set), c->set_chip(o.counters->chip), c->set_passes(o.counters->passes);
    c->set_unavailable_code(o.counters->unavailable_code);
    for (const auto& [name, value] : o.counters->values) (*c->mutable_values())[name] = value;
  }
  w.set_device_uuid(o.device), w.set_host_id(o.host), w.set_exec_id(o.exec);
  w.set_started(o.started_us), w.set_device_us(o.device_us), w.set_wall_us(o.wall_us), w.set_log(o.log);
  for (const std::string& flag : o.flags) w.add_flags(flag);
}

Outcome decode(const record_wire::Outcome& w) {
  Outcome o;
  o.id = decode_id(w.measurement_id());
  o.status = as_enum(w.status(), TrialStatus::internal_error);
  o.reject = as_enum(w.reject(), RejectCode::quarantined);
  o.phase = w.phase(), o.detail = w.detail(), o.refusal_code = w.refusal_code();
  for (const auto& b : w.builds()) o.builds.push_back(decode(b));
  for (const auto& m : w.measurements()) o.measurements.push_back(decode(m));
  for (const auto& p : w.paired())
    o.paired.push_back(
        {static_cast<int>(p.contender()), p.rounds(), p.ratio(), p.lo(), p.hi(), p.sign_p(), p.left_early()});
  if (w.has_check()) o.check = decode(w.check());
  if (w.has_counters()) {
    const auto& c = w.counters();
    o.counters = Counters{c.set(), c.chip(), c.passes(), c.unavailable_code(), {c.values().begin(), c.values().end()}};
  }
  o.device = w.device_uuid(), o.host = w.host_id(), o.exec = w.exec_id();
  o.started_us = w.started(), o.device_us = w.device_us(), o.wall_us = w.wall_us(), o.log = w.log();
  o.flags.assign(w.flags().begin(), w.flags().end());
  return o;
}

void encode(const BuildOptions& b, wire::BuildSpec& w) {
  w.set_pipeline(b.pipeline);
  for (const auto& [name, value] : b.options) (*w.mutable_options())[name] = value;
  w.set_cpu_ms(b.cpu_ms), w.set_wall_ms(b.wall_ms), w.set_memory_mib(b.memory_mib);
  w.set_return_artifact(b.return_artifact);
  for (const std::string& stage : b.dumps) w.add_dumps(stage);
}

BuildOptions decode(const wire::BuildSpec& w) {
  BuildOptions b;
  b.pipeline = w.pipeline();
  b.options.insert(w.options().begin(), w.options().end());
  b.cpu_ms = w.cpu_ms(), b.wall_ms = w.wall_ms(), b.memory_mib = w.memory_mib();
  b.return_artifact = w.return_artifact();
  b.dumps.assign(w.dumps().begin(), w.dumps().end());
  return b;
}

void encode(const RunSpec& r, wire::RunSpec& w) {
  w.set_device_uuid(r.device), w.set_avoid_device(r.avoid_device);
  w.set_stage(static_cast<record_wire::Stage>(r.stage)), w.set_mode(static_cast<record_wire::Mode>(r.mode));
  const MeasurePolicy& p = r.policy;
  auto* q = w.mutable_policy();
  q->set_min_samples(p.min_samples), q->set_max_samples(p.max_samples), q->set_block(p.block);
  q->set_budget_us(p.budget_us), q->set_ci_ppm(p.ci_ppm), q->set_cut_ppm(p.cut_ppm), q->set_flush_bytes(p.flush_bytes);
  q->set_pacing_us(p.pacing_us), q->set_clock_change_ppm(p.clock_change_ppm), q->set_canary_period(p.canary_period);
  w.set_threads(static_cast<uint32_t>(r.threads)), w.set_incumbent_ns(r.incumbent_ns), w.set_floor_ns(r.floor_ns);
  w.set_input_seed(r.input_seed), w.set_load_ms(r.load_ms), w.set_device_ms(r.device_ms), w.set_counters(r.counters);
  w.set_keep_samples(r.keep_samples), w.set_check(r.check), w.set_fresh_exec(r.fresh_exec);
}

RunSpec decode(const wire::RunSpec& w) {
  RunSpec r;
  r.device = w.device_uuid(), r.avoid_device = w.avoid_device();
  r.stage = as_enum(w.stage(), Stage::explain), r.mode = as_enum(w.mode(), Mode::cold_sustained);
  MeasurePolicy& p = r.policy;
  const auto& q = w.policy();
  p.min_samples = q.min_samples(), p.max_samples = q.max_samples(), p.block = q.block();
  p.budget_us = q.budget_us(), p.ci_ppm = q.ci_ppm(), p.cut_ppm = q.cut_ppm(), p.flush_bytes = q.flush_bytes();
  p.pacing_us = q.pacing_us(), p.clock_change_ppm = q.clock_change_ppm(), p.canary_period = q.canary_period();
  r.threads = static_cast<int>(w.threads()), r.incumbent_ns = w.incumbent_ns(), r.floor_ns = w.floor_ns();
  r.input_seed = w.input_seed(), r.load_ms = w.load_ms(), r.device_ms = w.device_ms(), r.counters = w.counters();
  r.keep_samples = w.keep_samples(), r.check = w.check(), r.fresh_exec = w.fresh_exec();
  return r;
}

void encode(const Job& j, const std::string& program, const std::string& target, wire::Job& w) {
  w.set_measurement_id(encode_id(j.id)), w.set_program(program), w.set_target(target);
  encode(j.build, *w.mutable_build());
  encode(j.run, *w.mutable_run());
  for (const Contender& c : j.contenders) {
    auto* x = w.add_contenders();
    x->set_trace(c.trace);
  }
  w.set_priority(j.priority), w.set_alone(j.alone), w.set_build_only(j.build_only);
}

Job decode(const wire::Job& w) {
  Job j;
  j.id = decode_id(w.measurement_id());
  j.build = decode(w.build());
  j.run = decode(w.run());
  for (const auto& c : w.contenders()) j.contenders.push_back({c.trace(), {}});
  j.priority = w.priority(), j.alone = w.alone(), j.build_only = w.build_only();
  return j;
}

void encode(const CheckPlan& c, wire::CheckPlan& w) {
  w.set_exact(c.exact);
  for (const BufferPlan& b : c.buffers) {
    auto* x = w.add_buffers();
    x->set_name(b.name), x->set_dtype(b.dtype.str());
    for (int64_t d : b.shape) x->add_shape(d);
    x->set_role(static_cast<uint32_t>(b.role)), x->set_fill(static_cast<uint32_t>(b.fill));
    x->set_low(b.low), x->set_high(b.high);
    x->set_u_acc(b.u_acc), x->set_reduction(b.reduction), x->set_u_in(b.u_in), x->set_e_fn(b.e_fn);
  }
}

Result<CheckPlan> decode(const wire::CheckPlan& w) {
  CheckPlan c;
  c.exact = w.exact();
  for (const auto& x : w.buffers()) {
    BufferPlan b;
    b.name = x.name();
    auto dtype = DType::parse(x.dtype());
    if (!dtype)
      return refuse(message_invalid, fmt::format("buffer {} has the unknown element type \"{}\"", b.name, x.dtype()));
    b.dtype = *dtype;
    b.shape.assign(x.shape().begin(), x.shape().end());
    for (int64_t d : b.shape)
      if (d < 1 || d > int64_t{1} << 40)
        return refuse(message_invalid, fmt::format("buffer {} has an extent of {}", b.name, d));
    b.role = as_enum(x.role(), Role::inout), b.fill = as_enum(x.fill(), Fill::index);
    b.low = x.low(), b.high = x.high();
    b.u_acc = x.u_acc(), b.reduction = x.reduction(), b.u_in = x.u_in(), b.e_fn = x.e_fn();
    c.buffers.push_back(std::move(b));
  }
  return c;
}

void encode(const EntryInfo& e, wire::Entry& w) {
  w.set_symbol(e.symbol), w.set_workspace_bytes(e.workspace_bytes), w.set_worker_bytes(e.worker_bytes);
}
EntryInfo decode(const wire::Entry& w) { return {w.symbol(), w.workspace_bytes(), w.worker_bytes()}; }

void encode(const DeviceInfo& d, wire::DeviceInfo& w) {
  w.set_uuid(d.uuid), w.set_kind(d.kind), w.set_name(d.name), w.set_health(d.health);
  for (const auto& [key, value] : d.facts) (*w.mutable_facts())[key] = value;
}
DeviceInfo decode(const wire::DeviceInfo& w) {
  return {w.uuid(), w.kind(), w.name(), {w.facts().begin(), w.facts().end()}, w.health()};
}

void encode(const Calibration& c, wire::Calibrated& w) {
  w.set_device(c.device), w.set_threads(static_cast<uint32_t>(c.threads));
  for (const auto& [dtype, rate] : c.flops_per_s) (*w.mutable_flops_per_s())[dtype] = rate;
  w.set_stream_bytes_per_s(c.stream_bytes_per_s), w.set_copy_bytes_per_s(c.copy_bytes_per_s);
  w.set_clock_mhz(c.clock_mhz), w.set_launch_ns(c.launch_ns);
}
Calibration decode(const wire::Calibrated& w) {
  return {w.device(),
          static_cast<int>(w.threads()),
          {w.flops_per_s().begin(), w.flops_per_s().end()},
          w.stream_bytes_per_s(),
          w.copy_bytes_per_s(),
          w.clock_mhz(),
          w.launch_ns()};
}

}  // namespace tilewright::measure
