// tests/golden/registry.txt lists every registered thing with the file that registers it: an object file that the
// linker dropped, a name that vanished and a thing that moved are differences.
#include "support/registry.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "support/component.h"
#include "tests/golden.h"

namespace tilewright {
namespace {

std::string listing() {
  std::string text, registry;
  for (const RegistryEntryInfo& entry : all_registrations()) {
    if (entry.registry != registry) text += fmt::format("{}{}\n", text.empty() ? "" : "\n", entry.registry);
    registry = entry.registry;
    text += fmt::format("  {:<32} {}\n", entry.name, entry.file);
  }
  return text;
}

TEST(Registry, ListsEverythingWithItsOrigin) {
  std::istringstream components(TW_COMPONENT_NAMES);
  for (std::string name; components >> name;) {
    Status opened = open_component(name);
    ASSERT_TRUE(opened) << render_text(opened.error().diagnostic());
  }
  for (const RegistryEntryInfo& entry : all_registrations())
    EXPECT_TRUE(!entry.doc.empty() || entry.registry == "operation")
        << entry.registry << " \"" << entry.name << "\" has no doc";
  if (!std::filesystem::exists(TW_SOURCE_DIR "/tests/golden/registry.txt") && !std::getenv("TILEWRIGHT_UPDATE_GOLDEN"))
    GTEST_SKIP() << "tests/golden/registry.txt is not written yet: scripts/dev golden registry";
  expect_golden("registry.txt", listing());
}

TEST(Registry, AnUnknownComponentIsRefused) {
  Status opened = open_component("no-such");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), "component-missing");
}

}  // namespace
}  // namespace tilewright
