// SPDX-License-Identifier: Apache-2.0
//
// Leader election alone through every fault, with stalls, crashes and clocks that differ: at no
// moment may two hold that they may write, and in the end there is one leader, not none.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "core/testing/random_world.h"
#include "kube/api_client.h"
#include "kube/leader_election.h"
#include "test/livesim/faults.h"
#include "test/livesim/faulty_client.h"
#include "test/livesim/process_loop.h"
#include "test/livesim/world.h"

namespace jogak::livesim {
namespace {

constexpr int kCandidates = 3;

// One process that wants to lead.
struct Candidate {
  Candidate(World& world, int number, TimeUs offset)
      : loop(world.loop(), offset), client(world.network(), loop, number), api(client) {
    kube::LeaseOptions options;
    options.identity = fmt::format("candidate-{}", number);
    options.seed = static_cast<std::uint64_t>(number);
    auto made = kube::LeaderElection::make(api, options,
                                           {.on_lead = [this] { ++leads; },
                                            .on_lose = [this](const std::string&) { ++losses; },
                                            .on_new_leader = {},
                                            .on_error = {}});
    if (made.has_value()) election = *std::move(made);
  }
  bool may_write() const {
    return !loop.is_dead() && election->is_leader() && loop.now() < election->valid_until();
  }

  ProcessLoop loop;
  FaultyClient client;
  kube::ApiClient api;
  std::unique_ptr<kube::LeaderElection> election;
  int leads = 0, losses = 0;
};

class Elections {
 public:
  explicit Elections(std::uint64_t seed)
      : rng_(seed, "elections"),
        world_({.seed = seed, .has_controllers = false, .has_kubelets = false}) {
    Rng faults(seed, "faults");
    world_.network().rates = draw_faults(faults);
    candidates_.resize(kCandidates);
  }
  ~Elections() {
    candidates_.clear();
    world_.loop().run_ready();
  }

  std::string run() {
    const bool has_stalls = rng_.chance(1, 2);
    const bool has_crashes = rng_.chance(1, 2);
    const bool has_releases = rng_.chance(1, 2);
    for (int step = 0; step < 100; ++step) {
      for (auto& candidate : candidates_) {
        if (candidate == nullptr) {
          if (rng_.chance(1, 4)) start(candidate);
        } else if (has_stalls && rng_.chance(1, 15)) {
          candidate->loop.stall_for(static_cast<TimeUs>(rng_.below(60 * kSecondInUs)));
        } else if (has_crashes && rng_.chance(1, 25)) {
          end(candidate);
        } else if (has_releases && rng_.chance(1, 25)) {
          candidate->election->release([] {});
        }
      }
      const TimeUs until = world_.loop().now() + static_cast<TimeUs>(rng_.below(6 * kSecondInUs));
      while (world_.loop().now() < until) {
        world_.run_for(200 * kMsInUs);
        if (std::string wrong = two_leaders(); !wrong.empty()) return wrong;
      }
    }
    world_.network().is_faulty = false;
    for (auto& candidate : candidates_) {
      end(candidate);
      start(candidate);
    }
    for (int i = 0; i < 1200; ++i) {
      world_.run_for(100 * kMsInUs);
      if (std::string wrong = two_leaders(); !wrong.empty()) return wrong;
    }
    int leaders = 0;
    for (const auto& candidate : candidates_) leaders += candidate->may_write() ? 1 : 0;
    return leaders == 1 ? "" : fmt::format("{} leaders in the end", leaders);
  }
  std::string faults() { return world_.network().rates.text(); }
  int leads() const { return leads_; }

 private:
  void start(std::unique_ptr<Candidate>& candidate) {
    const TimeUs offset = rng_.between(-600, 600) * kSecondInUs;
    candidate = std::make_unique<Candidate>(world_, ++next_, offset);
  }
  void end(std::unique_ptr<Candidate>& candidate) {
    if (candidate != nullptr) leads_ += candidate->leads;
    candidate.reset();
  }
  std::string two_leaders() {
    std::string holder;
    for (const auto& candidate : candidates_) {
      if (candidate == nullptr || !candidate->may_write()) continue;
      // what it may do and what the server knows agree
      const std::string& recorded = world_.facts().lease().holder;
      const std::string own = fmt::format("candidate-{}", number_of(*candidate));
      if (!holder.empty()) return fmt::format("{} and {} lead at once", holder, own);
      if (recorded != own) {
        return fmt::format("{} leads while the lease is held by \"{}\"", own, recorded);
      }
      holder = own;
    }
    return "";
  }
  static int number_of(const Candidate& candidate) {
    const std::string holder = candidate.election->holder();
    return holder.starts_with("candidate-") ? std::stoi(holder.substr(10)) : -1;
  }

  Rng rng_;
  World world_;
  std::vector<std::unique_ptr<Candidate>> candidates_;
  int next_ = 0;
  int leads_ = 0;
};

TEST(ElectionSim, AtMostOneLeadsAndInTheEndOneDoes) {
  constexpr std::uint64_t kRounds = 100;
  const auto trial = core::testing::Trial::from_env(kRounds);
  int leads = 0;
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    Elections elections(trial.seed_of(round));
    ASSERT_EQ(elections.run(), "") << elections.faults() << "\n" << trial.repeat(round);
    leads += elections.leads();
  }
  if (trial.rounds < kRounds) return;
  EXPECT_GT(leads, 200);
}

}  // namespace
}  // namespace jogak::livesim
