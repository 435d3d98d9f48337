// Slots 57–146: the five buffers of the store that touch most cache lines, 18 slots each.
#include <algorithm>

#include "costmodel/features/schema.h"

namespace tilewright {
namespace {

constexpr double cache_line = 64;  // bytes
constexpr size_t buffers = 5, slots_per_buffer = 18;

struct Traffic {
  const SiteAccess* access;
  const SiteMemory* memory;
  double bytes = 1, unique = 1, lines = 1, unique_lines = 1, stride = 0;
};

Traffic traffic_of(const Site& site, const SiteTable& table, const SiteAccess& access) {
  Traffic out{&access, &table.memories[static_cast<size_t>(access.memory)]};
  const SiteMemory& memory = *out.memory;
  out.bytes = memory.bytes * site.product;
  if (site.loops.empty()) return out;
  out.unique = memory.bytes * access.touched[0];
  double still = 1;  // iterations of the loops inside the innermost one that moves the buffer
  for (size_t i = site.loops.size(); i-- > static_cast<size_t>(access.stride_loop + 1);)
    still *= table.loop(site, i).extent;
  out.lines = std::max(1.0, site.product / still * std::min(1.0, access.stride * memory.bytes / cache_line));
  double contiguous = 1;
  for (size_t dim = memory.shape.size(); dim-- > 0;)
    if (access.shape[dim] == memory.shape[dim]) {
      contiguous = memory.shape[dim] * memory.bytes;
      break;
    }
  out.unique_lines = std::max(1.0, out.unique / std::min(cache_line, contiguous));
  if (access.stride_loop == static_cast<int>(site.loops.size()) - 1) out.stride = access.stride;
  return out;
}

void fill_buffer(const Traffic& t, std::span<float> slots) {
  const SiteAccess& a = *t.access;
  slots[static_cast<size_t>(a.kind)] = 1;
  slots[7 + static_cast<size_t>(a.reuse)] = 1;
  double per = a.reuse_count > 0 ? a.reuse_count : 0.5;
  const double logs[][2] = {{3, t.bytes},
                            {4, t.unique},
                            {5, t.lines},
                            {6, t.unique_lines},
                            {10, a.reuse_iterations},
                            {11, a.reuse_bytes},
                            {12, a.reuse_count},
                            {13, t.bytes / per},
                            {14, t.unique / per},
                            {15, t.lines / per},
                            {16, t.unique_lines / per},
                            {17, t.stride}};
  for (const auto& [slot, value] : logs) slots[static_cast<size_t>(slot)] = static_cast<float>(slog(value));
}

void fill(const Site& site, const SiteTable& table, std::span<float> slots) {
  std::vector<Traffic> all;
  for (const SiteAccess& access : site.accesses) all.push_back(traffic_of(site, table, access));
  std::stable_sort(all.begin(), all.end(), [](const Traffic& a, const Traffic& b) {
    if (a.lines != b.lines) return a.lines > b.lines;
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    return a.memory->name < b.memory->name;
  });
  for (size_t i = 0; i < std::min(buffers, all.size()); ++i)
    fill_buffer(all[i], slots.subspan(i * slots_per_buffer, slots_per_buffer));
}

std::vector<FeatureInfo> features() {
  const FeatureInfo each[slots_per_buffer] = {
      {"read", 0, "flag", "the buffer is read only"},
      {"write", 0, "flag", "the buffer is written only"},
      {"both", 0, "flag", "the buffer is read and written"},
      {"bytes", 0, "log2(1+bytes)", "element size times iterations"},
      {"unique-bytes", 0, "log2(1+bytes)", "size of the box touched by all loops"},
      {"lines", 0, "log2(1+lines)", "cache lines moved, from the stride of the innermost loop that moves the buffer"},
      {"unique-lines", 0, "log2(1+lines)", "unique bytes over the contiguous run, at most a line"},
      {"reuse-loop", 0, "flag", "reused because a loop does not move it"},
      {"reuse-serial", 0, "flag", "reused by a later store under a common loop"},
      {"reuse-none", 0, "flag", "not reused"},
      {"reuse-iterations", 0, "log2(1+iterations)", "distance of the reuse in iterations"},
      {"reuse-bytes", 0, "log2(1+bytes)", "distance of the reuse in bytes touched between"},
      {"reuse-count", 0, "log2(1+count)", "times a value is used again"},
      {"bytes-per-use", 0, "log2(1+bytes)", "bytes over the reuse count (over 0.5 if it is 0)"},
      {"unique-bytes-per-use", 0, "log2(1+bytes)", "unique bytes over the reuse count"},
      {"lines-per-use", 0, "log2(1+lines)", "lines over the reuse count"},
      {"unique-lines-per-use", 0, "log2(1+lines)", "unique lines over the reuse count"},
      {"stride", 0, "log2(1+elements)", "stride of the innermost loop, 0 if it does not move the buffer"}};
  std::vector<FeatureInfo> out;
  for (size_t b = 0; b < buffers; ++b)
    for (FeatureInfo feature : each) {
      feature.name = "buffer" + std::to_string(b) + "." + feature.name;
      out.push_back(std::move(feature));
    }
  return out;
}

Register<FeatureGroup> group{"buffers", "the buffers of the store, most cache lines first",
                             make_group(57, features(), fill)};

}  // namespace
}  // namespace tilewright
