// SPDX-License-Identifier: Apache-2.0
//
// Watches and lists of the whole server as a client sees them, in virtual time.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/object/meta.h"
#include "base/rng.h"
#include "base/sim_loop.h"
#include "core/testing/random_world.h"
#include "test/playground/http_probe.h"

namespace jogak::playground::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kMaps = "/api/v1/namespaces/default/configmaps";

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    api::ServerOptions options;
    options.tokens["secret"] = {.name = "admin", .uid = "", .groups = {"system:masters"}};
    options.store.history_age = 90 * kSecondInUs;
    auto made = api::Server::make(loop_, std::move(options));
    EXPECT_TRUE(made.has_value());
    server_ = *std::move(made);
    client_ = std::make_unique<Client>(*server_, "secret");
    api_ = server_->api("test");
    loop_.run_ready();
  }

  static Doc config_map(std::string_view name, std::string_view color = "",
                        std::string_view ns = "default") {
    Doc object = Doc::object();
    object.set("apiVersion", "v1").set("kind", "ConfigMap");
    object.at("metadata").set("name", name).set("namespace", ns);
    if (!color.empty()) object.at("metadata", "labels").set("color", color);
    return object;
  }
  void create(std::string_view name, std::string_view color = "") {
    ASSERT_TRUE(api_->create("configmaps", "default", config_map(name, color)).has_value());
  }
  void paint(std::string_view name, std::string_view color) {
    Doc patch = Doc::object();
    patch.at("metadata", "labels").set("color", color);
    ASSERT_TRUE(api_->patch("configmaps", "default", name, api::PatchType::Merge, patch));
  }
  void remove(std::string_view name) {
    ASSERT_TRUE(api_->remove("configmaps", "default", name).has_value());
  }
  std::string revision() { return std::to_string(server_->store().revision()); }
  AnswerPtr watch(std::string_view query, std::string_view path = kMaps) {
    return client_->get(fmt::format("{}?watch=true&{}", path, query));
  }

  SimLoop loop_;
  std::unique_ptr<api::Server> server_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<api::Api> api_;
};

using Watch = ServerTest;

TEST_F(Watch, FromNowTellsWhatChanges) {
  create("old");
  const auto stream = watch("resourceVersion=" + revision());
  EXPECT_EQ(stream->status, 200);
  EXPECT_EQ(stream->header("Content-Type"), "application/json");
  create("a");
  paint("a", "red");
  remove("a");
  EXPECT_THAT(stream->events(), ElementsAre("ADDED a", "MODIFIED a", "DELETED a"));
  EXPECT_FALSE(stream->is_over());
}

TEST_F(Watch, WithoutAVersionBeginsWithWhatIsThere) {
  create("b");
  create("a");
  const auto stream = watch("");
  create("c");
  EXPECT_THAT(stream->events(), ElementsAre("ADDED a", "ADDED b", "ADDED c"));
}

TEST_F(Watch, FromThePastReplays) {
  create("a");
  const std::string then = revision();
  paint("a", "red");
  create("b");
  remove("a");
  EXPECT_THAT(watch("resourceVersion=" + then)->events(),
              ElementsAre("MODIFIED a", "ADDED b", "DELETED a"));
}

TEST_F(Watch, ADeletionCarriesTheLastStateAtItsOwnVersion) {
  create("a", "red");
  const auto stream = watch("resourceVersion=" + revision());
  remove("a");
  ASSERT_EQ(stream->event_docs().size(), 1U);
  const Doc object = stream->event_docs()[0]["object"];
  EXPECT_EQ(object.get("metadata", "resourceVersion").as_string(), revision());
  EXPECT_EQ(object.get("metadata", "labels", "color").as_string(), "red");
}

TEST_F(Watch, SelectorsTurnChangesIntoComingAndGoing) {
  const auto stream = watch("labelSelector=color%3Dred&resourceVersion=" + revision());
  create("a");        // not red
  paint("a", "red");  // comes in
  paint("a", "red");  // no change at all
  create("b", "red");
  paint("b", "blue");  // leaves, still there
  remove("b");         // nobody sees
  remove("a");
  EXPECT_THAT(stream->events(), ElementsAre("ADDED a", "ADDED b", "DELETED b", "DELETED a"));
  const Doc left = stream->event_docs()[2]["object"];
  EXPECT_EQ(left.get("metadata", "labels", "color").as_string(), "red");  // as it was in it
}

