#include "support/compress.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(Compress, RoundTripsAndShrinks) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "the same words again and again ";
  std::string frame = compress(text);
  EXPECT_LT(frame.size(), text.size() / 10);
  EXPECT_EQ(decompress(frame).value(), text);
  EXPECT_EQ(decompress(compress("")).value(), "");
}

TEST(Compress, DamageIsRefused) {
  std::string frame = compress(std::string(5000, 'x') + "end");
  std::string flipped = frame;
  flipped[flipped.size() - 2] ^= 1;  // in the checksum
  for (const std::string& bad : {std::string(), std::string("not a frame"), frame.substr(0, frame.size() - 3), flipped})
    EXPECT_EQ(decompress(bad).error().code(), "compressed-data-damaged");
  EXPECT_EQ(decompress(frame, 5002).error().code(), "compressed-data-damaged");
  EXPECT_TRUE(decompress(frame, 5003));
}

}  // namespace
}  // namespace tilewright
