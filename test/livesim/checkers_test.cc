// SPDX-License-Identifier: Apache-2.0
//
// Each rule by itself: requests that break it, sent by hand, are reported by its name; the nearest
// honest ones are not.
#include "test/livesim/checkers.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/livesim/faulty_client.h"
#include "test/livesim/world.h"

namespace jogak::livesim {
namespace {

using testing::Contains;
using testing::IsEmpty;

constexpr std::string_view kLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

class Rules : public testing::Test {
 protected:
  Rules() : world_({.seed = 1}), checkers_(world_.facts(), {}) {
    world_.network().observer = &checkers_;
    for (const int process : {1, 2}) {
      loops_.push_back(std::make_unique<ProcessLoop>(world_.loop(), 0));
      clients_.push_back(std::make_unique<FaultyClient>(world_.network(), *loops_.back(), process));
      checkers_.add_process(process, fmt::format("replica-{}", process));
    }
    world_.add_node({.name = "n0", .cpu = 4, .gpus = 2, .has_devices = true});
    world_.add_node({.name = "n1", .cpu = 4});
    world_.run_for(5 * kSecondInUs);
    take_lease(1);
  }
  ~Rules() override {
    calls_.clear();
    world_.run_for(kSecondInUs);
    world_.network().observer = nullptr;
  }

  void send(int process, std::string method, std::string target, std::string body,
            std::string type = "application/json") {
    calls_.push_back(clients_[static_cast<std::size_t>(process - 1)]->send(
        {.method = std::move(method),
         .target = std::move(target),
         .headers = {{"Content-Type", std::move(type)}},
         .body = std::move(body),
         .time_limit = 30 * kSecondInUs},
        {}));
  }
  void settle() { world_.run_for(kSecondInUs); }

  void take_lease(int process) {
    world_.remove("leases.coordination.k8s.io", "kube-system", "jogak-scheduler");
    send(process, "POST", std::string(kLeases),
         fmt::format(R"({{"metadata":{{"name":"jogak-scheduler"}},"spec":{{"holderIdentity":)"
                     R"("replica-{}","leaseDurationSeconds":15}}}})",
                     process));
    settle();
  }
  std::string uid_of(std::string_view name) {
    const PodFacts* pod = world_.facts().find_pod("default", name);
    return pod == nullptr ? "" : pod->uid;
  }
  void bind(int process, std::string_view name, std::string_view node, const std::string& uid,
            std::string_view holds = "") {
    std::string annotations;
    if (!holds.empty()) {
      annotations = fmt::format(R"(,"annotations":{{"jogak.io/gpu-holds":"{}"}})", holds);
    }
    const std::string own = uid.empty() ? "" : fmt::format(R"(,"uid":"{}")", uid);
    send(process, "POST", fmt::format("/api/v1/namespaces/default/pods/{}/binding", name),
         fmt::format(R"({{"metadata":{{"name":"{}"{}{}}},"target":{{"kind":"Node","name":"{}"}}}})",
                     name, own, annotations, node));
  }
  void bind_well(std::string_view name, std::string_view node, std::string_view holds = "") {
    bind(1, name, node, uid_of(name), holds);
    settle();
  }
  void evict(std::string_view name, const std::string& uid) {
    send(1, "DELETE", fmt::format("/api/v1/namespaces/default/pods/{}", name),
         uid.empty() ? "{}" : fmt::format(R"({{"preconditions":{{"uid":"{}"}}}})", uid));
  }
  std::vector<std::string> broken() const {
    std::vector<std::string> rules;
    for (const Violation& violation : checkers_.violations()) rules.push_back(violation.rule);
    return rules;
  }

