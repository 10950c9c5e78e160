// SPDX-License-Identifier: Apache-2.0
//
// Each kind of fault by itself, against a real server: what the client sees, and what the server
// did all the same.
#include "test/livesim/faulty_client.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/server/server.h"
#include "base/sim_loop.h"
#include "playground/local_client.h"

namespace jogak::livesim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view kConfigMaps = "/api/v1/namespaces/default/configmaps";

class Faulty : public testing::Test {
 protected:
  Faulty() {
    api::ServerOptions options;
    options.tokens["secret"] = api::User{};
    auto made = api::Server::make(world_, std::move(options));
    EXPECT_TRUE(made.has_value());
    server_ = *std::move(made);
    local_ = std::make_unique<playground::LocalClient>(world_, *server_, "secret");
    network_ = std::make_unique<Network>(world_, *local_, 1);
    process_ = std::make_unique<ProcessLoop>(world_, 0);
    client_ = std::make_unique<FaultyClient>(*network_, *process_, 1);
  }
  ~Faulty() override { world_.run_ready(); }

  struct Seen {
    std::vector<std::string> events;  // "head 200", "end", "end: why"
    std::string body;
    std::string retry_after;
    std::shared_ptr<void> handle;
  };
  std::unique_ptr<Seen> send(net::ClientRequest request) {
    auto seen = std::make_unique<Seen>();
    Seen* const at = seen.get();
    seen->handle = client_->send(
        std::move(request),
        {.on_head =
             [at](int status, const net::Headers& headers) {
               at->events.push_back(fmt::format("head {}", status));
               at->retry_after = net::header(headers, "retry-after");
             },
         .on_body = [at](std::string_view bytes) { at->body += bytes; },
         .on_end =
             [at](const Result<void>& outcome) {
               at->events.push_back(outcome.has_value() ? "end" : "end: " + outcome.error().what);
             }});
    return seen;
  }
  std::unique_ptr<Seen> create(std::string_view name) {
    return send({.method = "POST",
                 .target = std::string(kConfigMaps),
                 .body = fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name),
                 .time_limit = 30 * kSecondInUs});
  }
  std::unique_ptr<Seen> watch(std::string_view more = "") {
    return send({.method = "GET",
                 .target = fmt::format("{}?watch=1&resourceVersion={}&allowWatchBookmarks=true{}",
                                       kConfigMaps, server_->store().revision(), more),
                 .silence_limit = 60 * kSecondInUs});
  }
  bool has(std::string_view name) const {
    return server_->api("test")->get("configmaps", "default", name).has_value();
  }
  void add(std::string_view name) {
    Doc object = Doc::object();
    object.at("metadata").set("name", name);
    ASSERT_TRUE(server_->api("test")->create("configmaps", "default", object).has_value());
  }

  SimLoop world_;
  std::unique_ptr<api::Server> server_;
  std::unique_ptr<playground::LocalClient> local_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<ProcessLoop> process_;
  std::unique_ptr<FaultyClient> client_;
};

TEST_F(Faulty, WithoutFaultsAnAnswerComes) {
  const auto seen = create("a");
  world_.run_for(kSecondInUs);
  EXPECT_THAT(seen->events, ElementsAre("head 201", "end"));
  EXPECT_TRUE(has("a"));
}

TEST_F(Faulty, ARefusedConnectionIsUnavailableAndNotHandled) {
  network_->rates.refuse = 1000;
  const auto seen = create("a");
  world_.run_for(kSecondInUs);
  EXPECT_THAT(seen->events, ElementsAre("end: connection refused"));
  EXPECT_FALSE(has("a"));
}

TEST_F(Faulty, ALostRequestEndsWithinItsLimit) {
  network_->rates.lose = 1000;
  const auto seen = create("a");
  world_.run_for(30 * kSecondInUs);
  ASSERT_EQ(seen->events.size(), 1U);
  EXPECT_THAT(seen->events.front(), StartsWith("end: "));
  EXPECT_FALSE(has("a"));
}

TEST_F(Faulty, ALostAnswerIsTheSameToTheClientButHandled) {
  network_->rates.lose_answer = 1000;
  const auto seen = create("a");
  world_.run_for(30 * kSecondInUs);
  ASSERT_EQ(seen->events.size(), 1U);
  EXPECT_THAT(seen->events.front(), StartsWith("end: "));
  EXPECT_TRUE(has("a"));
}

TEST_F(Faulty, AWriteOfAClientThatIsGoneIsCarriedOutWithinItsLimit) {
  network_->rates.delay = 1000;
  network_->rates.delay_max = 20 * kSecondInUs;
  std::vector<std::unique_ptr<Seen>> all;
  for (int i = 0; i < 5; ++i) all.push_back(create(fmt::format("a{}", i)));
  client_.reset();
  process_->kill();
  all.clear();
  EXPECT_FALSE(has("a0"));
  world_.run_for(30 * kSecondInUs);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(has(fmt::format("a{}", i)));
}

TEST_F(Faulty, DelaysLetAnswersOvertakeEachOther) {
  network_->rates.delay = 1000;
  network_->rates.delay_max = 5 * kSecondInUs;
  std::vector<int> order;
  std::vector<std::shared_ptr<void>> handles;
  for (int i = 0; i < 8; ++i) {
    handles.push_back(
        client_->send({.method = "GET", .target = std::string(kConfigMaps)},
                      {.on_head = {}, .on_body = {}, .on_end = [&order, i](const Result<void>&) {
                         order.push_back(i);
                       }}));
  }
  world_.run_for(20 * kSecondInUs);
  EXPECT_EQ(order.size(), 8U);
  EXPECT_THAT(order, Not(ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)));
}

