#include "database/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include "support/reflect_json.h"
#include "support/schema.h"

namespace tilewright {

namespace {

Register<Schema> schema_entry{"record", "one record of the tuning database", {record_schema}};

auto order(const Measurement& m) { return std::tuple(m.result.finished_us, m.campaign.value, m.seq, m.result.attempt); }

/// Trusted enough to rank: 0 = not at all, then by stage; unverified results rank below every verified one.
int trust(const Measurement& m) {
  const JobResult& r = m.result;
  if (r.status != TrialStatus::ok || r.n <= 0 || !(r.median_ns > 0) || r.stage > Stage::final) return 0;
  return static_cast<int>(r.stage) + (r.verified ? 16 : 0);
}

/// `measurements` in order of time.
void rank(Record& record, const std::vector<const Measurement*>& measurements) {
  int best = 0;
  for (const Measurement* m : measurements) best = std::max(best, trust(*m));
  record.rank_ns = record.ci_lo_ns = record.ci_hi_ns = std::nullopt;
  record.n = 0;
  record.verified = best >= 16;
  record.stage = static_cast<Stage>(best % 16);
  if (best == 0) return;
  std::map<std::pair<uint64_t, int64_t>, const Measurement*> last;  // of each trial
  for (const Measurement* m : measurements)
    if (trust(*m) == best) last[{m->campaign.value, m->seq}] = m;
  double sum = 0, lo = 0, hi = 0;
  for (const Measurement* m : measurements) {
    if (trust(*m) != best || last.at({m->campaign.value, m->seq}) != m) continue;
    double canary = m->result.canary_ratio.value_or(1);
    double weight = static_cast<double>(m->result.n) / (canary > 0 ? canary : 1);
    sum += weight * m->result.median_ns;
    lo += weight * m->result.ci_lo_ns;
    hi += weight * m->result.ci_hi_ns;
    record.n += m->result.n;
  }
  double n = static_cast<double>(record.n);
  record.rank_ns = sum / n;
  record.ci_lo_ns = lo / n;
  record.ci_hi_ns = hi / n;
}

}  // namespace

Key128 workload_key(std::string_view program, int64_t ir_version) {
  return content_key(fmt::format("{}\n{}", program, ir_version));
}

Key128 text_key(std::string_view json) { return content_key(json); }

std::string target_text(std::string_view target, const ByName<std::string>& environment) {
  if (environment.empty()) return std::string(target);
  Json json = {{"target", target}};
  for (const auto& [name, value] : environment) json[name] = value;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Key128 target_class(std::string_view arch, std::string_view device) {
  return content_key(fmt::format("{}\n{}", arch, device));
}

ByName<std::string> target_parts(std::string_view text) {
  Json json = text.starts_with('{') ? Json::parse(text, nullptr, false) : Json();
  if (!json.is_object()) return {{"target", std::string(text)}};
  ByName<std::string> parts;
  for (const auto& [name, value] : json.items())
    parts[name] = value.is_string() ? value.get<std::string>() : value.dump();
  return parts;
}

uint64_t Record::short_id() const {
  return content_key(fmt::format("{} {} {} {}", workload.hex(), target.hex(), to_string(mode), trace_key.hex())).high >>
         16;
}

std::string Record::id() const { return fmt::format("r-{:012x}", short_id()); }

std::optional<uint64_t> parse_record_id(std::string_view id) {
  if (id.size() != 14 || !id.starts_with("r-")) return std::nullopt;
  uint64_t value = 0;
  auto [end, error] = std::from_chars(id.data() + 2, id.data() + id.size(), value, 16);
  if (error != std::errc{} || end != id.data() + id.size()) return std::nullopt;
  return value;
}

void summarize(Record& record, std::vector<const Measurement*> measurements) {
  std::erase_if(measurements, [](const Measurement* m) { return m->withdrawn; });
  // One order, so that a merge, an import and the run itself come to the same last bit.
  std::sort(measurements.begin(), measurements.end(),
            [](const Measurement* a, const Measurement* b) { return order(*a) < order(*b); });
  record.measurements = static_cast<int64_t>(measurements.size());
  record.settled = 0;
  record.blocked = false;
  record.failures.clear();
  record.toolchain.clear();
  record.artifact.clear();
  record.plugins.clear();
  record.updated_us = 0;
  record.status = TrialStatus::unspecified;
  rank(record, measurements);
  for (const Measurement* m : measurements) {
    const JobResult& r = m->result;
    if (r.settled) ++record.settled;
    if (r.status != TrialStatus::ok) ++record.failures[to_string(r.status)];
    bool pardoned = record.unblocked_us && r.finished_us <= *record.unblocked_us;
    if (r.settled && info(r.status).blocks && !pardoned) record.blocked = true;
    record.status = record.rank_ns ? TrialStatus::ok : r.status;
    if (!r.toolchain.empty()) record.toolchain = r.toolchain;
    if (!r.artifact.empty()) record.artifact = r.artifact;
    if (!r.plugins.empty()) record.plugins = r.plugins;
    record.updated_us = std::max(record.updated_us, r.finished_us);
  }
}

std::string to_json_text(const Record& record) {
  Json json = {{"id", record.id()}};
  json.update(reflect_json::write(record));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string record_schema() {
  Json schema = reflect_json::schema<Record>();
  schema["properties"]["id"] = {{"type", "string"}, {"pattern", "^r-[0-9a-f]{12}$"}};
  Json out = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"$id", "tilewright/record@1"}};
  out.update(schema);
  return out.dump(2);
}

}  // namespace tilewright