  World world_;
  Checkers checkers_;
  std::vector<std::unique_ptr<ProcessLoop>> loops_;
  std::vector<std::unique_ptr<FaultyClient>> clients_;
  std::vector<std::shared_ptr<void>> calls_;
};

TEST_F(Rules, AnHonestBindingBreaksNone) {
  world_.add_pod({.name = "a", .gpus = 1});
  bind_well("a", "n0", R"([{\"gpu\":0}])");
  EXPECT_EQ(world_.facts().find_pod("default", "a")->node, "n0");
  checkers_.check_rest();
  EXPECT_THAT(broken(), IsEmpty());
  EXPECT_EQ(checkers_.counts().bound, 1U);
}

TEST_F(Rules, ADeviceHasOneOwner) {
  world_.add_pod({.name = "a", .gpus = 1});
  world_.add_pod({.name = "b", .gpus = 1});
  bind_well("a", "n0", R"([{\"gpu\":0}])");
  bind_well("b", "n0", R"([{\"gpu\":0}])");
  EXPECT_THAT(broken(), Contains("gpu-owned-twice"));
}

TEST_F(Rules, SharesOfADeviceAddUpToOne) {
  for (const char* name : {"a", "b", "c"}) {
    world_.add_pod({.name = name, .share_milli = 500, .share_count = 1});
  }
  bind_well("a", "n0", R"([{\"gpu\":1,\"milli\":500}])");
  bind_well("b", "n0", R"([{\"gpu\":1,\"milli\":500}])");
  EXPECT_THAT(broken(), IsEmpty());
  bind_well("c", "n0", R"([{\"gpu\":1,\"milli\":500}])");
  EXPECT_THAT(broken(), Contains("gpu-owned-twice"));
}

TEST_F(Rules, HoldsAreWhatThePodAsksFor) {
  world_.add_pod({.name = "a", .gpus = 2});
  bind_well("a", "n0", R"([{\"gpu\":0}])");
  EXPECT_THAT(broken(), Contains("gpu-holds-wrong"));
}

TEST_F(Rules, HoldsAreDevicesThatThereAre) {
  world_.add_pod({.name = "a", .gpus = 1});
  bind_well("a", "n0", R"([{\"gpu\":5}])");
  EXPECT_THAT(broken(), Contains("gpu-holds-wrong"));
}

TEST_F(Rules, ANodeGivesNoMoreThanItHas) {
  world_.add_pod({.name = "a", .cpu_milli = 3000});
  world_.add_pod({.name = "b", .cpu_milli = 3000});
  bind_well("a", "n1");
  bind_well("b", "n1");
  EXPECT_THAT(broken(), Contains("node-overcommitted"));
}

TEST_F(Rules, PodsThatOthersBoundAreNotOurFault) {
  world_.add_pod({.name = "a", .scheduler = "other", .cpu_milli = 3000});
  world_.add_pod({.name = "b", .cpu_milli = 3000});
  ASSERT_TRUE(world_.bind_foreign(*world_.facts().find_pod("default", "a"), "n1"));
  bind_well("b", "n1");
  EXPECT_THAT(broken(), IsEmpty());
}

TEST_F(Rules, ABindingNamesTheUid) {
  world_.add_pod({.name = "a"});
  bind(1, "a", "n1", "");
  EXPECT_THAT(broken(), Contains("bind-without-uid"));
}

TEST_F(Rules, AGatedPodIsNotBound) {
  world_.add_pod({.name = "a", .is_gated = true});
  bind_well("a", "n1");
  EXPECT_THAT(broken(), Contains("bind-gated"));
}

TEST_F(Rules, APodOfAnotherSchedulerIsNotBound) {
  world_.add_pod({.name = "a", .scheduler = "other"});
  bind_well("a", "n1");
  EXPECT_THAT(broken(), Contains("bind-foreign"));
}

TEST_F(Rules, APodIsBoundOnce) {
  world_.add_pod({.name = "a"});
  bind_well("a", "n1");
  bind_well("a", "n1");
  EXPECT_THAT(broken(), Contains("bind-twice"));
}

TEST_F(Rules, NorToTwoNodesAtOnce) {
  world_.add_pod({.name = "a"});
  bind(1, "a", "n1", uid_of("a"));
  bind(1, "a", "n0", uid_of("a"));
  EXPECT_THAT(broken(), Contains("bind-twice"));
}

TEST_F(Rules, AnAnswerThatWasLostMayBeAskedForAgain) {
  world_.add_pod({.name = "a"});
  world_.network().rates.lose_answer = 1000;
  bind(1, "a", "n1", uid_of("a"));
  world_.run_for(12 * kSecondInUs);
  calls_.clear();
  world_.network().rates = {};
  bind_well("a", "n1");
  EXPECT_THAT(broken(), IsEmpty());
}

TEST_F(Rules, AVictimIsDeletedOnceAndByItsUid) {
  world_.add_pod({.name = "a", .grace_s = 30});
  world_.add_pod({.name = "b", .priority_class = "high"});
  bind_well("a", "n1");
  const std::string uid = uid_of("a");
  evict("a", uid);
  settle();
  EXPECT_THAT(broken(), IsEmpty());
  evict("a", uid);
  EXPECT_THAT(broken(), Contains("deleted-twice"));
  evict("b", "");
  EXPECT_THAT(broken(), Contains("delete-without-uid"));
}

TEST_F(Rules, AnEvictionIsForSomebody) {
  world_.add_pod({.name = "a", .priority_class = "mid", .grace_s = 30});
  world_.add_pod({.name = "b", .priority_class = "low"});
  bind_well("a", "n1");
  evict("a", uid_of("a"));
  settle();
  EXPECT_THAT(broken(), Contains("evicted-for-nothing"));
}

TEST_F(Rules, AndThatOneIsPlaced) {
  world_.add_pod({.name = "a", .cpu_milli = 4000, .priority_class = "low"});
  world_.add_pod({.name = "b", .cpu_milli = 9000, .priority_class = "high"});  // fits nowhere
  bind_well("a", "n1");
  evict("a", uid_of("a"));
  settle();
  EXPECT_THAT(broken(), IsEmpty());
  checkers_.check_rest();
  EXPECT_THAT(broken(), Contains("evicted-for-nothing"));
}

TEST_F(Rules, OneWithoutTheLeaseWritesNothing) {
  world_.add_pod({.name = "a"});
  bind(2, "a", "n1", uid_of("a"));
  EXPECT_THAT(broken(), Contains("wrote-without-lease"));
}

TEST_F(Rules, NorWhenItsTimeIsOver) {
  world_.add_pod({.name = "a"});
  world_.run_for(20 * kSecondInUs);
  bind(1, "a", "n1", uid_of("a"));
  EXPECT_THAT(broken(), Contains("wrote-without-lease"));
}

TEST_F(Rules, NobodyAsksForEver) {
  for (int i = 0; i < 100; ++i) {
    bind(1, "nobody", "n1", "some-uid");
    world_.run_for(100 * kMsInUs);
    calls_.clear();
  }
  EXPECT_THAT(broken(), Contains("endless-retry"));
}

TEST_F(Rules, WhoFitsIsNotForgotten) {
  world_.add_pod({.name = "a"});
  checkers_.check_rest();
  EXPECT_THAT(broken(), Contains("lost-pod"));
}

TEST_F(Rules, WhoCouldBeGivenRoomIsNotForgotten) {
  world_.add_pod({.name = "a", .cpu_milli = 4000});
  world_.add_pod({.name = "b", .cpu_milli = 4000});
  world_.add_pod({.name = "c", .cpu_milli = 4000, .priority_class = "high"});
  bind_well("a", "n1");
  bind_well("b", "n0");
  checkers_.check_rest();
  EXPECT_THAT(broken(), Contains("lost-pod"));
}

TEST_F(Rules, WhoWaitsIsToldWhy) {
  world_.add_pod({.name = "a", .cpu_milli = 9000});
  checkers_.check_rest();
  EXPECT_THAT(broken(), Contains("no-reason"));
}

TEST_F(Rules, AtRestNothingIsWritten) {
  world_.add_pod({.name = "a"});
  checkers_.begin_rest();
  take_lease(1);
  EXPECT_THAT(broken(), IsEmpty());
  bind(1, "a", "n1", uid_of("a"));
  EXPECT_THAT(broken(), Contains("writes-at-rest"));
}

}  // namespace
}  // namespace jogak::livesim
