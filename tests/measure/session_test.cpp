#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "measure/process/memfd.h"
#include "measure/session/codec.h"
#include "measure/session/frame.h"
#include "measure/session/machine.h"
#include "support/rng.h"

namespace tilewright::measure {
namespace {

using S = SessionState;
using E = SessionEvent;
using A = SessionAction;

bool does(const SessionStep& step, A action) {
  return std::find(step.actions.begin(), step.actions.end(), action) != step.actions.end();
}

TEST(SessionMachine, TokensArePersistedBeforeAnythingIsPromised) {
  for (S from : {S::fresh, S::detached, S::expired}) {
    SessionStep step = session_step(from, E::open_accepted);
    EXPECT_EQ(step.next, S::active);
    ASSERT_FALSE(step.actions.empty());
    EXPECT_EQ(step.actions.front(), A::persist_tokens);
    EXPECT_TRUE(does(step, A::resend_spooled));
  }
}

TEST(SessionMachine, ABrokenStreamKeepsTheJobsAndTheSameSessionComesBack) {
  SessionStep broken = session_step(S::active, E::stream_broken);
  EXPECT_EQ(broken.next, S::detached);
  EXPECT_TRUE(does(broken, A::finish_accepted));
  EXPECT_FALSE(does(broken, A::release_devices));
  EXPECT_TRUE(does(session_step(S::detached, E::ten_seconds), A::stop_builds));
  EXPECT_FALSE(does(session_step(S::detached, E::open_accepted), A::supersede_older)) << "it is the same session";
  EXPECT_EQ(session_step(S::detached, E::grace_over).next, S::expired);
}

TEST(SessionMachine, DevicesAreReleasedOnEveryWayOut) {
  for (auto [from, event] : {std::pair{S::detached, E::grace_over},
                             {S::revoked, E::jobs_done},
                             {S::draining, E::jobs_done},
                             {S::revoked, E::stream_broken},
                             {S::detached, E::claim_lost}})
    EXPECT_TRUE(does(session_step(from, event), A::release_devices));
}

TEST(SessionMachine, JobsAreAcceptedOnlyWhileActiveAndClosedStaysClosed) {
  for (int s = 0; s <= static_cast<int>(S::closed); ++s)
    EXPECT_EQ(accepts_jobs(static_cast<S>(s)), static_cast<S>(s) == S::active);
  for (int e = 0; e <= static_cast<int>(E::jobs_done); ++e)
    EXPECT_EQ(session_step(S::closed, static_cast<E>(e)).next, S::closed);
}

/// From every state, some sequence of events ends the session: nothing waits for ever.
TEST(SessionMachine, EveryStateCanEnd) {
  for (S start : {S::fresh, S::active, S::detached, S::revoked, S::draining}) {
    S state = start;
    for (E event : {E::stream_broken, E::grace_over, E::drain, E::jobs_done}) state = session_step(state, event).next;
    EXPECT_TRUE(state == S::expired || state == S::closed) << static_cast<int>(start);
  }
}

struct Pair {
  Pair() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    a = FrameSocket(Fd(fds[0]));
    raw = fds[1];
    b = FrameSocket(Fd(fds[1]));
  }
  FrameSocket a, b;
  int raw;
};

TEST(Frame, FramesAndDescriptorsArriveInOrder) {
  Pair p;
  std::string big(900'000, 'x');
  std::vector<Fd> files;
  files.push_back(std::move(*sealed_memfd("one", "1")));
  files.push_back(std::move(*sealed_memfd("two", "22")));
  p.a.send("first", std::move(files));
  p.a.send("");
  p.a.send(big);
  EXPECT_EQ(p.b.wait(1000), "first");
  EXPECT_EQ(Mapping::of(p.b.take_descriptor())->bytes(), "1");
  EXPECT_EQ(Mapping::of(p.b.take_descriptor())->bytes(), "22");
  EXPECT_FALSE(p.b.take_descriptor());
  EXPECT_EQ(p.b.wait(1000), "");
  std::optional<std::string> last;
  for (int i = 0; i < 1000 && !last; ++i) p.a.flush(), last = p.b.wait(10);
  EXPECT_EQ(last, big);
}

TEST(Frame, AnOversizedLengthIsGarbageAndAnEndIsClosed) {
  Pair p;
  ASSERT_EQ(write(p.raw, "\xff\xff\xff\x7f", 4), 4);
  EXPECT_EQ(p.a.wait(1000), std::nullopt);
  EXPECT_EQ(p.a.state(), FrameSocket::State::garbage);
  Pair q;
  ASSERT_EQ(write(q.raw, "\x09\0\0\0half", 8), 8);
  q.b = FrameSocket();
  EXPECT_EQ(q.a.wait(1000), std::nullopt);
  EXPECT_EQ(q.a.state(), FrameSocket::State::closed);
}

TEST(Frame, RandomChunksNeverChangeTheFrames) {
  const uint64_t seed = 20261130;
  RecordProperty("seed", std::to_string(seed));
  Rng rng(seed);
  std::string stream;
  std::vector<std::string> expected;
  for (int i = 0; i < 50; ++i) {
    std::string payload(rng.below(3000), static_cast<char>('a' + i % 26));
    auto n = static_cast<uint32_t>(payload.size());
    for (int shift = 0; shift < 32; shift += 8) stream.push_back(static_cast<char>(n >> shift & 0xff));
    stream += payload;
    expected.push_back(payload);
  }
  Pair p;
  std::vector<std::string> got;
  for (size_t at = 0; at < stream.size();) {
    size_t n = std::min(stream.size() - at, rng.below(700) + 1);
    ASSERT_EQ(write(p.raw, stream.data() + at, n), static_cast<ssize_t>(n));
    at += n;
    p.a.receive();
    while (auto frame = p.a.next()) got.push_back(*frame);
  }
  EXPECT_EQ(got, expected);
}

TEST(Memfd, ASealedFileCannotChangeAndAnUnsealedOneIsNotTrusted) {
  Fd file = std::move(*sealed_memfd("x", "abc"));
  EXPECT_LT(write(file.get(), "d", 1), 0);
  EXPECT_LT(ftruncate(file.get(), 1), 0);
  Fd open(memfd_create("y", 0));
  EXPECT_FALSE(Mapping::of(open).has_value());
}

TEST(Codec, AnOutcomeSurvivesTheWire) {
  Outcome o;
  o.id = {.campaign = 0x1122334455667788, .task = 9, .trial = 77, .attempt = 2};
  o.status = TrialStatus::wrong_result;
  o.phase = "check";
  o.detail = "d";
  o.device = "cpu-0";
  o.builds.push_back({.toolchain = "t", .artifact = "a", .bytes = 7, .warnings = {"w"}, .dumps = {{"ll", "text"}}});
  Measurement m;
  m.contender = 1, m.median = 5, m.ci_hi = 6, m.cut_short = true, m.samples = {1, 2};
  o.measurements.push_back(m);
  o.paired.push_back(
      {.contender = 1, .rounds = 10, .ratio = 0.9, .lo = 0.8, .hi = 1, .sign_p = 0.01, .left_early = true});
  o.check.emplace().first.push_back({"C", 5, 1, 2, 0.1});
  o.check->red_zones_ok = false;
  o.flags = {"coarse"};
  record_wire::Outcome wire;
  encode(o, wire);
  record_wire::Outcome read;
  ASSERT_TRUE(read.ParseFromString(wire.SerializeAsString()));
  Outcome back = decode(read);
  EXPECT_EQ(back.id, o.id);
  EXPECT_EQ(back.status, o.status);
  EXPECT_EQ(back.builds.at(0).dumps, o.builds[0].dumps);
  EXPECT_EQ(back.measurements.at(0).samples, m.samples);
  EXPECT_TRUE(back.measurements.at(0).cut_short);
  EXPECT_EQ(back.paired.at(0).ratio, 0.9);
  EXPECT_FALSE(back.check->red_zones_ok);
  EXPECT_EQ(back.check->first.at(0).buffer, "C");
  EXPECT_EQ(back.flags, o.flags);
}

TEST(Codec, UnknownEnumsAndWrongIdsAreUnspecified) {
  record_wire::Outcome wire;
  wire.set_status(static_cast<record_wire::TrialStatus>(99));
  wire.set_measurement_id("short");
  Outcome o = decode(wire);
  EXPECT_EQ(o.status, TrialStatus::unspecified);
  EXPECT_EQ(o.id, MeasurementId{});
  wire::CheckPlan plan;
  plan.add_buffers()->set_dtype("float31");
  EXPECT_FALSE(decode(plan).has_value());
}

}  // namespace
}  // namespace tilewright::measure
