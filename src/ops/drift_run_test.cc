// SPDX-License-Identifier: Apache-2.0
//
// A comparison over a scripted server: pages, waiting, errors.
#include "ops/drift_run.h"

#include <optional>

#include <gtest/gtest.h>

#include "base/sim_loop.h"
#include "core/model/testing.h"
#include "kube/testing/scripted_http.h"

namespace jogak::ops {
namespace {

using core::testing::add;
using core::testing::NodeBuilder;

std::string nodes(std::string_view names, std::string_view next = "") {
  std::string items;
  for (const char name : names) {
    items += fmt::format(R"({}{{"metadata":{{"name":"{}"}},"status":{{"allocatable":{{}}}}}})",
                         items.empty() ? "" : ",", name);
  }
  return fmt::format(
      R"({{"kind":"NodeList","apiVersion":"v1",
           "metadata":{{"resourceVersion":"7","continue":"{}"}},"items":[{}]}})",
      next, items);
}

constexpr std::string_view kNoPods =
    R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]})";

class DriftRunTest : public ::testing::Test {
 protected:
  void start() {
    run_.emplace(api_, memory_, DriftRunOptions{.page_size = 2},
                 [this](Result<live::DriftReport> report) { result_ = std::move(report); });
  }

  SimLoop loop_;
  kube::testing::ScriptedHttp http_{loop_};
  kube::ApiClient api_{http_};
  core::Cluster memory_;
  std::optional<DriftRun> run_;
  std::optional<Result<live::DriftReport>> result_;
};

TEST_F(DriftRunTest, ListsInPagesAndWaitsBeforeItCompares) {
  add(memory_, NodeBuilder("a").pods(0));
  http_.on("GET", "/api/v1/nodes?limit=2&continue=t%2Fx", {.body = nodes("c")});
  http_.on("GET", "/api/v1/nodes", {.body = nodes("ab", "t/x")});
  http_.on("GET", "/api/v1/pods", {.body = std::string(kNoPods)});
  start();
  loop_.run_for(4 * kSecondInUs);
  EXPECT_FALSE(result_.has_value()) << "not before what is under way has arrived";
  loop_.run_for(2 * kSecondInUs);
  ASSERT_TRUE(result_.has_value());
  ASSERT_TRUE(result_->has_value()) << result_->error().what;
  EXPECT_EQ((*result_)->counts[static_cast<std::size_t>(live::DriftKind::NodeMissing)], 2U)
      << (*result_)->text();
  EXPECT_EQ((*result_)->nodes, 3U);
}

TEST_F(DriftRunTest, ErrorsSayWhatWasAsked) {
  http_.on("GET", "/api/v1/nodes", {.body = nodes("a")});
  http_.on("GET", "/api/v1/pods",
           {.status = 403,
            .body = R"({"kind":"Status","status":"Failure","reason":"Forbidden","code":403,)"
                    R"("message":"pods is forbidden"})"});
  start();
  loop_.run_for(60 * kSecondInUs);
  ASSERT_TRUE(result_.has_value());
  ASSERT_FALSE(result_->has_value());
  EXPECT_EQ(result_->error().what.find("GET /api/v1/pods: "), 0U) << result_->error().what;
}

TEST_F(DriftRunTest, AnAnswerThatIsNoListIsAnError) {
  http_.on("GET", "/api/v1/nodes", {.body = R"({"kind":"NodeList","items":[{"metada)"});
  start();
  loop_.run_for(60 * kSecondInUs);
  ASSERT_TRUE(result_.has_value());
  EXPECT_FALSE(result_->has_value());
}

TEST_F(DriftRunTest, MayBeDroppedAtAnyTime) {
  http_.on("GET", "/api/v1/nodes", {.body = nodes("")});
  http_.on("GET", "/api/v1/pods", {.body = std::string(kNoPods)});
  start();
  loop_.run_for(kSecondInUs);
  run_.reset();
  loop_.run_for(60 * kSecondInUs);
  EXPECT_FALSE(result_.has_value());
}

}  // namespace
}  // namespace jogak::ops
