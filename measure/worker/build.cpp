// The build worker: takes one BuildTask or VerifyTask at a time until its socket closes. Everything that can go wrong
// in a compiler goes wrong here, in a process that nobody misses.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>

#include "measure/process/memfd.h"
#include "measure/process/memory_limit.h"
#include "measure/session/codec.h"
#include "measure/session/frame.h"
#include "measure/worker/entry.h"
#include "measure/worker/pipeline.h"
#include "support/check.h"

namespace tilewright::measure {

namespace {

using Clock = std::chrono::steady_clock;

uint32_t cpu_ms() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint32_t>((usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                               (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000);
}

uint32_t peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint32_t>(usage.ru_maxrss / 1024);
}

std::vector<Fd> build(const wire::BuildTask& task, wire::WorkerBuilt& reply) {
  BuildRequest request;
  request.program = task.program(), request.target = task.target(), request.trace = task.trace();
  request.options = decode(task.spec());
  request.naive = task.naive();
  request.config = task.config();
  limit_data(request.options.memory_mib);
  auto fail = [&](TrialStatus status, std::string detail, std::string code = "") {
    reply.set_status(static_cast<record_wire::TrialStatus>(status));
    reply.set_detail(detail.substr(0, 4096));
    reply.set_refusal_code(code);
    return std::vector<Fd>{};
  };
  const BuildPipeline* pipeline = Registry<BuildPipeline>::instance().find(request.options.pipeline);
  if (!pipeline) {
    std::string near = Registry<BuildPipeline>::instance().suggestion(request.options.pipeline);
    return fail(TrialStatus::rejected, fmt::format("no build pipeline is named \"{}\"{}", request.options.pipeline,
                                                   near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
  }
  auto begin = Clock::now();
  uint32_t cpu_before = cpu_ms();
  try {
    auto product = pipeline->build(request);
    if (!product) return fail(product.error().status, product.error().detail, product.error().refusal_code);
    BuildReport& report = product->report;
    report.bytes = product->artifact.size();
    report.artifact = content_key(product->artifact).hex();
    report.cpu_ms = cpu_ms() - cpu_before;
    report.wall_ms =
        static_cast<uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count());
    report.peak_mib = peak_mib();
    auto file = sealed_memfd("artifact", product->artifact);
    if (!file) return fail(TrialStatus::build_memory, file.error().diagnostic().message);
    reply.set_status(record_wire::OK);
    encode(report, *reply.mutable_report());
    encode(product->plan, *reply.mutable_plan());
    encode(product->entry, *reply.mutable_entry());
    std::vector<Fd> out;
    out.push_back(std::move(*file));
    return out;
  } catch (const InternalError& error) {
    return fail(TrialStatus::internal_error, error.what());
  } catch (const std::bad_alloc&) {
    return fail(TrialStatus::build_memory, fmt::format("more than {} MiB", request.options.memory_mib));
  } catch (const std::exception& error) {
    return fail(TrialStatus::internal_error, fmt::format("unexpected exception: {}", error.what()));
  }
}

void verify(const wire::VerifyTask& task, Fd file, wire::WorkerBuilt& reply) {
  auto fail = [&](std::string detail) {
    reply.set_status(record_wire::INTERNAL_ERROR);
    reply.set_detail(detail.substr(0, 4096));
  };
  auto reference = Mapping::of(file);
  auto plan = decode(task.plan());
  const BuildPipeline* pipeline = Registry<BuildPipeline>::instance().find(task.pipeline());
  if (!reference || !plan || !pipeline) return fail("the task to verify a reference is out of form");
  limit_data(0);
  try {
    Result<std::string> agreed =
        pipeline->verify({task.program(), task.target(), *plan, task.input_seed(), reference->bytes()});
    if (!agreed) {
      reply.set_refusal_code(std::string(agreed.error().code()));
      return fail(render_text(agreed.error().diagnostic()));
    }
    reply.set_detail(*agreed);
    reply.set_status(record_wire::OK);
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

}  // namespace

int build_main(const Arguments&) {
  FrameSocket socket{Fd(worker_socket)};
  wire::FromWorker hello;
  hello.mutable_hello()->set_protocol(protocol_version);
  hello.mutable_hello()->set_build_id(TILEWRIGHT_VERSION);
  hello.mutable_hello()->set_kind("build");
  socket.send(hello.SerializeAsString());
  while (auto frame = socket.wait()) {
    wire::ToWorker message;
    if (!message.ParseFromString(*frame)) return 65;
    wire::FromWorker reply;
    std::vector<Fd> files;
    if (message.has_build()) {
      reply.mutable_built()->set_ticket(message.build().ticket());
      files = build(message.build(), *reply.mutable_built());
    } else if (message.has_verify()) {
      reply.mutable_built()->set_ticket(message.verify().ticket());
      verify(message.verify(), socket.take_descriptor(), *reply.mutable_built());
    } else {
      continue;
    }
    // Dumps may be large; the frame limit is not. Everything else is small.
    std::string bytes = reply.SerializeAsString();
    if (bytes.size() > FrameSocket::max_frame) {
      auto* report = reply.mutable_built()->mutable_report();
      report->clear_dumps();
      report->add_warnings("dumps-too-large");
      bytes = reply.SerializeAsString();
    }
    socket.send(bytes, std::move(files));
    socket.drain();
  }
  return 0;
}

}  // namespace tilewright::measure
