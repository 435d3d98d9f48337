#include "database/store.h"

#include <fmt/format.h>

#include "support/component.h"

namespace tilewright {

Result<std::unique_ptr<Database>> open_database(std::string_view url, const DatabaseOptions& options) {
  size_t colon = url.find(':');
  std::string scheme(url.substr(0, colon));
  if (scheme == "postgres") scheme = "postgresql";
  if (scheme == "postgresql") TW_TRY_VOID(open_component("postgres"));
  auto& registry = Registry<DatabaseBackend>::instance();
  const DatabaseBackend* backend = colon == url.npos ? nullptr : registry.find(scheme);
  if (!backend) {
    Refusal refusal(database_url_invalid,
                    fmt::format("expected sqlite:PATH, memory: or postgresql://…, found \"{}\"", url));
    if (colon == url.npos) return refuse(refusal.with_help(fmt::format("--db sqlite:{}", url)));
    std::string near = registry.suggestion(scheme);
    return near.empty() ? refuse(refusal) : refuse(refusal.with_help(fmt::format("did you mean \"{}:\"?", near)));
  }
  return backend->open(url.substr(colon + 1), options);
}

Result<int64_t> merge(Database& to, Database& from) {
  constexpr size_t rows_per_transaction = 500;
  Batch batch;
  TW_TRY(batch.workloads, from.workloads());
  TW_TRY(batch.targets, from.targets());
  TW_TRY(batch.campaigns, from.campaigns());
  // Before the measurements: those carry their own mark, and what a device did after its release must stay.
  TW_TRY(batch.withdrawals, from.quarantined_devices());
  int64_t inserted = 0;
  auto flush = [&]() -> Status {
    TW_TRY(int64_t rows, to.commit(batch));
    inserted += rows;
    batch = {};
    return {};
  };
  TW_TRY_VOID(flush());
  TW_TRY_VOID(from.for_each_measurement(nullptr, [&](const Measurement& m) -> Status {
    batch.measurements.push_back(m);
    return batch.measurements.size() < rows_per_transaction ? Status{} : flush();
  }));
  TW_TRY_VOID(flush());
  TW_TRY_VOID(from.for_each_record(std::nullopt, [&](const Record& record) -> Status {
    if (!record.unblocked_us) return {};
    TW_TRY(auto there, to.find({record.workload, record.target, record.mode}, record.trace_key));
    if (there && there->unblocked_us.value_or(INT64_MIN) >= *record.unblocked_us) return {};
    return to.unblock(record, record.unblocked_reason);
  }));
  return inserted;
}

}  // namespace tilewright