TEST_F(Watch, OneObjectByFieldSelectorOrOldPath) {
  const auto by_field = watch("fieldSelector=metadata.name%3Da&resourceVersion=" + revision());
  const auto by_path = client_->get(
      fmt::format("/api/v1/watch/namespaces/default/configmaps/a?resourceVersion={}", revision()));
  create("a");
  create("b");
  EXPECT_THAT(by_field->events(), ElementsAre("ADDED a"));
  EXPECT_THAT(by_path->events(), ElementsAre("ADDED a"));
}

TEST_F(Watch, OtherNamespacesAreNotSeen) {
  const auto here = watch("resourceVersion=" + revision());
  const auto everywhere = watch("resourceVersion=" + revision(), "/api/v1/configmaps");
  ASSERT_TRUE(
      api_->create("configmaps", "kube-system", config_map("x", "", "kube-system")).has_value());
  EXPECT_THAT(here->events(), IsEmpty());
  EXPECT_THAT(everywhere->events(), ElementsAre("ADDED x"));
}

TEST_F(Watch, InitialEventsEndWithABookmark) {
  create("a");
  const auto stream =
      watch("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
  create("b");
  EXPECT_THAT(stream->events(), ElementsAre("ADDED a", "BOOKMARK", "ADDED b"));
  const Doc bookmark = stream->event_docs()[1]["object"];
  EXPECT_EQ(bookmark.get("metadata", "annotations", "k8s.io/initial-events-end").as_string(),
            "true");
  EXPECT_EQ(bookmark["kind"].as_string(), "ConfigMap");
}

TEST_F(Watch, InitialEventsNeedTheirMatch) {
  const auto refused = watch("sendInitialEvents=true");
  EXPECT_EQ(refused->status, 422);
  EXPECT_EQ(refused->json()["reason"].as_string(), "Invalid");
  EXPECT_EQ(watch("resourceVersionMatch=Exact")->status, 422);
}

TEST_F(Watch, EndsWhenItsTimeIsOver) {
  const auto stream = watch("timeoutSeconds=10&resourceVersion=" + revision());
  loop_.run_for(10 * kSecondInUs - 1);
  EXPECT_FALSE(stream->is_over());
  loop_.run_for(1);
  EXPECT_TRUE(stream->is_over());
  EXPECT_FALSE(stream->was_aborted);
  create("a");
  EXPECT_THAT(stream->events(), IsEmpty());
}

TEST_F(Watch, WithoutATimeEndsAfterHalfAnHourToAnHour) {
  const auto stream = watch("resourceVersion=" + revision());
  loop_.run_for(1800 * kSecondInUs - 1);
  EXPECT_FALSE(stream->is_over());
  loop_.run_for(1801 * kSecondInUs);
  EXPECT_TRUE(stream->is_over());
}

TEST_F(Watch, BookmarksComeEachMinuteWhereTheyAreAllowed) {
  const auto with = watch("allowWatchBookmarks=true&resourceVersion=" + revision());
  const auto without = watch("resourceVersion=" + revision());
  create("a");
  // a write elsewhere, which the bookmark covers
  ASSERT_TRUE(
      api_->create("configmaps", "kube-system", config_map("x", "", "kube-system")).has_value());
  loop_.run_for(130 * kSecondInUs);
  EXPECT_THAT(with->events(), ElementsAre("ADDED a", "BOOKMARK", "BOOKMARK"));
  EXPECT_EQ(with->event_docs()[2].get("object", "metadata", "resourceVersion").as_string(),
            revision());
  EXPECT_THAT(without->events(), ElementsAre("ADDED a"));
}

TEST_F(Watch, AVersionThatHistoryForgotIsGone) {
  create("a");
  const std::string then = revision();
  create("b");
  loop_.run_for(200 * kSecondInUs);  // older than history
  create("c");
  const auto stream = watch("resourceVersion=" + then);
  EXPECT_EQ(stream->status, 200);  // the refusal comes inside the stream
  EXPECT_THAT(stream->events(), ElementsAre("ERROR 410"));
  EXPECT_EQ(stream->event_docs()[0].get("object", "reason").as_string(), "Expired");
  EXPECT_TRUE(stream->is_over());
}

TEST_F(Watch, AVersionThatIsNoNumberIsRefused) {
  EXPECT_EQ(watch("resourceVersion=yesterday")->status, 500);
  EXPECT_EQ(watch("timeoutSeconds=soon")->status, 400);
  EXPECT_EQ(watch("labelSelector=a%3D%3D%3Db")->status, 400);
  EXPECT_EQ(watch("fieldSelector=data.x%3D1")->status, 400);
}

TEST_F(Watch, FromTheFutureWaitsForIt) {
  const std::uint64_t future = server_->store().revision() + 2;
  const auto stream = watch("resourceVersion=" + std::to_string(future));
  create("a");
  create("b");
  create("c");
  EXPECT_THAT(stream->events(), ElementsAre("ADDED c"));
}

TEST_F(Watch, APeerThatHangsUpIsForgotten) {
  const auto stream = watch("resourceVersion=" + revision());
  stream->hang_up();
  create("a");
  EXPECT_EQ(stream->writes, 0);
  EXPECT_LE(stream.use_count(), 2);  // the answer here, and a timer at most
}

TEST_F(Watch, APeerThatTakesNothingIsDropped) {
  client_->is_slow = true;
  const auto slow = watch("resourceVersion=" + revision());
  client_->is_slow = false;
  const auto quick = watch("resourceVersion=" + revision());
  Doc object = config_map("big");
  object.at("data").set("x", std::string(1'000'000, 'x'));
  ASSERT_TRUE(api_->create("configmaps", "default", object).has_value());
  for (int i = 0; i < 80 && !slow->is_over(); ++i) paint("big", fmt::format("c{}", i));
  EXPECT_TRUE(slow->was_aborted);
  EXPECT_FALSE(quick->is_over());
}

TEST_F(Watch, AsTables) {
  create("a");
  const auto stream = client_->get_as(std::string(kMaps) + "?watch=true",
                                      "application/json;as=Table;v=v1;g=meta.k8s.io");
  create("b");
  const auto events = stream->event_docs();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].get("object", "kind").as_string(), "Table");
  EXPECT_FALSE(events[0].get("object", "columnDefinitions").empty());
  EXPECT_TRUE(events[1].get("object", "columnDefinitions").is_null());  // said already
  EXPECT_EQ(events[1].get("object", "rows").items()[0]["cells"].items()[0].as_string(), "b");
}

