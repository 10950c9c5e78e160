// SPDX-License-Identifier: Apache-2.0
// Several elections for one lease, over a network that delays, loses and cuts both ways, with
// crashes or deletions of the lease: never do two lead at once by their own valid_until(), and when
// the faults end, one leads.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "base/rng.h"
#include "base/sim_loop.h"
#include "kube/leader_election.h"
#include "kube/lease_record.h"
#include "kube/testing/lease_server.h"
#include "kube/testing/scripted_http.h"

namespace jogak::kube {
namespace {

using testing::Answer;
using testing::LeaseServer;
using testing::ScriptedHttp;

class World {
 public:
  explicit World(std::uint64_t seed) : rng_(seed, "leases") {
    is_faulty_ = true;
    fault_of_ten_ = rng_.below(6);
    delay_max_ = static_cast<TimeUs>(rng_.below(4)) * 3 * kSecondInUs + kSecondInUs;
    has_deletions_ = rng_.chance(1, 3);
    const std::size_t count = 2 + rng_.below(2);
    for (std::size_t i = 0; i < count; ++i) {
      peers_.push_back(std::make_unique<Peer>(loop_));
      peers_[i]->http.serve([this](const ScriptedHttp::ExchangePtr& exchange) { serve(exchange); });
      begin(i);
    }
  }

  // A description of what is wrong; "" when all is well.
  std::string run(TimeUs span) {
    const TimeUs end = loop_.now() + span;
    TimeUs next_fault = loop_.now();
    while (loop_.now() < end) {
      if (is_faulty_ && loop_.now() >= next_fault) {
        next_fault = loop_.now() + rng_.between(kSecondInUs, 40 * kSecondInUs);
        do_something();
      }
      if (!loop_.step()) return "nothing is left to do";
      const std::string problem = check();
      if (!problem.empty()) return problem;
    }
    return "";
  }
  void end_faults() { is_faulty_ = false; }
  std::size_t leaders() const {
    std::size_t count = 0;
    for (const auto& peer : peers_) count += peer->election->is_leader() ? 1 : 0;
    return count;
  }
  int changes() const { return changes_; }

 private:
  struct Peer {
    explicit Peer(Loop& loop) : http(loop), api(http) {}
    ScriptedHttp http;
    ApiClient api;
    std::unique_ptr<LeaderElection> election;
    bool is_told_to_lead = false;
  };

  void begin(std::size_t i) {
    Peer& peer = *peers_[i];
    peer.is_told_to_lead = false;
    auto made =
        LeaderElection::make(peer.api, {.identity = fmt::format("peer-{}", i), .seed = rng_.next()},
                             {.on_lead =
                                  [this, &peer] {
                                    EXPECT_FALSE(peer.is_told_to_lead);
                                    peer.is_told_to_lead = true;
                                    ++changes_;
                                  },
                              .on_lose =
                                  [&peer](const std::string&) {
                                    EXPECT_TRUE(peer.is_told_to_lead);
                                    peer.is_told_to_lead = false;
                                  },
                              .on_new_leader = {},
                              .on_error = {}});
    peer.election = *std::move(made);
  }

  std::string check() {
    if (leaders() > 1) return "two lead at once";
    for (const auto& peer : peers_) {
      if (peer->election->is_leader() && !peer->is_told_to_lead) return "leads without being told";
      if (peer->is_told_to_lead && loop_.now() > peer->election->valid_until()) {
        return "was not told of its loss in time";
      }
    }
    return "";
  }

  bool fault() { return is_faulty_ && rng_.below(10) < fault_of_ten_; }

  // The request may arrive late, even after its sender gave up, or never; so may the answer.
  void serve(const ScriptedHttp::ExchangePtr& exchange) {
    const TimeUs late = fault() ? rng_.between(0, delay_max_) : rng_.between(0, 20 * kMsInUs);
    if (fault() && rng_.chance(1, 2)) {
      if (rng_.chance(1, 2)) exchange->cut(Errc::Unavailable);
      return;
    }
    loop_.after(late, [this, exchange] {
      Answer answer = server_.serve(exchange->request());
      answer.delay = fault() ? rng_.between(0, delay_max_) : rng_.between(0, 20 * kMsInUs);
      if (fault()) {
        if (rng_.chance(1, 3)) return;
        answer = {.status = 0, .delay = answer.delay, .cut = Error{Errc::Timeout, "cut"}};
      } else if (fault()) {
        answer = {.status = 503, .headers = {{"Retry-After", "1"}}, .delay = answer.delay};
      }
      exchange->answer(answer);
    });
  }

  void do_something() {
    const std::size_t i = rng_.below(peers_.size());
    switch (rng_.below(4)) {
      case 0:
        if (has_deletions_) {
          // Who has never seen a lease cannot know that there was one.
          for (const auto& peer : peers_) {
            if (peer->election->holder().empty()) return;
          }
          server_.remove();
        } else {
          peers_[i]->election.reset();  // a crash, and it is back at once
          begin(i);
        }
        break;
      case 1:
        if (!server_.json().empty()) server_.put(server_.json());
        break;
      case 2:
        if (!has_deletions_) {
          peers_[i]->is_told_to_lead = false;
          peers_[i]->election->release([this, i] { begin_later(i); });
        }
        break;
      default:
        break;
    }
  }
  void begin_later(std::size_t i) {
    loop_.post([this, i] { begin(i); });
  }

  SimLoop loop_;
  Rng rng_;
  LeaseServer server_;
  std::vector<std::unique_ptr<Peer>> peers_;
  bool is_faulty_ = true;
  std::uint64_t fault_of_ten_ = 0;
  TimeUs delay_max_ = 0;
  bool has_deletions_ = false;
  int changes_ = 0;
};

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(LeaderElectionProp, NeverTwoAndInTheEndOne) {
  const std::uint64_t first = number_from("JOGAK_SEED", 1);
  const std::uint64_t rounds = number_from("JOGAK_ROUNDS", 200);
  int changes = 0;
  for (std::uint64_t seed = first; seed < first + rounds; ++seed) {
    SCOPED_TRACE(fmt::format("repeat with JOGAK_SEED={} JOGAK_ROUNDS=1", seed));
    World world(seed);
    ASSERT_EQ(world.run(600 * kSecondInUs), "");
    world.end_faults();
    ASSERT_EQ(world.run(60 * kSecondInUs), "");
    ASSERT_EQ(world.leaders(), 1u);
    changes += world.changes();
  }
  EXPECT_GT(changes, static_cast<int>(rounds));  // the faults did something
}

}  // namespace
}  // namespace jogak::kube
