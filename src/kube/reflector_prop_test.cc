// SPDX-License-Identifier: Apache-2.0
// A reflector against a server that changes at random and goes wrong at random. What is told is
// always a possible story (an object appears once, changes forward, goes once), and when the faults
// end it is the server's state.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include <fmt/core.h>

#include "base/parse_number.h"
#include "base/rng.h"
#include "base/sim_loop.h"
#include "kube/reflector.h"
#include "kube/testing/collection_server.h"
#include "kube/testing/scripted_http.h"

namespace jogak::kube {
namespace {

using testing::CollectionServer;
using testing::ScriptedHttp;

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class World {
 public:
  explicit World(std::uint64_t seed) : rng_(seed, "world"), server_(loop_, seed) {
    http_.serve([this](const ScriptedHttp::ExchangePtr& exchange) { server_.handle(exchange); });
    server_.faults = {.of_hundred = rng_.below(3) * 10,
                      .knows_streams = rng_.chance(2, 3),
                      .ignores_streams = rng_.chance(1, 4),
                      .repeats = rng_.chance(1, 2)};
    names_ = 1 + rng_.below(30);
    const std::uint64_t changes = rng_.below(100);
    for (std::uint64_t i = 0; i < changes; ++i) server_.change(names_);
    reflector_ = std::make_unique<Reflector>(
        api_,
        ReflectorOptions{.path = "/api/v1/pods",
                         .page_size = static_cast<int>(rng_.between(1, 20)),
                         .may_stream = rng_.chance(3, 4),
                         .seed = rng_.next()},
        Reflector::Events{.on_change = [this](const ObjectChange& change) { take(change); },
                          .on_synced = [this] { ++synced_; },
                          .on_error = [this](const Error&) { ++errors_; }});
  }

  void run() {
    const std::int64_t steps = rng_.between(20, 300);
    for (std::int64_t i = 0; i < steps; ++i) {
      const std::uint64_t what = rng_.below(40);
      if (what < 24) server_.change(names_);
      if (what == 24) server_.compact(rng_.below(5));
      if (what == 25) server_.drop_watches(rng_.chance(1, 2));
      if (what == 26) server_.bookmark();
      loop_.run_for(rng_.between(0, rng_.chance(1, 10) ? 100 * kSecondInUs : kSecondInUs));
    }
  }

  // The faults end; within the longest back-off and the longest silence all is told.
  void settle() {
    server_.faults.of_hundred = 0;
    server_.faults.repeats = false;
    loop_.run_for(900 * kSecondInUs);
    ASSERT_TRUE(told_ == server_.state());
    ASSERT_EQ(reflector_->size(), told_.size());
    ASSERT_EQ(synced_, 1);
    ASSERT_TRUE(reflector_->state().is_synced);
    ASSERT_EQ(reflector_->state().failing_since, 0);
    // And one change more arrives at once.
    server_.change(names_);
    loop_.run_for(kSecondInUs);
    ASSERT_TRUE(told_ == server_.state());
  }
  int changes() const { return changes_; }
  const ReflectorState& state() const { return reflector_->state(); }

 private:
  void take(const ObjectChange& change) {
    ++changes_;
    ASSERT_EQ(change.ns, "ns");
    const auto it = told_.find(std::string(change.name));
    if (change.is_deleted) {
      ASSERT_TRUE(it != told_.end()) << change.name << " goes twice";
      ASSERT_EQ(it->second.uid, change.uid);
      ASSERT_EQ(change.is_gap, change.json.empty());
      told_.erase(it);
      std::int64_t& gone = gone_[std::string(change.name)];
      gone = std::max(gone, *parse_int(change.version));
      return;
    }
    const std::int64_t version = *parse_int(change.version);
    ASSERT_NE(change.json.find(fmt::format("\"resourceVersion\":\"{}\"", version)),
              std::string::npos);
    if (it != told_.end()) {
      ASSERT_EQ(it->second.uid, change.uid) << change.name << " is another before it went";
      ASSERT_GT(version, it->second.version) << change.name << " goes back";
    }
    ASSERT_GT(version, gone_[std::string(change.name)])
        << change.name << " comes back from the past";
    told_[std::string(change.name)] = {std::string(change.uid), version};
  }

  SimLoop loop_;
  Rng rng_;
  CollectionServer server_;
  ScriptedHttp http_{loop_};
  ApiClient api_{http_};
  CollectionServer::State told_;
  std::map<std::string, std::int64_t> gone_;  // by name, the last version that went
  std::uint64_t names_ = 1;
  int synced_ = 0, errors_ = 0, changes_ = 0;
  std::unique_ptr<Reflector> reflector_;
};

TEST(ReflectorProp, TellsAPossibleStoryAndEndsWithTheTruth) {
  const std::uint64_t first = number_from("JOGAK_SEED", 1);
  const std::uint64_t rounds = number_from("JOGAK_ROUNDS", 300);
  std::uint64_t gaps = 0, lists = 0;
  for (std::uint64_t seed = first; seed < first + rounds; ++seed) {
    SCOPED_TRACE(fmt::format("repeat with JOGAK_SEED={} JOGAK_ROUNDS=1", seed));
    World world(seed);
    world.run();
    ASSERT_NO_FATAL_FAILURE(world.settle());
    ASSERT_FALSE(::testing::Test::HasFailure());
    gaps += world.state().gaps;
    lists += world.state().lists;
  }
  EXPECT_GT(gaps, rounds / 2);  // the faults did something
  EXPECT_GT(lists, rounds);
}

}  // namespace
}  // namespace jogak::kube
