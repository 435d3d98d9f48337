// The CPU as a device: buffers on huge pages with red zones, artifacts by dlopen of their memory file, pinned threads,
// the time stamp counter. Runs inside exec only, because a candidate may do anything to this process.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "measure/check/compare.h"
#include "measure/check/inputs.h"
#include "measure/devices/cpu_calibrate.h"
#include "measure/devices/cpu_clock.h"
#include "measure/devices/cpu_pool.h"
#include "measure/devices/device.h"
#include "measure/process/memfd.h"
#include "support/check.h"
#include "support/hash.h"

namespace tilewright::measure {

namespace {

constexpr size_t page = 4096;
constexpr size_t red_zone = 256;
constexpr unsigned char red_byte = 0xA5;
constexpr size_t stagger = 128;  // buffer i starts 128·i bytes past a page: nobody wins or loses by 4 KiB aliasing
constexpr double coarse_ns = 10'000;
constexpr double short_ns = 1e6;
constexpr double undisturbed_ns = 100e6;  // one preemption of a few ms is small against a longer sample
constexpr double steal_share = 0.05;      // of a block's time: more stolen time disturbs the whole block

/// One mapping that holds buffers with red zones around each.
class Arena {
 public:
  /// Reserves room for a buffer; returns its number.
  size_t add(size_t bytes) {
    size_t start = (end_ + 2 * red_zone + page - 1) / page * page + stagger * (places_.size() % 24 + 2);
    places_.push_back({start, bytes});
    end_ = start + bytes;
    return places_.size() - 1;
  }
  bool allocate() {
    constexpr size_t huge = size_t{2} << 20;
    size_ = (end_ + red_zone + page - 1) / page * page + huge;
    void* p = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return false;
    mapping_ = static_cast<char*>(p);
    base_ = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(p) + huge - 1) / huge * huge);
    madvise(base_, size_ - huge, MADV_HUGEPAGE);
    for (const Place& place : places_) {
      std::memset(base_ + place.start - red_zone, red_byte, red_zone);
      std::memset(base_ + place.start + place.bytes, red_byte, red_zone);
    }
    return true;
  }
  ~Arena() {
    if (mapping_) munmap(mapping_, size_);
  }
  char* data(size_t i) const { return base_ + places_[i].start; }
  size_t bytes(size_t i) const { return places_[i].bytes; }
  bool intact(size_t i) const {
    const char* p = data(i);
    return all_red(p - red_zone) && all_red(p + bytes(i));
  }

 private:
  struct Place {
    size_t start, bytes;
  };
  static bool all_red(const char* p) {
    return std::all_of(p, p + red_zone, [](char c) { return static_cast<unsigned char>(c) == red_byte; });
  }
  std::vector<Place> places_;
  size_t end_ = 0, size_ = 0;
  char *mapping_ = nullptr, *base_ = nullptr;
};

const char* error_name(int32_t error) {
  switch (error) {
    case tw_error_abi:
      return "the host interface has another version";
    case tw_error_assert:
      return "an assertion of the program does not hold";
    case tw_error_bounds:
      return "an access out of bounds";
    case tw_error_workspace:
      return "no workspace";
    default:
      return "an unknown error";
  }
}

