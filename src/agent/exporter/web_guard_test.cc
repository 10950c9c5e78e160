// SPDX-License-Identifier: Apache-2.0
//
// A port behind a web configuration file, over real sockets: TLS, passwords, and files that change.
#include "agent/exporter/web_guard.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/testing/temp_folder.h"
#include "net/http_server.h"
#include "net/testing/blocking_client.h"
#include "net/testing/loop_thread.h"

namespace jogak::agent {
namespace {

using net::BlockingClient;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Of "secret" and "other", at the least cost.
constexpr std::string_view kSecret = "$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";
constexpr std::string_view kOther = "$2b$04$abcdefghijklmnopqrstuu0HtfOlPbTiymk5tcV.3TsFPDd3SYZqu";

class WebGuardTest : public ::testing::Test {
 protected:
  ~WebGuardTest() override {
    thread_.call([this] {
      server_.reset();
      guard_.reset();
    });
  }

  void write(std::string_view name, std::string_view text) {
    ASSERT_TRUE(write_file(folder_.path(std::string(name)), text));
  }
  Result<void> open() {
    return thread_.call([this]() -> Result<void> {
      JOGAK_TRY(guard_, WebGuard::open(
                            thread_.loop(), folder_.path("web.yaml"),
                            [this](const std::string& problem) { problems_.push_back(problem); },
                            /*look_every=*/0));
      JOGAK_TRY(server_, net::HttpServer::listen(
                             thread_.loop(), {.tls = guard_->tls()},
                             guard_->guard([](const net::HttpRequest& request,
                                              const std::shared_ptr<net::ResponseWriter>& writer) {
                               writer->respond(200, {}, "page " + request.target);
                             })));
      return {};
    });
  }
  void start(std::string_view config) {
    write("web.yaml", config);
    const auto opened = open();
    ASSERT_TRUE(opened) << opened.error().what;
  }
  net::TlsIdentity write_identity() {
    net::TlsIdentity identity = net::make_self_signed({"127.0.0.1"}).value();
    write("tls.crt", identity.certificate_pem);
    write("tls.key", identity.key_pem);
    return identity;
  }
  // "STATUS body", or why there is none.
  std::string get(std::string_view login = "", const std::string& trusted = "") {
    auto client = BlockingClient::connect(server_->port(), {.trusted_pem = trusted});
    if (!client) return client.error().what;
    net::Headers headers;
    if (!login.empty()) headers.emplace_back("Authorization", "Basic " + base64_encode(login));
    const auto answer = client->request("GET", "/metrics", headers);
    if (!answer) return answer.error().what;
    last_headers_ = answer->headers;
    return std::to_string(answer->status) + " " + answer->body;
  }
  std::vector<std::string> problems() {
    return thread_.call([this] { return problems_; });
  }

  TempFolder folder_;
  net::LoopThread thread_;
  std::unique_ptr<WebGuard> guard_;
  std::unique_ptr<net::HttpServer> server_;
  std::vector<std::string> problems_;
  net::Headers last_headers_;
};

TEST_F(WebGuardTest, WithoutWishesAllIsPlain) {
  start("");
  EXPECT_EQ(get(), "200 page /metrics");
}

TEST_F(WebGuardTest, APasswordIsAskedFor) {
  start("basic_auth_users:\n  prometheus: " + std::string(kSecret) + "\n");
  EXPECT_EQ(get(), "401 a name and a password are needed\n");
  EXPECT_THAT(std::string(net::header(last_headers_, "www-authenticate")), HasSubstr("Basic"));
  EXPECT_EQ(get("prometheus:wrong"), "401 a name and a password are needed\n");
  EXPECT_EQ(get("nobody:secret"), "401 a name and a password are needed\n");
  EXPECT_EQ(get("prometheus:secret"), "200 page /metrics");
  // Remembered, and no less exact for that.
  EXPECT_EQ(get("prometheus:secret"), "200 page /metrics");
  EXPECT_EQ(get("prometheus:secreT"), "401 a name and a password are needed\n");
  EXPECT_EQ(get(std::string("prometheus:secret\0x", 19)), "401 a name and a password are needed\n");
}

TEST_F(WebGuardTest, ANewPasswordTakesForceAtOnce) {
  start("basic_auth_users:\n  p: " + std::string(kSecret) + "\n");
  EXPECT_EQ(get("p:secret"), "200 page /metrics");
  write("web.yaml", "basic_auth_users:\n  p: " + std::string(kOther) + "\n# later\n");
  EXPECT_EQ(get("p:secret"), "401 a name and a password are needed\n");
  EXPECT_EQ(get("p:other"), "200 page /metrics");
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(WebGuardTest, ABadChangeLeavesWhatWas) {
  start("basic_auth_users:\n  p: " + std::string(kSecret) + "\n");
  write("web.yaml", "basic_auth_users: {p: plain}\n");
  EXPECT_EQ(get("p:secret"), "200 page /metrics");
  EXPECT_EQ(get(), "401 a name and a password are needed\n");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("p: expected a bcrypt hash")));
  write("web.yaml", "basic_auth_users:\n  p: " + std::string(kOther) + "\n");
  EXPECT_EQ(get("p:other"), "200 page /metrics");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("bcrypt"), ""));
}

TEST_F(WebGuardTest, TlsAndItsNewCertificate) {
  const net::TlsIdentity first = write_identity();
  start(
      "tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n"
      "http_server_config: {headers: {X-Frame-Options: deny}}\n");
  EXPECT_EQ(get("", first.certificate_pem), "200 page /metrics");
  EXPECT_EQ(net::header(last_headers_, "x-frame-options"), "deny");
  const net::TlsIdentity second = write_identity();
  EXPECT_EQ(get("", second.certificate_pem), "200 page /metrics");
  EXPECT_THAT(get("", first.certificate_pem), HasSubstr("TLS"));
}

TEST_F(WebGuardTest, AKeyThatDoesNotFitLeavesTheOldOne) {
  const net::TlsIdentity first = write_identity();
  start("tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n");
  write("tls.key", net::make_self_signed({"127.0.0.1"})->key_pem);
  EXPECT_EQ(get("", first.certificate_pem), "200 page /metrics");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("does not belong to the certificate")));
}

TEST_F(WebGuardTest, ClientsMustShowACertificate) {
  const net::TlsIdentity identity = write_identity();
  start(
      "tls_server_config: {cert_file: tls.crt, key_file: tls.key, client_ca_file: tls.crt,\n"
      "  client_auth_type: RequireAndVerifyClientCert}\n");
  EXPECT_THAT(get("", identity.certificate_pem), ::testing::Not(HasSubstr("200")));
}

TEST_F(WebGuardTest, AFileThatIsNotThereIsNamed) {
  EXPECT_THAT(open().error().what, HasSubstr("web.yaml"));
  write("web.yaml", "tls_server_config: {cert_file: none.crt, key_file: none.key}\n");
  EXPECT_THAT(open().error().what, HasSubstr("none.crt"));
}

}  // namespace
}  // namespace jogak::agent
