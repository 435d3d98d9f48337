// Registry<T>: things that are added in one file. A file defines a static `Register<T> entry{name, doc, value}`;
// everything else (parser, printer, documentation, fuzzer, command line) looks the thing up by name. Out-of-tree
// plug-ins register the same way. Names are unique; a second registration of a name is an InternalError at load.
#pragma once

#include <map>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "support/check.h"
#include "support/diagnostic.h"

namespace tilewright {

/// Where a registered thing came from, for `plugin ls` and tests/golden/registry.txt.
struct RegistryEntryInfo {
  std::string registry, name, doc, file;
  int line = 0;
};

/// Records every registration of every registry (implemented in registry.cpp; one list per process).
void note_registration(RegistryEntryInfo);
std::vector<RegistryEntryInfo> all_registrations();

/// T must have `static constexpr const char* registry_name` ("primitive", "rule", …).
template <class T>
class Registry {
 public:
  struct Entry {
    std::string name, doc;
    T value;
  };

  static Registry& instance();

  const T* find(std::string_view name) const {
    auto it = entries_.find(name);
    return it == entries_.end() ? nullptr : &it->second.value;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, entry] : entries_) out.push_back(name);
    return out;
  }
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  std::string suggestion(std::string_view name) const { return did_you_mean(name, names()); }

  void add(std::string name, std::string doc, T value, const std::source_location& where) {
    note_registration({T::registry_name, name, doc, where.file_name(), static_cast<int>(where.line())});
    auto [it, fresh] = entries_.emplace(name, Entry{name, std::move(doc), std::move(value)});
    TW_CHECK(fresh, "{} \"{}\" is registered twice", T::registry_name, name);
  }

 private:
  std::map<std::string, Entry, std::less<>> entries_;
};

/// One instance per T and process: the core library holds it, so that shared objects do not get copies of their own.
void* registry_storage(const char* name, void* (*create)());

template <class T>
Registry<T>& Registry<T>::instance() {
  static void* storage = registry_storage(T::registry_name, [] { return static_cast<void*>(new Registry<T>); });
  return *static_cast<Registry<T>*>(storage);
}

template <class T>
struct Register {
  Register(std::string name, std::string doc, T value,
           const std::source_location& where = std::source_location::current()) {
    Registry<T>::instance().add(std::move(name), std::move(doc), std::move(value), where);
  }
};

}  // namespace tilewright
