#include "measure/session/machine.h"

namespace tilewright::measure {

namespace {

using S = SessionState;
using E = SessionEvent;
using A = SessionAction;

struct Row {
  S from;
  E event;
  S next;
  std::vector<A> actions;
};

const std::vector<Row>& table() {
  static const std::vector<Row> rows{
      {S::fresh,
       E::open_accepted,
       S::active,
       {A::persist_tokens, A::supersede_older, A::send_opened, A::resend_spooled}},
      {S::fresh, E::open_wrong, S::closed, {A::send_rejected, A::close_stream}},
      {S::fresh, E::stream_broken, S::closed, {A::close_stream}},
      {S::fresh, E::drain, S::closed, {A::send_draining, A::close_stream}},
      {S::active, E::stream_broken, S::detached, {A::finish_accepted}},
      {S::active, E::claim_lost, S::revoked, {A::send_revoked, A::drop_queued}},
      {S::active, E::drain, S::draining, {A::send_draining, A::drop_queued}},
      {S::detached, E::open_accepted, S::active, {A::persist_tokens, A::send_opened, A::resend_spooled}},
      {S::detached, E::open_wrong, S::detached, {A::send_rejected}},
      {S::detached, E::ten_seconds, S::detached, {A::stop_builds}},
      {S::detached, E::grace_over, S::expired, {A::drop_queued, A::release_devices}},
      {S::detached, E::claim_lost, S::expired, {A::drop_queued, A::release_devices}},
      {S::detached, E::drain, S::draining, {A::drop_queued}},
      {S::revoked, E::jobs_done, S::expired, {A::release_devices, A::close_stream}},
      {S::revoked, E::stream_broken, S::expired, {A::release_devices}},
      {S::draining, E::jobs_done, S::closed, {A::release_devices, A::close_stream}},
      {S::expired,
       E::open_accepted,
       S::active,
       {A::persist_tokens, A::supersede_older, A::send_opened, A::resend_spooled}},
      {S::expired, E::open_wrong, S::expired, {A::send_rejected}},
  };
  return rows;
}

}  // namespace

SessionStep session_step(SessionState state, SessionEvent event) {
  for (const Row& row : table())
    if (row.from == state && row.event == event) return {row.next, row.actions};
  return {state, {}};
}

}  // namespace tilewright::measure
