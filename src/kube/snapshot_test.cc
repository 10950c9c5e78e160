// SPDX-License-Identifier: Apache-2.0
//
// Snapshots of a scripted server: pages, lists that begin anew, and what is said of a server that
// refuses.
#include "kube/snapshot.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sim_loop.h"
#include "kube/testing/scripted_http.h"

namespace jogak::kube {
namespace {

using testing::Answer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ScriptedHttp;
using ::testing::StartsWith;

std::string list(std::string_view items, std::string_view token = "") {
  return fmt::format(
      R"({{"kind":"List","apiVersion":"v1","metadata":{{"resourceVersion":"7","continue":"{}"}},)"
      R"("items":[{}]}})",
      token, items);
}

std::string status(int code, std::string_view reason, std::string_view message) {
  return fmt::format(R"({{"kind":"Status","status":"Failure","code":{},"reason":"{}",)"
                     R"("message":"{}"}})",
                     code, reason, message);
}

class SnapshotTest : public ::testing::Test {
 protected:
  SnapshotTest() {
    http.serve(
        [](const ScriptedHttp::ExchangePtr& exchange) { exchange->answer({.body = list("")}); });
  }

  Result<std::vector<SnapshotPage>> read(std::size_t page_size = 500) {
    std::optional<Result<std::vector<SnapshotPage>>> result;
    Snapshot snapshot(
        api, [&](Result<std::vector<SnapshotPage>> pages) { result = std::move(pages); },
        page_size);
    EXPECT_FALSE(result.has_value()) << "told before the constructor returned";
    while (!result && loop.step()) {
    }
    EXPECT_TRUE(result.has_value());
    return result.value_or(std::vector<SnapshotPage>());
  }
  std::string error() {
    const auto result = read();
    return result.has_value() ? "no error" : result.error().what;
  }

