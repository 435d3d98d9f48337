#include "measure/devices/fake.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "measure/check/compare.h"
#include "measure/check/inputs.h"
#include "measure/devices/device.h"
#include "measure/process/memfd.h"
#include "measure/worker/pipeline.h"
#include "support/check.h"
#include "support/json.h"
#include "support/rng.h"

namespace tilewright::measure {

namespace {

constexpr int64_t fake_elements = 256;

void collect(const Json& node, FakeTrace& out) {
  if (node.is_string()) {
    std::string text = node.get<std::string>();
    size_t equals = text.find('=');
    if (text.rfind("fake.", 0) == 0 && equals != std::string::npos)
      out.settings[text.substr(5, equals - 5)] = text.substr(equals + 1);
  } else if (node.is_structured()) {
    for (const Json& child : node) collect(child, out);
  }
}

void collect_integers(const Json& node, std::vector<int64_t>& out) {
  if (node.is_number_integer()) out.push_back(node.get<int64_t>());
  if (node.is_structured())
    for (const Json& child : node) collect_integers(child, out);
}

double number(const FakeTrace& trace, const char* key, double otherwise) {
  auto it = trace.settings.find(key);
  return it == trace.settings.end() ? otherwise : std::atof(it->second.c_str());
}

/// The program that every fake artifact "computes": out[i] = 2·in[i] + i mod 3.
double fake_result(double in, int64_t i) { return 2 * in + static_cast<double>(i % 3); }

CheckPlan fake_plan() {
  CheckPlan plan;
  plan.buffers = {{"in", kFloat32, {fake_elements}, Role::input}, {"out", kFloat32, {fake_elements}, Role::output}};
  plan.exact = true;
  return plan;
}

[[noreturn]] void hang() {
  std::signal(SIGTERM, SIG_IGN);
  for (;;) pause();
}

[[noreturn]] void eat_memory() {
  for (;;) {
    // Touched, so that it counts (and kept from a compiler that sees no reader); in steps, so that a limit strikes
    // before the machine suffers.
    auto* block = static_cast<char*>(std::malloc(size_t{8} << 20));
    if (!block) throw std::bad_alloc();
    std::memset(block, 1, size_t{8} << 20);
    asm volatile("" : : "r"(block) : "memory");
    usleep(1000);
  }
}

void write_raw(std::string_view bytes) {
  if (::write(3, bytes.data(), bytes.size()) < 0) std::abort();
}

class FakeDevice final : public Device {
 public:
  FakeDevice(int index, FakeConfig config) : index_(index), config_(std::move(config)) {}

  DeviceInfo info() const override {
    return {fmt::format("fake-{}", index_), "fake", "fake device", {{"seed", std::to_string(config_.seed)}}, "serving"};
  }
  Timer timer() const override { return Timer::fake; }

  Attempt<void> bind(const CheckPlan& plan, uint64_t seed, int) override {
    plan_ = plan;
    for (CheckSet set : plan.sets()) inputs_[set] = make_input(plan, 0, set, seed);
    original_ = inputs_;
    return {};
  }

  Attempt<void> load(size_t slot, const Fd& artifact, const EntryInfo&) override {
    auto mapping = Mapping::of(artifact);
    if (!mapping) return fault(TrialStatus::load_error, mapping.error().diagnostic().message);
    if (slots_.size() <= slot) slots_.resize(slot + 1);
    Slot& s = slots_[slot] = Slot{};
    s.text = std::string(mapping->bytes());
    s.trace = FakeTrace::parse(s.text);
    s.fault = fake_fault(config_, s.trace, s.text);
    s.noise = number(s.trace, "noise", config_.noise);
    s.time_ns = fake_time_ns(config_, s.trace, index_);
    if (s.fault == "load_error") return fault(TrialStatus::load_error, "injected: the artifact does not load");
    if (s.fault == "slow_load") hang();
    if (sticky_) return fault(TrialStatus::run_crash, "injected: an earlier launch left a sticky error", true);
    return {};
  }
  void unload_all() override { slots_.clear(); }

  Attempt<double> launch(size_t slot, CheckSet set) override {
    Slot& s = slots_[slot];
    if (Attempt<void> struck = strike(s); !struck) return tl::unexpected(struck.error());
    out_.assign(plan_.buffers[1].bytes(), static_cast<char>(poison_byte));
    if (s.fault != "unwritten") run(s, set);
    return s.time_ns;
  }

