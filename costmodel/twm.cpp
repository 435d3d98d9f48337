#include "costmodel/twm.h"

#include <charconv>

#include "costmodel/model.h"
#include "support/compress.h"
#include "support/json.h"

namespace tilewright {

namespace {

constexpr std::string_view magic = "TWM1";
constexpr int version = 1;

Hash64 parse_hex(const std::string& text) {
  Hash64 value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.size() != 16)
    throw std::runtime_error(fmt::format("expected 16 hexadecimal digits, found \"{}\"", text));
  return value;
}

}  // namespace

std::string write_twm(const TwmFile& file) {
  Json header = {{"version", version},
                 {"schema", hex64(file.schema)},
                 {"target_kind", file.target_kind},
                 {"dtype_class", file.dtype_class},
                 {"parameters", file.parameters},
                 {"samples", hex64(file.samples)},
                 {"sample_count", file.sample_count}};
  Json& metrics = header["held_out"] = Json::object();
  for (const MetricValue& metric : file.held_out) metrics[metric.name] = metric.value;
  header["state"] = {{"fresh", file.state.fresh},
                     {"last_size", file.state.last_size},
                     {"trainings", file.state.trainings},
                     {"rank", file.state.rank}};
  Json& boosters = header["boosters"] = Json::array();
  std::string texts;
  for (const TwmFile::Booster& booster : file.boosters) {
    boosters.push_back({{"role", booster.role}, {"weight", booster.weight}, {"bytes", booster.json.size()}});
    texts += booster.json;
  }
  std::string text = header.dump(), out(magic);
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(text.size() >> shift & 255));
  return out + text + compress(texts);
}

Result<TwmFile> read_twm(std::string_view bytes) {
  auto damaged = [](std::string what) { return refuse(model_file_damaged, "not a model file: " + what); };
  if (bytes.substr(0, magic.size()) != magic) return damaged("it does not begin with \"TWM1\"");
  if (bytes.size() < 8) return damaged("it ends within its header");
  size_t length = 0;
  for (int i = 0; i < 4; ++i) length |= static_cast<size_t>(static_cast<unsigned char>(bytes[4 + i])) << (8 * i);
  if (bytes.size() - 8 < length) return damaged("it ends within its header");
  TW_TRY(std::string texts, decompress(bytes.substr(8 + length)));
  try {
    Json header = Json::parse(bytes.substr(8, length));
    if (int found = header.at("version"); found != version)
      return damaged(fmt::format("expected version {}, found {}", version, found));
    TwmFile file;
    file.schema = parse_hex(header.at("schema"));
    file.target_kind = header.at("target_kind");
    file.dtype_class = header.at("dtype_class");
    file.parameters = header.at("parameters");
    file.samples = parse_hex(header.at("samples"));
    file.sample_count = header.at("sample_count");
    for (const auto& [name, value] : header.at("held_out").items()) file.held_out.push_back({name, value});
    const Json& state = header.at("state");
    file.state = {state.at("fresh"), state.at("last_size"), state.at("trainings"), state.at("rank")};
    size_t at = 0;
    for (const Json& booster : header.at("boosters")) {
      size_t size = booster.at("bytes");
      if (texts.size() - at < size)
        return damaged(fmt::format("expected {} bytes of boosters, found {}", at + size, texts.size()));
      file.boosters.push_back({booster.at("role"), booster.at("weight"), texts.substr(at, size)});
      at += size;
    }
    if (at != texts.size()) return damaged(fmt::format("expected {} bytes of boosters, found {}", at, texts.size()));
    return file;
  } catch (const std::exception& error) {
    return damaged(error.what());
  }
}

}  // namespace tilewright
