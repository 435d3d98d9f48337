// An embedded measurer whose agent and workers are this very test executable.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "measure/embedded.h"
#include "support/json.h"

namespace tilewright::measure {

using namespace std::chrono_literals;

inline std::unique_ptr<Measurer> open_fake(const std::string& fake = "", int devices = 1, int build_slots = 1) {
  MeasurerOptions options;
  options.binary = "/proc/self/exe";
  options.devices = {"fake:" + std::to_string(devices)};
  options.build_slots = build_slots;
  options.fake = fake;
  auto measurer = open_measurer(options);
  if (!measurer) {
    ADD_FAILURE() << render_text(measurer.error().diagnostic());
    return nullptr;
  }
  return std::move(*measurer);
}

/// A trace of one annotation; different numbers make different candidates.
inline std::string trace_with(const std::string& setting, int number = 0) {
  return Json::array({Json::array({Json::array({"Annotate", Json::array(), Json::array({setting})})}),
                      Json::array({Json::array({0, number})})})
      .dump();
}

inline Job fake_job(uint32_t trial, const std::string& setting = "", const std::string& program = "program") {
  Job job;
  job.id = {.campaign = 1, .task = 1, .trial = trial, .attempt = 0};
  job.program = program;
  job.target = "fake";
  job.contenders = {{trace_with(setting, static_cast<int>(trial)), {}}};
  job.run.policy.budget_us = 100'000;
  job.run.device_ms = job.run.load_ms = 60'000;  // whoever tests a limit sets it; a slow machine must not meet one
  return job;
}

/// Polls until `n` outcomes are there (or 5 minutes have passed); sorted by id.
inline std::vector<Outcome> collect(Measurer& measurer, size_t n) {
  std::vector<Outcome> out;
  auto end = std::chrono::steady_clock::now() + 300s;
  while (out.size() < n && std::chrono::steady_clock::now() < end)
    for (Outcome& o : measurer.poll(1000ms)) out.push_back(std::move(o));
  std::sort(out.begin(), out.end(), [](const Outcome& a, const Outcome& b) { return a.id < b.id; });
  EXPECT_EQ(out.size(), n);
  return out;
}

inline Outcome run_one(Measurer& measurer, const Job& job) {
  measurer.submit(job);
  auto outcomes = collect(measurer, 1);
  return outcomes.empty() ? Outcome{} : outcomes.front();
}

/// Processes of which `pid` is the parent: (pid, state letter).
inline std::vector<std::pair<pid_t, char>> children_of(pid_t pid) {
  std::vector<std::pair<pid_t, char>> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    FILE* file = std::fopen((entry.path() / "stat").c_str(), "r");
    if (!file) continue;
    int id = 0, parent = 0;
    char state = 0;
    if (std::fscanf(file, "%d (%*[^)]) %c %d", &id, &state, &parent) == 3 && parent == pid) out.emplace_back(id, state);
    std::fclose(file);
  }
  return out;
}

/// Gone, or dead and not yet reaped by whoever inherited it; waits up to 10 s.
inline bool ended(pid_t pid) {
  for (int i = 0; i < 200; ++i) {
    FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "r");
    char state = 'Z';
    if (file && std::fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 'Z';
    if (file) std::fclose(file);
    if (state == 'Z' || state == 'X') return true;
    std::this_thread::sleep_for(50ms);
  }
  return false;
}

inline size_t descriptors_of(pid_t pid) {
  size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd"))
    ++n;
  return n;
}

inline pid_t agent_of(Measurer& measurer) { return dynamic_cast<EmbeddedMeasurer&>(measurer).agent_pid(); }

}  // namespace tilewright::measure