TEST_F(Watch, AsMetadataAlone) {
  const auto stream =
      client_->get_as(std::string(kMaps) + "?watch=true",
                      "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
  create("a");
  const auto events = stream->event_docs();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].get("object", "kind").as_string(), "PartialObjectMetadata");
  EXPECT_FALSE(events[0]["object"].has("data"));
}

TEST_F(Watch, AsProtobuf) {
  const auto stream = client_->get_as(std::string(kMaps) + "?watch=true",
                                      "application/vnd.kubernetes.protobuf;stream=watch");
  create("a");
  EXPECT_EQ(stream->header("Content-Type"), "application/vnd.kubernetes.protobuf;stream=watch");
  ASSERT_GT(stream->body.size(), 8U);
  const auto size = (static_cast<unsigned char>(stream->body[2]) << 8U) |
                    static_cast<unsigned char>(stream->body[3]);
  EXPECT_EQ(stream->body.size(), static_cast<std::size_t>(size) + 4);  // one frame, its length
  EXPECT_THAT(stream->body, HasSubstr("ADDED"));
}

// A client that lists and then watches knows at each moment what the server has.
TEST_F(Watch, ListThenWatchMirrorsTheServer) {
  const auto trial = core::testing::Trial::from_env(20);
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    Rng rng(trial.seed_of(round), "mirror");
    const bool is_red = rng.below(2) == 0;
    const std::string selector = is_red ? "labelSelector=color%3Dred&" : "";
    const auto number = [&](std::uint64_t bound) { return rng.below(bound); };
    const auto act = [&] {
      const std::string name = fmt::format("m{}", number(8));
      const char* color = number(2) == 0 ? "red" : "blue";
      if (!api_->get("configmaps", "default", name).has_value()) return create(name, color);
      if (number(3) == 0) return remove(name);
      paint(name, color);
    };
    for (int i = 0; i < 10; ++i) act();
    const Doc list = client_->get(fmt::format("{}?{}", kMaps, selector))->json();
    std::map<std::string, std::string> mirror;  // name -> resourceVersion
    for (const Doc& item : list["items"].items()) {
      mirror[api::name_of(item)] = item.get("metadata", "resourceVersion").as_string();
    }
    for (int i = 0; i < 5; ++i) act();  // between the two
    const auto stream =
        watch(selector + "resourceVersion=" + list.get("metadata", "resourceVersion").as_string());
    for (int i = 0; i < 40; ++i) act();
    std::uint64_t last = 0;
    for (const Doc& event : stream->event_docs()) {
      const std::string& name = api::name_of(event["object"]);
      const std::string& version = event.get("object", "metadata", "resourceVersion").as_string();
      EXPECT_GT(std::stoull(version), last) << trial.repeat(round);
      last = std::stoull(version);
      const std::string& type = event["type"].as_string();
      EXPECT_EQ(mirror.contains(name), type != "ADDED") << type << " " << trial.repeat(round);
      if (type == "DELETED") {
        mirror.erase(name);
      } else {
        mirror[name] = version;
      }
    }
    std::map<std::string, std::string> truth;
    for (const Doc& item : api_->list("configmaps", "default")) {
      if (is_red && item.get("metadata", "labels", "color").as_string() != "red") continue;
      truth[api::name_of(item)] = item.get("metadata", "resourceVersion").as_string();
    }
    ASSERT_EQ(mirror, truth) << trial.repeat(round);
    stream->hang_up();
  }
}

