// SPDX-License-Identifier: Apache-2.0
//
// The whole way from a kubeconfig's access to our own server and back, on one real loop.
#include "kube/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include <fmt/core.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/testing/temp_folder.h"
#include "kube/kubeconfig.h"
#include "net/http_server.h"
#include "net/tls.h"

namespace jogak::kube {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

struct Seen {
  int status = 0, ends = 0;
  std::string body;
  Result<void> outcome;
};

class ConnectionTest : public testing::Test {
 protected:
  void start(bool is_tls = true) {
    net::HttpServerOptions options;
    identity_ = net::make_self_signed({"127.0.0.1"}).value();
    if (is_tls) options.tls = net::TlsContext::make(identity_).value();
    server_ = net::HttpServer::listen(loop_, std::move(options),
                                      [this](const net::HttpRequest& request, auto writer) {
                                        last_ = request;
                                        ++requests_;
                                        if (request.target == "/never") {
                                          kept_.push_back(writer);
                                        } else {
                                          writer->respond(status_, {}, "ok");
                                        }
                                      })
                  .value();
    access_.source = "the test";
    access_.server = server_->url();
    if (is_tls) access_.ca_pem = identity_.certificate_pem;
  }
  Connection& make() {
    auto made = connect(loop_, access_, {.environment = {"PATH=/usr/bin:/bin"}});
    EXPECT_TRUE(made.has_value()) << made.error().what;
    connection_ = std::move(*made);
    return *connection_;
  }
  // A credential program of these lines.
  void use_program(const std::string& script) {
    access_.exec = ExecConfig{};
    access_.exec->command = "sh";
    access_.exec->args = {"-c", script};
    access_.exec->api_version = "client.authentication.k8s.io/v1";
    access_.exec->interactive = ExecConfig::Interactive::Never;
  }
  static std::string answer(const std::string& status) {
    return R"({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", )"
           R"("status": )" +
           status + "}";
  }

  template <class F>
  bool eventually(F condition) {
    const TimeUs end = loop_.now() + 20 * kSecondInUs;
    while (!condition() && loop_.now() < end) loop_.turn(100 * kMsInUs);
    return condition();
  }
  std::shared_ptr<void> send(Seen& seen, net::ClientRequest request) {
    return connection_->send(
        std::move(request),
        {.on_head = [&seen](int status, const net::Headers&) { seen.status = status; },
         .on_body = [&seen](std::string_view bytes) { seen.body += bytes; },
         .on_end =
             [&seen](Result<void> outcome) {
               ++seen.ends;
               seen.outcome = std::move(outcome);
             }});
  }
  Seen exchange(net::ClientRequest request = {.method = "GET", .target = "/x"}) {
    Seen seen;
    const auto handle = send(seen, std::move(request));
    EXPECT_EQ(seen.ends, 0) << "no event before send() returns";
    EXPECT_TRUE(eventually([&] { return seen.ends > 0; }));
    return seen;
  }
  std::string sent(std::string_view name) const {
    return std::string(net::header(last_.headers, name));
  }

