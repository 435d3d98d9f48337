// The agent's loop: frames, deaths, deadlines, limits, quiet windows.
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>

#include "measure/agent/agent.h"
#include "measure/agent/agent_events.h"
#include "measure/worker/entry.h"
#include "support/check.h"

namespace tilewright::measure {

namespace {

using std::chrono::milliseconds;

constexpr auto tick = milliseconds(100);  // memory and CPU limits are looked at this often
constexpr auto quiet_answer =
    milliseconds(50);  // a search parks at its next batch; later the window opens anyway, flagged
constexpr auto quiet_limit = milliseconds(200);       // builders are never stopped longer at a time
constexpr auto gone_limit = std::chrono::seconds(1);  // from the end of a worker's socket to its death
constexpr int give_up_starts = 3;  // an exec that died this often before its hello is reported as refused

template <class Duration>
int ms_until(Time t, Time now, Duration least) {
  auto left = std::chrono::ceil<milliseconds>(t - now);
  return static_cast<int>(std::clamp<int64_t>(left.count(), least, 60'000));
}

}  // namespace

Agent::Agent(AgentOptions options, FrameSocket tuner) : options_(std::move(options)), tuner_(std::move(tuner)) {
  std::vector<std::string> common;
  for (const std::string& plugin : options_.plugins) common.insert(common.end(), {"--plugin", plugin});
  std::map<std::string, int> counted;
  for (const std::string& spec : options_.devices) {
    std::string kind = spec.substr(0, spec.find(':'));
    int count = 1;
    if (size_t colon = spec.find(':'); colon != std::string::npos)
      std::from_chars(spec.data() + colon + 1, spec.data() + spec.size(), count);
    for (int i = 0; i < count; ++i) {
      DeviceSlot slot;
      slot.kind = kind;
      slot.index = counted[kind]++;
      slot.info.uuid = fmt::format("{}-{}", kind, slot.index);
      slot.info.kind = kind;
      std::vector<std::string> arguments{"worker", "exec", "--device", kind, "--index", std::to_string(slot.index)};
      if (kind == "fake") arguments.insert(arguments.end(), {"--config", options_.fake});
      arguments.insert(arguments.end(), common.begin(), common.end());
      workers_.push_back(std::make_unique<WorkerProcess>(WorkerKind::exec, slot.info.uuid, options_.binary, arguments));
      slot.exec = workers_.back().get();
      devices_.push_back(std::move(slot));
    }
  }
  for (int i = 0; i < options_.build_slots; ++i) {
    std::vector<std::string> arguments{"worker", "build"};
    arguments.insert(arguments.end(), common.begin(), common.end());
    workers_.push_back(
        std::make_unique<WorkerProcess>(WorkerKind::build, fmt::format("build-{}", i), options_.binary, arguments));
  }
}

Agent::~Agent() { let_builders_go(); }

int Agent::run() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  while (session_ != SessionState::closed && session_ != SessionState::expired) {
    dispatch();
    wait_for_events();
    if (tuner_.state() != FrameSocket::State::open) {
      // Embedded: the socket pair is the only way in, so its end is the end.
      closing_ = true;
      return 0;
    }
    if (session_ == SessionState::draining && !any_busy()) apply(session_step(session_, SessionEvent::jobs_done));
  }
  tuner_.drain();
  return 0;
}

void Agent::wait_for_events() {
  std::vector<pollfd> polls;
  auto add = [&](int fd, bool write) { polls.push_back({fd, static_cast<short>(POLLIN | (write ? POLLOUT : 0)), 0}); };
  add(tuner_.fd(), tuner_.wants_write());
  std::vector<WorkerProcess*> alive;
  for (auto& worker : workers_) {
    if (worker->state == WorkerProcess::State::stopped) continue;
    alive.push_back(worker.get());
    // A socket at its end would wake the loop for ever; only the death of the process is left to wait for then.
    bool open = worker->socket.state() == FrameSocket::State::open;
    add(open ? worker->socket.fd() : -1, open && worker->socket.wants_write());
    add(worker->child().pidfd(), false);
  }
  ::poll(polls.data(), polls.size(), milliseconds_to_next_deadline());
  if (polls[0].revents & POLLOUT) tuner_.flush();
  if (polls[0].revents & (POLLIN | POLLHUP | POLLERR)) read_tuner();
  for (size_t i = 0; i < alive.size(); ++i) {
    WorkerProcess& worker = *alive[i];
    const pollfd& socket = polls[1 + 2 * i];
    if (socket.revents & POLLOUT) worker.socket.flush();
    if (socket.revents & (POLLIN | POLLHUP | POLLERR)) read_worker(worker);
    if (polls[2 + 2 * i].revents & POLLIN) {
      read_worker(worker);  // what it said last counts
      if (auto exit = worker.reap(Clock::now())) handle_death(worker, *exit);
    }
  }
  check_deadlines();
  send_opened_when_ready();
}

int Agent::milliseconds_to_next_deadline() const {
  Time now = Clock::now(), next = now + std::chrono::seconds(60);
  for (const auto& worker : workers_) {
    if (worker->state == WorkerProcess::State::stopped) next = std::min(next, worker->next_start());
    if (!worker->killed && !worker->stopped_since) next = std::min({next, worker->deadline, worker->phase_deadline});
    if (worker->state == WorkerProcess::State::busy) next = std::min(next, now + tick);
  }
  next = std::min({next, quiet_deadline_, quiet_end_});
  return ms_until(next, now, 0);
}

void Agent::read_tuner() {
  tuner_.receive();
  while (auto frame = tuner_.next()) {
    wire::Up up;
    if (!up.ParseFromString(*frame)) {
      reject("", wire::BAD_MESSAGE, "a frame that is no message");
      session_ = SessionState::closed;
      return;
    }
    switch (up.message_case()) {
      case wire::Up::kOpen: {
        bool right = up.open().protocol() == protocol_version;
        if (!right)
          reject("", wire::VERSION, fmt::format("protocol {}, expected {}", up.open().protocol(), protocol_version));
        campaign_ = up.open().campaign();
        apply(session_step(session_, right ? SessionEvent::open_accepted : SessionEvent::open_wrong));
        break;
      }
      case wire::Up::kJob:
        accept(up.job());
        break;
      case wire::Up::kCancel:
        for (const std::string& id : up.cancel().ids()) cancel(id);
        break;
      case wire::Up::kAck:
        for (const std::string& id : up.ack().ids()) spool_.erase(id);
        break;
      case wire::Up::kBlob:
        store_blob(up.blob());
        break;
      case wire::Up::kFetch:
        fetch(up.fetch());
        break;
      case wire::Up::kCalibrate:
        calibrate(up.calibrate());
        break;
      case wire::Up::kQuietAck:
        if (up.quiet_ack().on()) tuner_quiet_ = true, answer_quiet();
        break;
      case wire::Up::kClose:
        apply(session_step(session_, SessionEvent::drain));
        break;
      default:
        break;  // of a newer version
    }
  }
  if (tuner_.state() == FrameSocket::State::garbage) session_ = SessionState::closed;
}

void Agent::apply(const SessionStep& step) {
  session_ = step.next;
  for (SessionAction action : step.actions) {
    switch (action) {
      case SessionAction::send_draining: {
        wire::Down down;
        down.mutable_draining()->set_reason("asked to close");
        send(down);
        break;
      }
      case SessionAction::drop_queued: {
        std::vector<std::string> queued;
        for (auto& [id, entry] : entries_)
          if (std::none_of(running_.begin(), running_.end(), [&](const auto& r) { return r.second.entry == entry; }))
            queued.push_back(id);
        for (const std::string& id : queued) cancel(id);
        break;
      }
      default:
        break;  // Opened follows when the workers are there; the rest has no meaning on a socket pair
    }
  }
}

/// Opened tells which devices there are, so it waits for the hello (or the failure) of every exec.
void Agent::send_opened_when_ready() {
  if (opened_ || session_ != SessionState::active) return;
  for (DeviceSlot& d : devices_) {
    if (d.exec->failed_starts() >= give_up_starts) d.refused = d.exec->last_output;
    if (d.refused.empty() && d.info.health.empty()) return;
  }
  opened_ = true;
  wire::Down down;
  wire::Opened& opened = *down.mutable_opened();
  opened.set_protocol(protocol_version);
  opened.set_build_credits(static_cast<uint32_t>(options_.build_slots + 2));
  opened.set_run_credits(static_cast<uint32_t>(2 * devices_.size()));
  opened.set_alive_ms(2000);
  auto& info = *opened.mutable_info();
  info.set_protocol_min(protocol_version), info.set_protocol_max(protocol_version);
  info.set_build_id(TILEWRIGHT_VERSION), info.set_host_id("local"), info.set_sandbox("embedded");
  info.mutable_builder()->set_slots(static_cast<uint32_t>(options_.build_slots));
  for (DeviceSlot& d : devices_) {
    if (!d.refused.empty()) d.info.health = "refused: " + d.refused;
    encode(d.info, *info.add_devices());
  }
  send(down);
  for (const DeviceSlot& d : devices_) {
    if (!d.refused.empty()) continue;
    event(device_facts_line(d.info));
  }
}

void Agent::event(const std::string& line) {
  wire::Down down;
  down.mutable_notice()->set_line(line);
  send(down);
}

void Agent::read_worker(WorkerProcess& worker) {
  worker.socket.receive();
  while (auto frame = worker.socket.next()) {
    wire::FromWorker message;
    if (!message.ParseFromString(*frame) || message.message_case() == wire::FromWorker::MESSAGE_NOT_SET) {
      worker.kill({TrialStatus::worker_lost, "it sent a frame that is no message"});
      return;
    }
    if (message.has_hello() && worker.state == WorkerProcess::State::starting) {
      if (message.hello().protocol() != protocol_version)
        return worker.kill({TrialStatus::worker_lost, "another protocol"});
      worker.said_hello();
      for (DeviceSlot& d : devices_)
        if (d.exec == &worker) d.info = decode(message.hello().device()), d.refused.clear();
      continue;
    }
    if (worker.state != WorkerProcess::State::busy || worker.killed) continue;  // late: its task has been judged
    if (message.has_phase()) set_phase(worker, message.phase());
    if (message.has_quiet()) message.quiet().on() ? open_quiet(worker) : close_quiet(worker);
    bool ends = (message.has_built() && message.built().ticket() == worker.ticket) ||
                (message.has_ran() && message.ran().ticket() == worker.ticket);
    auto it = running_.find(worker.ticket);
    if (!ends || it == running_.end()) continue;
    Work work = std::move(it->second);
    running_.erase(it);
    finish_task(worker);
    Fd file = worker.socket.take_descriptor();
    if (message.has_built()) {
      built(work, message.built(), std::move(file));
    } else {
      bool replace = message.ran().replace();
      ran(work, worker, message.ran(), std::move(file));
      if (replace) worker.kill({TrialStatus::worker_lost, "its device state is not trusted any more"});
    }
  }
  if (worker.socket.state() == FrameSocket::State::garbage)
    worker.kill({TrialStatus::worker_lost, "it sent a frame that is too long"});
  if (worker.socket.state() == FrameSocket::State::closed && worker.state != WorkerProcess::State::stopped)
    worker.phase_deadline = std::min(worker.phase_deadline, Clock::now() + gone_limit);
}

void Agent::handle_death(WorkerProcess& worker, const Exit& exit) {
  quiet_waiting_.erase(&worker);
  close_quiet(worker);
  worker.deadline = worker.phase_deadline = Time::max();
  worker.stopped_since.reset();
  auto it = running_.find(worker.ticket);
  if (it == running_.end()) return;
  Work work = std::move(it->second);
  running_.erase(it);
  TrialStatus status = judge_death(worker.kind, exit, worker.killed);
  std::string detail = worker.killed ? fmt::format("{} ({})", worker.killed->text, exit.text()) : exit.text();
  failed(work, worker.incarnation(), status, worker.phase, detail, worker.last_output);
}

void Agent::check_deadlines() {
  Time now = Clock::now();
  for (auto& w : workers_) {
    WorkerProcess& worker = *w;
    if (worker.state == WorkerProcess::State::stopped || worker.killed || worker.stopped_since) continue;
    bool builder = worker.kind == WorkerKind::build;
    if (worker.state == WorkerProcess::State::starting) {
      if (now >= worker.deadline) worker.kill({TrialStatus::worker_lost, "no hello within 10 s"});
    } else if (now >= worker.deadline) {
      if (builder)
        worker.kill({TrialStatus::build_timeout, "wall time limit of the build"});
      else
        worker.kill({TrialStatus::worker_lost, fmt::format("no answer in time, in phase {}", worker.phase)});
    } else if (now >= worker.phase_deadline) {
      if (worker.socket.state() != FrameSocket::State::open)
        worker.kill({TrialStatus::worker_lost, "it closed its socket"});
      else if (extend_phase(worker))
        continue;
      else if (worker.phase == "load")
        worker.kill({TrialStatus::load_error, "loading took too long"});
      else
        worker.kill({TrialStatus::run_timeout, fmt::format("device deadline, in phase {}", worker.phase)});
    }
  }
  if (now >= quiet_deadline_) answer_quiet();
  if (now >= quiet_end_) let_builders_go();
  if (now < next_tick_) return;
  next_tick_ = now + tick;
  check_limits();
  reap_orphans();
}

void Agent::check_limits() {
  for (auto& w : workers_) {
    WorkerProcess& worker = *w;
    if (worker.state != WorkerProcess::State::busy || worker.killed) continue;
    bool builder = worker.kind == WorkerKind::build;
    if (worker.cpu_limit_ms && worker.child().cpu_ms() > worker.cpu_limit_ms)
      worker.kill({TrialStatus::build_timeout, "CPU time limit of the build"});
    if (worker.memory_limit && worker.child().resident_bytes() > worker.memory_limit)
      worker.kill({builder ? TrialStatus::build_memory : TrialStatus::host_memory,
                   fmt::format("more than {} MiB resident", worker.memory_limit >> 20)});
  }
}

/// Children that a dead worker left behind come to us, the subreaper.
void Agent::reap_orphans() {
  for (;;) {
    siginfo_t si{};
    if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) != 0 || si.si_pid == 0) return;
    bool ours =
        std::any_of(workers_.begin(), workers_.end(), [&](const auto& w) { return w->child().pid() == si.si_pid; });
    if (ours) return;  // its pidfd tells
    waitid(P_PID, static_cast<id_t>(si.si_pid), &si, WEXITED);
  }
}

