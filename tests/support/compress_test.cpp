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

TEST(Compress, ADictionaryHelpsShortTextsAndFramesNameIt) {
  std::vector<std::string> samples;
  for (int i = 0; i < 400; ++i)
    samples.push_back("[[\"GetSBlock\",[],[\"C\",\"main\"]],[\"Split\",[" + std::to_string(i * 7919 % 1000) + "]]]");
  std::string dictionary = train_dictionary(samples, 2048);
  ASSERT_FALSE(dictionary.empty());
  Compressor plain, trained(dictionary);
  ASSERT_NE(trained.dictionary_id(), 0u);
  std::string frame = trained.compress(samples[5]);
  EXPECT_LT(frame.size(), plain.compress(samples[5]).size());
  EXPECT_EQ(trained.decompress(frame).value(), samples[5]);
  EXPECT_EQ(trained.decompress(plain.compress(samples[5])).value(), samples[5]);
  EXPECT_EQ(plain.decompress(frame).error().code(), "compressed-data-damaged");
  EXPECT_TRUE(train_dictionary(std::vector<std::string>{"one"}, 2048).empty());
}

}  // namespace
}  // namespace tilewright
