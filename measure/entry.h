// The hidden entries of the tool: `tilewright worker build|exec --fd N` and `tilewright agent --fd N`. Call it first in
// main, before anything heavy initialises:
//
//   if (auto code = tilewright::measure::worker_main(argc, argv)) return *code;
#pragma once

#include <cstdio>
#include <functional>
#include <optional>
#include <string_view>

#include "support/component.h"
#include "support/registry.h"

namespace tilewright::measure {

struct WorkerEntry {
  static constexpr const char* registry_name = "worker entry";
  std::function<int(int argc, char** argv)> run;  ///< argv[0] is the entry's own first argument; returns the exit code
};

/// The exit code if the arguments name a hidden entry, else nothing. `agent` is hidden only with --fd: without it, it
/// is a command.
inline std::optional<int> worker_main(int argc, char** argv) {
  std::string_view first = argc > 1 ? argv[1] : "", second = argc > 2 ? argv[2] : "";
  if (first != "worker" && !(first == "agent" && second == "--fd")) return std::nullopt;
  if (Status opened = open_component("measure"); !opened) {
    std::fputs(render_text(opened.error().diagnostic()).c_str(), stderr);
    return 78;
  }
  const WorkerEntry* entry = Registry<WorkerEntry>::instance().find(first);
  return entry ? entry->run(argc - 2, argv + 2) : 78;
}

}  // namespace tilewright::measure
