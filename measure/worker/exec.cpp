// exec: the only process that touches a device. One RunTask at a time until its socket closes; a candidate that crashes
// or hangs takes this process with it and nothing else.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "measure/process/memfd.h"
#include "measure/session/codec.h"
#include "measure/session/frame.h"
#include "measure/worker/entry.h"
#include "measure/worker/trial.h"
#include "support/check.h"

namespace tilewright::measure {

namespace {

constexpr int quiet_wait_ms = 400;  // the agent answers within its own, shorter limit

class Exec {
 public:
  Exec(FrameSocket& socket, Device& device) : socket_(socket), runner_(device) {}

  void serve() {
    while (auto frame = socket_.wait()) {
      wire::ToWorker message;
      if (!message.ParseFromString(*frame)) _exit(65);
      if (message.has_run()) run(message.run());
    }
  }

 private:
  void run(const wire::RunTask& task) {
    wire::FromWorker reply;
    wire::WorkerRan& ran = *reply.mutable_ran();
    ran.set_ticket(task.ticket());
    std::vector<Fd> files;
    TrialResult result;
    if (auto trial = read(task)) {
      result = runner_.run(*trial, hooks(task));
      if (!result.reference.empty()) {
        if (auto file = sealed_memfd("reference", result.reference)) {
          files.push_back(std::move(*file));
        } else {
          result.outcome.status = TrialStatus::host_memory;
          result.outcome.detail = file.error().diagnostic().message;
        }
      }
    } else {
      result.outcome.status = TrialStatus::internal_error;
      result.outcome.detail = trial.error().diagnostic().message;
    }
    encode(result.outcome, *ran.mutable_outcome());
    ran.set_replace(result.replace);
    if (task.kind() == wire::CALIBRATE) encode(result.calibration, *ran.mutable_calibrated());
    for (const std::vector<double>& times : result.rounds) {
      auto* out = ran.add_rounds();
      for (double ns : times) out->add_ns(ns);
    }
    if (result.outcome.status != TrialStatus::ok) files.clear();
    socket_.send(reply.SerializeAsString(), std::move(files));
    socket_.drain();
  }

  Result<TrialTask> read(const wire::RunTask& task) {
    TrialTask trial;
    trial.kind = task.kind() == wire::REFERENCE   ? TrialTask::Kind::reference
                 : task.kind() == wire::CALIBRATE ? TrialTask::Kind::calibrate
                                                  : TrialTask::Kind::measure;
    for (const auto& entry : task.entries()) {
      trial.artifacts.push_back({socket_.take_descriptor(), decode(entry)});
      if (!trial.artifacts.back().file) return refuse(message_invalid, "a task names more artifacts than it carries");
    }
    if (!task.reference().empty()) {
      Fd file = socket_.take_descriptor();
      if (task.reference() != reference_digest_) {
        TW_TRY(reference_, Mapping::of(file));
        reference_digest_ = task.reference();
      }
      trial.reference = reference_.bytes();
      trial.reference_digest = reference_digest_;
    }
    TW_TRY(trial.plan, decode(task.plan()));
    trial.spec = decode(task.spec());
    trial.resident = task.resident();
    trial.rounds = task.rounds();
    return trial;
  }

  TrialHooks hooks(const wire::RunTask& task) {
    TrialHooks hooks;
    uint64_t ticket = task.ticket();
    hooks.phase = [this, ticket](const char* name, uint32_t launches) {
      wire::FromWorker message;
      message.mutable_phase()->set_ticket(ticket);
      message.mutable_phase()->set_name(name);
      message.mutable_phase()->set_launches(launches);
      socket_.send(message.SerializeAsString());
    };
    hooks.quiet = [this, wanted = task.quiet()](bool on) {
      if (!wanted) return true;
      wire::FromWorker message;
      message.mutable_quiet()->set_on(on);
      socket_.send(message.SerializeAsString());
      if (!on) return true;
      auto frame = socket_.wait(quiet_wait_ms);
      wire::ToWorker answer;
      return frame && answer.ParseFromString(*frame) && answer.has_quiet() && !answer.quiet().late();
    };
    hooks.pause = [](double ms) {
      std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int64_t>(ms * 1000)));
    };
    return hooks;
  }

  FrameSocket& socket_;
  TrialRunner runner_;
  Mapping reference_;
  std::string reference_digest_;
};

}  // namespace

int exec_main(const Arguments& arguments) {
  FrameSocket socket{Fd(worker_socket)};
  const DeviceKind* kind = Registry<DeviceKind>::instance().find(arguments.get("--device"));
  if (!kind) {
    std::fputs(fmt::format("error: no device is named \"{}\"\n", arguments.get("--device")).c_str(), stderr);
    return 78;
  }
  auto device = kind->make(std::atoi(arguments.get("--index", "0").c_str()), arguments.get("--config"));
  if (!device) {
    std::fputs(render_text(device.error().diagnostic()).c_str(), stderr);
    return 78;
  }
  wire::FromWorker hello;
  hello.mutable_hello()->set_protocol(protocol_version);
  hello.mutable_hello()->set_build_id(TILEWRIGHT_VERSION);
  hello.mutable_hello()->set_kind("exec");
  encode((*device)->info(), *hello.mutable_hello()->mutable_device());
  socket.send(hello.SerializeAsString());
  Exec(socket, **device).serve();
  return 0;
}

}  // namespace tilewright::measure
