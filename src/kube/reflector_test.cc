// SPDX-License-Identifier: Apache-2.0
// One rule each: a scripted server answers, and what is asked for and told next is looked at.
#include "kube/reflector.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "base/sim_loop.h"
#include "kube/testing/scripted_http.h"

namespace jogak::kube {
namespace {

using testing::Answer;
using testing::ScriptedHttp;

std::string object(const std::string& name, int version, const std::string& uid = "") {
  return fmt::format(
      R"({{"metadata":{{"name":"{}","namespace":"ns","uid":"{}","resourceVersion":"{}"}},)"
      R"("spec":{{}}}})",
      name, uid.empty() ? "u-" + name : uid, version);
}

std::string event(const std::string& type, const std::string& json) {
  return fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, json);
}

std::string added(const std::string& name, int version, const std::string& uid = "") {
  return event("ADDED", object(name, version, uid));
}

std::string bookmark(int version, bool is_end = false) {
  return event("BOOKMARK",
               fmt::format(R"({{"metadata":{{"resourceVersion":"{}"{}}},"spec":{{}}}})", version,
                           is_end ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : ""));
}

std::string list(const std::vector<std::string>& items, int version, const std::string& next = "") {
  std::string result = R"({"kind":"PodList","items":[)";
  for (std::size_t i = 0; i < items.size(); ++i) result += (i == 0 ? "" : ",") + items[i];
  return result +
         fmt::format(R"(],"metadata":{{"continue":"{}","resourceVersion":"{}"}}}})", next, version);
}

std::string status(int code, const std::string& reason, const std::string& cause = "") {
  return fmt::format(R"({{"kind":"Status","reason":"{}","message":"m",)"
                     R"("details":{{"causes":[{{"reason":"{}"}}]}},"code":{}}})",
                     reason, cause, code);
}

class ReflectorTest : public ::testing::Test {
 protected:
  void start(ReflectorOptions options = {}) {
    options.path = "/api/v1/pods";
    reflector = std::make_unique<Reflector>(
        api, options,
        Reflector::Events{
            .on_change =
                [this](const ObjectChange& change) {
                  told.push_back(fmt::format("{}{} {}@{}", change.is_deleted ? "-" : "+",
                                             change.is_gap ? "gap" : "", change.name,
                                             change.version));
                  EXPECT_EQ(change.json.empty(), change.is_gap);
                  if (on_change) on_change();
                },
            .on_synced = [this] { told.emplace_back("synced"); },
            .on_error = [this](const Error& error) { errors.push_back(error.what); }});
    EXPECT_TRUE(told.empty());
  }
  // In pages, watching from version 10.
  void start_in_pages(const std::vector<std::string>& items = {object("a", 5)}) {
    http.on("GET", "/api/v1/pods?limit", {.body = list(items, 10)});
    start({.path = {}, .may_stream = false});
    loop.run_for(kMsInUs);
    ASSERT_EQ(asked(), "watch@10");
    told.clear();
  }

  // What the last request is, in short.
  std::string asked() const {
    const std::string& target = http.last()->request().target;
    const auto parameter = [&target](const std::string& name) {
      const std::size_t at = target.find(name + "=");
      return at == std::string::npos
                 ? std::string()
                 : target.substr(at + name.size() + 1, target.find('&', at) - at - name.size() - 1);
    };
    const std::string version = parameter("resourceVersion");
    if (target.find("sendInitialEvents=true") != std::string::npos) return "stream@" + version;
    if (target.find("watch=true") != std::string::npos) return "watch@" + version;
    return "list " + parameter("limit") + " " + parameter("continue");
  }
  std::vector<std::string> take_told() { return std::exchange(told, {}); }
  using Told = std::vector<std::string>;
  // The time until the next request.
  TimeUs until_next() {
    const TimeUs begin = loop.now();
    const std::size_t before = http.exchanges().size();
    while (http.exchanges().size() == before && loop.step()) {
    }
    return loop.now() - begin;
  }
  ScriptedHttp::Exchange& last() { return *http.last(); }