  SimLoop loop;
  ScriptedHttp http{loop};
  ApiClient api{http};
};

TEST_F(SnapshotTest, ListsEveryResourceOnceAndPodsFirst) {
  const auto pages = read();
  ASSERT_TRUE(pages.has_value()) << pages.error().what;
  ASSERT_EQ(pages->size(), snapshot_resources().size());
  const std::vector<std::string> lines = http.lines();
  ASSERT_EQ(lines.size(), snapshot_resources().size());
  EXPECT_EQ(lines[0], "GET /api/v1/pods?limit=500");
  EXPECT_EQ(lines[1], "GET /api/v1/nodes?limit=500");
  for (std::size_t i = 0; i < pages->size(); ++i) {
    EXPECT_EQ((*pages)[i].kind, snapshot_resources()[i].kind);
    EXPECT_EQ(lines[i], fmt::format("GET {}?limit=500", snapshot_resources()[i].path));
  }
}

TEST_F(SnapshotTest, FollowsThePagesOfAList) {
  http.on("GET", "/api/v1/pods", {.body = list("1", "a=b")});
  http.on("GET", "/api/v1/pods", {.body = list("2", "c")});
  http.on("GET", "/api/v1/pods", {.body = list("3")});
  const auto pages = read(1);
  ASSERT_TRUE(pages.has_value()) << pages.error().what;
  EXPECT_THAT((*pages)[0].json, HasSubstr("[1]"));
  EXPECT_THAT((*pages)[1].json, HasSubstr("[2]"));
  EXPECT_THAT((*pages)[2].json, HasSubstr("[3]"));
  EXPECT_EQ((*pages)[3].kind, "Node");
  EXPECT_EQ(http.lines()[1], "GET /api/v1/pods?limit=1&continue=a%3Db");
}

TEST_F(SnapshotTest, AListWhoseVersionIsForgottenBeginsAnewInOnePiece) {
  http.on("GET", "/api/v1/pods", {.body = list("1", "a")});
  http.on("GET", "/api/v1/pods", {.status = 410, .body = status(410, "Expired", "too old")});
  http.on("GET", "/api/v1/pods", {.body = list("1,2,3")});
  const auto pages = read(1);
  ASSERT_TRUE(pages.has_value()) << pages.error().what;
  EXPECT_EQ(http.lines()[2], "GET /api/v1/pods");
  EXPECT_THAT((*pages)[0].json, HasSubstr("[1,2,3]"));
  EXPECT_EQ((*pages)[1].kind, "Node");
  EXPECT_EQ(http.lines()[3], "GET /api/v1/nodes?limit=1");
}

TEST_F(SnapshotTest, AServerThatForgetsAllTheTimeIsAnError) {
  for (int i = 0; i < 10; ++i) {
    http.on("GET", "/api/v1/pods", {.status = 410, .body = status(410, "Expired", "too old")});
  }
  EXPECT_EQ(error(), "listing pods: too old (410 Expired)");
  EXPECT_EQ(http.lines().size(), 4U);
}

TEST_F(SnapshotTest, AGroupThatTheServerLacksIsEmpty) {
  http.on("GET", "/apis/policy/", {.status = 404, .body = "404 page not found"});
  const auto pages = read();
  ASSERT_TRUE(pages.has_value()) << pages.error().what;
  EXPECT_EQ(pages->size(), snapshot_resources().size() - 1);
}

TEST_F(SnapshotTest, AMissingPermissionIsNamedWithItsCure) {
  http.on("GET", "/apis/policy/",
          {.status = 403, .body = status(403, "Forbidden", "poddisruptionbudgets is forbidden")});
  const std::string what = error();
  EXPECT_THAT(what, StartsWith("this account may not list poddisruptionbudgets.policy in all "
                               "namespaces; let it: kubectl create clusterrole jogak-reader "
                               "--verb=list --resource=pods,nodes,"));
  EXPECT_THAT(what, HasSubstr("(the server said: poddisruptionbudgets is forbidden)"));
  EXPECT_EQ(what.find('\n'), std::string::npos);
}

TEST_F(SnapshotTest, RefusedCredentialsAreNamedWithTheirCure) {
  http.on("GET", "/api/v1/pods",
          {.status = 401, .body = status(401, "Unauthorized", "Unauthorized")});
  EXPECT_EQ(error(),
            "the server does not accept the credentials given (Unauthorized); renew the token or "
            "the certificate in the kubeconfig");
}

TEST_F(SnapshotTest, AnotherKindOfServerIsRecognised) {
  http.on("GET", "/api/v1/pods", {.status = 404, .body = "not found"});
  EXPECT_EQ(error(),
            "the server knows no /api/v1/pods: is it a Kubernetes API server? see `server` in the "
            "kubeconfig");
  http.on("GET", "/api/v1/pods", {.body = "<html>hello</html>"});
  EXPECT_THAT(error(), StartsWith("listing pods: the answer is not a list: "));
  http.on("GET", "/api/v1/pods", {.body = R"({"kind":"APIVersions"})"});
  EXPECT_EQ(error(),
            "listing pods: the answer is not a list: has no items; is it a Kubernetes API server?");
}

TEST_F(SnapshotTest, AServerThatCannotBeReachedIsAnErrorOfTheTransport) {
  http.serve([](const ScriptedHttp::ExchangePtr& exchange) {
    exchange->cut(Errc::Unavailable, "connection refused");
  });
  const auto result = read();
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, Errc::Unavailable);
  EXPECT_EQ(result.error().what, "listing pods: connection refused");
}

TEST_F(SnapshotTest, NothingFollowsItsEnd) {
  bool is_told = false;
  auto snapshot = std::make_unique<Snapshot>(
      api, [&](const Result<std::vector<SnapshotPage>>&) { is_told = true; });
  for (int i = 0; i < 3; ++i) loop.step();
  snapshot.reset();
  loop.run_for(kSecondInUs);
  EXPECT_FALSE(is_told);
}

TEST_F(SnapshotTest, MayBeDestroyedWhenItIsDone) {
  std::unique_ptr<Snapshot> snapshot;
  bool is_told = false;
  snapshot = std::make_unique<Snapshot>(api, [&](const Result<std::vector<SnapshotPage>>&) {
    is_told = true;
    snapshot.reset();
  });
  loop.run_for(kSecondInUs);
  EXPECT_TRUE(is_told);
  EXPECT_EQ(snapshot, nullptr);
}

}  // namespace
}  // namespace jogak::kube
