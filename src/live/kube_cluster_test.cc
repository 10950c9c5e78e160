// SPDX-License-Identifier: Apache-2.0
//
// The cluster behind HTTP, against a scripted server: what is followed, written, withheld and told.
#include "live/kube_cluster.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sim_loop.h"
#include "kube/testing/scripted_http.h"

namespace jogak::live {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const PodRef kPod{.ns = "ns", .name = "a", .uid = "a-uid"};
constexpr const char* kBinding = "/api/v1/namespaces/ns/pods/a/binding";
constexpr const char* kEvents = "/apis/events.k8s.io/v1/namespaces/ns/events";

class KubeClusterTest : public ::testing::Test {
 protected:
  void SetUp() override { make({}); }
  void make(KubeClusterOptions options) {
    cluster_ = std::make_unique<KubeCluster>(api_, std::move(options));
  }
  std::optional<Result<void>> bind() {
    outcome_.reset();
    cluster_->bind({.pod = kPod, .node = "n", .gpu_holds = ""},
                   [this](Result<void> outcome) { outcome_ = std::move(outcome); });
    loop_.run_for(kSecondInUs);
    return outcome_;
  }
  static PodNote note(std::string_view message, std::string_view uid = "a-uid") {
    PodRef pod = kPod;
    pod.uid = uid;
    return {.pod = pod,
            .type = "Warning",
            .reason = "FailedScheduling",
            .action = "Scheduling",
            .message = std::string(message),
            .reporter = "jogak"};
  }

  SimLoop loop_;
  kube::testing::ScriptedHttp http_{loop_};
  kube::ApiClient api_{http_};
  std::unique_ptr<KubeCluster> cluster_;
  std::optional<Result<void>> outcome_;
};

TEST_F(KubeClusterTest, EveryResourceHasAPath) {
  for (const char* resource :
       {"nodes", "pods", "namespaces", "services", "replicationcontrollers", "persistentvolumes",
        "persistentvolumeclaims", "replicasets.apps", "statefulsets.apps",
        "poddisruptionbudgets.policy", "storageclasses.storage.k8s.io", "csinodes.storage.k8s.io",
        "csidrivers.storage.k8s.io", "csistoragecapacities.storage.k8s.io",
        "volumeattachments.storage.k8s.io"}) {
    EXPECT_THAT(std::string(collection_path(resource)), StartsWith("/api")) << resource;
  }
  EXPECT_EQ(collection_path("unicorns"), "");
}

TEST_F(KubeClusterTest, FollowsPodsThatHaveNotFinished) {
  std::vector<std::string> seen;
  bool is_synced = false;
  http_.serve([&](const kube::testing::ScriptedHttp::ExchangePtr& exchange) {
    exchange->head(200);
    exchange->body(
        R"({"type":"ADDED","object":{"metadata":{"name":"a","namespace":"ns",)"
        R"("uid":"u","resourceVersion":"5"}}}{"type":"BOOKMARK","object":{"metadata":)"
        R"({"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}})");
  });
  const auto handle =
      cluster_->follow("pods", {.on_change =
                                    [&](const ClusterApi::ObjectChange& change) {
                                      seen.push_back(fmt::format("{}/{}", change.ns, change.name));
                                    },
                                .on_synced = [&] { is_synced = true; }});
  loop_.run_for(kSecondInUs);
  EXPECT_EQ(seen, (std::vector<std::string>{"ns/a"}));
  EXPECT_TRUE(is_synced);
  EXPECT_THAT(http_.lines().at(0), HasSubstr("status.phase"));
  ASSERT_EQ(cluster_->informers().size(), 1U);
  EXPECT_EQ(cluster_->informers()[0].resource, "pods");
  EXPECT_EQ(cluster_->informers()[0].objects, 1U);
}

TEST_F(KubeClusterTest, NothingIsToldOnceTheHandleIsGone) {
  auto handle = cluster_->follow(
      "nodes", {.on_change = [](const auto&) { FAIL(); }, .on_synced = [] { FAIL(); }});
  loop_.run_ready();
  handle.reset();
  loop_.run_for(60 * kSecondInUs);
  EXPECT_THAT(cluster_->informers(), IsEmpty());
}

TEST_F(KubeClusterTest, AWriteIsMadeOnce) {
  http_.on("POST", kBinding, {.status = 429, .headers = {{"Retry-After", "1"}}});
  http_.on("POST", kBinding, {.status = 201});
  EXPECT_EQ(bind()->error().code, Errc::Unavailable);
  EXPECT_EQ(http_.exchanges().size(), 1U);
  EXPECT_TRUE(bind()->has_value());
}

