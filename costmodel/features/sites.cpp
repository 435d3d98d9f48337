#include "costmodel/features/sites.h"

#include <algorithm>
#include <utility>

namespace tilewright {

ThreadAxis thread_axis(const std::string& tag) {
  static const std::pair<const char*, ThreadAxis> table[] = {
      {"blockIdx.x", ThreadAxis::block_x},   {"blockIdx.y", ThreadAxis::block_y},
      {"blockIdx.z", ThreadAxis::block_z},   {"threadIdx.x", ThreadAxis::thread_x},
      {"threadIdx.y", ThreadAxis::thread_y}, {"threadIdx.z", ThreadAxis::thread_z}};
  for (const auto& [name, axis] : table)
    if (tag == name) return axis;
  if (tag.starts_with("vthread")) return ThreadAxis::vthread;
  return ThreadAxis::cluster;
}

namespace {

/// What the stores so far touched in one buffer under one loop.
struct Touch {
  int memory;
  int stores = 0;
  double least = 0, sum = 0;  // elements
};
using TouchTable = std::vector<std::vector<Touch>>;  // by loop

Touch& touch_of(TouchTable& table, int loop, int memory) {
  std::vector<Touch>& row = table[static_cast<size_t>(loop)];
  for (Touch& touch : row)
    if (touch.memory == memory) return touch;
  return row.emplace_back(Touch{memory});
}

double bytes_under(const TouchTable& touched, const SiteTable& table, int loop) {
  double bytes = 0;
  for (const Touch& touch : touched[static_cast<size_t>(loop)])
    bytes += touch.sum * table.memories[static_cast<size_t>(touch.memory)].bytes;
  return bytes;
}

void find_reuse(const SiteTable& table, const Site& site, SiteAccess& access, TouchTable& touched) {
  double inner = 1;  // product of the loops inside
  for (size_t i = site.loops.size(); i-- > 0;) {
    double extent = table.loop(site, i).extent;
    if (!access.moves[i]) {
      access.reuse = SiteAccess::Reuse::loop;
      access.reuse_count = extent;
      access.reuse_iterations = inner;
      if (i + 1 < site.loops.size()) {
        access.reuse_bytes = bytes_under(touched, table, site.loops[i + 1]);
      } else {
        for (const SiteAccess& other : site.accesses)
          access.reuse_bytes += table.memories[static_cast<size_t>(other.memory)].bytes;
      }
      return;
    }
    const Touch& touch = touch_of(touched, site.loops[i], access.memory);
    if (touch.stores >= 2) {
      access.reuse = SiteAccess::Reuse::serial;
      access.reuse_count = touch.stores - 1;
      access.reuse_iterations = touch.least / extent;
      access.reuse_bytes = bytes_under(touched, table, site.loops[i]) / extent;
      return;
    }
    inner *= extent;
  }
}

}  // namespace

void finish_sites(SiteTable& table) {
  TouchTable touched(table.loops.size());
  for (Site& site : table.sites) {
    site.product = 1;
    for (size_t i = 0; i < site.loops.size(); ++i) site.product *= table.loop(site, i).extent;
    site.bytes_touched.assign(site.loops.size(), 0);
    for (size_t i = 0; i < site.loops.size(); ++i)
      for (const SiteAccess& access : site.accesses) {
        double elements = access.touched[i];
        site.bytes_touched[i] += elements * table.memories[static_cast<size_t>(access.memory)].bytes;
        Touch& touch = touch_of(touched, site.loops[i], access.memory);
        touch.least = touch.stores == 0 ? elements : std::min(touch.least, elements);
        touch.sum += elements;
        ++touch.stores;
      }
    for (SiteAccess& access : site.accesses) find_reuse(table, site, access, touched);
  }
}

}  // namespace tilewright
