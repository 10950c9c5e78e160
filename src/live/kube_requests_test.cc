// SPDX-License-Identifier: Apache-2.0
//
// The exact bytes of each write, and what each kind of answer means.
#include "live/kube_requests.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jogak::live {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr TimeUs kNow = 1'770'000'000 * kSecondInUs + 250'000;  // 2026-02-02T02:40:00.25Z

const PodRef kPod{.ns = "team-a", .name = "train-0", .uid = "u-1"};

TEST(KubeRequests, ABindingNamesThePodByItsUid) {
  const auto request = binding_request({.pod = kPod, .node = "n1", .gpu_holds = R"([{"gpu":1}])"});
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/api/v1/namespaces/team-a/pods/train-0/binding");
  EXPECT_EQ(request.body,
            R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"train-0",)"
            R"("namespace":"team-a","uid":"u-1","annotations":{"jogak.io/gpu-holds":)"
            R"("[{\"gpu\":1}]"}},"target":{"apiVersion":"v1","kind":"Node","name":"n1"}})");
  EXPECT_EQ(binding_request({.pod = kPod, .node = "n1", .gpu_holds = ""}).body.find("annotations"),
            std::string::npos);
}

TEST(KubeRequests, ARefusalIsAStrategicPatchOfTheStatus) {
  const std::string node = "n1";
  const auto request = refusal_request(
      {.pod = kPod, .reason = "Unschedulable", .message = "0/1 nodes", .nominated_node = &node},
      kNow);
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.content_type, "application/strategic-merge-patch+json");
  EXPECT_EQ(request.target, "/api/v1/namespaces/team-a/pods/train-0/status");
  EXPECT_EQ(request.body,
            R"({"metadata":{"uid":"u-1"},"status":{"conditions":[{"type":"PodScheduled",)"
            R"("status":"False","reason":"Unschedulable","message":"0/1 nodes",)"
            R"("lastTransitionTime":"2026-02-02T02:40:00Z"}],"nominatedNodeName":"n1"}})");
}

TEST(KubeRequests, ARefusalThatChangesWordsKeepsTheTransitionTime) {
  const auto request = refusal_request(
      {.pod = kPod, .reason = "Unschedulable", .message = "other", .is_update = true}, kNow);
  EXPECT_EQ(request.body.find("lastTransitionTime"), std::string::npos);
  EXPECT_EQ(request.body.find("nominatedNodeName"), std::string::npos);
}

TEST(KubeRequests, AnEndedNominationIsNull) {
  const std::string none;
  const auto request =
      refusal_request({.pod = kPod, .nominated_node = &none, .has_condition = false}, kNow);
  EXPECT_EQ(request.body, R"({"metadata":{"uid":"u-1"},"status":{"nominatedNodeName":null}})");
}

TEST(KubeRequests, AVictimIsMarkedThenDeletedWithItsOwnGrace) {
  EXPECT_THAT(disruption_request(kPod, "why", kNow).body,
              HasSubstr(R"("type":"DisruptionTarget","status":"True",)"
                        R"("reason":"PreemptionByScheduler","message":"why")"));
  const auto request = deletion_request(kPod);
  EXPECT_EQ(request.method, "DELETE");
  EXPECT_EQ(request.body, R"({"apiVersion":"v1","kind":"DeleteOptions",)"
                          R"("preconditions":{"uid":"u-1"}})");
}

TEST(KubeRequests, AClaimIsToldItsNode) {
  const auto request =
      selected_node_request({.ns = "ns", .name = "c", .uid = "u", .node = "n1", .volume = ""});
  EXPECT_EQ(request.target, "/api/v1/namespaces/ns/persistentvolumeclaims/c");
  EXPECT_EQ(request.body, R"({"metadata":{"uid":"u","annotations":)"
                          R"({"volume.kubernetes.io/selected-node":"n1"}}})");
}

TEST(KubeRequests, AFreeVolumeIsClaimedAsItWasRead) {
  const ClaimPlan plan{.ns = "ns", .name = "c", .uid = "u", .node = "n1", .volume = "pv"};
  const auto request =
      claim_request(plan, R"({"metadata":{"resourceVersion":"7"},"spec":{"capacity":{}}})");
  ASSERT_TRUE(request.has_value()) << request.error().what;
  EXPECT_EQ(request->target, "/api/v1/persistentvolumes/pv");
  EXPECT_THAT(request->body, HasSubstr(R"("resourceVersion":"7")"));
  EXPECT_THAT(request->body, HasSubstr(R"("pv.kubernetes.io/bound-by-controller":"yes")"));
  EXPECT_THAT(request->body, HasSubstr(R"("namespace":"ns","name":"c","uid":"u")"));
}

