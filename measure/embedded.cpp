#include "measure/embedded.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "measure/worker/entry.h"
#include "support/check.h"

namespace tilewright::measure {

namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr auto open_limit = std::chrono::seconds(30);
constexpr auto request_limit = std::chrono::seconds(90);
constexpr size_t blob_chunk = 64 << 10;
constexpr int give_up_starts = 3;

}  // namespace

Result<std::unique_ptr<Measurer>> EmbeddedMeasurer::open(const MeasurerOptions& options) {
  if (std::getenv(child_mark))
    return refuse(
        Refusal(measurer_unavailable, "this process was started as a worker, but its program has no worker entries")
            .with_help(
                "call tilewright::measure::worker_main first in main, or name the tilewright binary in the options"));
  std::unique_ptr<EmbeddedMeasurer> measurer(new EmbeddedMeasurer(options));
  std::unique_lock lock(measurer->mutex_);
  bool ready = measurer->changed_.wait_for(
      lock, open_limit, [&] { return measurer->open_ || measurer->failed_starts_ >= give_up_starts; });
  if (!ready || !measurer->open_)
    return refuse(measurer_unavailable,
                  fmt::format("the agent does not start: {}",
                              measurer->start_error_.empty() ? "no answer within 30 s" : measurer->start_error_));
  for (const DeviceInfo& device : measurer->devices_)
    if (device.health == "serving") return std::unique_ptr<Measurer>(std::move(measurer));
  std::string why;
  for (const DeviceInfo& device : measurer->devices_)
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", device.uuid, device.health);
  return refuse(measurer_unavailable, fmt::format("no device serves: {}", why.empty() ? "none was named" : why));
}

EmbeddedMeasurer::EmbeddedMeasurer(MeasurerOptions options)
    : options_(std::move(options)), interrupt_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (options_.binary.empty()) options_.binary = default_binary();
  if (options_.build_slots <= 0)
    options_.build_slots = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) - 1);
  thread_ = std::thread([this] { serve(); });
}

EmbeddedMeasurer::~EmbeddedMeasurer() {
  {
    std::scoped_lock lock(mutex_);
    closing_ = true;
  }
  interrupt();
  thread_.join();
}

void EmbeddedMeasurer::interrupt() {
  uint64_t one = 1;
  if (write(interrupt_.get(), &one, sizeof one) < 0) return;  // full: the thread is awake anyway
}

// ------------------------------------------------------------------------------------------------------ the search's
// side

void EmbeddedMeasurer::submit(Job job) {
  std::scoped_lock lock(mutex_);
  int priority = job.priority;
  waiting_.emplace(priority, std::move(job));
  interrupt();
}

std::vector<Outcome> EmbeddedMeasurer::poll(milliseconds timeout) {
  std::unique_lock lock(mutex_);
  parked_ = true;
  answer_quiet();
  // Results that arrive in a quiet window wait for its end: whoever gets them starts to compute.
  auto free_to_go = [&] { return !quiet_ || SteadyClock::now() >= quiet_until_; };
  Time end = SteadyClock::now() + timeout;
  while (!woken_ && !(!done_.empty() && free_to_go())) {
    Time until = end;
    if (quiet_) until = std::min(until, quiet_until_);
    if (changed_.wait_until(lock, until) == std::cv_status::timeout && SteadyClock::now() >= end) break;
  }
  woken_ = false;
  parked_ = false;
  return std::exchange(done_, {});
}

void EmbeddedMeasurer::park_while_quiet() {
  std::unique_lock lock(mutex_);
  if (!quiet_) return;
  parked_ = true;
  answer_quiet();
  changed_.wait_until(lock, quiet_until_, [&] { return !quiet_; });
  parked_ = false;
}

void EmbeddedMeasurer::acknowledge(std::span<const MeasurementId> ids) {
  std::scoped_lock lock(mutex_);
  for (const MeasurementId& id : ids) to_acknowledge_.push_back(encode_id(id));
  interrupt();
}

