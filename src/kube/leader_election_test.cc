// SPDX-License-Identifier: Apache-2.0
// One rule each, against a lease that the test holds.
#include "kube/leader_election.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/sim_loop.h"
#include "kube/lease_record.h"
#include "kube/testing/lease_server.h"
#include "kube/testing/scripted_http.h"

namespace jogak::kube {
namespace {

using testing::LeaseServer;
using testing::ScriptedHttp;
using Told = std::vector<std::string>;

class LeaderElectionTest : public ::testing::Test {
 protected:
  LeaderElectionTest() {
    http.serve([this](const ScriptedHttp::ExchangePtr& exchange) { server.handle(exchange); });
  }

  void start(const std::string& identity = "me") {
    auto made = LeaderElection::make(
        api, {.identity = identity},
        {.on_lead = [this] { told.emplace_back("lead"); },
         .on_lose = [this](const std::string& why) { told.push_back("lose: " + why); },
         .on_new_leader = [this](const std::string& name) { told.push_back("leader " + name); },
         .on_error = [this](const Error& error) { errors.push_back(error.what); }});
    ASSERT_TRUE(made.has_value()) << made.error().what;
    election = *std::move(made);
    EXPECT_TRUE(told.empty());
  }
  void start_leading() {
    start();
    loop.run_for(kMsInUs);
    ASSERT_TRUE(election->is_leader());
    told.clear();
    http.forget();
  }
  LeaseRecord lease() { return read_lease(server.json()).value_or(LeaseRecord{}); }
  // Somebody else's write.
  void put(const std::string& holder, std::int64_t seconds = 15) {
    server.put(*write_lease(server.json(), "kube-system", "jogak-scheduler",
                            {.holder = holder, .duration_seconds = seconds}, loop.now()));
  }
  Told take_told() { return std::exchange(told, {}); }