struct LoadedObject {
  void* handle = nullptr;
  tw_entry entry = nullptr;
  LoadedObject() = default;
  LoadedObject(LoadedObject&& o) noexcept
      : handle(std::exchange(o.handle, nullptr)), entry(o.entry), workspace(std::move(o.workspace)) {}
  LoadedObject& operator=(LoadedObject&& o) noexcept {
    std::swap(handle, o.handle);
    std::swap(entry, o.entry);
    std::swap(workspace, o.workspace);
    return *this;
  }
  ~LoadedObject() {
    if (handle) dlclose(handle);
  }
  std::unique_ptr<Arena> workspace;
};

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(int index) : index_(index), facts_(cpu_facts()), cores_(usable_cores()) {
    resize_pool(1);
    canary_baseline_ = fma_canary_ns(clock_);
  }

  DeviceInfo info() const override {
    DeviceInfo info{fmt::format("cpu-{}", index_), "cpu", facts_.model, {}, "serving"};
    info.facts["cores"] = std::to_string(cores_.size());
    info.facts["last_level_bytes"] = std::to_string(facts_.last_level_bytes);
    info.facts["governor"] = facts_.governor.empty() ? "unknown" : facts_.governor;
    info.facts["microcode"] = facts_.microcode;
    info.facts["timer"] = clock_.invariant() ? "tsc" : "clock_gettime";
    info.facts["canary_ns"] = fmt::format("{:.0f}", canary_baseline_);
    return info;
  }
  Timer timer() const override { return Timer::tsc; }

  Attempt<void> bind(const CheckPlan& plan, uint64_t seed, int threads) override {
    if (threads < 1 || static_cast<size_t>(threads) > cores_.size())
      return fault(TrialStatus::launch_error,
                   fmt::format("{} threads asked for, this host has {} free cores", threads, cores_.size()));
    resize_pool(threads);
    plan_ = plan;
    arena_ = std::make_unique<Arena>();
    groups_.clear();
    std::vector<size_t> outputs;  // one buffer per output; inputs exist once per set
    for (const BufferPlan& b : plan.buffers) outputs.push_back(b.is_output() ? arena_->add(b.bytes()) : 0);
    for (CheckSet set : plan.sets()) {
      Group& group = groups_[set];
      for (size_t i = 0; i < plan.buffers.size(); ++i) {
        const BufferPlan& b = plan.buffers[i];
        group.buffers.push_back(b.is_output() ? outputs[i] : arena_->add(b.bytes()));
        group.original.push_back(b.role == Role::inout ? arena_->add(b.bytes()) : no_buffer);
      }
    }
    if (!arena_->allocate())
      return fault(TrialStatus::out_of_memory, "the buffers of the program do not fit into memory");
    for (auto& [set, group] : groups_) {
      for (size_t i = 0; i < plan.buffers.size(); ++i) {
        if (plan.buffers[i].role == Role::output) continue;
        size_t at = plan.buffers[i].role == Role::inout ? group.original[i] : group.buffers[i];
        Tensor tensor = make_input(plan, i, set, seed);
        first_touch(arena_->data(at), tensor.bytes.size());
        std::memcpy(arena_->data(at), tensor.bytes.data(), tensor.bytes.size());
        group.checksum[at] = hash_bytes(arena_->data(at), arena_->bytes(at));
      }
      for (size_t b : group.buffers) group.pointers.push_back(arena_->data(b));
    }
    return {};
  }

  Attempt<void> load(size_t slot, const Fd& artifact, const EntryInfo& entry) override {
    if (slots_.size() <= slot) slots_.resize(slot + 1);
    slots_[slot] = LoadedObject();
    last_sample_ns_ = 0;  // of another artifact
    LoadedObject& object = slots_[slot];
    object.handle = dlopen(fmt::format("/proc/self/fd/{}", artifact.get()).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!object.handle) return fault(TrialStatus::load_error, dlerror());
    object.entry = reinterpret_cast<tw_entry>(dlsym(object.handle, entry.symbol.c_str()));
    if (!object.entry)
      return fault(TrialStatus::load_error, fmt::format("the artifact has no symbol {}", entry.symbol));
    size_t bytes = entry.workspace_bytes + pool_->workers() * entry.worker_bytes;
    if (bytes > 0) {
      object.workspace = std::make_unique<Arena>();
      object.workspace->add((bytes + 63) / 64 * 64);
      if (!object.workspace->allocate())
        return fault(TrialStatus::out_of_memory, fmt::format("no {} bytes of workspace", bytes));
    }
    return {};
  }
  void unload_all() override { slots_.clear(); }

  Attempt<double> launch(size_t slot, CheckSet set) override {
    Group& group = groups_.at(set);
    for (size_t i = 0; i < plan_.buffers.size(); ++i)
      if (plan_.buffers[i].is_output()) std::memset(group.pointers[i], poison_byte, plan_.buffers[i].bytes());
    restore(group);
    CpuPool::Undisturbed undisturbed(*pool_);
    uint64_t begin = clock_.now();
    if (Attempt<void> done = call(slots_[slot], group); !done) return tl::unexpected(done.error());
    return clock_.ns(clock_.now() - begin);
  }

  Attempt<Block> time(size_t slot, const BlockSpec& spec) override {
    LoadedObject& object = slots_[slot];
    Group& group = groups_.at(plan_.sets().back());
    Block block;
    CpuPool::Undisturbed undisturbed(*pool_);
    bool fresh = CpuClock::raw_ns() - last_probe_at_ < 1'000'000;
    block.clock_before = fresh ? last_probe_ : probe();
    uint64_t stolen = stolen_ticks(pool_->cpus()), begin = CpuClock::raw_ns();
    // One launch that does not count: it warms the operands, or, cold, the code and what predicts it. Every first
    // sample of a block would be an outlier else. Long kernels have nothing of it.
    if (spec.mode == Mode::warm || last_sample_ns_ < short_ns) {
      restore(group);
      if (spec.mode != Mode::warm) flush(object, group);
      if (Attempt<void> warmed = call(object, group); !warmed) return tl::unexpected(warmed.error());
    }
    for (uint32_t i = 0; i < spec.samples; ++i) {
      restore(group);
      if (spec.mode != Mode::warm) flush(object, group);
      uint64_t interrupted = preemptions() + pool_->preemptions();
      double ns = 0;
      if (Attempt<void> ran = sample(object, group, spec.launches_per_sample, ns); !ran)
        return tl::unexpected(ran.error());
      if (ns < undisturbed_ns && preemptions() + pool_->preemptions() != interrupted) {
        ++block.discarded;
        continue;
      }
      last_sample_ns_ = ns / spec.launches_per_sample;
      block.ns.push_back(last_sample_ns_);
      block.coarse |= ns < coarse_ns;
    }
    block.elapsed_ns = static_cast<double>(CpuClock::raw_ns() - begin);
    double stolen_ns = static_cast<double>(stolen_ticks(pool_->cpus()) - stolen) * 1e7;
    if (stolen_ns > steal_share * block.elapsed_ns * pool_->workers() && stolen_ns > 2e7) {  // one tick may be rounding
      block.discarded += static_cast<uint32_t>(block.ns.size());
      block.ns.clear();
    }
    block.clock_after = probe();
    return block;
  }

  Attempt<std::string_view> output(size_t buffer) override {
    size_t at = groups_.begin()->second.buffers[buffer];
    return std::string_view(arena_->data(at), arena_->bytes(at));
  }

  std::string hit_red_zone() override {
    for (auto& [set, group] : groups_)
      for (size_t i = 0; i < group.buffers.size(); ++i)
        if (!arena_->intact(group.buffers[i])) return plan_.buffers[i].name;
    for (const LoadedObject& object : slots_)
      if (object.workspace && !object.workspace->intact(0)) return "(workspace)";
    return "";
  }

  std::string changed_input() override {
    for (auto& [set, group] : groups_)
      for (size_t i = 0; i < group.buffers.size(); ++i) {
        if (plan_.buffers[i].role == Role::output) continue;
        size_t at = plan_.buffers[i].role == Role::inout ? group.original[i] : group.buffers[i];
        if (hash_bytes(arena_->data(at), arena_->bytes(at)) != group.checksum[at]) return plan_.buffers[i].name;
      }
    return "";
  }

  double canary() override { return fma_canary_ns(clock_); }

  Attempt<Calibration> calibrate(int threads) override {
    if (threads < 1 || static_cast<size_t>(threads) > cores_.size())
      return fault(TrialStatus::launch_error,
                   fmt::format("{} threads asked for, this host has {} free cores", threads, cores_.size()));
    resize_pool(threads);
    Calibration c;
    c.device = info().uuid;
    c.threads = threads;
    c.flops_per_s = peak_rates(*pool_, clock_);
    MemoryRates memory = memory_rates(*pool_, clock_, facts_.last_level_bytes);
    c.stream_bytes_per_s = memory.triad_bytes_per_s;
    c.copy_bytes_per_s = memory.copy_bytes_per_s;
    c.clock_mhz = clock_.probe_mhz();
    auto nothing = [](void*, int64_t, uint32_t) -> int32_t { return 0; };
    c.launch_ns = 1e9;
    for (int i = 0; i < 200; ++i) {
      uint64_t begin = clock_.now();
      pool_->run(threads, nothing, nullptr);
      c.launch_ns = std::min(c.launch_ns, clock_.ns(clock_.now() - begin));
    }
    return c;
  }

 private:
  static constexpr size_t no_buffer = ~size_t{0};
  struct Group {
    std::vector<size_t> buffers, original;  ///< numbers in the arena
    std::vector<void*> pointers;
    std::map<size_t, Hash64> checksum;
  };

  void resize_pool(int threads) {
    if (pool_ && pool_->workers() == static_cast<uint32_t>(threads)) return;
    pool_.reset();
    pool_ = std::make_unique<CpuPool>(std::vector<int>(cores_.begin(), cores_.begin() + threads));
  }

  double probe() {
    last_probe_ = clock_.probe_mhz();
    last_probe_at_ = CpuClock::raw_ns();
    return last_probe_;
  }

  /// Pages belong to the node of the worker that will most likely use them.
  void first_touch(char* data, size_t bytes) {
    struct Span {
      char* data;
      size_t bytes, workers;
    } span{data, bytes, pool_->workers()};
    auto touch = [](void* env, int64_t chunk, uint32_t) -> int32_t {
      auto& s = *static_cast<Span*>(env);
      size_t begin = s.bytes * static_cast<size_t>(chunk) / s.workers,
             end = s.bytes * (static_cast<size_t>(chunk) + 1) / s.workers;
      std::memset(s.data + begin, 0, end - begin);
      return 0;
    };
    pool_->run(pool_->workers(), touch, &span);
  }

  void restore(Group& group) {
    for (size_t i = 0; i < group.buffers.size(); ++i)
      if (group.original[i] != no_buffer)
        std::memcpy(arena_->data(group.buffers[i]), arena_->data(group.original[i]), arena_->bytes(group.buffers[i]));
  }

  tw_host host(LoadedObject& object) {
    return {TW_HOST_ABI, pool_->workers(), pool_.get(), object.workspace ? object.workspace->data(0) : nullptr,
            pool_->workers() > 1 ? CpuPool::parallel_for : nullptr};
  }

  Attempt<void> call(LoadedObject& object, Group& group) {
    tw_host h = host(object);
    if (int32_t error = object.entry(group.pointers.data(), nullptr, &h))
      return fault(TrialStatus::launch_error, fmt::format("the entry returned {}: {}", error, error_name(error)));
    return {};
  }

  /// `launches` launches on buffers that have just been restored. Inout buffers are restored between them, off the
  /// clock.
  Attempt<void> sample(LoadedObject& object, Group& group, uint32_t launches, double& ns) {
    bool restores = std::any_of(group.original.begin(), group.original.end(), [](size_t o) { return o != no_buffer; });
    uint32_t together = restores ? 1 : launches;
    tw_host h = host(object);
    int32_t error = 0;
    for (uint32_t done = 0; done < launches && !error; done += together) {
      if (done > 0) restore(group);
      uint64_t begin = clock_.now();
      for (uint32_t i = 0; i < together; ++i) error |= object.entry(group.pointers.data(), nullptr, &h);
      ns += clock_.ns(clock_.now() - begin);
    }
    if (error)
      return fault(TrialStatus::launch_error, fmt::format("a timed launch returned {}: {}", error, error_name(error)));
    return {};
  }

  /// Everything that the launch may touch leaves the caches, dirty lines of earlier launches included.
  void flush(LoadedObject& object, Group& group) {
    for (size_t b : group.buffers) flush_range(arena_->data(b), arena_->bytes(b));
    if (object.workspace) flush_range(object.workspace->data(0), object.workspace->bytes(0));
    _mm_mfence();
  }

  int index_;
  CpuFacts facts_;
  std::vector<int> cores_;
  CpuClock clock_;
  std::unique_ptr<CpuPool> pool_;
  CheckPlan plan_;
  std::unique_ptr<Arena> arena_;
  std::map<CheckSet, Group> groups_;
  std::vector<LoadedObject> slots_;
  double canary_baseline_ = 0, last_probe_ = 0, last_sample_ns_ = 0;
  uint64_t last_probe_at_ = 0;
};

const Register<DeviceKind> cpu_kind{"cpu",
                                    "the cores of this host",
                                    {[](int index, const std::string&) -> Result<std::unique_ptr<Device>> {
                                       return std::make_unique<CpuDevice>(index);
                                     },
                                     ""}};

}  // namespace

}  // namespace tilewright::measure
