// SPDX-License-Identifier: Apache-2.0
// Calls against a scripted server: what is repeated, what never is, what errors say.
#include "kube/api_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/sim_loop.h"
#include "kube/testing/scripted_http.h"

namespace jogak::kube {
namespace {

using testing::Answer;
using testing::ScriptedHttp;

const char* const kConflict =
    R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)"
    R"("message":"the object has been modified","reason":"Conflict",)"
    R"("details":{"name":"a","kind":"pods"},"code":409})";

class ApiClientTest : public ::testing::Test {
 protected:
  ApiClientTest() {
    client->on_call = [this](const ApiCall& call) { statuses.push_back(call.status); };
    client->on_warning = [this](std::string_view text) { warnings.emplace_back(text); };
  }

  void call(std::string method, ApiRequest request = {}) {
    request.method = std::move(method);
    if (request.target.empty()) request.target = "/api/v1/pods/a";
    client->call(std::move(request),
                 [this](Result<ApiAnswer> result) { answer = std::move(result); });
    EXPECT_FALSE(answer.has_value()) << "told before call() returned";
  }
  TimeUs run() {
    const TimeUs start = loop.now();
    while (!answer && loop.step()) {
    }
    EXPECT_TRUE(answer.has_value());
    return loop.now() - start;
  }

  SimLoop loop;
  ScriptedHttp http{loop};
  std::unique_ptr<ApiClient> client = std::make_unique<ApiClient>(http);
  std::optional<Result<ApiAnswer>> answer;
  std::vector<int> statuses;
  std::vector<std::string> warnings;
};

const Error kBroken{Errc::Timeout, "the connection broke"};
const Error kRefused{Errc::Unavailable, "connection refused"};

TEST_F(ApiClientTest, GivesTheAnswerWhateverItsStatus) {
  http.on("GET", "/api/v1/pods/a", {.status = 404, .body = "no"});
  call("GET");
  run();
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->status, 404);
  EXPECT_EQ((*answer)->body, "no");
  EXPECT_EQ(http.exchanges().size(), 1u);
  EXPECT_EQ(statuses, std::vector<int>{404});
}

TEST_F(ApiClientTest, SendsWhatIsAskedFor) {
  http.on("PATCH", "/x", {});
  call("PATCH", {.target = "/x",
                 .body = "{}",
                 .content_type = "application/merge-patch+json",
                 .time_limit = kSecondInUs});
  run();
  const net::ClientRequest& sent = http.last()->request();
  EXPECT_EQ(sent.body, "{}");
  EXPECT_EQ(net::header(sent.headers, "content-type"), "application/merge-patch+json");
  EXPECT_EQ(net::header(sent.headers, "accept"), "application/json");
  EXPECT_EQ(net::header(sent.headers, "user-agent"), "jogak");
  EXPECT_EQ(sent.time_limit, kSecondInUs);
}

TEST_F(ApiClientTest, BodyInPieces) {
  http.on("GET", "/", {.body = "abcdefg", .piece_bytes = 2});
  call("GET");
  run();
  EXPECT_EQ((*answer)->body, "abcdefg");
}

TEST_F(ApiClientTest, WaitsAsLongAsTheServerAsks) {
  http.on("POST", "/", {.status = 429, .body = "slow down", .headers = {{"Retry-After", "3"}}});
  http.on("POST", "/", {.status = 503, .headers = {{"retry-after", "2"}}});
  http.on("POST", "/", {.status = 201});
  call("POST", {.body = "{}"});
  EXPECT_EQ(run(), 5 * kSecondInUs);
  EXPECT_EQ((*answer)->status, 201);
  EXPECT_EQ(statuses, (std::vector<int>{429, 503, 201}));
}

TEST_F(ApiClientTest, WaitsAsLongAsTheStatusAsks) {
  http.on(
      "GET", "/",
      {.status = 500, .body = R"({"kind":"Status","details":{"retryAfterSeconds":4},"code":500})"});
  http.on("GET", "/", {});
  call("GET");
  EXPECT_EQ(run(), 4 * kSecondInUs);
  EXPECT_EQ((*answer)->status, 200);
}