void Agent::open_quiet(WorkerProcess& holder) {
  Time now = Clock::now();
  for (auto& worker : workers_) {
    if (worker->kind != WorkerKind::build || worker->state != WorkerProcess::State::busy || worker->stopped_since)
      continue;
    worker->child().signal_group(SIGSTOP);
    worker->stopped_since = now;
  }
  quiet_holders_.insert(&holder);
  quiet_waiting_.insert(&holder);
  quiet_end_ = now + quiet_limit;
  if (tuner_quiet_) return answer_quiet();
  if (!quiet_asked_) {
    wire::Down down;
    down.mutable_quiet()->set_on(true);
    down.mutable_quiet()->set_max_ms(static_cast<uint32_t>(quiet_limit.count()));
    send(down);
    quiet_asked_ = true;
  }
  quiet_deadline_ = now + quiet_answer;
}

void Agent::answer_quiet() {
  quiet_deadline_ = Time::max();
  wire::ToWorker go;
  go.mutable_quiet()->set_on(true);
  go.mutable_quiet()->set_late(!tuner_quiet_);
  for (WorkerProcess* worker : quiet_waiting_) worker->socket.send(go.SerializeAsString());
  quiet_waiting_.clear();
}

void Agent::close_quiet(WorkerProcess& holder) {
  if (quiet_holders_.erase(&holder) == 0 || !quiet_holders_.empty()) return;
  let_builders_go();
}

void Agent::let_builders_go() {
  quiet_end_ = quiet_deadline_ = Time::max();
  Time now = Clock::now();
  for (auto& worker : workers_) {
    if (!worker->stopped_since) continue;
    worker->child().signal_group(SIGCONT);
    if (worker->deadline != Time::max())
      worker->deadline += now - *worker->stopped_since;  // wall time without the stop
    worker->stopped_since.reset();
  }
  if (quiet_asked_) {
    wire::Down down;
    down.mutable_quiet()->set_on(false);
    send(down);
  }
  tuner_quiet_ = quiet_asked_ = false;
}

int agent_main(const Arguments& arguments) {
  AgentOptions options;
  options.binary = arguments.get("--binary", "/proc/self/exe");
  options.devices = arguments.all("--device");
  options.build_slots = std::max(1, std::atoi(arguments.get("--build-slots", "1").c_str()));
  options.fake = arguments.get("--fake");
  options.plugins = arguments.all("--plugin");
  return Agent(std::move(options), FrameSocket(Fd(worker_socket))).run();
}

}  // namespace tilewright::measure
