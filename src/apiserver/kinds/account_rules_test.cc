// SPDX-License-Identifier: Apache-2.0
// Service accounts and the tokens they hand out.
#include <gtest/gtest.h>

#include "apiserver/kinds/config_data.h"
#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc account() {
  return json(R"({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}})");
}

TEST(ServiceAccount, OnlyNamesOfSecretsStay) {
  WorkloadBench bench;
  const auto made =
      bench.create(with(account(), {R"(secrets=[{"name": "s", "namespace": "x", "kind": "y"}])"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["secrets"], json(R"([{"name": "s"}])"));
  EXPECT_TRUE(bench.resource_of(account()).strategy->returns_deleted_object());
}

TEST(ServiceAccount, ItsDeletionShowsTheVersionOfTheDeletion) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(account()).has_value());
  const auto removed = bench.remove(account());
  ASSERT_TRUE(removed.has_value());
  EXPECT_TRUE(removed->is_gone);
  EXPECT_EQ(meta(removed->object)["resourceVersion"],
            Doc(std::to_string(bench.ops().store().revision())));
}

TEST(ServiceAccount, AnOldAnnotationIsWarnedOfOnce) {
  WorkloadBench bench;
  const Doc marked = with(
      account(), {R"(metadata/annotations={"kubernetes.io/enforce-mountable-secrets": "true"})"});
  ASSERT_TRUE(bench.create(marked).has_value());
  EXPECT_EQ(bench.warnings().size(), 1U);
  ASSERT_TRUE(bench.edit(account(), {"automountServiceAccountToken=false"}).has_value());
  EXPECT_TRUE(bench.warnings().empty());
}

class Token : public testing::Test {
 protected:
  Token() {
    EXPECT_TRUE(bench_.create(account()).has_value());
    EXPECT_TRUE(bench_
                    .create(json(R"({"apiVersion": "v1", "kind": "Secret",
                                       "metadata": {"name": "s"}})"))
                    .has_value());
  }
  ApiResult<Answer> ask(std::string_view body, std::string name = "a") {
    Call call;
    call.resource = &bench_.resource_of(account());
    call.subresource = "token";
    call.verb = Verb::Create;
    call.ns = "ns";
    call.name = std::move(name);
    call.body = json(body);
    return call.resource->subresource("token")->handler(bench_.ops(), call);
  }
  std::string refused(std::string_view body, std::string name = "a") {
    const auto answer = ask(body, std::move(name));
    return answer.has_value() ? "" : refusal(std::unexpected(answer.error()));
  }

  WorkloadBench bench_;
};

TEST_F(Token, IsAJsonWebToken) {
  const auto answer = ask(R"({"spec": {"audiences": ["x"], "expirationSeconds": 3600}})");
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->code, 201);
  const Doc& body = answer->body;
  EXPECT_EQ(name_of(body), "a");
  EXPECT_EQ(namespace_of(body), "ns");
  EXPECT_EQ(body["spec"],
            json(R"({"audiences": ["x"], "expirationSeconds": 3600, "boundObjectRef": null})"));
  const TimeUs now = bench_.ops().loop().now();
  EXPECT_EQ(body.get("status", "expirationTimestamp"), Doc(format_time(now + 3600 * kSecondInUs)));

  const std::string& token = body.get("status", "token").as_string();
  const std::size_t first = token.find('.');
  const std::size_t second = token.find('.', first + 1);
  ASSERT_NE(second, std::string::npos);
  std::string claims = token.substr(first + 1, second - first - 1);
  while (claims.size() % 4 != 0) claims += '=';
  const Doc read = json(base64_decode(claims).value_or("{}"));
  EXPECT_EQ(read["sub"], Doc("system:serviceaccount:ns:a"));
  EXPECT_EQ(read["aud"], json(R"(["x"])"));
  EXPECT_EQ(read["exp"], Doc(now / kSecondInUs + 3600));
  EXPECT_EQ(read.get("kubernetes.io", "serviceaccount", "name"), Doc("a"));
}

TEST_F(Token, HasDefaults) {
  const auto answer = ask(R"({"spec": {}})");
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->body.get("spec", "expirationSeconds"), Doc(3600));
  EXPECT_EQ(answer->body.get("spec", "audiences"), json(R"(["https://kubernetes.default.svc"])"));
}

TEST_F(Token, IsRefused) {
  struct Row {
    std::string_view body, causes;
    std::string name = "a";
  };
  for (const auto& [body, causes, name] : std::vector<Row>{
           {R"({"spec": {"expirationSeconds": 10}})", "Invalid spec.expirationSeconds"},
           {R"({"spec": {"expirationSeconds": 4294967297}})", "Invalid spec.expirationSeconds"},
           {R"({"spec": {"expirationSeconds": 4294967296}})", ""},
           {R"({"spec": {}})", "404 NotFound", "nope"},
           {R"({"metadata": {"name": "b"}})", "Invalid metadata.name"},
           {R"({"metadata": {"namespace": "b"}})", "Invalid metadata.namespace"},
           {R"({"metadata": {"uid": "b"}})", "409 Conflict"},
           {R"({"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "x"}}})",
            "404 NotFound"},
           {R"({"spec": {"boundObjectRef": {"kind": "Node", "name": "x"}}})", "404 NotFound"},
           {R"({"spec": {"boundObjectRef": {"kind": "Job", "name": "x"}}})", "400 BadRequest"},
           {R"({"spec": {"boundObjectRef": {"kind": "Secret", "name": "s"}}})", ""},
           {R"({"spec": {"boundObjectRef": {"kind": "Secret", "name": "s", "uid": "x"}}})",
            "409 Conflict"}}) {
    EXPECT_EQ(refused(body, name), causes) << body;
  }
}

}  // namespace
}  // namespace jogak::api