TEST_F(ApiClientTest, WithoutRetryAfterNothingIsRepeated) {
  http.on("GET", "/", {.status = 503});
  call("GET");
  run();
  EXPECT_EQ((*answer)->status, 503);
  EXPECT_EQ(http.exchanges().size(), 1u);
}

TEST_F(ApiClientTest, RetryAfterOnOtherStatusesIsNotFollowed) {
  http.on("GET", "/", {.status = 409, .headers = {{"Retry-After", "1"}}});
  call("GET");
  run();
  EXPECT_EQ((*answer)->status, 409);
  EXPECT_EQ((*answer)->retry_after, kSecondInUs);
}

TEST_F(ApiClientTest, GivesUpAfterTenRepeats) {
  for (int i = 0; i < 12; ++i) {
    http.on("PUT", "/", {.status = 429, .headers = {{"Retry-After", "1"}}});
  }
  call("PUT");
  EXPECT_EQ(run(), 10 * kSecondInUs);
  EXPECT_EQ(http.exchanges().size(), 11u);
  EXPECT_EQ((*answer)->status, 429);
  EXPECT_EQ((*answer)->retry_after, kSecondInUs);
}

TEST_F(ApiClientTest, NoRetriesWhereNoneAreWanted) {
  http.on("POST", "/", {.status = 429, .headers = {{"Retry-After", "1"}}});
  call("POST", {.retries_max = 0});
  EXPECT_EQ(run(), 0);
  EXPECT_EQ((*answer)->status, 429);
}

TEST_F(ApiClientTest, RetryAfterZeroIsNoHotLoop) {
  for (int i = 0; i < 12; ++i) {
    http.on("GET", "/", {.status = 429, .headers = {{"Retry-After", "0"}}});
  }
  call("GET");
  EXPECT_GE(run(), kSecondInUs);
}

TEST_F(ApiClientTest, AnHourIsLeftToTheCaller) {
  http.on("GET", "/", {.status = 503, .headers = {{"Retry-After", "3600"}}});
  call("GET");
  EXPECT_EQ(run(), 0);
  EXPECT_EQ((*answer)->retry_after, 3600 * kSecondInUs);
}

TEST_F(ApiClientTest, ADateMeansSoon) {
  http.on("GET", "/",
          {.status = 503, .headers = {{"Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT"}}});
  http.on("GET", "/", {});
  call("GET");
  EXPECT_EQ(run(), kSecondInUs);
}

TEST_F(ApiClientTest, AGetIsRepeatedWhenTheConnectionBreaks) {
  http.on("GET", "/", {.status = 0, .cut = kBroken});
  http.on("GET", "/", {.body = "half", .cut = kBroken});
  http.on("GET", "/", {.body = "whole"});
  call("GET");
  EXPECT_LE(run(), kSecondInUs);
  EXPECT_EQ((*answer)->body, "whole");
  EXPECT_EQ(statuses, (std::vector<int>{0, 0, 200}));
}

TEST_F(ApiClientTest, RepeatsAreBounded) {
  for (int i = 0; i < 10; ++i) http.on("GET", "/", {.status = 0, .cut = kBroken});
  call("GET");
  EXPECT_LE(run(), 2 * kSecondInUs);
  EXPECT_EQ(http.exchanges().size(), 5u);
  EXPECT_EQ(answer->error().code, Errc::Timeout);
}

TEST_F(ApiClientTest, NoWriteIsRepeatedBlindly) {
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    answer.reset();
    http.forget();
    http.on(method, "/", {.status = 0, .cut = kBroken});
    call(method);
    run();
    EXPECT_EQ(http.exchanges().size(), 1u) << method;
    EXPECT_EQ(answer->error().code, Errc::Timeout);
  }
}

TEST_F(ApiClientTest, APostThatNeverArrivedIsRepeated) {
  http.on("POST", "/", {.status = 0, .cut = kRefused});
  http.on("POST", "/", {.status = 201});
  call("POST");
  run();
  EXPECT_EQ((*answer)->status, 201);
}

