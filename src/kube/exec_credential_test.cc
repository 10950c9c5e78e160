// SPDX-License-Identifier: Apache-2.0
//
// Answers of credential programs, good and bad, and what they are told.
#include "kube/exec_credential.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/core.h>

namespace jogak::kube {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kV1 = "client.authentication.k8s.io/v1";

std::string answer(std::string_view status) {
  return fmt::format(R"({{"kind": "ExecCredential", "apiVersion": "{}", "status": {}}})", kV1,
                     status);
}

TEST(ExecCredentialTest, ReadsEveryField) {
  const auto credential = parse_exec_credential(
      answer(R"({"token": "t", "clientCertificateData": "C", "clientKeyData": "K",
                 "expirationTimestamp": "2026-02-02T02:09:39Z"})"),
      kV1);
  ASSERT_TRUE(credential.has_value()) << credential.error().what;
  EXPECT_EQ(credential->token, "t");
  EXPECT_EQ(credential->client_certificate_pem, "C");
  EXPECT_EQ(credential->client_key_pem, "K");
  EXPECT_EQ(credential->expiry, 1'769'998'179 * kSecondInUs);
  EXPECT_EQ(
      parse_exec_credential(answer(R"({"token": "t", "expirationTimestamp": null})"), kV1)->expiry,
      std::nullopt);
}

TEST(ExecCredentialTest, WrongAnswersAreNamedWithoutTheirText) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "not a JSON object"},
      {"s3cret", "not a JSON object"},
      {"[\"s3cret\"]", "not a JSON object"},
      {R"({"kind": "Status", "token": "s3cret"})", "not of kind ExecCredential"},
      {R"({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1beta1"})",
       "not of the version"},
      {R"({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1"})",
       "no status"},
      {answer("{}"), "neither a token nor"},
      {answer(R"({"token": 5})"), "neither a token nor"},
      {answer(R"({"clientCertificateData": "s3cret"})"), "clientKeyData is missing"},
      {answer(R"({"clientKeyData": "s3cret"})"), "clientCertificateData is missing"},
      {answer(R"({"token": "s3cret", "expirationTimestamp": "soon"})"), "expirationTimestamp"},
      {answer(R"({"token": "s3cret", "expirationTimestamp": 12})"), "expirationTimestamp"}};
  for (const auto& [text, part] : wrong) {
    const auto credential = parse_exec_credential(text, kV1);
    ASSERT_FALSE(credential.has_value()) << text;
    EXPECT_THAT(credential.error().what, HasSubstr(part));
    EXPECT_THAT(credential.error().what, Not(HasSubstr("s3cret")));
  }
}

TEST(ExecCredentialTest, InfoHasTheClusterOnlyWhereAskedFor) {
  Access access;
  access.server = "https://s";
  access.exec = ExecConfig{};
  access.exec->api_version = kV1;
  EXPECT_EQ(exec_info(access, false, "CA"),
            R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",)"
            R"("spec":{"interactive":false}})");
  access.exec->provide_cluster_info = true;
  access.tls_server_name = "n";
  access.proxy_url = "http://p";
  access.disable_compression = true;
  access.exec_cluster_config = R"({"a":1})";
  EXPECT_THAT(exec_info(access, true, "CA"),
              HasSubstr(R"("interactive":true,"cluster":{"server":"https://s",)"
                        R"("tls-server-name":"n","certificate-authority-data":"Q0E=",)"
                        R"("proxy-url":"http://p","disable-compression":true,"config":{"a":1}}})"));
}

}  // namespace
}  // namespace jogak::kube
