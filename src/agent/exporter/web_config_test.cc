// SPDX-License-Identifier: Apache-2.0
//
// What the file says, and what is refused with which words.
#include "agent/exporter/web_config.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jogak::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string error_of(std::string_view text) {
  const auto config = parse_web_config("/etc/web.yaml", text);
  return config ? "" : config.error().what;
}

TEST(WebConfig, AnEmptyFileWantsNothing) {
  const auto config = parse_web_config("w", "\n  \n");
  ASSERT_TRUE(config);
  EXPECT_FALSE(config->has_tls);
  EXPECT_TRUE(config->users.empty());
}

TEST(WebConfig, IsReadWhole) {
  const auto config = parse_web_config("/etc/web.yaml", R"(
tls_server_config:
  cert_file: tls.crt
  key_file: /keys/tls.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.crt
  min_version: TLS13
  max_version: TLS13
  prefer_server_cipher_suites: true
http_server_config:
  http2: true
  headers: {X-Frame-Options: deny}
basic_auth_users:
  prometheus: $2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW
)");
  ASSERT_TRUE(config) << config.error().what;
  EXPECT_TRUE(config->has_tls);
  EXPECT_EQ(config->cert_file, "/etc/tls.crt") << "beside the file";
  EXPECT_EQ(config->key_file, "/keys/tls.key");
  EXPECT_EQ(config->client_ca_file, "/etc/ca.crt");
  EXPECT_TRUE(config->requires_client_cert);
  EXPECT_TRUE(config->only_tls13);
  EXPECT_THAT(config->headers, ElementsAre(Pair("X-Frame-Options", "deny")));
  EXPECT_EQ(config->users.size(), 1U);
}

TEST(WebConfig, CertificatesMayStandInTheFile) {
  const auto config = parse_web_config("w", "tls_server_config: {cert: C, key: K}");
  ASSERT_TRUE(config) << config.error().what;
  EXPECT_EQ(config->cert_text, "C");
  EXPECT_EQ(config->key_text, "K");
}

TEST(WebConfig, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(error_of("tls_server_config: {cert_file: a}"),
            "/etc/web.yaml:1: tls_server_config.key_file: is required");
  EXPECT_THAT(error_of("tls_server_config: {cert_file: a, cert: b, key_file: c}"),
              HasSubstr("cert_file: give either cert_file or cert"));
  EXPECT_THAT(error_of("tls_server_config: {cert_file: a, key_file: b, client_ca_file: c}"),
              HasSubstr("client_auth_type: is required with client_ca_file"));
  EXPECT_THAT(error_of("tls_server_config: {cert_file: a, key_file: b,\n"
                       "  client_auth_type: RequireAndVerifyClientCert}"),
              HasSubstr("client_ca_file: is required to verify clients"));
  EXPECT_THAT(error_of("tls_server_config: {cert_file: a, key_file: b,\n"
                       "  client_auth_type: RequestClientCert}"),
              HasSubstr(":2: tls_server_config.client_auth_type: use NoClientCert or"));
  EXPECT_THAT(error_of("tls_server_config: {cert_file: a, key_file: b, min_version: TLS10}"),
              HasSubstr("min_version: use TLS12 or TLS13"));
  EXPECT_THAT(error_of("tls_server_config: {cert_file: a, key_file: b, cipher_suites: [x]}"),
              HasSubstr("cipher_suites: cannot be chosen here; leave it out"));
  EXPECT_THAT(error_of("basic_auth_user: {a: b}"), HasSubstr("basic_auth_user"));
  EXPECT_THAT(error_of("[]"), HasSubstr("a map with tls_server_config"));
  EXPECT_THAT(error_of("http_server_config: {headers: {\"A B\": c}}"),
              HasSubstr("headers: a name has blanks"));
}

TEST(WebConfig, HashesThatAreNone) {
  EXPECT_THAT(error_of("basic_auth_users: {prometheus: secret}"),
              HasSubstr("basic_auth_users: prometheus: expected a bcrypt hash"));
  EXPECT_THAT(error_of("basic_auth_users:\n"
                       "  p: $2y$31$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"),
              HasSubstr("a cost of 31 takes too long to check; use at most 15"));
  EXPECT_THAT(error_of("basic_auth_users:\n"
                       "  \"a:b\": $2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"),
              HasSubstr("a name with a colon can never log in"));
}

}  // namespace
}  // namespace jogak::agent