  SimLoop loop;
  ScriptedHttp http{loop};
  ApiClient api{http};
  Told told;
  std::vector<std::string> errors;
  std::function<void()> on_change;
  std::unique_ptr<Reflector> reflector;
};

TEST_F(ReflectorTest, StreamsAListAndGoesOnWatching) {
  start();
  EXPECT_EQ(asked(), "stream@");
  const std::string& target = last().request().target;
  EXPECT_NE(target.find("resourceVersionMatch=NotOlderThan"), std::string::npos);
  EXPECT_NE(target.find("allowWatchBookmarks=true"), std::string::npos);
  last().head(200);
  last().body(added("a", 3) + added("b", 4));
  loop.run_ready();
  EXPECT_FALSE(reflector->state().is_synced);
  last().body(bookmark(7, true) + event("MODIFIED", object("a", 8)));
  last().body(event("DELETED", object("b", 9)));
  loop.run_ready();
  EXPECT_EQ(take_told(), (Told{"+ a@3", "+ b@4", "synced", "+ a@8", "- b@9"}));
  EXPECT_TRUE(reflector->state().is_synced);
  EXPECT_EQ(reflector->state().version, "9");
  EXPECT_EQ(reflector->size(), 1u);
  EXPECT_EQ(http.exchanges().size(), 1u);
  last().end();  // too short, but it had events
  loop.run_for(kMsInUs);
  EXPECT_EQ(asked(), "watch@9");
}

TEST_F(ReflectorTest, SelectorsAreEscaped) {
  start({.path = {}, .field_selector = "status.phase!=Failed", .label_selector = "a in (b)"});
  EXPECT_TRUE(last().request().target.ends_with(
      "&fieldSelector=status.phase%21%3DFailed&labelSelector=a%20in%20%28b%29"));
}

TEST_F(ReflectorTest, FallsBackToPagesWhereStreamsAreNotKnown) {
  for (const int code : {400, 406, 422}) {
    http.on("GET", "/", {.status = code, .body = status(code, "Invalid")});
    start({.path = {}, .page_size = 2});
    loop.run_for(kMsInUs);
    EXPECT_EQ(asked(), "list 2 ") << code;
    EXPECT_TRUE(errors.empty());
  }
}

TEST_F(ReflectorTest, FallsBackWhenTheEndOfAStreamDoesNotCome) {
  start();
  last().head(200);
  last().body(added("a", 3));
  loop.run_for(14 * kSecondInUs);
  last().body(added("b", 4));  // still something
  loop.run_for(14 * kSecondInUs);
  EXPECT_EQ(asked(), "stream@");
  loop.run_for(2 * kSecondInUs);
  EXPECT_EQ(asked(), "list 500 ");
  last().answer({.body = list({object("b", 4)}, 6)});
  loop.run_for(kMsInUs);
  EXPECT_EQ(take_told(), (Told{"+ a@3", "+ b@4", "-gap a@3", "synced"}));
  EXPECT_EQ(asked(), "watch@6");
}

TEST_F(ReflectorTest, AStreamThatOnlyGoesOnIsNoList) {
  start();
  last().head(200);
  for (int i = 0; i < 130 && asked() == "stream@"; ++i) {
    last().body(event("MODIFIED", object("a", i + 1)));
    loop.run_for(kSecondInUs);
  }
  EXPECT_EQ(asked(), "list 500 ");
}

TEST_F(ReflectorTest, AStreamThatBreaksIsTriedAgainThenRead) {
  start();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(asked(), "stream@");
    last().answer({.body = added("a", 3), .cut = Error{Errc::Timeout, "broken"}});
    until_next();
  }
  EXPECT_EQ(asked(), "list 500 ");
  EXPECT_EQ(errors.at(0), "list of /api/v1/pods: broken");
  EXPECT_EQ(take_told(), Told{"+ a@3"});
}

TEST_F(ReflectorTest, ReadsPages) {
  start({.path = {}, .page_size = 2, .may_stream = false});
  EXPECT_EQ(asked(), "list 2 ");
  last().answer({.body = list({object("a", 1), object("b", 2)}, 10, "tok/1"), .piece_bytes = 7});
  loop.run_for(kMsInUs);
  EXPECT_EQ(asked(), "list 2 tok%2F1");
  EXPECT_EQ(take_told(), (Told{"+ a@1", "+ b@2"}));
  last().answer({.body = list({object("c", 3)}, 10)});
  loop.run_for(kMsInUs);
  EXPECT_EQ(take_told(), (Told{"+ c@3", "synced"}));
  EXPECT_EQ(asked(), "watch@10");
  EXPECT_EQ(reflector->state().lists, 1u);
}