void EmbeddedMeasurer::cancel(std::span<const MeasurementId> ids) {
  std::scoped_lock lock(mutex_);
  for (const MeasurementId& id : ids) {
    auto it = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& w) { return w.second.id == id; });
    if (it == waiting_.end()) {
      to_cancel_.push_back(encode_id(id));
      continue;
    }
    Outcome outcome;
    outcome.id = id;
    outcome.status = TrialStatus::cancelled;
    outcome.phase = "waiting";
    waiting_.erase(it);
    done_.push_back(std::move(outcome));
  }
  changed_.notify_all();
  interrupt();
}

void EmbeddedMeasurer::wake() {
  std::scoped_lock lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

size_t EmbeddedMeasurer::in_flight() const {
  std::scoped_lock lock(mutex_);
  return waiting_.size() + dispatched_.size() + done_.size();
}

size_t EmbeddedMeasurer::capacity() const {
  std::scoped_lock lock(mutex_);
  return credits_;
}

std::vector<DeviceInfo> EmbeddedMeasurer::devices() const {
  std::scoped_lock lock(mutex_);
  return devices_;
}

std::vector<std::string> EmbeddedMeasurer::take_events() {
  std::scoped_lock lock(mutex_);
  return std::exchange(events_, {});
}

pid_t EmbeddedMeasurer::agent_pid() const {
  std::scoped_lock lock(mutex_);
  return agent_.pid();
}

Result<Calibration> EmbeddedMeasurer::calibrate(const std::string& device, int threads) {
  std::unique_lock lock(mutex_);
  uint64_t ticket = next_ticket_++;
  wire::Up up;
  up.mutable_calibrate()->set_ticket(ticket);
  up.mutable_calibrate()->set_device_uuid(device);
  up.mutable_calibrate()->set_threads(static_cast<uint32_t>(threads));
  requests_.push_back(std::move(up));
  calibrations_[ticket];
  interrupt();
  parked_ = true;
  answer_quiet();
  bool answered = changed_.wait_for(lock, request_limit, [&] { return calibrations_[ticket].has_value(); });
  parked_ = false;
  auto answer = std::move(calibrations_[ticket]);
  calibrations_.erase(ticket);
  if (!answered) return refuse(measurer_unavailable, "no calibration within 90 s");
  return std::move(*answer);
}

Result<std::string> EmbeddedMeasurer::artifact(const std::string& digest) {
  std::unique_lock lock(mutex_);
  wire::Up up;
  up.mutable_fetch()->set_digest(digest);
  requests_.push_back(std::move(up));
  fetched_[digest].clear();
  fetch_done_[digest] = false;
  interrupt();
  bool answered = changed_.wait_for(lock, request_limit, [&] { return fetch_done_[digest]; });
  std::string bytes = std::move(fetched_[digest]);
  fetched_.erase(digest);
  fetch_done_.erase(digest);
  if (!answered || bytes.empty())
    return refuse(measurer_unavailable,
                  fmt::format("artifact {} is not kept; jobs keep it with return_artifact", digest));
  return bytes;
}

// ----------------------------------------------------------------------------------------------------- the session's
// side

void EmbeddedMeasurer::serve() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    Time now = SteadyClock::now();
    if (agent_.pid() <= 0 && now >= next_start_) start_agent();
    send_jobs();
    pollfd polls[3] = {{interrupt_.get(), POLLIN, 0},
                       {socket_.fd(), static_cast<short>(POLLIN | (socket_.wants_write() ? POLLOUT : 0)), 0},
                       {agent_.pidfd(), POLLIN, 0}};
    int timeout = agent_.pid() > 0 ? 1000 : 50;
    lock.unlock();
    ::poll(polls, 3, timeout);
    lock.lock();
    uint64_t count;
    if ((polls[0].revents & POLLIN) && read(interrupt_.get(), &count, sizeof count) < 0) continue;
    if (polls[1].revents & POLLOUT) socket_.flush();
    if (polls[1].revents & (POLLIN | POLLHUP | POLLERR)) {
      socket_.receive();
      while (auto frame = socket_.next()) {
        wire::Down message;
        if (message.ParseFromString(*frame)) handle(message);
      }
    }
    if (polls[2].revents & POLLIN)
      if (auto exit = agent_.poll()) lost_agent(&*exit);
    if (agent_.pid() > 0 && socket_.state() != FrameSocket::State::open) {
      agent_.kill();
      if (auto exit = agent_.wait(2000)) lost_agent(&*exit);
    }
  }
  socket_ = FrameSocket();  // its end is the agent's end; the workers follow
  if (agent_.pid() > 0 && !agent_.wait(2000)) agent_.kill();
}

