// The agent's session as pure code: (state, event) → actions and the next state. No clock, no sockets: whoever feeds it
// knows when 10 s or 60 s have passed. The table is the definition; agent/ and the simulator drive it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tilewright::measure {

enum class SessionState : uint8_t { fresh, active, detached, revoked, draining, expired, closed };

enum class SessionEvent : uint8_t {
  open_accepted,  ///< Open whose claims hold (same session: its token is not older)
  open_wrong,     ///< Open that must be refused
  stream_broken,  ///< reset, keepalive or end of file
  claim_lost,     ///< claim gone, a higher token, or the fairness quantum
  drain,          ///< SIGTERM or Drain
  ten_seconds,    ///< detached for 10 s
  grace_over,     ///< detached for 60 s, or the claim was deleted
  jobs_done,      ///< nothing runs any more
};

enum class SessionAction : uint8_t {
  persist_tokens,   ///< before anything is promised
  supersede_older,  ///< the older session is revoked and its running job ended
  send_opened,      ///< with job states
  resend_spooled,
  send_rejected,
  finish_accepted,  ///< jobs up to the run credits go on, results are spooled
  stop_builds,
  send_revoked,
  drop_queued,  ///< Gone for everything that does not run
  send_draining,
  release_devices,  ///< the spool is kept for an Open of the same campaign
  close_stream,
};

struct SessionStep {
  SessionState next;
  std::vector<SessionAction> actions;
};

/// Events that mean nothing in a state leave it as it is, without actions.
SessionStep session_step(SessionState state, SessionEvent event);
/// Whether jobs may be accepted.
constexpr bool accepts_jobs(SessionState state) { return state == SessionState::active; }

}  // namespace tilewright::measure
