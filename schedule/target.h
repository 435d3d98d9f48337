// Target: what a program is tuned and compiled for, as plain data that every layer reads (rules, features, lowering,
// code generation). A target is named in text `NAME[:key=value,…]`, where NAME is `native` (this CPU), a CPU name, an
// `sm_*` or a device tag; each registered target is one row of a file in schedule/targets/. Sizes are bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/registry.h"
#include "support/result.h"

namespace tilewright {

TW_REFUSAL_CODE(target_unknown, "target-unknown", "no target of that name is registered");
TW_REFUSAL_CODE(target_malformed, "target-malformed", "a target's text is not NAME[:key=value,…]");
TW_REFUSAL_CODE(target_key_unknown, "target-key-unknown", "a target has no property of that name");
TW_REFUSAL_CODE(target_value_invalid, "target-value-invalid", "a target's property has a value out of its range");
TW_REFUSAL_CODE(target_cores_missing, "target-cores-missing",
                "a CPU target other than native must say its number of cores");
TW_REFUSAL_CODE(target_needs_device, "target-needs-device",
                "this target can only be resolved on a machine with such a device");

enum class TargetKind : uint8_t { cpu, cuda };

struct Target {
  static constexpr const char* registry_name = "target";

  std::string name;  ///< registered name: "x86-64-v3", "znver5", "sm_90a", "h200"
  TargetKind kind = TargetKind::cpu;
  std::string arch;                   ///< what the code generator is told: LLVM CPU name, or "sm_90a"
  std::vector<std::string> features;  ///< sorted. CPU: LLVM words ("avx2", "fma"). GPU: "cp_async", "wgmma", …

  // CPU
  int cores = 0;             ///< kernel threads
  int vector_bits = 0;       ///< widest vector that code uses
  int vector_registers = 0;  ///< architectural vector registers
  int fma_pipes = 0;         ///< vector FMAs issued per cycle
  int fma_latency = 0;       ///< cycles; pipes × latency independent chains fill the units
  int64_t l1_bytes = 0;      ///< data cache of one core
  int64_t l2_bytes = 0;      ///< of one core (CPU), of the device (GPU)
  int64_t l3_bytes = 0;      ///< share of one core
  int64_t page_bytes = 4096;

  // GPU
  int sms = 0;
  int warp_size = 0;
  int max_threads_per_block = 0;
  int threads_per_sm = 0;
  int blocks_per_sm = 0;
  int registers_per_sm = 0;  ///< also the limit of one block
  int registers_per_thread = 0;
  int64_t shared_per_sm = 0;
  int64_t shared_per_block = 0;  ///< with opt-in
  int64_t shared_reserved = 0;   ///< taken by the driver from each block's share
  int64_t shared_granularity = 0;
  int max_cluster = 1;
  double dram_bytes_per_s = 0;

  bool has(std::string_view feature) const;
  bool is_cpu() const { return kind == TargetKind::cpu; }
  bool is_cuda() const { return kind == TargetKind::cuda; }
  /// Elements of that many bits in one vector.
  int lanes(int element_bits) const { return vector_bits / element_bits; }
  /// Canonical text: name, then only what differs from the registered target, in fixed order. parse_target(text()) is
  /// equal.
  std::string text() const;
  bool operator==(const Target&) const = default;
};

/// Resolves a target's text; `native` becomes a CPU name with this machine's cores and caches.
Result<Target> parse_target(std::string_view text);

/// This machine's CPU: the registered CPU of that model, or the x86-64 level that it supports, with physical cores and
/// caches.
Target native_target();

/// Names of the features that `target` has and this machine lacks (CPU); empty: its code runs here.
std::vector<std::string> features_missing_here(const Target&);

}  // namespace tilewright