void EmbeddedMeasurer::start_agent() {
  std::vector<std::string> arguments{"agent", "--fd", "3", "--binary", options_.binary};
  for (const std::string& device : options_.devices) arguments.insert(arguments.end(), {"--device", device});
  for (const std::string& plugin : options_.plugins) arguments.insert(arguments.end(), {"--plugin", plugin});
  arguments.insert(arguments.end(), {"--build-slots", std::to_string(options_.build_slots), "--fake", options_.fake});
  auto child = Child::spawn(options_.binary, arguments);
  if (!child) {
    start_error_ = child.error().diagnostic().message;
    return lost_agent(nullptr);
  }
  agent_ = std::move(*child);
  socket_ = FrameSocket(agent_.take_socket());
  wire::Up up;
  up.mutable_open()->set_protocol(protocol_version);
  up.mutable_open()->set_build_id(TILEWRIGHT_VERSION);
  up.mutable_open()->set_campaign(options_.campaign);
  up.mutable_open()->set_incarnation(++incarnation_);
  socket_.send(up.SerializeAsString());
}

/// Dispatched jobs end in agent_lost (the tuner decides about retries); those still waiting here go to the next agent.
void EmbeddedMeasurer::lost_agent(const Exit* exit) {
  std::string text = exit ? fmt::format("the agent ended: {}", exit->text()) : start_error_;
  if (exit) {
    std::string output = agent_.output();
    start_error_ = output.empty() ? text : text + "\n" + output;
  }
  failed_starts_ = open_ ? 0 : failed_starts_ + 1;
  open_ = false;
  quiet_ = false;
  agent_ = Child();
  socket_ = FrameSocket();
  sent_blobs_.clear();
  next_start_ = SteadyClock::now() + milliseconds(500 * (1 << std::min(failed_starts_, 6)) - 500);
  for (auto& [id, job] : std::exchange(dispatched_, {})) {
    Outcome outcome;
    outcome.id = id;
    outcome.status = TrialStatus::agent_lost;
    outcome.phase = "agent";
    outcome.detail = text;
    done_.push_back(std::move(outcome));
  }
  for (auto& [ticket, answer] : calibrations_)
    if (!answer) answer = refuse(measurer_unavailable, text);
  for (auto& [digest, done] : fetch_done_) done = true;
  changed_.notify_all();
}

void EmbeddedMeasurer::send_blob(const std::string& digest, const std::string& bytes) {
  if (!sent_blobs_.insert(digest).second) return;
  for (size_t at = 0; at == 0 || at < bytes.size(); at += blob_chunk) {
    wire::Up up;
    wire::Blob& blob = *up.mutable_blob();
    blob.set_digest(digest), blob.set_offset(at), blob.set_total(bytes.size());
    blob.set_data(bytes.substr(at, blob_chunk));
    blob.set_last(at + blob_chunk >= bytes.size());
    socket_.send(up.SerializeAsString());
  }
}

