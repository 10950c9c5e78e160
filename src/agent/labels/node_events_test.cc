// SPDX-License-Identifier: Apache-2.0
//
// Events against a scripted API server, under virtual time.
#include "agent/labels/node_events.h"

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/sim_loop.h"
#include "kube/testing/scripted_http.h"

namespace jogak::agent {
namespace {

using kube::testing::ScriptedHttp;
using nlohmann::json;
using ::testing::SizeIs;
using ::testing::StartsWith;

class NodeEventsTest : public ::testing::Test {
 protected:
  NodeEventsTest() {
    http.serve([this](const ScriptedHttp::ExchangePtr& exchange) { serve(*exchange); });
  }
  void serve(ScriptedHttp::Exchange& exchange) {
    const net::ClientRequest& request = exchange.request();
    ++requests;
    if (failures > 0) {
      --failures;
      return exchange.answer({.status = failure_status, .body = "not now"});
    }
    const json body = json::parse(request.body);
    if (request.method == "POST") {
      EXPECT_EQ(request.target, "/apis/events.k8s.io/v1/namespaces/default/events");
      events.push_back(body);
    } else {
      const auto at = std::ranges::find_if(events, [&](const json& event) {
        return request.target.ends_with("/" + event["metadata"]["name"].get<std::string>());
      });
      if (at == events.end()) return exchange.answer({.status = 404, .body = "{}"});
      at->merge_patch(body);
    }
    exchange.answer({.status = request.method == "POST" ? 201 : 200, .body = "{}"});
  }
  static NodeNote xid(int code, const std::string& gpu = "GPU-a") {
    return {.is_warning = true,
            .reason = "GpuXid",
            .about = fmt::format("{} {}", gpu, code),
            .text = fmt::format("{}: xid {}", gpu, code)};
  }

  SimLoop loop{1'700'000'000 * kSecondInUs};
  ScriptedHttp http{loop};
  kube::ApiClient api{http};
  CapturedLog lines;
  Log log{loop, lines};
  std::vector<json> events;
  int failures = 0, failure_status = 503, requests = 0;
  std::unique_ptr<NodeEvents> told =
      std::make_unique<NodeEvents>(api, log, NodeEventsOptions{.node = "n1"});
};

TEST_F(NodeEventsTest, AnEventOfTheNodeAsTheKubeletWritesThem) {
  told->tell(xid(79));
  loop.run_for(kSecondInUs);
  ASSERT_THAT(events, SizeIs(1));
  json event = events[0];
  EXPECT_THAT(event["metadata"]["name"].get<std::string>(), StartsWith("n1."));
  event["metadata"].erase("name");
  EXPECT_EQ(event, json::parse(R"({"apiVersion":"events.k8s.io/v1","kind":"Event",
      "metadata":{"namespace":"default"},"eventTime":"2023-11-14T22:13:20.000000Z",
      "reportingController":"jogak-agent","reportingInstance":"jogak-agent-n1",
      "action":"GpuXid","reason":"GpuXid","type":"Warning","note":"GPU-a: xid 79",
      "regarding":{"apiVersion":"v1","kind":"Node","name":"n1","uid":"n1"}})"));
}

TEST_F(NodeEventsTest, AStormIsOneEventAndAWriteAMinute) {
  for (int i = 0; i < 6000; ++i) {
    told->tell(xid(31));
    loop.run_for(kSecondInUs / 10);
  }
  loop.run_for(120 * kSecondInUs);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0]["series"]["count"], 6000);
  EXPECT_LE(requests, 13);
}

TEST_F(NodeEventsTest, AfterAPauseItIsANewOne) {
  told->tell(xid(31));
  loop.run_for(601 * kSecondInUs);
  told->tell(xid(31));
  loop.run_for(kSecondInUs);
  EXPECT_THAT(events, SizeIs(2));
  EXPECT_NE(events[0]["metadata"]["name"], events[1]["metadata"]["name"]);
}

TEST_F(NodeEventsTest, ManyDifferentOnesGoSlowlyAndNotWithoutBound) {
  for (int i = 0; i < 1000; ++i) told->tell(xid(i));
  loop.run_for(kSecondInUs);
  EXPECT_THAT(events, SizeIs(25));
  loop.run_for(300 * kSecondInUs);
  EXPECT_THAT(events, SizeIs(35));
  loop.run_for(3600 * kSecondInUs);
  EXPECT_LE(events.size(), 25U + 64U);
  EXPECT_EQ(told->counts().dropped, 1000 - events.size());
}

TEST_F(NodeEventsTest, OtherWordsOfNoParticularThingAreAnotherEvent) {
  told->tell({.is_warning = true, .reason = "MigConfigFailed", .text = "no such profile"});
  told->tell({.is_warning = true, .reason = "MigConfigFailed", .text = "in use by ml/a"});
  told->tell({.is_warning = true, .reason = "MigConfigFailed", .text = "in use by ml/a"});
  loop.run_for(100 * kSecondInUs);
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[1]["series"]["count"], 2);
}

TEST_F(NodeEventsTest, AServerThatIsAwayGetsItLaterWithTheTimeOfThen) {
  failures = 3;
  told->tell(xid(79));
  loop.run_for(60 * kSecondInUs);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0]["eventTime"], "2023-11-14T22:13:20.000000Z");
  EXPECT_THAT(lines.lines, SizeIs(0));
}

TEST_F(NodeEventsTest, WhatIsForbiddenIsSaidOnceAndDropped) {
  failures = 1000;
  failure_status = 403;
  for (int i = 0; i < 20; ++i) {
    told->tell(xid(i));
    loop.run_for(10 * kSecondInUs);
  }
  EXPECT_EQ(requests, 20);
  EXPECT_EQ(told->counts().dropped, 20U);
  EXPECT_THAT(lines.lines, SizeIs(1));
}

TEST_F(NodeEventsTest, ASeriesWhoseEventIsGoneBeginsAnew) {
  told->tell(xid(31));
  loop.run_for(kSecondInUs);
  events.clear();
  told->tell(xid(31));
  loop.run_for(100 * kSecondInUs);
  told->tell(xid(31));
  loop.run_for(kSecondInUs);
  EXPECT_THAT(events, SizeIs(1));
}

TEST_F(NodeEventsTest, ALongTextIsCutBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "\xC3\xA9";
  told->tell({.is_warning = false, .reason = "MigConfigDone", .text = text});
  loop.run_for(kSecondInUs);
  ASSERT_THAT(events, SizeIs(1));
  const auto note = events[0]["note"].get<std::string>();
  EXPECT_LE(note.size(), 1024U);
  EXPECT_TRUE(note.ends_with("\xC3\xA9 ..."));
}

TEST_F(NodeEventsTest, NothingHappensAfterItsEnd) {
  failures = 1;
  told->tell(xid(1));
  told->tell(xid(2));
  loop.run_ready();
  told.reset();
  loop.run_for(600 * kSecondInUs);
  SUCCEED();
}

}  // namespace
}  // namespace jogak::agent