TEST_F(KubeClusterTest, WithoutALeaseNothingIsWritten) {
  TimeUs until = loop_.now() - 1;
  make({.write_until = [&] { return until; }});
  EXPECT_EQ(bind()->error().code, Errc::Unavailable);
  cluster_->note(note("m"));
  loop_.run_for(kSecondInUs);
  EXPECT_THAT(http_.exchanges(), IsEmpty());
  EXPECT_EQ(cluster_->counts().writes_withheld, 1U);
  until = loop_.now() + 3 * kSecondInUs;
  EXPECT_FALSE(bind().has_value());  // sent, not answered
  // and given up before another's lease may begin
  EXPECT_LE(http_.last()->request().time_limit, 8 * kSecondInUs);
}

TEST_F(KubeClusterTest, AVictimThatCannotBeMarkedIsNotDeleted) {
  http_.on("PATCH", "/api/v1/namespaces/ns/pods/a/status", {.status = 500});
  std::optional<Result<void>> outcome;
  cluster_->preempt(kPod, "why", [&](Result<void> result) { outcome = std::move(result); });
  loop_.run_for(kSecondInUs);
  EXPECT_EQ(outcome->error().code, Errc::Timeout);
  EXPECT_EQ(http_.exchanges().size(), 1U);
}

TEST_F(KubeClusterTest, AVolumeThatSomebodyClaimedIsAConflict) {
  http_.on("GET", "/api/v1/persistentvolumes/pv",
           {.body = R"({"metadata":{"resourceVersion":"3"},"spec":{"claimRef":)"
                    R"({"namespace":"x","name":"y"}}})"});
  std::optional<Result<void>> outcome;
  cluster_->plan_claim({.ns = "ns", .name = "c", .uid = "u", .node = "n", .volume = "pv"},
                       [&](Result<void> result) { outcome = std::move(result); });
  loop_.run_for(kSecondInUs);
  EXPECT_EQ(outcome->error().code, Errc::Conflict);
  EXPECT_EQ(http_.exchanges().size(), 1U);
}

TEST_F(KubeClusterTest, AnEventThatRepeatsBecomesASeries) {
  http_.on("POST", kEvents, {.status = 201});
  http_.on("PATCH", kEvents, {.status = 200});
  cluster_->note(note("one"));
  loop_.run_for(kSecondInUs);
  cluster_->note(note("one"));
  loop_.run_for(kSecondInUs);
  cluster_->note(note("one"));  // counted, and told half an hour later at the earliest
  loop_.run_for(kSecondInUs);
  ASSERT_EQ(http_.exchanges().size(), 2U) << ::testing::PrintToString(http_.lines());
  EXPECT_THAT(http_.last()->request().body, HasSubstr(R"("series":{"count":2)"));
  cluster_->note(note("another text is another event"));
  loop_.run_for(kSecondInUs);
  EXPECT_EQ(http_.last()->request().method, "POST");
}

TEST_F(KubeClusterTest, ASeriesEndsAfterSixMinutes) {
  http_.on("POST", kEvents, {.status = 201});
  http_.on("POST", kEvents, {.status = 201});
  cluster_->note(note("one"));
  loop_.run_for(361 * kSecondInUs);
  cluster_->note(note("again"));
  loop_.run_for(kSecondInUs);
  EXPECT_EQ(http_.exchanges().size(), 2U);
  EXPECT_EQ(http_.last()->request().method, "POST");
}

TEST_F(KubeClusterTest, EventsGoSlowlyBesideBindings) {
  http_.serve([](const kube::testing::ScriptedHttp::ExchangePtr& exchange) {
    exchange->answer({.status = 201});
  });
  static_cast<void>(bind());
  http_.forget();
  for (int i = 0; i < 400; ++i) cluster_->note(note("m", fmt::format("u{}", i)));
  int binds = 0;
  for (int i = 0; i < 20; ++i) {  // a binding each 100 ms
    cluster_->bind({.pod = kPod, .node = "n", .gpu_holds = ""}, [&](const auto&) { ++binds; });
    loop_.run_for(100 * kMsInUs);
  }
  EXPECT_EQ(binds, 20);
  const std::size_t events = http_.exchanges().size() - 20;
  EXPECT_GE(events, 40U);
  EXPECT_LE(events, 70U);  // 20 at once and 20 a second
  loop_.run_for(5 * kSecondInUs);
  EXPECT_EQ(cluster_->notes_waiting(), 0U);
  EXPECT_EQ(cluster_->counts().notes_sent, 400U);
}

TEST_F(KubeClusterTest, WhatCannotBeWrittenIsDroppedAtLast) {
  make({.notes_max = 3});
  for (int i = 0; i < 20; ++i) cluster_->note(note("m", fmt::format("u{}", i)));
  EXPECT_EQ(cluster_->notes_waiting(), 3U);
  EXPECT_GT(cluster_->counts().notes_dropped, 0U);
}

TEST_F(KubeClusterTest, NothingIsToldAfterItsEnd) {
  http_.on("POST", kBinding, {.status = 201, .delay = kSecondInUs});
  cluster_->note(note("m"));
  cluster_.reset();
  loop_.run_for(60 * kSecondInUs);
}

}  // namespace
}  // namespace jogak::live
