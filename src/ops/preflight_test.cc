// SPDX-License-Identifier: Apache-2.0
//
// The first questions to a server, and what each answer comes to.
#include "ops/preflight.h"

#include <optional>

#include <gtest/gtest.h>

#include "base/sim_loop.h"
#include "kube/testing/scripted_http.h"
#include "ops/permissions.h"

namespace jogak::ops {
namespace {

using kube::testing::Answer;
using kube::testing::ScriptedHttp;

constexpr std::string_view kReviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

class PreflightTest : public ::testing::Test {
 protected:
  // What the server is like: answers for paths, and permissions that are refused.
  Answer version{.body = R"({"major":"1","gitVersion":"v1.36.3"})"};
  Answer nodes{.body = R"({"kind":"NodeList","items":[]})"};
  std::string refused;  // part of a review's text
  int review_status = 201;

  void start(std::string lease_namespace = "kube-system") {
    http_.serve([this](const ScriptedHttp::ExchangePtr& exchange) {
      const net::ClientRequest& request = exchange->request();
      if (request.target == "/version") return exchange->answer(version);
      if (request.target == kReviews) {
        const bool no = !refused.empty() && request.body.find(refused) != std::string::npos;
        return exchange->answer(
            {.status = review_status,
             .body = fmt::format(R"({{"kind":"SelfSubjectAccessReview","spec":{{}},)"
                                 R"("status":{{"allowed":{},"reason":"r"}}}})",
                                 no ? "false" : "true")});
      }
      exchange->answer(nodes);
    });
    preflight_.emplace(
        api_,
        PreflightOptions{
            .server = "h:1", .lease_namespace = std::move(lease_namespace), .lease_name = "l"},
        Preflight::Events{.on_passed = [this](const std::string& v) { passed_ = v; },
                          .on_failed = [this](const Error& error) { failed_ = error.what; },
                          .on_retry =
                              [this](const Error& error, TimeUs wait) {
                                retries_.push_back(
                                    fmt::format("{} s: {}", wait / kSecondInUs, error.what));
                              }});
    loop_.run_for(kSecondInUs / 2);
  }

  SimLoop loop_;
  ScriptedHttp http_{loop_};
  kube::ApiClient api_{http_};
  std::optional<Preflight> preflight_;
  std::optional<std::string> passed_;
  std::string failed_;
  std::vector<std::string> retries_;
};

TEST_F(PreflightTest, PassesWhereEverythingIsAllowed) {
  start();
  EXPECT_EQ(passed_, "v1.36.3");
  EXPECT_EQ(failed_, "");
  EXPECT_EQ(http_.exchanges().size(), 2 + permissions().size());
}

TEST_F(PreflightTest, WithoutALeaseNobodyAsksForOne) {
  refused = "coordination.k8s.io";
  start("");
  EXPECT_EQ(passed_, "v1.36.3");
}

TEST_F(PreflightTest, ARoleMayNameTheOneLease) {
  start();
  int named = 0;
  int unnamed = 0;
  for (const auto& exchange : http_.exchanges()) {
    const std::string& body = exchange->request().body;
    if (body.find("coordination.k8s.io") == std::string::npos) continue;
    EXPECT_NE(body.find(R"("namespace":"kube-system")"), std::string::npos) << body;
    ++(body.find(R"("name":"l")") == std::string::npos ? unnamed : named);
  }
  EXPECT_EQ(named, 2);
  EXPECT_EQ(unnamed, 1) << "creating";
}

TEST_F(PreflightTest, NamesThePermissionsThatAreMissing) {
  refused = R"("subresource":"binding")";
  start();
  EXPECT_EQ(failed_,
            "not permitted on h:1: create pods/binding; grant it with "
            "deploy/jogak-scheduler.yaml (ClusterRole jogak-scheduler)");
}

TEST_F(PreflightTest, AServerThatDoesNotReviewDoesNotSayNo) {
  review_status = 403;
  start();
  EXPECT_EQ(passed_, "v1.36.3");
}

TEST_F(PreflightTest, ExpiredCredentials) {
  nodes = {.status = 401, .body = R"({"kind":"Status","message":"Unauthorized","code":401})"};
  start();
  EXPECT_EQ(failed_,
            "h:1 does not accept the credentials (401 Unauthorized): the token or certificate has "
            "expired or is another cluster's; get a new kubeconfig");
}

TEST_F(PreflightTest, AnotherServer) {
  version = {.status = 404, .body = "<html>"};
  start();
  EXPECT_EQ(failed_,
            "h:1 is not a Kubernetes API server: GET /version gave 404 without a gitVersion; look "
            "at `server` in the kubeconfig");
  version = {.status = 200, .body = "<html>"};
}

TEST_F(PreflightTest, AVersionThatIsHidden) {
  version = {.status = 403, .body = "{}"};
  start();
  EXPECT_EQ(failed_, "");
  EXPECT_EQ(passed_, "");
}

TEST_F(PreflightTest, WhatMayMendIsTriedAgain) {
  version = {.status = 0, .cut = Error{Errc::Unavailable, "connection refused"}};
  start();
  EXPECT_EQ(retries_, (std::vector<std::string>{
                          "1 s: connection refused; is the API server running, and is this its "
                          "address?"}));
  loop_.run_for(100 * kSecondInUs);
  ASSERT_EQ(retries_.size(), 8U) << "at 0, 1, 3, 7, 15, 31, 61 and 91 s";
  EXPECT_EQ(retries_.back().substr(0, 5), "30 s:");
  version = {.body = R"({"gitVersion":"v1"})"};
  loop_.run_for(60 * kSecondInUs);
  EXPECT_EQ(passed_, "v1");
}

TEST_F(PreflightTest, AServerThatIsStarting) {
  nodes = {.status = 503, .body = "starting"};
  start();
  ASSERT_EQ(retries_.size(), 1U);
  EXPECT_EQ(retries_[0], "1 s: the API server h:1 is not ready (503: starting)");
}

TEST_F(PreflightTest, ACertificateThatIsRefusedDoesNotMend) {
  version = {.status = 0, .cut = Error{Errc::Invalid, "certificate of another authority"}};
  start();
  EXPECT_EQ(failed_, "certificate of another authority");
}

TEST_F(PreflightTest, MayBeDroppedInTheMiddle) {
  version = {.status = 503, .body = ""};
  start();
  preflight_.reset();
  loop_.run_for(100 * kSecondInUs);
  EXPECT_EQ(retries_.size(), 1U);
}

TEST(Permissions, AreNamedAsKubectlDoes) {
  EXPECT_EQ(permission_text({"list", "policy", "poddisruptionbudgets"}),
            "list poddisruptionbudgets.policy");
  EXPECT_EQ(permission_text({"create", "", "pods", "binding"}), "create pods/binding");
}

}  // namespace
}  // namespace jogak::ops
