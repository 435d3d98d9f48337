// Uses the installed package as a stranger would: links the core, opens a plug-in, finds what it registered.
#include <fmt/format.h>

#include "greeting.h"
#include "support/component.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (auto missing = tilewright::open_plugin("no-such-plugin.so");
      missing || missing.error().code() != "plugin-not-loadable") {
    fmt::print("expected plugin-not-loadable for a file that does not exist\n");
    return 1;
  }
  if (auto opened = tilewright::open_plugin(argv[1]); !opened) {
    fmt::print("{}", tilewright::render_text(opened.error().diagnostic()));
    return 1;
  }
  const Greeting* greeting = tilewright::Registry<Greeting>::instance().find("consumer.hello");
  if (!greeting) {
    fmt::print("the plug-in's registration did not arrive\n");
    return 1;
  }
  fmt::print("{}, built for {}\n", greeting->text, tilewright::abi_word());
  return 0;
}