void EmbeddedMeasurer::send_jobs() {
  if (!open_) return;
  while (!waiting_.empty() && dispatched_.size() < credits_) {
    Job job = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    std::string program = content_key(job.program).hex(), target = content_key(job.target).hex();
    send_blob(program, job.program);
    send_blob(target, job.target);
    wire::Up up;
    encode(job, program, target, *up.mutable_job());
    socket_.send(up.SerializeAsString());
    dispatched_[job.id] = std::move(job);
  }
  if (!to_acknowledge_.empty()) {
    wire::Up up;
    for (std::string& id : std::exchange(to_acknowledge_, {})) up.mutable_ack()->add_ids(std::move(id));
    socket_.send(up.SerializeAsString());
  }
  if (!to_cancel_.empty()) {
    wire::Up up;
    for (std::string& id : std::exchange(to_cancel_, {})) up.mutable_cancel()->add_ids(std::move(id));
    socket_.send(up.SerializeAsString());
  }
  for (wire::Up& up : std::exchange(requests_, {})) socket_.send(up.SerializeAsString());
}

void EmbeddedMeasurer::deliver(Outcome outcome) {
  if (dispatched_.erase(outcome.id) == 0) return;  // a second answer to the same attempt
  done_.push_back(std::move(outcome));
  changed_.notify_all();
}

void EmbeddedMeasurer::handle(const wire::Down& message) {
  switch (message.message_case()) {
    case wire::Down::kOpened:
      open_ = true;
      failed_starts_ = 0;
      devices_.clear();
      for (const auto& device : message.opened().info().devices()) devices_.push_back(decode(device));
      credits_ = message.opened().build_credits() + message.opened().run_credits();
      changed_.notify_all();
      break;
    case wire::Down::kResult:
      deliver(decode(message.result().outcome()));
      break;
    case wire::Down::kRejected:
      handle_rejected(message.rejected());
      break;
    case wire::Down::kNeed:
      for (const std::string& digest : message.need().digests()) sent_blobs_.erase(digest);
      break;
    case wire::Down::kNotice:
      events_.push_back(message.notice().line());
      break;
    case wire::Down::kQuiet:
      quiet_ = message.quiet().on();
      quiet_until_ = SteadyClock::now() + milliseconds(message.quiet().max_ms());
      answer_quiet();
      changed_.notify_all();
      break;
    case wire::Down::kCalibrated: {
      auto it = calibrations_.find(message.calibrated().ticket());
      if (it == calibrations_.end()) break;
      if (message.calibrated().error().empty())
        it->second = decode(message.calibrated());
      else
        it->second = refuse(measurer_unavailable, message.calibrated().error());
      changed_.notify_all();
      break;
    }
    case wire::Down::kBlob: {
      auto it = fetched_.find(message.blob().digest());
      if (it == fetched_.end()) break;
      it->second += message.blob().data();
      fetch_done_[it->first] = message.blob().last();
      if (!message.blob().last()) {
        wire::Up up;
        up.mutable_fetch()->set_digest(it->first);
        up.mutable_fetch()->set_offset(it->second.size());
        socket_.send(up.SerializeAsString());
      }
      changed_.notify_all();
      break;
    }
    default:
      break;
  }
}

void EmbeddedMeasurer::handle_rejected(const wire::Rejected& rejected) {
  if (rejected.id().empty()) {
    start_error_ = rejected.text();
    failed_starts_ = give_up_starts;
    changed_.notify_all();
    return;
  }
  Outcome outcome;
  outcome.id = decode_id(rejected.id());
  outcome.status = TrialStatus::rejected;
  outcome.reject = static_cast<RejectCode>(rejected.code());
  outcome.phase = "accept";
  outcome.detail = rejected.text();
  deliver(std::move(outcome));
}

/// The search is not computing: the agent may open the window.
void EmbeddedMeasurer::answer_quiet() {
  if (!quiet_ || !parked_ || !open_) return;
  wire::Up up;
  up.mutable_quiet_ack()->set_on(true);
  socket_.send(up.SerializeAsString());
}

namespace {
const Register<MeasurerFactory> embedded{
    "embedded", "worker processes of this host over socket pairs, no ports", {EmbeddedMeasurer::open}};
}

}  // namespace tilewright::measure