  Attempt<Block> time(size_t slot, const BlockSpec& spec) override {
    Slot& s = slots_[slot];
    Block block;
    size_t n = config_.clock.size();
    block.clock_before = config_.clock[std::min(blocks_, n - 1)];
    block.clock_after = config_.clock[std::min(blocks_ + 1, n - 1)];
    if (s.fault == "throttled") block.clock_after = 0.5 * block.clock_before;
    ++blocks_;
    if (s.fault == "hang_timing") hang();
    for (uint32_t i = 0; i < spec.samples; ++i) {
      double ns = s.time_ns * sample_factor(s);
      if (s.fault == "disturbed") {
        ++block.discarded;
      } else {
        block.ns.push_back(ns);
      }
      block.elapsed_ns += ns * spec.launches_per_sample;
      ++s.samples;
    }
    if (config_.real_time)
      std::this_thread::sleep_for(std::chrono::nanoseconds(static_cast<int64_t>(block.elapsed_ns)));
    now_ns_ += block.elapsed_ns;
    s.launches += spec.samples * spec.launches_per_sample;
    run(s, plan_.sets().back());
    return block;
  }

  Attempt<std::string_view> output(size_t) override { return std::string_view(out_); }
  std::string hit_red_zone() override { return hit_red_zone_ ? "out" : ""; }
  std::string changed_input() override {
    for (auto& [set, tensor] : inputs_)
      if (tensor.bytes != original_[set].bytes) return "in";
    return "";
  }
  double canary() override { return 1e6 * config_.canary; }
  Attempt<Calibration> calibrate(int threads) override {
    Calibration c;
    c.device = info().uuid;
    c.threads = threads;
    c.flops_per_s = {{"float32", 1e12}};
    c.stream_bytes_per_s = c.copy_bytes_per_s = 1e11;
    c.clock_mhz = config_.clock.back();
    return c;
  }

 private:
  struct Slot {
    std::string text;
    FakeTrace trace;
    std::string fault;
    double noise = 0, time_ns = 0;
    uint64_t launches = 0, samples = 0;
  };

  double sample_factor(const Slot& s) {
    // Not keyed by the device: which one takes a job is a matter of timing, and results must not be.
    Rng rng = Rng::keyed(config_.seed, hash_text(s.text), s.samples);
    // Box–Muller with our own stream: a log-normal factor around 1.
    double normal = std::sqrt(-2 * std::log(1 - rng.uniform())) * std::cos(2 * M_PI * rng.uniform());
    double factor = std::exp(s.noise * normal);
    if (rng.chance(config_.bimodal)) factor *= 1.5;
    if (s.samples < 3) factor *= 1 + config_.warm_up;
    return factor * (1 + config_.drift_per_minute * now_ns_ / 60e9);
  }

  void run(Slot& s, CheckSet set) {
    const Tensor& in = inputs_[set];
    auto* out = reinterpret_cast<float*>(out_.data());
    for (int64_t i = 0; i < fake_elements; ++i) out[i] = static_cast<float>(fake_result(in.get(i), i));
    ++s.launches;
    if (s.fault == "wrong_all")
      for (int64_t i = 0; i < fake_elements; ++i) out[i] += 1;
    if (s.fault == "wrong_one" || (s.fault == "wrong_later" && s.launches > 4)) out[fake_elements / 2] += 1;
    if (s.fault == "red_zone") hit_red_zone_ = true;
    if (s.fault == "input_overwrite") inputs_[set].set(0, 42);
  }

  Attempt<void> strike(Slot& s) {
    const std::string& f = s.fault;
    if (f == "hang") hang();
    if (f == "segv") std::raise(SIGSEGV);
    if (f == "abort") std::abort();
    if (f == "exit0") _exit(0);
    if (f == "stop") std::raise(SIGSTOP);
    if (f == "internal") TW_CHECK(false, "injected");
    if (f == "host_memory") eat_memory();
    if (f == "partial_frame") {
      write_raw(std::string_view("\x40\0\0\0half", 8));
      _exit(1);
    }
    if (f == "garbage") {
      write_raw(std::string_view("\x08\0\0\0garbage!", 12));
      hang();
    }
    if (f == "oversized_frame") {
      write_raw("\xff\xff\xff\x7f");
      hang();
    }
    if (f == "fork_bomb")
      for (int i = 0; i < 20; ++i)
        if (fork() == 0) hang();
    if (f == "launch_error") return fault(TrialStatus::launch_error, "injected: the launch is refused");
    if (f == "out_of_memory") return fault(TrialStatus::out_of_memory, "injected: no device memory");
    if (f == "device_lost") return fault(TrialStatus::device_lost, "injected: the device is gone", true);
    if (f == "sticky") {
      sticky_ = true;
      return fault(TrialStatus::run_crash, "injected: sticky error 700", true);
    }
    return {};
  }