using List = ServerTest;

std::vector<std::string> names_of(const Doc& list) {
  std::vector<std::string> names;
  for (const Doc& item : list["items"].items()) names.push_back(api::name_of(item));
  return names;
}

TEST_F(List, PagesShowOneMomentWhateverIsWrittenBetween) {
  for (const char* name : {"a", "b", "c", "d", "e"}) create(name);
  const std::string then = revision();
  Doc page = client_->get(fmt::format("{}?limit=2", kMaps))->json();
  EXPECT_THAT(names_of(page), ElementsAre("a", "b"));
  EXPECT_EQ(page.get("metadata", "remainingItemCount").as_int(), 3);
  EXPECT_EQ(page.get("metadata", "resourceVersion").as_string(), then);
  remove("c");
  create("bb");
  paint("d", "red");
  page = client_
             ->get(fmt::format("{}?limit=2&continue={}", kMaps,
                               page.get("metadata", "continue").as_string()))
             ->json();
  EXPECT_THAT(names_of(page), ElementsAre("c", "d"));
  EXPECT_FALSE(page["items"].items()[1]["metadata"].has("labels"));
  EXPECT_EQ(page.get("metadata", "resourceVersion").as_string(), then);
  page = client_
             ->get(fmt::format("{}?limit=2&continue={}", kMaps,
                               page.get("metadata", "continue").as_string()))
             ->json();
  EXPECT_THAT(names_of(page), ElementsAre("e"));
  EXPECT_FALSE(page["metadata"].has("continue"));
}

TEST_F(List, AnOldTokenIsGoneAndOffersTheRest) {
  for (const char* name : {"a", "b", "c"}) create(name);
  Doc page = client_->get(fmt::format("{}?limit=1", kMaps))->json();
  create("d");
  loop_.run_for(300 * kSecondInUs);
  create("e");
  const auto gone = client_->get(
      fmt::format("{}?limit=1&continue={}", kMaps, page.get("metadata", "continue").as_string()));
  EXPECT_EQ(gone->status, 410);
  EXPECT_EQ(gone->json()["reason"].as_string(), "Expired");
  const std::string next = gone->json().get("metadata", "continue").as_string();
  ASSERT_NE(next, "");
  page = client_->get(fmt::format("{}?continue={}", kMaps, next))->json();
  EXPECT_THAT(names_of(page), ElementsAre("b", "c", "d", "e"));
}

