#include "measure/worker/entry.h"

#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <new>

#include "measure/entry.h"
#include "measure/process/spawn.h"

namespace tilewright::measure {

namespace {

int enter(int argc, char** argv, int (*main)(const Arguments&), bool dies_with_parent = true) {
  Arguments arguments(argc, argv);
  if (!enter_child(static_cast<pid_t>(std::atol(arguments.get("--parent", "0").c_str())), dies_with_parent)) return 1;
  // Where an allocation fails, nothing can be reported but this code.
  std::set_new_handler([] { _exit(exit_out_of_memory); });
  for (const std::string& plugin : arguments.all("--plugin")) {
    if (auto opened = open_plugin(plugin); !opened) {
      std::fputs(render_text(opened.error().diagnostic()).c_str(), stderr);
      return 78;
    }
  }
  return main(arguments);
}

int worker(int argc, char** argv) {
  std::string_view kind = argc > 0 ? argv[0] : "";
  if (kind == "build") return enter(argc, argv, build_main);
  if (kind == "exec") return enter(argc, argv, exec_main);
  std::fputs("error: expected \"worker build\" or \"worker exec\"\n", stderr);
  return 78;
}

const Register<WorkerEntry> worker_entry{"worker", "build worker and exec", {worker}};
const Register<WorkerEntry> agent_entry{"agent", "the agent of an embedded session", {[](int argc, char** argv) {
                                          return enter(argc, argv, agent_main, false);
                                        }}};

}  // namespace

}  // namespace tilewright::measure