  net::EpollLoop loop_;
  TempFolder folder_;
  net::TlsIdentity identity_;
  std::unique_ptr<net::HttpServer> server_;
  std::vector<std::shared_ptr<net::ResponseWriter>> kept_;
  net::HttpRequest last_;
  int requests_ = 0, status_ = 200;
  Access access_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(ConnectionTest, FromAKubeconfig) {
  start();
  const std::string path = folder_.path("config");
  ASSERT_TRUE(
      write_file(path, fmt::format("current-context: c\n"
                                   "clusters: [{{name: k, cluster: {{server: '{}/prefix', "
                                   "certificate-authority-data: {}}}}}]\n"
                                   "users: [{{name: u, user: {{token: abc, as: jane}}}}]\n"
                                   "contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n",
                                   server_->url(), base64_encode(identity_.certificate_pem)))
          .has_value());
  access_ = find_access({.kubeconfig = path}, {}).value();
  make();
  EXPECT_EQ(exchange().body, "ok");
  EXPECT_EQ(last_.target, "/prefix/x");
  EXPECT_EQ(sent("authorization"), "Bearer abc");
  EXPECT_EQ(sent("impersonate-user"), "jane");
  EXPECT_EQ(sent("user-agent"), "jogak");
  EXPECT_EQ(connection_->refusal(), "");
}

TEST_F(ConnectionTest, PlainHttpGetsNoSecrets) {
  start(false);
  access_.token = "abc";
  access_.impersonate_user = "jane";
  make();
  EXPECT_EQ(exchange().body, "ok");
  EXPECT_EQ(sent("authorization"), "");
  EXPECT_EQ(sent("impersonate-user"), "");
}

TEST_F(ConnectionTest, WaitsForTheProgramAndRunsItOnce) {
  start();
  use_program(fmt::format("echo run >> {}; echo '{}'", folder_.path("runs"),
                          answer(R"({"token": "from-program"})")));
  make();
  Seen first, second;
  const auto one = send(first, {.method = "GET", .target = "/1"});
  const auto two = send(second, {.method = "GET", .target = "/2"});
  ASSERT_TRUE(eventually([&] { return first.ends == 1 && second.ends == 1; }));
  EXPECT_EQ(first.body, "ok");
  EXPECT_EQ(second.body, "ok");
  EXPECT_EQ(sent("authorization"), "Bearer from-program");
  EXPECT_EQ(read_file(folder_.path("runs")).value(), "run\n");
}

TEST_F(ConnectionTest, A401RunsTheProgramForTheNextRequest) {
  start();
  use_program(fmt::format("echo run >> {0}; n=$(wc -l < {0}); echo '{1}' | sed s/NUMBER/$n/",
                          folder_.path("runs"), answer(R"({"token": "t-NUMBER"})")));
  make();
  EXPECT_EQ(exchange().status, 200);
  EXPECT_EQ(sent("authorization"), "Bearer t-1");
  status_ = 401;
  EXPECT_EQ(exchange().status, 401) << "handed on, and not sent again";
  EXPECT_EQ(requests_, 2);
  EXPECT_THAT(connection_->refusal(), AllOf(StartsWith(connection_->server()),
                                            HasSubstr("bearer token of the program sh")));
  status_ = 200;
  EXPECT_EQ(exchange().status, 200);
  EXPECT_EQ(sent("authorization"), "Bearer t-2");
  EXPECT_EQ(connection_->refusal(), "");
}

TEST_F(ConnectionTest, AProgramThatFailsEndsTheRequest) {
  start();
  use_program("echo please log in >&2; exit 4");
  make();
  const Seen seen = exchange();
  EXPECT_EQ(seen.outcome.error().code, Errc::Unavailable);
  EXPECT_EQ(seen.outcome.error().what, "credential program sh: exit code 4: please log in");
  EXPECT_EQ(requests_, 0);
}

TEST_F(ConnectionTest, TheTimeLimitCountsTheWait) {
  start();
  use_program("cat /dev/zero > /dev/null");
  make();
  const Seen seen = exchange({.method = "GET", .target = "/x", .time_limit = 30 * kMsInUs});
  EXPECT_EQ(seen.outcome.error().code, Errc::Unavailable);
  EXPECT_THAT(seen.outcome.error().what, HasSubstr("the program sh is still running"));
}

TEST_F(ConnectionTest, CancelWhileTheProgramRuns) {
  start();
  use_program("cat /dev/zero > /dev/null");
  make();
  Seen seen;
  send(seen, {.method = "GET", .target = "/x"}).reset();
  connection_.reset();
  for (int i = 0; i < 5; ++i) loop_.turn(kMsInUs);
  EXPECT_EQ(seen.ends, 0);
}

TEST_F(ConnectionTest, NoEventOnceItIsGone) {
  start();
  make();
  Seen seen;
  const auto handle = send(seen, {.method = "GET", .target = "/never"});
  ASSERT_TRUE(eventually([&] { return !kept_.empty(); }));
  connection_.reset();
  kept_[0]->respond(200, {}, "late");
  for (int i = 0; i < 10; ++i) loop_.turn(kMsInUs);
  EXPECT_EQ(seen.status, 0);
  EXPECT_EQ(seen.ends, 0);
}

TEST_F(ConnectionTest, ANewCertificateMeansNewConnections) {
  const auto one = net::make_self_signed({"one"}).value();
  const auto two = net::make_self_signed({"two"}).value();
  start();
  const auto status_of = [](const net::TlsIdentity& pair) {
    return fmt::format("{{\"clientCertificateData\": \"{}\", \"clientKeyData\": \"{}\"}}",
                       pair.certificate_pem, pair.key_pem);
  };
  // JSON has no line breaks in strings
  const auto escaped = [](std::string text) {
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
      text.replace(at, 1, "\\n");
    }
    return text;
  };
  ASSERT_TRUE(write_file(folder_.path("answer"), answer(escaped(status_of(one)))).has_value());
  use_program("cat " + folder_.path("answer"));
  make();
  EXPECT_EQ(exchange().body, "ok");
  EXPECT_EQ(exchange().body, "ok");
  EXPECT_EQ(server_->counts().accepted, 1U);