  SimLoop loop;
  ScriptedHttp http{loop};
  ApiClient api{http};
  LeaseServer server;
  Told told, errors;
  std::unique_ptr<LeaderElection> election;
};

TEST_F(LeaderElectionTest, CreatesTheLease) {
  start();
  const TimeUs began = loop.now();
  loop.run_for(kMsInUs);
  EXPECT_EQ(take_told(), (Told{"leader me", "lead"}));
  EXPECT_EQ(http.lines(),
            (Told{"GET /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/jogak-scheduler",
                  "POST /apis/coordination.k8s.io/v1/namespaces/kube-system/leases"}));
  EXPECT_EQ(lease().holder, "me");
  EXPECT_EQ(lease().duration_seconds, 15);
  EXPECT_EQ(lease().transitions, 0);
  EXPECT_NE(server.json().find("\"acquireTime\":\"2023-11-14T22:13:20.000000Z\""),
            std::string::npos);
  EXPECT_EQ(election->holder(), "me");
  EXPECT_EQ(election->valid_until(), began + 10 * kSecondInUs);
}

TEST_F(LeaderElectionTest, RenewsByOneWriteEveryTwoSeconds) {
  start_leading();
  const std::string acquired = lease().acquire_time;
  loop.run_for(20 * kSecondInUs);
  EXPECT_EQ(http.exchanges().size(), 10u);
  for (const std::string& line : http.lines()) EXPECT_TRUE(line.starts_with("PUT ")) << line;
  EXPECT_TRUE(election->is_leader());
  EXPECT_EQ(lease().acquire_time, acquired);
  EXPECT_EQ(lease().transitions, 0);
  EXPECT_TRUE(told.empty());
}

TEST_F(LeaderElectionTest, WaitsForTheEndOfAnothersLease) {
  put("other");
  start();
  loop.run_for(14'900 * kMsInUs);
  EXPECT_EQ(take_told(), Told{"leader other"});
  loop.run_for(700 * kMsInUs);
  EXPECT_EQ(take_told(), (Told{"leader me", "lead"}));
  EXPECT_EQ(lease().transitions, 1);
}

TEST_F(LeaderElectionTest, ARenewedLeaseIsRespectedWhateverItsTimesSay) {
  put("other");
  start();
  for (int i = 0; i < 20; ++i) {
    loop.run_for(10 * kSecondInUs);
    // A clock far in the past.
    server.put(*write_lease(server.json(), "", "", {.holder = "other", .duration_seconds = 15}, i));
  }
  EXPECT_EQ(take_told(), Told{"leader other"});
}

TEST_F(LeaderElectionTest, AnothersLongerLeaseIsRespected) {
  put("other", 60);
  start();
  loop.run_for(59 * kSecondInUs);
  EXPECT_FALSE(election->is_leader());
  loop.run_for(2 * kSecondInUs);
  EXPECT_TRUE(election->is_leader());
}

TEST_F(LeaderElectionTest, AReleasedLeaseIsTakenAtOnce) {
  put("");
  start();
  loop.run_for(kMsInUs);
  EXPECT_TRUE(election->is_leader());
  EXPECT_EQ(lease().transitions, 1);
}

TEST_F(LeaderElectionTest, ItsOwnLeaseIsRenewedBeforeItLeads) {
  put("me");
  start();
  EXPECT_FALSE(election->is_leader());
  loop.run_for(kMsInUs);
  EXPECT_TRUE(election->is_leader());
  EXPECT_EQ(http.lines().size(), 2u);
  EXPECT_EQ(lease().transitions, 0);
}

TEST_F(LeaderElectionTest, UnknownFieldsStay) {
  server.put(R"({"metadata":{"name":"jogak-scheduler","labels":{"a":"b"}},)"
             R"("spec":{"holderIdentity":"","strategy":"OldestEmulationVersion"}})");
  start();
  loop.run_for(kMsInUs);
  EXPECT_TRUE(election->is_leader());
  EXPECT_NE(server.json().find(R"("labels":{"a":"b"})"), std::string::npos);
  EXPECT_NE(server.json().find("OldestEmulationVersion"), std::string::npos);
}

TEST_F(LeaderElectionTest, HangingRequestsLoseInTime) {
  start_leading();
  const TimeUs until = election->valid_until();
  server.set_silent(true);
  loop.run_until(until - 1);
  EXPECT_TRUE(election->is_leader());
  EXPECT_GE(http.exchanges().size(), 2u);  // one that hangs leaves time for another
  loop.run_until(until);
  EXPECT_FALSE(election->is_leader());
  EXPECT_EQ(take_told(),
            Told{"lose: the lease kube-system/jogak-scheduler could not be renewed in time"});
  EXPECT_EQ(election->valid_until(), 0);
  server.set_silent(false);
  loop.run_for(10 * kSecondInUs);
  EXPECT_EQ(take_told(), Told{"lead"});
}

TEST_F(LeaderElectionTest, AttemptsEndBeforeItMayNotLeadAnyMore) {
  start_leading();
  server.set_silent(true);
  const TimeUs until = election->valid_until();
  loop.run_until(until);
  for (const auto& exchange : http.exchanges()) {
    if (exchange->sent_at() < until) {
      EXPECT_LE(exchange->sent_at() + exchange->request().time_limit, until);
    }
  }
}

TEST_F(LeaderElectionTest, ValidityCountsFromSending) {
  start();
  server.set_delay(3 * kSecondInUs);
  loop.run_for(10 * kMsInUs);  // the look is under way
  loop.run_for(3 * kSecondInUs);
  const TimeUs sent = http.last()->sent_at();
  ASSERT_EQ(http.last()->request().method, "POST");
  loop.run_for(3 * kSecondInUs);
  EXPECT_TRUE(election->is_leader());
  EXPECT_EQ(election->valid_until(), sent + 10 * kSecondInUs);
}

TEST_F(LeaderElectionTest, ShortOutagesAreSurvived) {
  start_leading();
  for (int i = 0; i < 3; ++i) {
    http.on("PUT", "/", {.status = 0, .cut = Error{Errc::Unavailable, "connection refused"}});
  }
  loop.run_for(7 * kSecondInUs);
  EXPECT_EQ(errors.size(), 3u);
  EXPECT_EQ(errors.at(0), "lease kube-system/jogak-scheduler: connection refused");
  loop.run_for(20 * kSecondInUs);
  EXPECT_TRUE(election->is_leader());
  EXPECT_TRUE(told.empty());
}

TEST_F(LeaderElectionTest, TakenByAnotherIsLostAtOnce) {
  start_leading();
  loop.run_for(kSecondInUs);
  put("thief");
  loop.run_for(1100 * kMsInUs);
  EXPECT_EQ(take_told(),
            (Told{"leader thief", "lose: the lease kube-system/jogak-scheduler is held by thief"}));
}

TEST_F(LeaderElectionTest, AConflictAboutSomethingElseIsRepeated) {
  start_leading();
  loop.run_for(kSecondInUs);
  server.put(server.json());  // an annotation, say
  loop.run_for(1100 * kMsInUs);
  EXPECT_TRUE(election->is_leader());
  EXPECT_EQ(http.exchanges().size(), 3u);  // conflict, look, write
  EXPECT_TRUE(told.empty());
}

TEST_F(LeaderElectionTest, ADeletedLeaseIsLostAndMadeAgain) {
  start_leading();
  server.remove();
  loop.run_for(2100 * kMsInUs);
  EXPECT_EQ(take_told(), Told{"lose: the lease kube-system/jogak-scheduler was deleted"});
  loop.run_for(14 * kSecondInUs);
  EXPECT_TRUE(told.empty());  // another might have made it anew, and hold it
  loop.run_for(6 * kSecondInUs);
  EXPECT_EQ(take_told(), Told{"lead"});
}

TEST_F(LeaderElectionTest, ADeletedLeaseOfAnotherCountsToItsEnd) {
  put("other");
  start();
  loop.run_for(3 * kSecondInUs);
  server.remove();
  loop.run_for(14 * kSecondInUs);
  EXPECT_EQ(take_told(), (Told{"leader other", "leader me"}));
  EXPECT_EQ(lease().holder, "me");
  EXPECT_FALSE(election->is_leader());
  loop.run_for(6 * kSecondInUs);
  EXPECT_EQ(take_told(), Told{"lead"});
}

TEST_F(LeaderElectionTest, AnErrorOfTheServerIsTold) {
  http.on("GET", "/", {.status = 403, .body = "leases is forbidden"});
  start();
  loop.run_for(kMsInUs);
  EXPECT_EQ(errors, Told{"lease kube-system/jogak-scheduler: leases is forbidden (403 Forbidden)"});
  loop.run_for(5 * kSecondInUs);
  EXPECT_TRUE(election->is_leader());
}

TEST_F(LeaderElectionTest, NonsenseIsAnError) {
  http.on("GET", "/", {.body = "nonsense"});
  http.on("GET", "/", {.body = R"({"metadata":{}})"});
  start();
  loop.run_for(5 * kSecondInUs);
  EXPECT_EQ(errors.size(), 2u);
  EXPECT_FALSE(election->is_leader());
}

TEST_F(LeaderElectionTest, Releases) {
  start_leading();
  int done = 0;
  election->release([&done] { ++done; });
  EXPECT_FALSE(election->is_leader());
  EXPECT_EQ(done, 0);
  loop.run_for(kMsInUs);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(lease().holder, "");
  EXPECT_EQ(lease().duration_seconds, 1);
  EXPECT_TRUE(told.empty());
  loop.run_for(60 * kSecondInUs);
  EXPECT_EQ(http.exchanges().size(), 1u);
  EXPECT_EQ(done, 1);
}

TEST_F(LeaderElectionTest, ReleasesAfterAWriteThatWasUnderWay) {
  start_leading();
  server.set_delay(500 * kMsInUs);  // answers late, writes at once
  loop.run_for(2100 * kMsInUs);
  EXPECT_EQ(http.open_count(), 1u);
  int done = 0;
  election->release([&done] { ++done; });
  loop.run_for(2 * kSecondInUs);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(lease().holder, "");
}

TEST_F(LeaderElectionTest, ReleaseDoesNotWaitForEver) {
  start_leading();
  server.set_silent(true);
  int done = 0;
  election->release([&done] { ++done; });
  loop.run_for(5 * kSecondInUs);
  EXPECT_EQ(done, 1);
}

TEST_F(LeaderElectionTest, ReleaseOfWhatIsNotHeldLeavesIt) {
  put("other");
  start();
  loop.run_for(kMsInUs);
  int done = 0;
  election->release([&done] { ++done; });
  loop.run_for(kMsInUs);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(lease().holder, "other");
}

TEST_F(LeaderElectionTest, MayBeDestroyedInsideAnEvent) {
  auto made = LeaderElection::make(api, {.identity = "me"},
                                   {.on_lead = [this] { election.reset(); },
                                    .on_lose = {},
                                    .on_new_leader = {},
                                    .on_error = {}});
  election = *std::move(made);
  loop.run_for(60 * kSecondInUs);
  EXPECT_EQ(election, nullptr);
  EXPECT_EQ(http.exchanges().size(), 2u);
}

TEST_F(LeaderElectionTest, RefusesOptionsThatCannotWork) {
  const auto problem = [this](const LeaseOptions& options) {
    const auto made = LeaderElection::make(api, options, {});
    return made ? std::string() : made.error().what;
  };
  EXPECT_NE(problem({.identity = ""}).find("identity"), std::string::npos);
  EXPECT_NE(problem({.name = "", .identity = "a"}).find("name"), std::string::npos);
  EXPECT_NE(problem({.identity = "a", .renew_deadline = 15 * kSecondInUs}).find("renew_deadline"),
            std::string::npos);
  EXPECT_NE(problem({.identity = "a", .lease_duration = 1}).find("lease_duration"),
            std::string::npos);
  EXPECT_NE(problem({.identity = "a", .retry_period = 9 * kSecondInUs}).find("retry_period"),
            std::string::npos);
  EXPECT_NE(problem({.identity = "a", .retry_period = 0}).find("retry_period"), std::string::npos);
  EXPECT_TRUE(http.exchanges().empty());
}

}  // namespace
}  // namespace jogak::kube