TEST_F(List, BrokenTokensAreRefused) {
  EXPECT_EQ(client_->get(fmt::format("{}?continue=garbage", kMaps))->status, 400);
  EXPECT_EQ(client_->get(fmt::format("{}?continue=e30", kMaps))->status, 400);
  create("a");
  create("b");
  const Doc page = client_->get(fmt::format("{}?limit=1", kMaps))->json();
  EXPECT_EQ(client_
                ->get(fmt::format("{}?resourceVersion={}&continue={}", kMaps, revision(),
                                  page.get("metadata", "continue").as_string()))
                ->status,
            400);
}

TEST_F(List, SelectedPagesDoNotSayHowManyAreLeft) {
  for (const char* name : {"a", "b", "c"}) create(name, "red");
  create("aa", "blue");
  const Doc page = client_->get(fmt::format("{}?limit=2&labelSelector=color%3Dred", kMaps))->json();
  EXPECT_THAT(names_of(page), ElementsAre("a", "b"));
  EXPECT_FALSE(page["metadata"].has("remainingItemCount"));
  EXPECT_TRUE(page["metadata"].has("continue"));
}

TEST_F(List, AnExactVersionIsThatMoment) {
  create("a");
  const std::string then = revision();
  remove("a");
  create("b");
  const auto at = [&](std::string_view match) {
    return client_->get(
        fmt::format("{}?resourceVersion={}&resourceVersionMatch={}", kMaps, then, match));
  };
  EXPECT_THAT(names_of(at("Exact")->json()), ElementsAre("a"));
  EXPECT_THAT(names_of(at("NotOlderThan")->json()), ElementsAre("b"));
  EXPECT_EQ(at("Whatever")->status, 422);
}

TEST_F(List, AVersionThatNeverComesTimesOut) {
  const std::uint64_t future = server_->store().revision() + 5;
  const auto answer = client_->get(fmt::format("{}?resourceVersion={}", kMaps, future));
  EXPECT_EQ(answer->status, 0);  // it waits
  loop_.run_for(4 * kSecondInUs);
  EXPECT_EQ(answer->status, 504);
  const auto comes = client_->get(fmt::format("{}?resourceVersion={}", kMaps, future));
  for (const char* name : {"a", "b", "c", "d", "e"}) create(name);
  loop_.run_for(4 * kSecondInUs);
  EXPECT_EQ(comes->status, 200);
}

TEST_F(List, AVersionThatComesIsServedWhenItDoes) {
  const std::string next = std::to_string(server_->store().revision() + 1);
  const auto list = client_->get(fmt::format("{}?resourceVersion={}", kMaps, next));
  const auto get = client_->get(fmt::format("{}/a?resourceVersion={}", kMaps, next));
  loop_.run_for(kSecondInUs);
  EXPECT_FALSE(list->is_over());
  create("a");
  loop_.run_for(kSecondInUs / 10);
  ASSERT_TRUE(list->is_over());
  EXPECT_EQ(list->json()["items"].size(), 1U);
  ASSERT_TRUE(get->is_over());
  EXPECT_EQ(get->json().get("metadata", "name").as_string(), "a");
}

TEST_F(List, AServerThatGoesForgetsWhoWaited) {
  const auto list = client_->get(fmt::format("{}?resourceVersion=1000000", kMaps));
  api_.reset();
  server_.reset();
  loop_.run_for(10 * kSecondInUs);
  EXPECT_FALSE(list->is_over());
  client_.reset();
  EXPECT_TRUE(list->is_over());
}