TEST_F(ApiClientTest, APostThatTimedOutAtTheServerIsNotRepeated) {
  http.on("POST", "/", {.status = 504, .headers = {{"Retry-After", "1"}}});
  call("POST");
  run();
  EXPECT_EQ((*answer)->status, 504);
  EXPECT_EQ(http.exchanges().size(), 1u);
}

TEST_F(ApiClientTest, ATimeLimitThatPassedIsNotRepeated) {
  call("GET", {.time_limit = 7 * kSecondInUs});
  EXPECT_EQ(run(), 7 * kSecondInUs);
  EXPECT_EQ(answer->error().code, Errc::Timeout);
  EXPECT_EQ(http.exchanges().size(), 1u);
}

TEST_F(ApiClientTest, WhatCanNeverWorkIsNotRepeated) {
  http.on("GET", "/", {.status = 0, .cut = Error{Errc::Invalid, "certificate refused"}});
  call("GET");
  run();
  EXPECT_EQ(answer->error().what, "certificate refused");
  EXPECT_EQ(http.exchanges().size(), 1u);
}

TEST_F(ApiClientTest, ABodyWithoutEndIsAnError) {
  http.on("GET", "/", {.body = std::string(101, 'x'), .piece_bytes = 10});
  call("GET", {.body_bytes_max = 100});
  run();
  ASSERT_FALSE(answer->has_value());
  EXPECT_EQ(answer->error().what, "the answer to GET /api/v1/pods/a is longer than 100 bytes");
  EXPECT_EQ(http.open_count(), 0u);
}

TEST_F(ApiClientTest, CollectsWarnings) {
  http.on("GET", "/",
          {.headers = {{"Warning", R"(299 - "unknown field \"spec.a\"")"},
                       {"warning", R"(299 - "one", 299 - "two" "Wed, 21 Oct 2015 07:28:00 GMT")"},
                       {"Warning", "broken"},
                       {"Warning", "299 - \"open"}}});
  call("GET");
  run();
  const std::vector<std::string> want = {"unknown field \"spec.a\"", "one", "two", "open"};
  EXPECT_EQ((*answer)->warnings, want);
  EXPECT_EQ(warnings, want);
}

TEST_F(ApiClientTest, ADestroyedClientTellsNothing) {
  http.on("GET", "/", {.status = 503, .headers = {{"Retry-After", "1"}}});
  call("GET");
  call("GET");  // never answered
  loop.run_for(kMsInUs);
  client.reset();
  EXPECT_EQ(http.open_count(), 0u);
  loop.run_for(60 * kSecondInUs);
  EXPECT_FALSE(answer.has_value());
  EXPECT_EQ(http.exchanges().size(), 2u);
}

TEST_F(ApiClientTest, MayBeDestroyedByItsCaller) {
  http.on("GET", "/", {});
  bool is_done = false;
  client->call({.method = "GET", .target = "/"}, [&](const Result<ApiAnswer>&) {
    client.reset();
    is_done = true;
  });
  loop.run_ready();
  EXPECT_TRUE(is_done);
}

TEST_F(ApiClientTest, CallOkMakesErrors) {
  http.on("PUT", "/", {.status = 409, .body = kConflict});
  http.on("PUT", "/", {.body = "{}"});
  std::vector<std::string> told;
  for (int i = 0; i < 2; ++i) {
    client->call_ok({.method = "PUT", .target = "/"}, [&told](Result<std::string> body) {
      told.push_back(body ? *body : body.error().what);
      if (!body) {
        EXPECT_EQ(body.error().code, Errc::Conflict);
      }
    });
    loop.run_ready();
  }
  EXPECT_EQ(told, (std::vector<std::string>{"the object has been modified (409 Conflict)", "{}"}));
}