TEST_F(ReflectorTest, APageThatBreaksIsReadAgain) {
  start({.path = {}, .page_size = 1, .may_stream = false});
  last().answer({.body = list({object("a", 1)}, 10, "t")});
  loop.run_for(kMsInUs);
  last().answer(
      {.body = list({object("b", 2)}, 10).substr(0, 120), .cut = Error{Errc::Timeout, "broken"}});
  until_next();
  until_next();
  EXPECT_EQ(asked(), "list 1 t");
  last().answer({.body = list({object("b", 2)}, 10)});
  loop.run_for(kMsInUs);
  EXPECT_EQ(take_told(), (Told{"+ a@1", "+ b@2", "synced"}));
}

TEST_F(ReflectorTest, AnExpiredContinuationStartsOver) {
  start({.path = {}, .page_size = 1, .may_stream = false});
  for (int i = 0; i < 2; ++i) {
    last().answer({.body = list({object("a", 1)}, 10 + i, "t")});
    loop.run_for(kMsInUs);
    EXPECT_EQ(asked(), i == 0 ? "list 1 t" : "list 0 t");
    last().answer({.status = 410, .body = status(410, "Expired")});
    until_next();
    EXPECT_EQ(asked(), "list 0 ");  // the whole at once
    if (i == 1) break;
  }
  EXPECT_EQ(errors.size(), 1u);
}

TEST_F(ReflectorTest, APageThatLeadsToItselfIsAnError) {
  start({.path = {}, .page_size = 1, .may_stream = false});
  last().answer({.body = list({}, 10, "t")});
  loop.run_for(kMsInUs);
  last().answer({.body = list({}, 10, "t")});
  loop.run_for(kMsInUs);
  EXPECT_EQ(errors.size(), 1u);
}

TEST_F(ReflectorTest, NonsenseForAListIsAnError) {
  for (const char* body : {"", "[]", "<html>", "{}", R"({"items":[]})", R"({"items":[3]})",
                           R"({"items":[{}],"metadata":{"resourceVersion":"1"}})",
                           R"({"items":[{"metadata":{"name":"a)"}) {
    http.on("GET", "/", {.body = body});
    errors.clear();
    start({.path = {}, .may_stream = false});
    loop.run_for(kMsInUs);
    ASSERT_EQ(errors.size(), 1u) << body;
    EXPECT_TRUE(errors[0].starts_with("list of /api/v1/pods: ")) << errors[0];
    EXPECT_FALSE(reflector->state().is_synced);
  }
}

TEST_F(ReflectorTest, ARelistIsADifference) {
  start_in_pages({object("a", 1), object("b", 2), object("c", 3), object("d", 4)});
  last().answer({.status = 410, .body = status(410, "Expired")});
  loop.run_for(20 * kSecondInUs);
  EXPECT_EQ(asked(), "list 500 ");
  last().answer(
      {.body =
           list({object("a", 1), object("b", 12), object("d", 13, "other"), object("e", 14)}, 20)});
  loop.run_for(kMsInUs);
  EXPECT_EQ(take_told(), (Told{"+ b@12", "-gap d@4", "+ d@13", "+ e@14", "-gap c@3"}));
  EXPECT_EQ(asked(), "watch@20");
  EXPECT_EQ(reflector->state().gaps, 1u);
}

TEST_F(ReflectorTest, ARelistByStreamNamesTheLastVersion) {
  start();
  last().answer({.body = added("a", 3) + bookmark(7, true), .stays_open = true});
  loop.run_for(kSecondInUs * 60);
  last().body(event("ERROR", status(410, "Expired")));
  loop.run_for(kMsInUs);
  EXPECT_EQ(asked(), "stream@7");
  EXPECT_TRUE(errors.empty());
  last().answer({.status = 410, .body = status(410, "Expired")});
  loop.run_for(kMsInUs);
  EXPECT_EQ(asked(), "stream@");
  last().answer({.body = bookmark(9, true), .stays_open = true});
  loop.run_for(kMsInUs);
  EXPECT_EQ(take_told(), (Told{"+ a@3", "synced", "-gap a@3"}));
}