  ASSERT_TRUE(write_file(folder_.path("answer"), answer(escaped(status_of(two)))).has_value());
  Seen watch;
  const auto handle = send(watch, {.method = "GET", .target = "/never"});
  ASSERT_TRUE(eventually([&] { return !kept_.empty(); }));
  status_ = 401;
  exchange();
  const auto accepted = server_->counts().accepted;
  status_ = 200;
  EXPECT_EQ(exchange().body, "ok");
  EXPECT_EQ(server_->counts().accepted, accepted + 1);
  kept_[0]->respond(200, {}, "the old one goes on");
  ASSERT_TRUE(eventually([&] { return watch.ends == 1; }));
  EXPECT_EQ(watch.body, "the old one goes on");
}

TEST_F(ConnectionTest, ANewAuthorityInItsFileIsTakenUp) {
  start();
  access_.ca_pem = "";
  access_.ca_file = folder_.path("ca.crt");
  ASSERT_TRUE(
      write_file(access_.ca_file, net::make_self_signed({"old"})->certificate_pem).has_value());
  make();
  EXPECT_EQ(exchange().outcome.error().code, Errc::Invalid);
  ASSERT_TRUE(write_file(access_.ca_file, identity_.certificate_pem).has_value());
  EXPECT_EQ(exchange().outcome.error().code, Errc::Invalid) << "and this one notices";
  EXPECT_EQ(exchange().body, "ok");
}

TEST_F(ConnectionTest, WhatIsWrongIsSaidInOneLine) {
  start();
  access_.ca_pem = net::make_self_signed({"other"})->certificate_pem;
  make();
  EXPECT_THAT(exchange().outcome.error().what,
              AllOf(HasSubstr("certificate of " + connection_->server() + " refused"),
                    HasSubstr("certificate-authority")));
  server_.reset();
  const Seen gone = exchange();
  EXPECT_EQ(gone.outcome.error().code, Errc::Unavailable);
  EXPECT_EQ(gone.outcome.error().what,
            "cannot connect to " + connection_->server() + ": Connection refused");
}

TEST_F(ConnectionTest, AnExpiredTokenIsNamed) {
  start();
  access_.token = "e30." + base64_encode(R"({"exp": 1000000000})") + ".s3cret";
  make();
  status_ = 401;
  exchange();
  EXPECT_EQ(connection_->refusal(),
            connection_->server() +
                " does not accept the bearer token of the test, expired at 2001-09-09T01:46:40Z; "
                "log in anew, or check the kubeconfig's user");
}

TEST_F(ConnectionTest, WhatCannotWorkIsRefusedAtOnce) {
  start();
  const auto error = [this] { return connect(loop_, access_).error().what; };
  access_.ca_pem = "nonsense";
  EXPECT_THAT(error(), AllOf(StartsWith("the test: "), HasSubstr("certificate authority")));
  access_.ca_pem = "";
  access_.ca_file = folder_.path("missing");
  EXPECT_THAT(error(), AllOf(HasSubstr("certificate-authority"), HasSubstr(access_.ca_file)));
  access_.ca_file = "";
  access_.proxy_url = "ftp://p";
  EXPECT_THAT(error(), HasSubstr("proxy-url"));
  access_.proxy_url = "";
  access_.token_file = folder_.path("missing");
  EXPECT_THAT(error(), HasSubstr("bearer token"));
}

}  // namespace
}  // namespace jogak::kube
