// Times an exported kernel and its peers alternately in one process, on the same buffers.
//
//   peer_bench --op gemm:m=512,n=512,k=512 --kernel NAME.so [--threads N] [--cold] [--rounds N] [--peer NAME]...
//
// NAME.so has tw_bench_run(buffers) and tw_bench_threads(n); bench/against_peers.py makes it. Prints one JSON line:
// medians in µs, and for each peer the median and quartiles of the ratios peer ÷ kernel of the rounds (above 1: the
// kernel is faster), and the largest difference of the results, relative to the largest value.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>
#include <x86intrin.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>

#include "bench/peers/peer.h"
#include "ir/build.h"
#include "support/json.h"
#include "support/rng.h"
#include "workloads/operator.h"

using namespace tilewright;

namespace {

using Clock = std::chrono::steady_clock;

struct Buffers {
  std::vector<std::vector<char>> storage;
  std::vector<void*> pointers;
  std::vector<size_t> bytes;

  explicit Buffers(const Function& f) {
    Rng random(static_cast<uint64_t>(Clock::now().time_since_epoch().count()));  // fresh data in every run
    for (size_t i = 0; i < f.params.size(); ++i) {
      const Buffer& b = f.params[i].buffer;
      size_t n = 1;
      for (const Expr& e : b->shape) n *= static_cast<size_t>(const_int(e).value_or(1));
      bytes.push_back(n * static_cast<size_t>(b->dtype.bits / 8));
      // Staggered, so that nobody wins or loses by 4 KiB aliasing.
      storage.emplace_back(bytes.back() + 8192);
      auto start = (reinterpret_cast<uintptr_t>(storage.back().data()) + 4095) / 4096 * 4096 + 128 * (i + 1);
      pointers.push_back(reinterpret_cast<void*>(start));
      if (b->dtype.bits == 32)
        for (size_t k = 0; k < n; ++k)
          static_cast<float*>(pointers.back())[k] = static_cast<float>(2 * random.uniform() - 1);
    }
  }
  void evict() const {
    for (size_t i = 0; i < pointers.size(); ++i)
      for (size_t k = 0; k < bytes[i]; k += 64) _mm_clflush(static_cast<char*>(pointers[i]) + k);
    _mm_mfence();
  }
};

double median(std::vector<double> v, double q = 0.5) {
  std::sort(v.begin(), v.end());
  return v[std::min(v.size() - 1, static_cast<size_t>(q * static_cast<double>(v.size())))];
}

}  // namespace

int main(int argc, char** argv) {
  std::string op, kernel;
  int threads = 1, rounds = 60;
  bool cold = false;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    std::string a = argv[i];
    auto next = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
    if (a == "--op")
      op = next();
    else if (a == "--kernel")
      kernel = next();
    else if (a == "--threads")
      threads = std::stoi(next());
    else if (a == "--rounds")
      rounds = std::stoi(next());
    else if (a == "--cold")
      cold = true;
    else if (a == "--peer")
      wanted.push_back(next());
    else
      return fmt::print(stderr, "unknown option {}\n", a), 2;
  }
  auto workload = make_workload(op);
  if (!workload) return fmt::print(stderr, "{}", render_text(workload.error().diagnostic())), 2;
  void* library = dlopen(kernel.c_str(), RTLD_NOW);
  if (!library) return fmt::print(stderr, "{}\n", dlerror()), 2;
  auto run = reinterpret_cast<int32_t (*)(void* const*)>(dlsym(library, "tw_bench_run"));
  auto set_threads = reinterpret_cast<void (*)(uint32_t)>(dlsym(library, "tw_bench_threads"));
  if (!run || !set_threads) return fmt::print(stderr, "{} was not made by against_peers.py\n", kernel), 2;
  set_threads(static_cast<uint32_t>(threads));

  bench::Problem problem{workload->op, {}, {}, threads};
  for (const auto& [name, value] : workload->parameters) {
    if (!value.empty() && std::isdigit(static_cast<unsigned char>(value[0])))
      problem.sizes[name] = std::stoll(value);
    else
      problem.words[name] = value;
  }
  struct Contender {
    std::string name;
    bench::Run run;
    std::vector<double> ns;
  };
  std::vector<Contender> contenders;
  contenders.push_back({"tilewright",
                        [run](void* const* b) {
                          if (run(b) != 0) std::abort();
                        },
                        {}});
  for (const std::string& name : Registry<bench::Peer>::instance().names()) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    if (bench::Run peer = Registry<bench::Peer>::instance().find(name)->prepare(problem))
      contenders.push_back({name, std::move(peer), {}});
  }

  // Real-time priority where it may be had: other processes then disturb nobody.
  sched_param parameter{1};
  bool real_time = threads == 1 && sched_setscheduler(0, SCHED_FIFO, &parameter) == 0;

  Buffers buffers(*workload->program->main());
  const size_t out = buffers.pointers.size() - 1;
  auto result = [&](Contender& c) {
    std::memset(buffers.pointers[out], 0xA5, buffers.bytes[out]);
    c.run(buffers.pointers.data());
    const float* p = static_cast<const float*>(buffers.pointers[out]);
    return std::vector<float>(p, p + buffers.bytes[out] / 4);
  };
  Json line{{"op", op}, {"threads", threads}, {"cold", cold}, {"real_time", real_time}};
  std::vector<float> ours = result(contenders[0]);
  for (size_t c = 1; c < contenders.size(); ++c) {
    std::vector<float> theirs = result(contenders[c]);
    double most = 0, difference = 0;
    for (size_t i = 0; i < ours.size(); ++i) {
      most = std::max(most, static_cast<double>(std::fabs(theirs[i])));
      difference = std::max(difference, static_cast<double>(std::fabs(theirs[i] - ours[i])));
    }
    line["peers"][contenders[c].name]["difference"] = most > 0 ? difference / most : difference;
  }

  auto sample = [&](Contender& c, int launches) {
    if (cold) buffers.evict();
    auto begin = Clock::now();
    for (int i = 0; i < launches; ++i) c.run(buffers.pointers.data());
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / launches;
  };
  std::vector<int> launches;
  for (Contender& c : contenders) {
    double ns = std::min(sample(c, 1), sample(c, 3));
    launches.push_back(cold ? 1 : static_cast<int>(std::clamp(200'000 / ns, 1.0, 1000.0)));
  }
  for (int r = 0; r < rounds; ++r)
    for (size_t k = 0; k < contenders.size(); ++k) {
      size_t c = (k + static_cast<size_t>(r)) % contenders.size();
      if (contenders[c].name == "plain" && r >= std::max(3, rounds / 10)) continue;  // slow, and no close call
      // Threads of the contender before spin on the cores that this one needs.
      if (threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (!cold || threads > 1) contenders[c].run(buffers.pointers.data());
      contenders[c].ns.push_back(sample(contenders[c], launches[c]));
    }
  line["us"] = median(contenders[0].ns) / 1e3;
  line["gflops"] = workload->flop / median(contenders[0].ns);
  for (size_t c = 1; c < contenders.size(); ++c) {
    std::vector<double> ratio;
    for (size_t r = 0; r < contenders[c].ns.size(); ++r) ratio.push_back(contenders[c].ns[r] / contenders[0].ns[r]);
    Json& peer = line["peers"][contenders[c].name];
    peer["us"] = median(contenders[c].ns) / 1e3;
    peer["ratio"] = median(ratio);
    peer["ratio_q1"] = median(ratio, 0.25);
    peer["ratio_q3"] = median(ratio, 0.75);
  }
  fmt::print("{}\n", line.dump());
  return 0;
}
