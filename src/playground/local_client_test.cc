// SPDX-License-Identifier: Apache-2.0
//
// Exchanges with a server in the same process: order of events, limits, and what the server learns
// of a client that leaves.
#include "playground/local_client.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sim_loop.h"

namespace jogak::playground {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kConfigMaps = "/api/v1/namespaces/default/configmaps";

class Local : public testing::Test {
 protected:
  Local() {
    api::ServerOptions options;
    options.tokens["secret"] = api::User{};
    auto made = api::Server::make(loop_, std::move(options));
    EXPECT_TRUE(made.has_value());
    server_ = *std::move(made);
    client_ = std::make_unique<LocalClient>(loop_, *server_, "secret");
  }

  struct Seen {
    std::vector<std::string> events;  // "head 200", "body", "end", "end: why"
    std::string body;
    std::shared_ptr<void> handle;
  };
  net::ClientEvents events_into(Seen& seen) {
    return {
        .on_head =
            [&](int status, const net::Headers&) {
              seen.events.push_back(fmt::format("head {}", status));
            },
        .on_body =
            [&](std::string_view bytes) {
              seen.events.emplace_back("body");
              seen.body += bytes;
            },
        .on_end =
            [&](const Result<void>& outcome) {
              seen.events.push_back(outcome.has_value() ? "end" : "end: " + outcome.error().what);
            }};
  }
  void send(Seen& seen, net::ClientRequest request) {
    seen.handle = client_->send(std::move(request), events_into(seen));
  }
  void add(std::string_view name) {
    Doc object = Doc::object();
    object.at("metadata").set("name", name);
    ASSERT_TRUE(server_->api("test")->create("configmaps", "default", object).has_value());
  }
  std::string watch_target() const {
    return fmt::format("{}?watch=1&resourceVersion={}", kConfigMaps, server_->store().revision());
  }

  SimLoop loop_;
  std::unique_ptr<api::Server> server_;
  std::unique_ptr<LocalClient> client_;
};

TEST_F(Local, AnAnswerComesInOrderAndNotBeforeSendReturns) {
  add("a");
  Seen seen;
  send(seen, {.method = "GET", .target = std::string(kConfigMaps)});
  EXPECT_TRUE(seen.events.empty());
  loop_.run_ready();
  EXPECT_THAT(seen.events, ElementsAre("head 200", "body", "end"));
  EXPECT_THAT(seen.body, HasSubstr(R"("name":"a")"));
}

TEST_F(Local, ARefusalIsAWholeAnswer) {
  Seen seen;
  send(seen, {.method = "GET", .target = std::string(kConfigMaps) + "/nobody"});
  loop_.run_ready();
  EXPECT_THAT(seen.events, ElementsAre("head 404", "body", "end"));
}

TEST_F(Local, WithoutATokenNobodyGetsIn) {
  LocalClient other(loop_, *server_);
  Seen seen;
  seen.handle =
      other.send({.method = "GET", .target = std::string(kConfigMaps)}, events_into(seen));
  loop_.run_ready();
  EXPECT_THAT(seen.events, ElementsAre("head 401", "body", "end"));
}

TEST_F(Local, AWatchBringsChangesAsTheyCome) {
  Seen seen;
  send(seen, {.method = "GET", .target = watch_target()});
  loop_.run_ready();
  EXPECT_THAT(seen.events, ElementsAre("head 200"));
  add("a");
  EXPECT_EQ(seen.body, "");  // never inside the write
  loop_.run_ready();
  EXPECT_THAT(seen.body, StartsWith(R"({"type":"ADDED")"));
  add("b");
  loop_.run_ready();
  EXPECT_THAT(seen.events, ElementsAre("head 200", "body", "body"));
}

TEST_F(Local, DroppingTheHandleEndsTheWatchOnTheServersSide) {
  Seen seen;
  send(seen, {.method = "GET", .target = watch_target()});
  loop_.run_ready();
  add("a");  // written, on its way
  seen.handle.reset();
  loop_.run_ready();
  add("b");
  loop_.run_ready();
  EXPECT_THAT(seen.events, ElementsAre("head 200"));
  // the server's timers of the stream are gone with it
  loop_.run_for(3600 * kSecondInUs);
  EXPECT_THAT(seen.events, ElementsAre("head 200"));
}

TEST_F(Local, ARequestDroppedAtOnceNeverReachesTheServer) {
  Seen seen;
  send(seen, {.method = "POST",
              .target = std::string(kConfigMaps),
              .body = R"({"metadata":{"name":"a"}})"});
  seen.handle.reset();
  loop_.run_ready();
  EXPECT_TRUE(seen.events.empty());
  EXPECT_FALSE(server_->api("test")->get("configmaps", "default", "a").has_value());
}

TEST_F(Local, DroppingInsideAnEventIsSafe) {
  add("a");
  Seen seen;
  net::ClientEvents events = events_into(seen);
  events.on_head = [&](int, const net::Headers&) { seen.handle.reset(); };
  seen.handle =
      client_->send({.method = "GET", .target = std::string(kConfigMaps)}, std::move(events));
  loop_.run_ready();
  EXPECT_TRUE(seen.events.empty());
}

TEST_F(Local, TheTimeLimitEndsAWatch) {
  Seen seen;
  send(seen, {.method = "GET", .target = watch_target(), .time_limit = 5 * kSecondInUs});
  loop_.run_for(4 * kSecondInUs);
  EXPECT_THAT(seen.events, ElementsAre("head 200"));
  loop_.run_for(2 * kSecondInUs);
  EXPECT_THAT(seen.events, ElementsAre("head 200", "end: no answer within the time limit"));
}

TEST_F(Local, SilenceIsCountedFromTheLastByte) {
  Seen seen;
  send(seen, {.method = "GET", .target = watch_target(), .silence_limit = 10 * kSecondInUs});
  loop_.run_for(8 * kSecondInUs);
  add("a");
  loop_.run_for(8 * kSecondInUs);
  EXPECT_THAT(seen.events, ElementsAre("head 200", "body"));
  loop_.run_for(3 * kSecondInUs);
  EXPECT_THAT(seen.events, ElementsAre("head 200", "body", "end: the server has gone silent"));
}

TEST_F(Local, TheServerEndsAWatchAtItsTimeout) {
  Seen seen;
  send(seen, {.method = "GET", .target = watch_target() + "&timeoutSeconds=7"});
  loop_.run_for(8 * kSecondInUs);
  EXPECT_THAT(seen.events, ElementsAre("head 200", "end"));
}

}  // namespace
}  // namespace jogak::playground