TEST_F(ReflectorTest, GoneInAllItsForms) {
  start_in_pages();
  loop.run_for(30 * kSecondInUs);
  last().answer({.status = 410, .body = "gone"});
  EXPECT_EQ(until_next(), 0);
  EXPECT_EQ(asked(), "list 500 ");
  last().answer({.body = list({}, 20)});
  loop.run_for(30 * kSecondInUs);
  EXPECT_EQ(asked(), "watch@20");
  last().answer({.body = event("ERROR", status(410, "Gone")), .stays_open = true});
  EXPECT_EQ(until_next(), 0);
  EXPECT_EQ(asked(), "list 500 ");
  EXPECT_TRUE(errors.empty());
}

TEST_F(ReflectorTest, GoneRightAfterAListWaits) {
  start_in_pages();
  last().answer({.status = 410, .body = status(410, "Expired")});
  EXPECT_GE(until_next(), 800 * kMsInUs);
  EXPECT_EQ(asked(), "list 500 ");
  EXPECT_EQ(errors.size(), 1u);
}

TEST_F(ReflectorTest, BookmarksMoveTheVersionOnly) {
  start_in_pages();
  last().head(200);
  last().body(bookmark(30) + bookmark(20));
  loop.run_for(2 * kSecondInUs);
  EXPECT_EQ(reflector->state().version, "30");
  last().end();
  loop.run_for(kMsInUs);
  EXPECT_EQ(asked(), "watch@30");
  EXPECT_TRUE(told.empty());
}

TEST_F(ReflectorTest, WatchesAskForTheirEnd) {
  start_in_pages();
  for (int i = 0; i < 5; ++i) {
    const net::ClientRequest& request = last().request();
    const std::size_t at = request.target.find("timeoutSeconds=");
    ASSERT_NE(at, std::string::npos);
    const int seconds = std::stoi(request.target.substr(at + 15));
    EXPECT_GE(seconds, 300);
    EXPECT_LE(seconds, 600);
    EXPECT_GT(request.time_limit, seconds * kSecondInUs);
    EXPECT_GT(request.silence_limit, 60 * kSecondInUs);
    last().head(200);
    loop.run_for(2 * kSecondInUs);
    last().end();
    EXPECT_EQ(until_next(), 0);
  }
}

TEST_F(ReflectorTest, AWatchThatEndsAtOnceIsAFailure) {
  start_in_pages();
  last().answer({});
  EXPECT_GE(until_next(), 800 * kMsInUs);
  EXPECT_EQ(asked(), "watch@10");
  EXPECT_EQ(errors, Told{"watch of /api/v1/pods: the watch ended at once, without an event"});
  EXPECT_GT(reflector->state().failing_since, 0);
  last().head(200);
  loop.run_for(3 * kSecondInUs);
  EXPECT_EQ(reflector->state().failing_since, 0);
  EXPECT_EQ(reflector->state().last_error, "");
}

TEST_F(ReflectorTest, RefusedConnectionsRetryTheWatch) {
  start_in_pages();
  for (int i = 0; i < 5; ++i) {
    last().cut(Errc::Unavailable, "connection refused");
    until_next();
    EXPECT_EQ(asked(), "watch@10");
  }
}

TEST_F(ReflectorTest, BacksOffWithJitterAndStartsOverAfterHealth) {
  start_in_pages();
  TimeUs low = 800 * kMsInUs;
  for (int i = 0; i < 8; ++i) {
    last().cut(Errc::Unavailable);
    const TimeUs wait = until_next();
    EXPECT_GE(wait, low);
    EXPECT_LE(wait, std::min(2 * low, 30 * kSecondInUs));
    low = std::min(low * 2, 15 * kSecondInUs);
  }
  last().head(200);
  for (int i = 0; i < 3; ++i) {
    loop.run_for(50 * kSecondInUs);
    last().body(bookmark(11 + i));
  }
  loop.run_for(kMsInUs);
  last().cut(Errc::Timeout);
  EXPECT_EQ(until_next(), 0);  // it went well for long
  last().cut(Errc::Timeout);
  const TimeUs wait = until_next();
  EXPECT_GE(wait, 800 * kMsInUs);
  EXPECT_LE(wait, 1600 * kMsInUs);
}

TEST_F(ReflectorTest, TooManyRequestsWaits) {
  start_in_pages();
  last().answer({.status = 429, .body = "slow down", .headers = {{"Retry-After", "20"}}});
  EXPECT_GE(until_next(), 20 * kSecondInUs);
  EXPECT_EQ(asked(), "watch@10");
}