TEST_F(List, LongListsComeInPiecesAsThePeerTakesThem) {
  for (int i = 0; i < 5; ++i) {
    Doc object = config_map(fmt::format("big-{}", i));
    object.at("data").set("x", std::string(700'000, 'x'));
    ASSERT_TRUE(api_->create("configmaps", "default", std::move(object)).has_value());
  }
  const auto answer = client_->get(kMaps);
  EXPECT_EQ(answer->status, 200);
  EXPECT_FALSE(answer->is_over());
  EXPECT_LT(answer->body.size(), 2'000'000U);
  for (int i = 0; i < 10 && !answer->is_over(); ++i) answer->drain();
  EXPECT_TRUE(answer->is_over());
  EXPECT_EQ(names_of(answer->json()).size(), 5U);
}

TEST_F(List, AsTableAndMetadataAndYaml) {
  create("a", "red");
  const Doc table = client_->get_as(kMaps, "application/json;as=Table;v=v1;g=meta.k8s.io")->json();
  EXPECT_EQ(table["kind"].as_string(), "Table");
  EXPECT_EQ(table["rows"].size(), 1U);
  const Doc partial =
      client_->get_as(kMaps, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
          ->json();
  EXPECT_EQ(partial["kind"].as_string(), "PartialObjectMetadataList");
  EXPECT_THAT(names_of(partial), ElementsAre("a"));
  const auto yaml = client_->get_as(kMaps, "application/yaml");
  EXPECT_THAT(yaml->body, HasSubstr("kind: ConfigMapList"));
  EXPECT_EQ(client_->get_as(kMaps, "text/csv")->status, 406);
}

using Access = ServerTest;

TEST_F(Access, NobodyGetsInWithoutAToken) {
  Client stranger(*server_, "");
  EXPECT_EQ(stranger.get(kMaps)->status, 401);
  Client wrong(*server_, "guess");
  const auto refused = wrong.get(kMaps);
  EXPECT_EQ(refused->status, 401);
  EXPECT_EQ(refused->json()["reason"].as_string(), "Unauthorized");
  EXPECT_EQ(wrong.post(kMaps, config_map("a"))->status, 401);
  EXPECT_FALSE(api_->get("configmaps", "default", "a").has_value());
}

TEST_F(Access, AnotherSchemeIsNoToken) {
  Client stranger(*server_, "");
  EXPECT_EQ(stranger.send("GET", kMaps, "", {{"Authorization", "Basic secret"}})->status, 401);
  EXPECT_EQ(stranger.send("GET", kMaps, "", {{"Authorization", "Bearersecret"}})->status, 401);
  EXPECT_EQ(stranger.send("GET", kMaps, "", {{"Authorization", "Bearer "}})->status, 401);
}

TEST_F(Access, WhoAmISaysWhomATokenStandsFor) {
  constexpr std::string_view kReviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
  Doc review = Doc::object();
  review.set("apiVersion", "authentication.k8s.io/v1").set("kind", "SelfSubjectReview");
  const auto ask = [&](net::Headers headers) {
    headers.emplace_back("Content-Type", "application/json");
    return client_->send("POST", kReviews, review.json(), std::move(headers));
  };
  const auto mine = ask({});
  EXPECT_EQ(mine->status, 201);
  EXPECT_EQ(mine->json().get("status", "userInfo", "username").as_string(), "admin");
  const Doc other = ask({{"Impersonate-User", "jane"},
                         {"Impersonate-Group", "dev"},
                         {"impersonate-group", "ops"}})
                        ->json()
                        .get("status", "userInfo");
  EXPECT_EQ(other["username"].as_string(), "jane");
  EXPECT_EQ(other["groups"], Doc::strings({"dev", "ops", "system:authenticated"}));
  EXPECT_GE(ask({{"Impersonate-Group", "dev"}})->status, 400);  // of whom?
}

TEST_F(Access, PathsThatLeadNowhere) {
  EXPECT_EQ(client_->get("/api/v1/nothings")->status, 404);
  EXPECT_EQ(client_->get("/apis/no.such.group/v1/things")->status, 404);
  EXPECT_EQ(client_->get("/no/such/path")->status, 404);
  EXPECT_EQ(client_->get("/api/v1/namespaces/default/nodes")->status, 404);
  EXPECT_EQ(client_->get("/api/v1/namespaces/default/pods/x/nothing")->status, 404);
  EXPECT_EQ(client_->get("/api/v1/namespaces/default/configmaps/a%zz")->status, 400);
  EXPECT_EQ(client_->send("POST", "/api/v1/configmaps")->status, 405);
  EXPECT_EQ(client_->send("PUT", kMaps)->status, 405);
  EXPECT_EQ(client_->send("BREW", kMaps)->status, 405);
}

}  // namespace
}  // namespace jogak::playground::testing