  int index_;
  FakeConfig config_;
  CheckPlan plan_;
  std::map<CheckSet, Tensor> inputs_, original_;
  std::vector<Slot> slots_;
  std::string out_;
  size_t blocks_ = 0;
  double now_ns_ = 0;
  bool sticky_ = false, hit_red_zone_ = false;
};

tl::expected<BuildProduct, BuildFailure> build_fake(const BuildRequest& request) {
  FakeTrace trace = FakeTrace::parse(request.trace);
  auto config = FakeConfig::parse(request.config);
  std::string f = config ? fake_fault(*config, trace, request.trace) : "";
  if (f == "replay_refused") return tl::unexpected(BuildFailure{TrialStatus::replay_refused, "injected", "injected"});
  if (f == "lower_refused") return tl::unexpected(BuildFailure{TrialStatus::lower_refused, "injected", "injected"});
  if (f == "build_error") return tl::unexpected(BuildFailure{TrialStatus::build_error, "injected", ""});
  if (f == "build_internal") TW_CHECK(false, "injected");
  if (f == "build_crash") std::raise(SIGSEGV);
  if (f == "build_abort") std::abort();
  if (f == "build_exit") _exit(0);
  if (f == "build_hang") hang();
  if (f == "build_spin")
    for (;;) asm volatile("");
  if (f == "build_memory") eat_memory();
  BuildProduct product;
  product.artifact = request.trace;
  product.entry.symbol = "fake";
  product.plan = fake_plan();
  product.report.toolchain = "fake";
  return product;
}

Result<std::string> verify_fake(const VerifyRequest& request) {
  size_t at = 0;
  for (CheckSet set : request.plan.sets()) {
    Tensor in = make_input(request.plan, 0, set, request.seed);
    for (int64_t i = 0; i < fake_elements; ++i) {
      float found;
      std::memcpy(&found, request.reference.data() + at + static_cast<size_t>(i) * sizeof(float), sizeof(float));
      if (found != static_cast<float>(fake_result(in.get(i), i)))
        return refuse(reference_disagrees, fmt::format("element {} of the {} set", i, to_string(set)));
    }
    at += request.plan.buffers[1].bytes();
  }
  return std::string();
}

const Register<DeviceKind> fake_kind{"fake",
                                     "deterministic times and faults on demand",
                                     {[](int index, const std::string& config) -> Result<std::unique_ptr<Device>> {
                                        TW_TRY(FakeConfig parsed, FakeConfig::parse(config));
                                        return std::make_unique<FakeDevice>(index, std::move(parsed));
                                      },
                                      "fake"}};
const Register<BuildPipeline> fake_pipeline{"fake", "the artifact is the trace", {build_fake, verify_fake}};

}  // namespace

Result<FakeConfig> FakeConfig::parse(std::string_view text) {
  FakeConfig c;
  if (text.empty()) return c;
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return refuse(fake_config_invalid, "expected one JSON object");
  const std::map<std::string, double*> numbers{{"base_us", &c.base_us},
                                               {"untuned", &c.untuned},
                                               {"spread", &c.spread},
                                               {"noise", &c.noise},
                                               {"device_offset", &c.device_offset},
                                               {"bimodal", &c.bimodal},
                                               {"warm_up", &c.warm_up},
                                               {"canary", &c.canary},
                                               {"drift_per_minute", &c.drift_per_minute}};
  for (const auto& [key, value] : json.items()) {
    auto it = numbers.find(key);
    if (it != numbers.end() && value.is_number()) {
      *it->second = value.get<double>();
    } else if (key == "seed" && value.is_number_unsigned()) {
      c.seed = value.get<uint64_t>();
    } else if (key == "real_time" && value.is_boolean()) {
      c.real_time = value.get<bool>();
    } else if (key == "clock" && value.is_array() && !value.empty()) {
      c.clock.clear();
      for (const Json& mhz : value) c.clock.push_back(mhz.is_number() ? mhz.get<double>() : 0);
    } else if (key == "faults" && value.is_array()) {
      for (const Json& f : value) {
        std::string name =
            f.is_object() && f.contains("fault") && f["fault"].is_string() ? f["fault"].get<std::string>() : "";
        if (!fake_faults().count(name)) {
          std::vector<std::string> known;
          for (const auto& [fault, doc] : fake_faults()) known.push_back(fault);
          Refusal unknown(fake_config_invalid, fmt::format("no fault is named \"{}\"", name));
          std::string near = did_you_mean(name, known);
          return refuse(near.empty() ? unknown : unknown.with_help(fmt::format("did you mean \"{}\"?", near)));
        }
        c.faults.emplace_back(name, f.contains("p") && f["p"].is_number() ? f["p"].get<double>() : 1.0);
      }
    } else {
      return refuse(fake_config_invalid,
                    fmt::format("\"{}\" is no setting of a fake device, or has the wrong type", key));
    }
  }
  return c;
}

FakeTrace FakeTrace::parse(std::string_view text) {
  FakeTrace out;
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return out;
  collect(json, out);
  // [instructions, decisions]: a decision is [instruction index, value]; the index says nothing about quality.
  if (json.is_array() && json.size() == 2 && json[1].is_array())
    for (const Json& decision : json[1])
      if (decision.is_array() && decision.size() == 2) collect_integers(decision[1], out.decisions);
  return out;
}

const std::map<std::string, std::string>& fake_faults() {
  static const std::map<std::string, std::string> faults{
      {"replay_refused", "the trace does not apply"},
      {"lower_refused", "the scheduled program is refused"},
      {"build_error", "the compiler fails"},
      {"build_internal", "a check of ours fails in the build worker"},
      {"build_crash", "the build worker dies by SIGSEGV"},
      {"build_abort", "the build worker aborts"},
      {"build_exit", "the build worker exits without an answer"},
      {"build_hang", "the build worker sleeps for ever"},
      {"build_spin", "the build worker computes for ever"},
      {"build_memory", "the build worker allocates for ever"},
      {"load_error", "the artifact does not load"},
      {"slow_load", "loading never ends"},
      {"launch_error", "the launch is refused"},
      {"out_of_memory", "device allocation fails"},
      {"host_memory", "exec allocates for ever"},
      {"hang", "the first launch never ends and SIGTERM is ignored"},
      {"hang_timing", "a timed launch never ends"},
      {"segv", "exec dies by SIGSEGV"},
      {"abort", "exec aborts"},
      {"exit0", "exec exits without an answer"},
      {"stop", "exec is stopped"},
      {"sticky", "a sticky error until exec is replaced"},
      {"internal", "a check of ours fails in exec"},
      {"device_lost", "the device vanishes"},
      {"wrong_all", "every output element is wrong"},
      {"wrong_one", "one output element is wrong"},
      {"wrong_later", "one element is wrong after the first launches"},
      {"unwritten", "the output is never written"},
      {"red_zone", "a write outside a buffer"},
      {"input_overwrite", "an input is changed"},
      {"partial_frame", "half a frame, then the end"},
      {"garbage", "a frame that is no message"},
      {"oversized_frame", "a frame longer than the limit"},
      {"fork_bomb", "exec starts children that never end"},
      {"throttled", "the clock falls in every block"},
      {"disturbed", "every sample is disturbed"},
  };
  return faults;
}

std::string fake_fault(const FakeConfig& config, const FakeTrace& trace, std::string_view text) {
  auto it = trace.settings.find("fault");
  if (it != trace.settings.end()) return it->second;
  if (text.empty()) return "";  // the unscheduled program: the reference is never at fault by chance
  Rng rng = Rng::keyed(config.seed, hash_text("fault"), hash_text(text));
  for (const auto& [fault, p] : config.faults)
    if (rng.chance(p)) return fault;
  return "";
}

double fake_time_ns(const FakeConfig& config, const FakeTrace& trace, int device) {
  double time = 1000 * number(trace, "time_us", 0);
  if (time == 0) {
    time = 1000 * config.base_us * (trace.decisions.empty() ? config.untuned : 1);
    for (size_t i = 0; i < trace.decisions.size(); ++i) {
      Rng rng = Rng::keyed(config.seed, hash_text("optimum"), i);
      double optimum = 6 * rng.uniform(), value = std::log2(1.0 + static_cast<double>(std::abs(trace.decisions[i])));
      time *= 1 + config.spread * std::fabs(value - optimum) / 6;
    }
  }
  Rng rng = Rng::keyed(config.seed, hash_text("device"), static_cast<uint64_t>(device));
  return time * (1 + config.device_offset * (2 * rng.uniform() - 1));
}

}  // namespace tilewright::measure