TEST(KubeRequests, AVolumeReservedForTheClaimIsItsOwn) {
  const ClaimPlan plan{.ns = "ns", .name = "c", .uid = "u", .node = "n1", .volume = "pv"};
  const auto request = claim_request(
      plan,
      R"({"metadata":{"resourceVersion":"7"},"spec":{"claimRef":{"namespace":"ns","name":"c"}}})");
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->body.find("bound-by-controller"), std::string::npos);
}

TEST(KubeRequests, AnothersVolumeIsAConflict) {
  const ClaimPlan plan{.ns = "ns", .name = "c", .uid = "u", .node = "n1", .volume = "pv"};
  for (const char* ref : {R"({"namespace":"ns","name":"other"})", R"({"namespace":"x","name":"c"})",
                          R"({"namespace":"ns","name":"c","uid":"before"})"}) {
    const auto request = claim_request(
        plan,
        std::string(R"({"metadata":{"resourceVersion":"7"},"spec":{"claimRef":)") + ref + "}}");
    ASSERT_FALSE(request.has_value()) << ref;
    EXPECT_EQ(request.error().code, Errc::Conflict);
  }
  EXPECT_EQ(claim_request(plan, "junk").error().code, Errc::Invalid);
  EXPECT_EQ(claim_request(plan, "{}").error().code, Errc::Invalid);
}

TEST(KubeRequests, AnEventSaysWhoWhatAndForWhom) {
  const PodNote note{.pod = kPod,
                     .type = "Normal",
                     .reason = "Preempted",
                     .action = "Preempting",
                     .message = "why",
                     .reporter = "jogak",
                     .related = {.ns = "b", .name = "high", .uid = "u-2"}};
  EXPECT_EQ(event_json(note, "team-a", "train-0.1", "host", kNow),
            R"({"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"train-0.1",)"
            R"("namespace":"team-a"},"eventTime":"2026-02-02T02:40:00.250000Z",)"
            R"("reportingController":"jogak","reportingInstance":"jogak-host",)"
            R"("action":"Preempting","reason":"Preempted","type":"Normal","note":"why",)"
            R"("regarding":{"apiVersion":"v1","kind":"Pod","namespace":"team-a","name":"train-0",)"
            R"("uid":"u-1"},"related":{"apiVersion":"v1","kind":"Pod","namespace":"b",)"
            R"("name":"high","uid":"u-2"}})");
}

TEST(KubeRequests, ALongNoteIsCutBetweenCharacters) {
  PodNote note{.pod = kPod,
               .type = "Warning",
               .reason = "r",
               .action = "a",
               .message = {},
               .reporter = "jogak"};
  for (int i = 0; i < 600; ++i) note.message += "\xc3\xa9";  // é, two bytes
  const std::string json = event_json(note, "ns", "x", "h", kNow);
  const std::size_t begin = json.find("\"note\":\"") + 8;
  const std::string text = json.substr(begin, json.find('"', begin) - begin);
  EXPECT_LE(text.size(), 1024U);
  EXPECT_THAT(text, EndsWith("\xc3\xa9 ..."));
}

kube::ApiAnswer answer(int status, std::string body = "") {
  return {.status = status, .body = std::move(body)};
}

TEST(KubeRequests, WhatAnAnswerToAWriteMeans) {
  EXPECT_TRUE(outcome_of_write(answer(201)).has_value());
  const std::pair<int, Errc> kCases[] = {
      {404, Errc::NotFound}, {409, Errc::Conflict}, {429, Errc::Unavailable}, {403, Errc::Invalid},
      {422, Errc::Invalid},  {500, Errc::Timeout},  {503, Errc::Timeout},     {504, Errc::Timeout},
  };
  for (const auto& [status, code] : kCases) {
    EXPECT_EQ(outcome_of_write(answer(status)).error().code, code) << status;
  }
  EXPECT_EQ(outcome_of_write(fail(Errc::Timeout, "cut")).error().code, Errc::Timeout);
}

TEST(KubeRequests, WhatAnAnswerToAReadMeans) {
  EXPECT_TRUE(outcome_of_read(answer(200)).has_value());
  EXPECT_EQ(outcome_of_read(answer(404)).error().code, Errc::NotFound);
  EXPECT_EQ(outcome_of_read(answer(500)).error().code, Errc::Unavailable);
}

}  // namespace
}  // namespace jogak::live
