#include "support/trial.h"

#include <array>

#include "support/check.h"

namespace tilewright {

namespace {

constexpr TrialStatusInfo statuses[] = {
#define X(name, owner, label, retry, doc) {TrialStatus::name, #name, Owner::owner, Label::label, Retry::retry, doc},
    TW_TRIAL_STATUSES(X)
#undef X
};

constexpr const char* stage_names[] = {"unspecified", "imported", "screen", "confirm", "final", "explain"};
constexpr const char* mode_names[] = {"unspecified", "cold", "cold_sustained", "warm"};

template <class E, size_t n>
constexpr std::array<E, n> values() {
  std::array<E, n> all{};
  for (size_t i = 0; i < n; ++i) all[i] = static_cast<E>(i);
  return all;
}
constexpr auto status_values = values<TrialStatus, std::size(statuses)>();
constexpr auto stage_values = values<Stage, std::size(stage_names)>();
constexpr auto mode_values = values<Mode, std::size(mode_names)>();

}  // namespace

std::span<const TrialStatusInfo> all_trial_statuses() { return statuses; }

const TrialStatusInfo& info(TrialStatus s) {
  TW_CHECK(static_cast<size_t>(s) < std::size(statuses));
  return statuses[static_cast<size_t>(s)];
}

const char* name(TrialStatus s) { return info(s).name; }

const char* name(Stage s) {
  TW_CHECK(static_cast<size_t>(s) < std::size(stage_names));
  return stage_names[static_cast<size_t>(s)];
}

const char* name(Mode m) {
  TW_CHECK(static_cast<size_t>(m) < std::size(mode_names));
  return mode_names[static_cast<size_t>(m)];
}

template <>
std::span<const TrialStatus> all_values<TrialStatus>() {
  return status_values;
}
template <>
std::span<const Stage> all_values<Stage>() {
  return stage_values;
}
template <>
std::span<const Mode> all_values<Mode>() {
  return mode_values;
}

template <class E>
std::optional<E> parse_name(std::string_view text) {
  for (E value : all_values<E>())
    if (name(value) == text) return value;
  return std::nullopt;
}
template std::optional<TrialStatus> parse_name(std::string_view);
template std::optional<Stage> parse_name(std::string_view);
template std::optional<Mode> parse_name(std::string_view);

}  // namespace tilewright