TEST_F(ReflectorTest, AVersionTooLargeReadsTheTruth) {
  start_in_pages({object("a", 5), object("b", 6)});
  last().answer({.status = 504, .body = status(504, "Timeout", "ResourceVersionTooLarge")});
  until_next();
  EXPECT_EQ(asked(), "list 500 ");
  last().answer({.body = list({object("a", 2)}, 3)});  // an older state was restored
  loop.run_for(kMsInUs);
  EXPECT_EQ(take_told(), (Told{"+ a@2", "-gap b@6"}));
  EXPECT_EQ(asked(), "watch@3");
}

TEST_F(ReflectorTest, AVersionTooLargeForAStreamReadsTheTruth) {
  start();
  last().answer({.body = added("a", 5) + bookmark(7, true), .stays_open = true});
  loop.run_for(60 * kSecondInUs);
  last().body(event("ERROR", status(410, "Expired")));
  loop.run_for(kMsInUs);
  EXPECT_EQ(asked(), "stream@7");
  last().answer({.status = 504, .body = status(504, "Timeout", "ResourceVersionTooLarge")});
  EXPECT_GE(until_next(), kSecondInUs);
  EXPECT_EQ(asked(), "stream@");
  last().answer({.body = added("a", 2) + bookmark(3, true), .stays_open = true});
  loop.run_for(kMsInUs);
  EXPECT_EQ(take_told(), (Told{"+ a@5", "synced", "+ a@2"}));
  EXPECT_EQ(reflector->state().version, "3");
}

TEST_F(ReflectorTest, AListOlderThanWhatIsKnownIsReadAgainAsTheTruth) {
  start_in_pages({object("a", 5)});
  last().answer({.status = 400, .body = status(400, "BadRequest")});
  until_next();
  EXPECT_EQ(asked(), "list 500 ");
  last().answer({.body = list({object("a", 2)}, 3)});
  loop.run_for(kMsInUs);
  EXPECT_EQ(asked(), "list 500 ");
  EXPECT_TRUE(told.empty());
  last().answer({.body = list({object("a", 2)}, 3)});
  loop.run_for(kMsInUs);
  EXPECT_EQ(take_told(), Told{"+ a@2"});
  EXPECT_EQ(asked(), "watch@3");
}

TEST_F(ReflectorTest, SilenceTwiceDoubtsTheVersion) {
  start_in_pages();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(asked(), "watch@10");
    last().head(200);
    EXPECT_GE(until_next(), 120 * kSecondInUs);
  }
  EXPECT_EQ(asked(), "list 500 ");
  EXPECT_TRUE(errors.empty());
}

TEST_F(ReflectorTest, AMalformedVersionIsListedAnew) {
  start_in_pages();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(asked(), "watch@10");
    last().answer({.status = 500, .body = R"({"kind":"Status","code":500})"});
    until_next();
  }
  EXPECT_EQ(asked(), "list 500 ");
}

TEST_F(ReflectorTest, OtherErrorEventsKeepTheVersion) {
  start_in_pages();
  last().answer({.body = event("ERROR", status(504, "Timeout")), .stays_open = true});
  EXPECT_GE(until_next(), 800 * kMsInUs);
  EXPECT_EQ(asked(), "watch@10");
  EXPECT_EQ(errors, Told{"watch of /api/v1/pods: m (504 Timeout)"});
}

TEST_F(ReflectorTest, AMissingPermissionIsTold) {
  start({.path = {}, .may_stream = false});
  last().answer({.status = 403, .body = status(403, "Forbidden")});
  until_next();
  EXPECT_EQ(errors, Told{"list of /api/v1/pods: m (403 Forbidden)"});
  EXPECT_EQ(reflector->state().last_error, errors[0]);
  EXPECT_FALSE(reflector->state().is_synced);
}