TEST_F(Faulty, A429MayOrMayNotSayWhenToComeAgain) {
  network_->rates.throttle = 1000;
  int with = 0;
  for (int i = 0; i < 20; ++i) {
    const auto seen = create(fmt::format("a{}", i));
    world_.run_for(kSecondInUs);
    EXPECT_THAT(seen->events, ElementsAre("head 429", "end"));
    with += seen->retry_after.empty() ? 0 : 1;
  }
  EXPECT_GT(with, 3);
  EXPECT_LT(with, 17);
  EXPECT_FALSE(has("a0"));
}

TEST_F(Faulty, A500MayHaveHappenedOrNot) {
  network_->rates.server_error = 1000;
  int done = 0;
  for (int i = 0; i < 20; ++i) {
    const auto seen = create(fmt::format("a{}", i));
    world_.run_for(kSecondInUs);
    EXPECT_THAT(seen->events, ElementsAre("head 500", "end"));
    EXPECT_THAT(seen->body, HasSubstr("ServerTimeout"));
    done += has(fmt::format("a{}", i)) ? 1 : 0;
  }
  EXPECT_GT(done, 3);
  EXPECT_LT(done, 17);
}

TEST_F(Faulty, AWatchIsCutWithinAnEvent) {
  network_->rates.watch_cut = 1000;
  const auto seen = watch();
  for (int i = 0; i < 200 && seen->events.size() < 2; ++i) {
    add(fmt::format("a{}", i));
    world_.run_for(kSecondInUs);
  }
  EXPECT_THAT(seen->events, ElementsAre("head 200", "end: the connection broke"));
}

TEST_F(Faulty, AHalfOpenWatchIsOnlyNoticedByItsSilence) {
  network_->rates.watch_silent = 1000;
  const auto seen = watch();
  world_.run_for(121 * kSecondInUs);
  const std::string before = seen->body;
  add("a");
  world_.run_for(59 * kSecondInUs);
  EXPECT_EQ(seen->body, before);
  world_.run_for(70 * kSecondInUs);
  EXPECT_THAT(seen->events, ElementsAre("head 200", "end: the server has gone silent"));
}

TEST_F(Faulty, AnExpiredVersionIsAStatusOrAnEvent) {
  network_->rates.watch_gone = 1000;
  int as_status = 0;
  for (int i = 0; i < 20; ++i) {
    const auto seen = watch();
    world_.run_for(kSecondInUs);
    ASSERT_EQ(seen->events.size(), 2U);
    EXPECT_THAT(seen->body, HasSubstr("\"code\":410"));
    if (seen->events.front() == "head 410") ++as_status;
  }
  EXPECT_GT(as_status, 3);
  EXPECT_LT(as_status, 17);
}

TEST_F(Faulty, AWatchMayBeginTooEarly) {
  for (int i = 0; i < 10; ++i) add(fmt::format("a{}", i));
  network_->rates.watch_replay = 1000;
  const auto seen = watch();
  world_.run_for(kSecondInUs);
  EXPECT_THAT(seen->body, HasSubstr("a9"));
}

TEST_F(Faulty, AQuietWatchHasNoBookmarks) {
  network_->rates.watch_quiet = 1000;
  const auto seen = send({.method = "GET",
                          .target = fmt::format("{}?watch=1&resourceVersion=1&allowWatchBookmarks="
                                                "true",
                                                kConfigMaps)});
  world_.run_for(200 * kSecondInUs);
  add("a");
  world_.run_for(kSecondInUs);
  EXPECT_THAT(seen->body, Not(HasSubstr("BOOKMARK")));
  EXPECT_THAT(seen->body, HasSubstr("\"a\""));
}

TEST_F(Faulty, WhenFaultsEndEverythingPasses) {
  network_->rates = {.delay = 1000, .delay_max = 5 * kSecondInUs, .refuse = 500, .lose = 500};
  network_->is_faulty = false;
  const auto seen = create("a");
  world_.run_for(10 * kMsInUs);
  EXPECT_THAT(seen->events, ElementsAre("head 201", "end"));
}

TEST_F(Faulty, AProcessThatDiesSendsNothingMore) {
  process_->kill_after(1, {});
  const auto seen = create("a");
  world_.run_for(60 * kSecondInUs);
  EXPECT_THAT(seen->events, IsEmpty());
  EXPECT_FALSE(has("a"));
}

TEST(FaultRates, SayWhatIsOn) {
  FaultRates rates;
  EXPECT_EQ(rates.text(), "none");
  rates.refuse = 7;
  rates.has_watch_list = false;
  EXPECT_EQ(rates.text(), "refuse=7 no-watch-list");
}

TEST(FaultRates, EveryKindIsOnInSomeRunAndOffInAnother) {
  int none = 0;
  int with_replay = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    const FaultRates rates = draw_faults(rng);
    none += rates.text() == "none" ? 1 : 0;
    with_replay += rates.watch_replay > 0 ? 1 : 0;
  }
  EXPECT_GT(none, 5);
  EXPECT_GT(with_replay, 50);
  EXPECT_LT(with_replay, 150);
}

}  // namespace
}  // namespace jogak::livesim