TEST_F(ApiClientTest, StreamsPassThrough) {
  http.on("GET", "/watch",
          {.body = "abc", .headers = {{"Warning", "299 - \"w\""}}, .piece_bytes = 1});
  http.on("GET", "/watch", {.status = 0, .cut = kRefused});
  std::string body;
  int ended = 0;
  for (int i = 0; i < 2; ++i) {
    const auto handle = client->stream({.method = "GET", .target = "/watch"},
                                       {.on_head = {},
                                        .on_body = [&](std::string_view bytes) { body += bytes; },
                                        .on_end = [&](const Result<void>&) { ++ended; }});
    loop.run_ready();
  }
  EXPECT_EQ(body, "abc");
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(statuses, (std::vector<int>{200, 0}));
  EXPECT_EQ(warnings, std::vector<std::string>{"w"});
}

TEST(ApiProblem, OfAStatusObject) {
  const ApiProblem problem = problem_of(
      {.status = 504,
       .body = R"({"kind":"Status","message":"Timeout: Too large\n resource version",)"
               R"("reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge",)"
               R"("message":"x"}],"retryAfterSeconds":1},"code":504})"});
  EXPECT_EQ(problem.status, 504);
  EXPECT_EQ(problem.reason, "Timeout");
  EXPECT_EQ(problem.message, "Timeout: Too large resource version");
  EXPECT_EQ(problem.cause, "ResourceVersionTooLarge");
  EXPECT_EQ(error_of(problem).code, Errc::Unavailable);
}

TEST(ApiProblem, OfPlainText) {
  const auto problem = [](int status, std::string body) {
    return problem_of({.status = status, .body = std::move(body)});
  };
  EXPECT_EQ(problem(404, "404 page not found\n").message, "404 page not found");
  EXPECT_EQ(problem(404, "").reason, "NotFound");
  EXPECT_EQ(problem(429, "too many").reason, "TooManyRequests");
  EXPECT_EQ(problem(418, "").reason, "Unknown");
  EXPECT_EQ(problem(502, "<html>\r\n<b>bad\tgateway</b>").message, "<html> <b>bad gateway</b>");
  EXPECT_EQ(error_of(problem(503, "")).what, "the server answered 503 ServiceUnavailable");
  EXPECT_LE(problem(500, std::string(5000, 'x')).message.size(), 510u);
  EXPECT_EQ(problem(500, R"({"kind":"Pod","message":"x"})").reason, "InternalError");
  EXPECT_EQ(problem(500, R"({"kind":"Status","message":3,"reason":[]})").reason, "InternalError");
  EXPECT_EQ(problem(500, R"({"kind":"Status")").message, R"({"kind":"Status")");
}

TEST(ApiProblem, OfAnErrorEvent) {
  EXPECT_EQ(problem_of_status(R"({"kind":"Status","reason":"Expired","code":410})").status, 410);
  EXPECT_EQ(problem_of_status(R"({"kind":"Status"})").status, 500);
  EXPECT_EQ(problem_of_status("nonsense").status, 500);
}

TEST(ApiProblem, BecomesAnError) {
  const auto code = [](int status) {
    return error_of(problem_of({.status = status, .body = {}})).code;
  };
  EXPECT_EQ(code(400), Errc::Invalid);
  EXPECT_EQ(code(403), Errc::Invalid);
  EXPECT_EQ(code(404), Errc::NotFound);
  EXPECT_EQ(code(409), Errc::Conflict);
  EXPECT_EQ(code(410), Errc::Gone);
  EXPECT_EQ(code(422), Errc::Invalid);
  EXPECT_EQ(code(429), Errc::Unavailable);
  EXPECT_EQ(code(500), Errc::Unavailable);
  EXPECT_EQ(code(504), Errc::Unavailable);
}

TEST(Escape, KeepsWhatMayStand) {
  EXPECT_EQ(escape("aZ09-_.~"), "aZ09-_.~");
  EXPECT_EQ(escape("status.phase!=Failed,a b/\xc3\xa9"),
            "status.phase%21%3DFailed%2Ca%20b%2F%C3%A9");
}

}  // namespace
}  // namespace jogak::kube
