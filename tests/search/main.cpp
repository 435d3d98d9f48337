#include <gtest/gtest.h>

#include "measure/entry.h"

int main(int argc, char** argv) {
  if (auto code = tilewright::measure::worker_main(argc, argv)) return *code;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