TEST_F(ReflectorTest, DuplicatesAndOldEventsAreNotTold) {
  start_in_pages({object("a", 5)});
  last().head(200);
  last().body(added("a", 5) + event("MODIFIED", object("a", 4)));    // known
  last().body(event("MODIFIED", object("a", 12)) + added("a", 12));  // once
  last().body(event("MODIFIED", object("a", 11)));                   // older
  loop.run_ready();
  EXPECT_EQ(take_told(), Told{"+ a@12"});
  last().body(event("DELETED", object("a", 13)) + event("DELETED", object("a", 13)));
  last().body(event("MODIFIED", object("a", 12)) + added("a", 13));  // it is gone
  loop.run_ready();
  EXPECT_EQ(take_told(), Told{"- a@13"});
  EXPECT_EQ(reflector->size(), 0u);
}

TEST_F(ReflectorTest, ModifiedForUnknownAndAddedForKnown) {
  start_in_pages({object("a", 5)});
  last().head(200);
  last().body(event("MODIFIED", object("b", 12)) + added("a", 13));
  loop.run_ready();
  EXPECT_EQ(take_told(), (Told{"+ b@12", "+ a@13"}));
}

TEST_F(ReflectorTest, AnotherUidIsAnotherObject) {
  start_in_pages({object("a", 5)});
  last().head(200);
  last().body(added("a", 12, "second"));                    // the end of the first was missed
  last().body(event("DELETED", object("a", 11)));           // and comes late
  last().body(event("DELETED", object("a", 14, "third")));  // of one that was never seen
  loop.run_ready();
  EXPECT_EQ(take_told(), (Told{"-gap a@5", "+ a@12", "-gap a@12"}));
}

TEST_F(ReflectorTest, VersionsThatAreNoNumbers) {
  const auto odd = [](const std::string& version) {
    return R"({"metadata":{"name":"a","uid":"u","resourceVersion":")" + version + "\"}}";
  };
  http.on("GET", "/",
          {.body = R"({"items":[)" + odd("x") + R"(],"metadata":{"resourceVersion":"l"}})"});
  start({.path = {}, .may_stream = false});
  loop.run_for(kMsInUs);
  EXPECT_EQ(asked(), "watch@l");
  last().head(200);
  last().body(event("MODIFIED", odd("y")) + event("MODIFIED", odd("y")) +
              event("DELETED", odd("z")) + added("b", 3));
  loop.run_ready();
  EXPECT_EQ(take_told(), (Told{"+ a@x", "synced", "+ a@y", "- a@z", "+ b@3"}));
}

TEST_F(ReflectorTest, ABrokenStreamIsBegunAnew) {
  start_in_pages();
  for (const char* body : {"nonsense", R"({"type":"ADDED"})", R"({"type":"ADDED","object":{}})",
                           R"({"type":"ADDED","object":{"metadata":[]}})"}) {
    last().answer({.body = body, .stays_open = true});
    errors.clear();
    until_next();
    EXPECT_EQ(asked(), "watch@10");
    EXPECT_EQ(errors.size(), 1u) << body;
  }
}

TEST_F(ReflectorTest, UnknownEventsAreForANewerClient) {
  start_in_pages();
  last().answer({.body = event("SURPRISE", "{}") + added("b", 12), .stays_open = true});
  loop.run_for(kMsInUs);
  EXPECT_EQ(take_told(), Told{"+ b@12"});
}

TEST_F(ReflectorTest, EventsSplitAnywhere) {
  start_in_pages();
  last().answer({.body = added("b", 12) + bookmark(13) + event("DELETED", object("a", 14)),
                 .piece_bytes = 1,
                 .stays_open = true});
  loop.run_for(kMsInUs);
  EXPECT_EQ(take_told(), (Told{"+ b@12", "- a@14"}));
}

TEST_F(ReflectorTest, MayBeDestroyedInsideAnEvent) {
  start();
  on_change = [this] { reflector.reset(); };
  last().answer({.body = added("a", 3) + added("b", 4) + bookmark(7, true), .stays_open = true});
  loop.run_for(60 * kSecondInUs);
  EXPECT_EQ(take_told(), Told{"+ a@3"});
  EXPECT_EQ(http.open_count(), 0u);
  EXPECT_EQ(http.exchanges().size(), 1u);
}

TEST_F(ReflectorTest, ADestroyedOneAsksNothing) {
  start_in_pages();
  last().cut(Errc::Unavailable);
  loop.run_for(kMsInUs);
  reflector.reset();
  http.forget();
  loop.run_for(60 * kSecondInUs);
  EXPECT_TRUE(http.exchanges().empty());
}

}  // namespace
}  // namespace jogak::kube
