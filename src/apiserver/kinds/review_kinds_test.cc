// SPDX-License-Identifier: Apache-2.0
// Reviews: what is answered, what is refused, and that nothing is stored.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

KindOptions options() {
  KindOptions options;
  options.authenticate = [](std::string_view token) -> std::optional<User> {
    if (token != "user") return std::nullopt;
    return User{.name = "alice", .uid = "a", .groups = {"devs"}};
  };
  return options;
}

class Review : public testing::Test {
 protected:
  ApiResult<Answer> ask(std::string_view group, std::string_view plural, std::string_view body,
                        std::string ns = "") {
    const Resource* resource = bench_.registry().find(group, "v1", plural);
    Call call;
    call.resource = resource;
    call.verb = Verb::Create;
    call.ns = std::move(ns);
    call.body = json(body);
    call.user = {.name = "bob", .uid = "b", .groups = {"g"}};
    return resource->create_handler(bench_.ops(), call);
  }
  ApiResult<Answer> access(std::string_view plural, std::string_view body, std::string ns = "") {
    return ask("authorization.k8s.io", plural, body, std::move(ns));
  }
  std::string refused(const ApiResult<Answer>& answer) {
    return answer.has_value() ? "" : refusal(std::unexpected(answer.error()));
  }

  WorkloadBench bench_{options()};
};

TEST_F(Review, OfAccessIsAllowed) {
  const std::string_view spec =
      R"({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}})";
  const auto answer = access("selfsubjectaccessreviews", spec);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->code, 201);
  EXPECT_EQ(answer->body["status"], json(R"({"allowed": true})"));
  EXPECT_EQ(answer->body["spec"], json(spec)["spec"]);
  EXPECT_EQ(answer->body["kind"], Doc("SelfSubjectAccessReview"));
}

TEST_F(Review, OfAccessIsRefused) {
  EXPECT_EQ(refused(access("selfsubjectaccessreviews", R"({"spec": {}})")),
            "Invalid spec.resourceAttributes");
  EXPECT_EQ(refused(access("selfsubjectaccessreviews",
                           R"({"spec": {"resourceAttributes": {}, "nonResourceAttributes": {}}})")),
            "Invalid spec.nonResourceAttributes");
  EXPECT_EQ(refused(access("selfsubjectaccessreviews",
                           R"({"metadata": {"name": "x"}, "spec": {"resourceAttributes": {}}})")),
            "Invalid metadata");
  EXPECT_EQ(refused(access("selfsubjectaccessreviews",
                           R"({"spec": {"resourceAttributes": {"labelSelector": {}}}})")),
            "Required spec.resourceAttributes.labelSelector.requirements");
  EXPECT_EQ(refused(access("subjectaccessreviews", R"({"spec": {"resourceAttributes": {}}})")),
            "Invalid spec.user");
  EXPECT_EQ(refused(access("subjectaccessreviews",
                           R"({"spec": {"groups": ["g"], "nonResourceAttributes": {}}})")),
            "");
}

TEST_F(Review, ARefusalNamesNoKind) {
  const auto answer = access("subjectaccessreviews", R"({"spec": {}})");
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().kind, "");
  EXPECT_EQ(answer.error().group, "authorization.k8s.io");
}

TEST_F(Review, InANamespaceStaysThere) {
  const auto in = [&](std::string_view body) {
    return refused(access("localsubjectaccessreviews", body, "ns"));
  };
  EXPECT_EQ(in(R"({"metadata": {"namespace": "ns"},
                   "spec": {"user": "u", "resourceAttributes": {"namespace": "ns"}}})"),
            "");
  EXPECT_EQ(in(R"({"metadata": {"namespace": "ns"},
                   "spec": {"user": "u", "resourceAttributes": {"namespace": "other"}}})"),
            "Invalid spec.resourceAttributes.namespace");
  EXPECT_EQ(in(R"({"metadata": {"namespace": "ns"},
                   "spec": {"user": "u", "nonResourceAttributes": {}}})"),
            "Invalid spec.nonResourceAttributes");
  EXPECT_EQ(in(R"({"metadata": {"namespace": "other"},
                   "spec": {"user": "u", "resourceAttributes": {"namespace": "other"}}})"),
            "400 BadRequest");
}

TEST_F(Review, OfRulesShowsThemAll) {
  const auto answer = access("selfsubjectrulesreviews", R"({"spec": {"namespace": "ns"}})");
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->body["spec"], Doc::object());
  EXPECT_EQ(answer->body["status"],
            json(R"({"resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                     "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                     "incomplete": false})"));
  EXPECT_EQ(refused(access("selfsubjectrulesreviews", R"({"spec": {}})")), "400 BadRequest");
}

TEST_F(Review, OfOneselfNamesTheCaller) {
  const auto answer = ask("authentication.k8s.io", "selfsubjectreviews", "{}");
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->body.get("status", "userInfo"),
            json(R"({"username": "bob", "uid": "b", "groups": ["g"]})"));
  EXPECT_EQ(meta(answer->body)["creationTimestamp"], Doc(format_time(bench_.ops().loop().now())));
}

TEST_F(Review, OfATokenNamesItsUser) {
  const auto review = [&](std::string_view body) {
    const auto answer = ask("authentication.k8s.io", "tokenreviews", body);
    return answer.has_value() ? answer->body["status"] : Doc(refused(answer));
  };
  EXPECT_EQ(review(R"({"spec": {"token": "user"}})"), json(R"({"authenticated": true,
                     "user": {"username": "alice", "uid": "a", "groups": ["devs"]},
                     "audiences": ["https://kubernetes.default.svc"]})"));
  EXPECT_EQ(review(R"({"spec": {"token": "user", "audiences": ["x"]}})")["audiences"],
            json(R"(["x"])"));
  EXPECT_EQ(review(R"({"spec": {"token": "bad"}})"),
            json(R"({"user": {}, "error": "invalid bearer token"})"));
  EXPECT_EQ(review(R"({"spec": {}})"), Doc("400 BadRequest"));
}

}  // namespace
}  // namespace jogak::api
