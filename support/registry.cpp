#include "support/registry.h"

#include <algorithm>
#include <mutex>

namespace tilewright {

namespace {
std::mutex& lock() {
  static std::mutex mutex;
  return mutex;
}
std::vector<RegistryEntryInfo>& registrations() {
  static std::vector<RegistryEntryInfo> list;
  return list;
}
}  // namespace

void note_registration(RegistryEntryInfo info) {
  std::scoped_lock guard(lock());
  registrations().push_back(std::move(info));
}

std::vector<RegistryEntryInfo> all_registrations() {
  std::scoped_lock guard(lock());
  std::vector<RegistryEntryInfo> out = registrations();
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return std::tie(a.registry, a.name) < std::tie(b.registry, b.name); });
  return out;
}

void* registry_storage(const char* name, void* (*create)()) {
  static std::mutex mutex;
  static std::map<std::string, void*> instances;
  std::scoped_lock guard(mutex);
  void*& slot = instances[name];
  if (!slot) slot = create();
  return slot;
}

}  // namespace tilewright
