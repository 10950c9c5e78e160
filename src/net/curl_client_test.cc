// SPDX-License-Identifier: Apache-2.0
//
// The client against our own server and against ones that misbehave, all on one loop: every wait is
// a turn of it.
#include "net/curl_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "base/file.h"
#include "base/testing/temp_folder.h"
#include "net/http_server.h"
#include "net/testing/raw_server.h"
#include "net/tls.h"

namespace jogak::net {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Writer = std::shared_ptr<ResponseWriter>;

// What came of one exchange.
struct Seen {
  int status = 0;
  Headers head;
  std::string body;
  int heads = 0, pieces = 0, ends = 0;
  Result<void> outcome;
};

ClientEvents note(Seen& seen) {
  return {.on_head =
              [&seen](int status, const Headers& head) {
                EXPECT_EQ(seen.pieces, 0);
                ++seen.heads;
                seen.status = status;
                seen.head = head;
              },
          .on_body =
              [&seen](std::string_view bytes) {
                EXPECT_EQ(seen.heads, 1);
                ++seen.pieces;
                seen.body += bytes;
              },
          .on_end =
              [&seen](Result<void> outcome) {
                ++seen.ends;
                seen.outcome = std::move(outcome);
              }};
}

ClientRequest get(std::string target) { return {.method = "GET", .target = std::move(target)}; }

class CurlClientTest : public testing::Test {
 protected:
  void start(HttpServerOptions options = {}) {
    options.limits.body_bytes = std::size_t{64} << 20;
    auto made = HttpServer::listen(loop_, std::move(options), [this](HttpRequest request, auto to) {
      handle(std::move(request), std::move(to));
    });
    ASSERT_TRUE(made.has_value()) << made.error().what;
    server_ = std::move(*made);
  }
  void start_tls(const std::vector<std::string>& hosts, const std::string& client_ca = {}) {
    identity_ = make_self_signed(hosts).value();
    start({.tls = TlsContext::make(identity_, client_ca).value()});
  }

  void handle(HttpRequest request, Writer writer) {
    ++requests_;
    last_ = request;
    if (request.target == "/echo") {
      writer->respond(200, {{"X-Method", request.method}}, std::move(request.body));
    } else if (request.target == "/stream") {
      writer->begin(200, {});
      writer->on_close([this] { ++closed_; });
      streams_.push_back(std::move(writer));
    } else if (request.target == "/never") {
      writer->on_close([this] { ++closed_; });
      streams_.push_back(std::move(writer));
    } else if (request.target == "/big") {
      writer->respond(200, {}, std::string(std::size_t{10} << 20, 'b'));
    } else {
      writer->respond(request.target == "/missing" ? 404 : 200, {{"X-Two", "a: b"}},
                      request.method + " " + request.target);
    }
  }

  CurlOptions options() const {
    CurlOptions made{.base_url = server_->url()};
    made.ca_pem = identity_.certificate_pem;
    return made;
  }
  CurlClient& make(CurlOptions options) {
    auto made = CurlClient::make(loop_, std::move(options));
    EXPECT_TRUE(made.has_value()) << made.error().what;
    client_ = std::move(*made);
    return *client_;
  }
  CurlClient& make() { return make(options()); }

  template <class F>
  bool eventually(F condition) {
    const TimeUs end = loop_.now() + 20 * kSecondInUs;
    while (!condition() && loop_.now() < end) loop_.turn(100 * kMsInUs);
    return condition();
  }
  // A few turns in which whatever could still come would come.
  void settle() {
    for (int i = 0; i < 20; ++i) loop_.turn(kMsInUs);
  }
  Seen exchange(ClientRequest request) {
    Seen seen;
    const auto handle = client_->send(std::move(request), note(seen));
    EXPECT_TRUE(eventually([&] { return seen.ends > 0; }));
    EXPECT_EQ(seen.ends, 1);
    return seen;
  }

  EpollLoop loop_;
  TlsIdentity identity_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<CurlClient> client_;
  std::vector<Writer> streams_;
  HttpRequest last_;
  int requests_ = 0, closed_ = 0;
};

// ---------------------------------------------------------------------------------------- answers

TEST_F(CurlClientTest, GetsAnAnswerWithItsHead) {
  start();
  make();
  const Seen seen = exchange(get("/a/b?c=d%20e"));
  ASSERT_TRUE(seen.outcome.has_value()) << seen.outcome.error().what;
  EXPECT_EQ(seen.status, 200);
  EXPECT_EQ(seen.body, "GET /a/b?c=d%20e");
  EXPECT_EQ(header(seen.head, "x-two"), "a: b");
  EXPECT_EQ(seen.heads, 1);
  EXPECT_EQ(header(last_.headers, "user-agent"), "jogak");
  EXPECT_EQ(header(last_.headers, "host"), client_->server());
}

TEST_F(CurlClientTest, AStatusIsNoError) {
  start();
  make();
  const Seen seen = exchange(get("/missing"));
  EXPECT_TRUE(seen.outcome.has_value());
  EXPECT_EQ(seen.status, 404);
}

TEST_F(CurlClientTest, MethodsAndBodiesArriveAsGiven) {
  start();
  make();
  for (const std::string method : {"POST", "PUT", "PATCH", "DELETE", "GET"}) {
    for (const std::string body : {"", "{\"a\": 1}"}) {
      const Seen seen = exchange({.method = method, .target = "/echo", .body = body});
      EXPECT_EQ(seen.body, body) << method;
      EXPECT_EQ(header(seen.head, "x-method"), method);
      EXPECT_EQ(header(last_.headers, "content-type"), "") << method;
    }
  }
  const Seen head = exchange({.method = "HEAD", .target = "/echo"});
  EXPECT_TRUE(head.outcome.has_value());
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(exchange(get("/x")).body, "GET /x");
}

TEST_F(CurlClientTest, HeadersGoOutAsGivenAndEmptyOnesToo) {
  start();
  make();
  exchange({.method = "POST",
            .target = "/echo",
            .headers = {{"Content-Type", "application/json"},
                        {"X-A", "one"},
                        {"X-A", "two"},
                        {"X-Empty", ""}},
            .body = "{}"});
  EXPECT_EQ(header(last_.headers, "content-type"), "application/json");
  EXPECT_EQ(header(last_.headers, "expect"), "");
  int found = 0, empty = 0;
  for (const auto& [name, value] : last_.headers) {
    found += name == "X-A" ? 1 : 0;
    empty += name == "X-Empty" && value.empty() ? 1 : 0;
  }
  EXPECT_EQ(found, 2);
  EXPECT_EQ(empty, 1);
  // and the next request has none of them
  exchange(get("/x"));
  EXPECT_EQ(header(last_.headers, "x-a"), "");
}

TEST_F(CurlClientTest, RefusesWhatWouldBreakTheRequest) {
  start();
  make();
  const std::vector<ClientRequest> bad = {
      {.method = "GET", .target = "/", .headers = {{"A", "b\r\nC: d"}}},
      {.method = "GET", .target = "/", .headers = {{"A\n", "b"}}},
      {.method = "GET", .target = "no-slash"},
      {.method = "GET", .target = "/a b"},
      {.method = "G T", .target = "/"},
      {.method = "", .target = "/"}};
  for (const ClientRequest& request : bad) {
    const Seen seen = exchange(request);
    EXPECT_EQ(seen.outcome.error().code, Errc::Invalid);
    EXPECT_THAT(seen.outcome.error().what, Not(HasSubstr("C: d")));
  }
  EXPECT_EQ(requests_, 0);
}

TEST_F(CurlClientTest, ThePathOfTheServerStaysInFront) {
  start();
  CurlOptions with_path = options();
  with_path.base_url += "/k8s/clusters/c-1/";
  make(with_path);
  exchange(get("/api/v1/../x"));
  EXPECT_EQ(last_.target, "/k8s/clusters/c-1/api/v1/../x");
}

TEST_F(CurlClientTest, TenMegabytesEachWay) {
  for (const bool is_tls : {false, true}) {
    if (is_tls) {
      start_tls({"127.0.0.1"});
    } else {
      start();
    }
    make();
    const std::string large(std::size_t{10} << 20, 'u');
    EXPECT_EQ(exchange({.method = "POST", .target = "/echo", .body = large}).body, large);
    EXPECT_EQ(exchange(get("/big")).body.size(), std::size_t{10} << 20);
  }
}

TEST_F(CurlClientTest, APieceOfAStreamArrivesAtOnce) {
  start();
  make();
  Seen seen;
  const auto handle = client_->send(get("/stream"), note(seen));
  ASSERT_TRUE(eventually([&] { return seen.heads == 1 && streams_.size() == 1; }));
  for (int i = 1; i <= 3; ++i) {
    streams_[0]->write(fmt::format("line {}\n", i));
    ASSERT_TRUE(eventually([&] { return seen.pieces == i; }));
    EXPECT_THAT(seen.body, testing::EndsWith(fmt::format("line {}\n", i)));
  }
  EXPECT_EQ(seen.ends, 0);
  streams_[0]->end();
  ASSERT_TRUE(eventually([&] { return seen.ends == 1; }));
  EXPECT_TRUE(seen.outcome.has_value());
}

TEST_F(CurlClientTest, ConnectionsAreUsedAgain) {
  start_tls({"127.0.0.1"});
  make();
  for (int i = 0; i < 20; ++i) exchange({.method = "POST", .target = "/echo", .body = "x"});
  EXPECT_EQ(server_->counts().accepted, 1U);
}

TEST_F(CurlClientTest, ManyAtOnceWithWatchesBesides) {
  start();
  make();
  std::vector<std::unique_ptr<Seen>> seen;
  std::vector<std::shared_ptr<void>> handles;
  for (int i = 0; i < 12; ++i) {
    seen.push_back(std::make_unique<Seen>());
    handles.push_back(client_->send(get("/stream"), note(*seen.back())));
  }
  for (int i = 0; i < 500; ++i) {
    seen.push_back(std::make_unique<Seen>());
    handles.push_back(client_->send(
        {.method = "POST", .target = "/echo", .body = fmt::format("{}", i)}, note(*seen.back())));
  }
  EXPECT_EQ(client_->counts().active, 128U);
  EXPECT_EQ(client_->counts().waiting, 12U + 500 - 128);
  ASSERT_TRUE(eventually([&] { return requests_ == 512 && client_->counts().active == 12; }));
  for (std::size_t i = 12; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i]->body, fmt::format("{}", i - 12));
    EXPECT_EQ(seen[i]->ends, 1);
  }
  EXPECT_LE(server_->counts().accepted, 128U);
  handles.clear();
  EXPECT_TRUE(eventually([&] { return closed_ == 12; }));
}

TEST_F(CurlClientTest, GzippedAnswersArriveUnpacked) {
  // "hello, hello, hello\n" of gzip(1)
  static constexpr unsigned char kPacked[] = {
      0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9,
      0xd7, 0x51, 0xc8, 0x40, 0xa2, 0xb8, 0x00, 0xe7, 0x42, 0x6e, 0x52, 0x14, 0x00, 0x00, 0x00};
  const std::string packed(reinterpret_cast<const char*>(kPacked), sizeof kPacked);
  std::string asked;
  RawServer raw(loop_, [&](RawServer::Connection& connection) {
    asked = connection.input;
    connection.send(fmt::format(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", packed.size()));
    connection.send(packed);
  });
  make({.base_url = fmt::format("http://127.0.0.1:{}", raw.port())});
  const Seen seen = exchange(get("/"));
  ASSERT_TRUE(seen.outcome.has_value()) << seen.outcome.error().what;
  EXPECT_EQ(seen.body, "hello, hello, hello\n");
  EXPECT_EQ(header(seen.head, "content-encoding"), "");
  EXPECT_EQ(header(seen.head, "content-length"), "");
  EXPECT_THAT(asked, HasSubstr("Accept-Encoding: gzip\r\n"));

  make({.base_url = fmt::format("http://127.0.0.1:{}", raw.port()), .compression = false});
  EXPECT_EQ(exchange(get("/")).body, packed);
  EXPECT_THAT(asked, Not(HasSubstr("Accept-Encoding")));
}

// -------------------------------------------------------------------------------------------- TLS

TEST_F(CurlClientTest, TlsWithACertificateAuthority) {
  start_tls({"127.0.0.1"});
  make();
  EXPECT_EQ(exchange(get("/x")).body, "GET /x");

  const TempFolder folder;
  ASSERT_TRUE(write_file(folder.path("ca.crt"), identity_.certificate_pem).has_value());
  make({.base_url = server_->url(), .ca_file = folder.path("ca.crt")});
  EXPECT_EQ(exchange(get("/y")).body, "GET /y");
}

TEST_F(CurlClientTest, AnotherAuthorityIsRefusedWithHostAndCure) {
  start_tls({"127.0.0.1"});
  for (const std::string& ca : {make_self_signed({"127.0.0.1"})->certificate_pem, std::string()}) {
    make({.base_url = server_->url(), .ca_pem = ca});
    const Seen seen = exchange(get("/x"));
    ASSERT_FALSE(seen.outcome.has_value());
    EXPECT_EQ(seen.outcome.error().code, Errc::Invalid);
    EXPECT_THAT(seen.outcome.error().what,
                AllOf(HasSubstr("certificate of " + client_->server() + " refused: "),
                      HasSubstr("certificate-authority")));
  }
  EXPECT_EQ(requests_, 0);
}

TEST_F(CurlClientTest, ACertificateForAnotherNameIsRefused) {
  start_tls({"localhost"});
  make();
  const Seen seen = exchange(get("/x"));
  ASSERT_FALSE(seen.outcome.has_value());
  EXPECT_EQ(seen.outcome.error().code, Errc::Invalid);
  EXPECT_THAT(seen.outcome.error().what,
              AllOf(HasSubstr("127.0.0.1"), HasSubstr("tls-server-name")));
}

TEST_F(CurlClientTest, TlsServerNameIsWhatIsVerified) {
  start_tls({"kubernetes.default.svc", "10.0.0.1"});
  for (const std::string name : {"kubernetes.default.svc", "10.0.0.1"}) {
    CurlOptions named = options();
    named.tls_server_name = name;
    make(named);
    const Seen seen = exchange(get("/x"));
    ASSERT_TRUE(seen.outcome.has_value()) << seen.outcome.error().what;
    EXPECT_EQ(header(last_.headers, "host"), client_->server()) << "the host that was dialled";
  }
  CurlOptions other = options();
  other.tls_server_name = "example.org";
  make(other);
  EXPECT_EQ(exchange(get("/x")).outcome.error().code, Errc::Invalid);
}

TEST_F(CurlClientTest, NobodyIsVerifiedWhereAskedFor) {
  start_tls({"example.org"});
  make({.base_url = server_->url(), .insecure_skip_verify = true});
  EXPECT_EQ(exchange(get("/x")).body, "GET /x");
}

TEST_F(CurlClientTest, ClientCertificates) {
  const TlsIdentity me = make_self_signed({"me"}).value();
  start_tls({"127.0.0.1"}, me.certificate_pem);
  CurlOptions with = options();
  with.client_certificate_pem = me.certificate_pem;
  with.client_key_pem = me.key_pem;
  make(with);
  EXPECT_EQ(exchange(get("/x")).body, "GET /x");

  make();
  const Seen none = exchange(get("/x"));
  ASSERT_FALSE(none.outcome.has_value());
  EXPECT_EQ(none.outcome.error().code, Errc::Invalid) << none.outcome.error().what;
  EXPECT_THAT(none.outcome.error().what, HasSubstr("wants a client certificate"));

  const TlsIdentity stranger = make_self_signed({"stranger"}).value();
  with.client_certificate_pem = stranger.certificate_pem;
  with.client_key_pem = stranger.key_pem;
  make(with);
  const Seen refused = exchange(get("/x"));
  ASSERT_FALSE(refused.outcome.has_value());
  EXPECT_EQ(refused.outcome.error().code, Errc::Invalid) << refused.outcome.error().what;
  EXPECT_THAT(refused.outcome.error().what, HasSubstr("refused the client certificate"));
}

TEST_F(CurlClientTest, PlainAndTlsMixedUp) {
  start();
  std::string url = server_->url();
  url.insert(4, "s");
  make({.base_url = url});
  const Seen seen = exchange(get("/x"));
  EXPECT_EQ(seen.outcome.error().code, Errc::Unavailable);
  EXPECT_THAT(seen.outcome.error().what, HasSubstr("does it speak https?"));
}

TEST_F(CurlClientTest, AskingForHttp2IsFineWithAServerOfHttp1) {
  start_tls({"127.0.0.1"});
  CurlOptions newer = options();
  newer.http2 = true;
  make(newer);
  EXPECT_EQ(exchange(get("/x")).body, "GET /x");
}

// --------------------------------------------------------------------------------------- failures

TEST_F(CurlClientTest, ARefusedConnectionIsUnavailable) {
  std::uint16_t port = 0;
  {
    const RawServer gone(loop_, [](RawServer::Connection&) {});
    port = gone.port();
  }
  make({.base_url = fmt::format("http://127.0.0.1:{}", port)});
  const Seen seen = exchange(get("/x"));
  ASSERT_FALSE(seen.outcome.has_value());
  EXPECT_EQ(seen.outcome.error().code, Errc::Unavailable);
  EXPECT_EQ(seen.outcome.error().what,
            fmt::format("cannot connect to 127.0.0.1:{}: Connection refused", port));
}

TEST_F(CurlClientTest, AnUnknownNameIsUnavailable) {
  make({.base_url = "http://no-such-host.invalid:80"});
  const Seen seen = exchange({.method = "GET", .target = "/", .time_limit = 3 * kSecondInUs});
  ASSERT_FALSE(seen.outcome.has_value());
  EXPECT_EQ(seen.outcome.error().code, Errc::Unavailable);
  EXPECT_THAT(seen.outcome.error().what, HasSubstr("no-such-host.invalid:80"));
}

TEST_F(CurlClientTest, AServerThatNeverAnswersIsATimeout) {
  start();
  make();
  const Seen seen =
      exchange({.method = "POST", .target = "/never", .body = "x", .time_limit = 30 * kMsInUs});
  ASSERT_FALSE(seen.outcome.has_value());
  EXPECT_EQ(seen.outcome.error().code, Errc::Timeout);
  EXPECT_EQ(seen.outcome.error().what,
            client_->server() + " did not answer the POST request within 30 ms");
  EXPECT_EQ(client_->counts().active, 0U);
}

TEST_F(CurlClientTest, AServerThatNeverShakesHandsIsUnavailable) {
  const RawServer raw(loop_, [](RawServer::Connection&) {});
  make({.base_url = fmt::format("https://127.0.0.1:{}", raw.port())});
  const Seen seen = exchange({.method = "GET", .target = "/", .time_limit = 30 * kMsInUs});
  EXPECT_EQ(seen.outcome.error().code, Errc::Unavailable);
  make(
      {.base_url = fmt::format("https://127.0.0.1:{}", raw.port()), .connect_limit = 30 * kMsInUs});
  const Seen limited = exchange(get("/"));
  EXPECT_EQ(limited.outcome.error().code, Errc::Unavailable) << limited.outcome.error().what;
}

TEST_F(CurlClientTest, WaitingForATurnTooLongIsUnavailable) {
  start();
  CurlOptions one = options();
  one.connections_max = 1;
  make(one);
  Seen first;
  const auto handle = client_->send(get("/stream"), note(first));
  const Seen seen = exchange({.method = "GET", .target = "/x", .time_limit = 20 * kMsInUs});
  EXPECT_EQ(seen.outcome.error().code, Errc::Unavailable);
  EXPECT_THAT(seen.outcome.error().what, HasSubstr("no connection"));
  EXPECT_EQ(requests_, 1);
}

TEST_F(CurlClientTest, SilenceIsATimeoutAndBytesPutItOff) {
  start();
  make();
  Seen seen;
  const auto handle = client_->send(
      {.method = "GET", .target = "/stream", .silence_limit = 60 * kMsInUs}, note(seen));
  ASSERT_TRUE(eventually([&] { return seen.heads == 1; }));
  const TimeUs start = loop_.now();
  std::function<void()> write = [&] {
    streams_[0]->write("x");
    if (loop_.now() - start < 150 * kMsInUs) loop_.after(10 * kMsInUs, write);
  };
  write();
  ASSERT_TRUE(eventually([&] { return seen.ends == 1; }));
  EXPECT_GE(loop_.now() - start, 200 * kMsInUs);
  EXPECT_EQ(seen.outcome.error().code, Errc::Timeout);
  EXPECT_EQ(seen.outcome.error().what, "nothing came from " + client_->server() + " for 60 ms");
}

TEST_F(CurlClientTest, AnAnswerCutShortIsATimeout) {
  const std::map<std::string, std::string> answers = {
      {"of known length", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"},
      {"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"},
      {"in the head", "HTTP/1.1 200 OK\r\nContent-Le"},
      {"nothing", ""}};
  for (const bool is_reset : {false, true}) {
    for (const auto& [name, answer] : answers) {
      const RawServer raw(loop_, [&](RawServer::Connection& connection) {
        connection.send(answer);
        if (is_reset) {
          connection.reset();
        } else {
          connection.close();
        }
      });
      make({.base_url = fmt::format("http://127.0.0.1:{}", raw.port())});
      const Seen seen = exchange({.method = "POST", .target = "/", .body = "{}"});
      ASSERT_FALSE(seen.outcome.has_value()) << name;
      EXPECT_EQ(seen.outcome.error().code, Errc::Timeout) << name << seen.outcome.error().what;
      EXPECT_EQ(raw.accepted(), 1);
    }
  }
}

TEST_F(CurlClientTest, WhatIsNotHttpIsInvalid) {
  const RawServer raw(loop_, [](RawServer::Connection& connection) {
    connection.send("220 mail.example ESMTP\r\n");
    connection.close();
  });
  make({.base_url = fmt::format("http://127.0.0.1:{}", raw.port())});
  const Seen seen = exchange(get("/"));
  EXPECT_EQ(seen.outcome.error().code, Errc::Invalid);
  EXPECT_THAT(seen.outcome.error().what, HasSubstr("does not answer in HTTP"));
}

// A kept connection that closes on the next request: what may not happen twice is not sent again.
TEST_F(CurlClientTest, OnlyReadsAreSentAgainOnANewConnection) {
  for (const std::string method : {"GET", "POST"}) {
    int served = 0;
    const RawServer raw(loop_, [&](RawServer::Connection& connection) {
      if (++served == 2) return connection.reset();
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    make({.base_url = fmt::format("http://127.0.0.1:{}", raw.port())});
    EXPECT_EQ(exchange({.method = method, .target = "/", .body = ""}).body, "ok");
    const Seen second = exchange({.method = method, .target = "/", .body = ""});
    if (method == "GET") {
      EXPECT_EQ(second.body, "ok");
      EXPECT_EQ(served, 3);
    } else {
      ASSERT_FALSE(second.outcome.has_value());
      EXPECT_EQ(second.outcome.error().code, Errc::Timeout);
      settle();
      EXPECT_EQ(served, 2);
    }
  }
}

TEST_F(CurlClientTest, AHeadWithoutEndIsRefused) {
  const RawServer raw(loop_, [](RawServer::Connection& connection) {
    connection.send("HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 200; ++i) {
      connection.send(fmt::format("X-{}: {}\r\n", i, std::string(8000, 'x')));
    }
  });
  make({.base_url = fmt::format("http://127.0.0.1:{}", raw.port())});
  EXPECT_FALSE(exchange(get("/")).outcome.has_value());
}

// ----------------------------------------------------------------------------------------- cancel

TEST_F(CurlClientTest, CancelInsideEachEvent) {
  start();
  make();
  for (const std::string where : {"head", "body", "end"}) {
    Seen seen;
    std::shared_ptr<void> handle;
    ClientEvents events = note(seen);
    auto drop_in = [&](const std::string& name) {
      if (where == name) handle.reset();
    };
    const ClientEvents inner = events;
    events.on_head = [&](int status, const Headers& head) {
      inner.on_head(status, head);
      drop_in("head");
    };
    events.on_body = [&](std::string_view bytes) {
      inner.on_body(bytes);
      drop_in("body");
    };
    events.on_end = [&](Result<void> outcome) {
      inner.on_end(std::move(outcome));
      drop_in("end");
    };
    handle = client_->send(get("/x"), events);
    ASSERT_TRUE(eventually([&] { return handle == nullptr; })) << where;
    settle();
    EXPECT_EQ(seen.ends, where == "end" ? 1 : 0);
    EXPECT_EQ(seen.pieces, where == "head" ? 0 : 1);
    EXPECT_EQ(client_->counts().active, 0U);
    EXPECT_EQ(exchange(get("/y")).body, "GET /y");
  }
}

TEST_F(CurlClientTest, CancelBeforeAndDuring) {
  start();
  make();
  Seen seen;
  client_->send(get("/x"), note(seen)).reset();
  settle();
  EXPECT_EQ(requests_, 0);
  auto handle = client_->send(get("/stream"), note(seen));
  ASSERT_TRUE(eventually([&] { return seen.heads == 1; }));
  handle.reset();
  EXPECT_TRUE(eventually([&] { return closed_ == 1; })) << "the server sees it";
  EXPECT_EQ(seen.ends, 0);
}

TEST_F(CurlClientTest, SendAndCancelOthersInsideAnEvent) {
  start();
  make();
  Seen first, second, stream;
  auto watch = client_->send(get("/stream"), note(stream));
  ASSERT_TRUE(eventually([&] { return stream.heads == 1; }));
  std::shared_ptr<void> next;
  ClientEvents events = note(first);
  events.on_body = [&](std::string_view) {
    watch.reset();
    next = client_->send(get("/second"), note(second));
  };
  const auto handle = client_->send(get("/first"), events);
  ASSERT_TRUE(eventually([&] { return first.ends == 1 && second.ends == 1 && closed_ == 1; }));
  EXPECT_EQ(second.body, "GET /second");
  EXPECT_EQ(stream.ends, 0);
}

TEST_F(CurlClientTest, TheClientMayGoInsideAnEvent) {
  start();
  for (const std::string where : {"head", "body", "end"}) {
    make();
    int events_after = 0;
    bool is_gone = false;
    const auto drop_in = [&](const std::string& name) {
      if (is_gone) ++events_after;
      if (where != name) return;
      client_.reset();
      is_gone = true;
    };
    Seen other;
    const auto beside = client_->send(get("/stream"), note(other));
    ASSERT_TRUE(eventually([&] { return other.heads == 1; }));
    const auto handle =
        client_->send(get("/x"), {.on_head = [&](int, const Headers&) { drop_in("head"); },
                                  .on_body = [&](std::string_view) { drop_in("body"); },
                                  .on_end = [&](const Result<void>&) { drop_in("end"); }});
    ASSERT_TRUE(eventually([&] { return is_gone; }));
    settle();
    EXPECT_EQ(events_after, 0);
    EXPECT_EQ(other.ends, 0);
  }
}

// ------------------------------------------------------------------------------------------ proxy

// "CONNECT host:port" is dialled on loopback whatever the host is; anything else is answered here.
struct Proxy {
  explicit Proxy(EpollLoop& loop)
      : server(loop, [this](RawServer::Connection& client) { take(client); }) {}

  void take(RawServer::Connection& client) {
    if (client.input.find("\r\n\r\n") == std::string::npos) return;
    asked.push_back(client.input.substr(0, client.input.find('\r')));
    const std::string head = std::exchange(client.input, "");
    if (is_closed) {
      client.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    } else if (head.starts_with("CONNECT ")) {
      const auto upstream = server.dial(target, [&client](RawServer::Connection& from) {
        client.send(std::exchange(from.input, ""));
      });
      client.on_bytes = [upstream](RawServer::Connection& from) {
        upstream->send(std::exchange(from.input, ""));
      };
      client.send("HTTP/1.1 200 Connection established\r\nX-Proxy: yes\r\n\r\n");
    } else {
      client.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nvia proxy");
    }
  }

  std::vector<std::string> asked;
  std::uint16_t target = 0;
  bool is_closed = false;
  RawServer server;
};

TEST_F(CurlClientTest, HttpsGoesThroughAProxyByConnect) {
  start_tls({"kube.example"});
  Proxy proxy(loop_);
  proxy.target = server_->port();
  CurlOptions through = options();
  through.base_url = "https://kube.example:6443";
  through.proxy_url = fmt::format("http://127.0.0.1:{}", proxy.server.port());
  make(through);
  const Seen seen = exchange(get("/x"));
  ASSERT_TRUE(seen.outcome.has_value()) << seen.outcome.error().what;
  EXPECT_EQ(seen.body, "GET /x");
  EXPECT_EQ(seen.heads, 1);
  EXPECT_EQ(header(seen.head, "x-proxy"), "");
  ASSERT_EQ(proxy.asked.size(), 1U);
  EXPECT_EQ(proxy.asked[0], "CONNECT kube.example:6443 HTTP/1.1");

  through.base_url = "https://other.example:6443";
  through.tls_server_name = "kube.example";
  make(through);
  EXPECT_EQ(exchange(get("/x")).body, "GET /x");
  EXPECT_EQ(proxy.asked.back(), "CONNECT other.example:6443 HTTP/1.1");
}

TEST_F(CurlClientTest, PlainHttpGoesThroughAProxyByItsUrl) {
  Proxy proxy(loop_);
  make({.base_url = "http://kube.example:8080/prefix",
        .proxy_url = fmt::format("http://127.0.0.1:{}", proxy.server.port())});
  EXPECT_EQ(exchange(get("/x")).body, "via proxy");
  EXPECT_EQ(proxy.asked.at(0), "GET http://kube.example:8080/prefix/x HTTP/1.1");
}

TEST_F(CurlClientTest, AProxyThatSaysNoIsUnavailable) {
  Proxy proxy(loop_);
  proxy.is_closed = true;
  make({.base_url = "https://kube.example:6443",
        .proxy_url = fmt::format("http://127.0.0.1:{}", proxy.server.port())});
  const Seen seen = exchange(get("/x"));
  ASSERT_FALSE(seen.outcome.has_value());
  EXPECT_EQ(seen.outcome.error().code, Errc::Unavailable);
  EXPECT_THAT(seen.outcome.error().what, AllOf(HasSubstr("proxy"), HasSubstr("403")));
}

// ---------------------------------------------------------------------------------------- options

TEST_F(CurlClientTest, OptionsThatCannotWorkAreRefusedByName) {
  const TlsIdentity one = make_self_signed({"a"}).value(), two = make_self_signed({"b"}).value();
  const std::vector<std::pair<CurlOptions, std::string>> bad = {
      {{.base_url = ""}, "server"},
      {{.base_url = "ftp://a"}, "scheme"},
      {{.base_url = "https://u:secret@a"}, "user"},
      {{.base_url = "https://a?b"}, "query"},
      {{.base_url = "https://a b"}, "server"},
      {{.base_url = "https://a", .ca_pem = "nonsense"}, "certificate authority"},
      {{.base_url = "https://a", .ca_file = "/nowhere/ca.crt"}, "/nowhere/ca.crt"},
      {{.base_url = "https://a", .ca_pem = one.certificate_pem, .insecure_skip_verify = true},
       "insecure-skip-tls-verify"},
      {{.base_url = "https://a", .client_certificate_pem = one.certificate_pem}, "client key"},
      {{.base_url = "https://a",
        .client_certificate_pem = one.certificate_pem,
        .client_key_pem = two.key_pem},
       "does not belong"},
      {{.base_url = "https://a", .tls_server_name = "a/b"}, "tls-server-name"},
      {{.base_url = "https://a", .proxy_url = "gopher://b"}, "proxy-url"},
      {{.base_url = "https://a", .connections_max = 0}, "connections_max"}};
  for (const auto& [options, part] : bad) {
    const auto made = CurlClient::make(loop_, options);
    ASSERT_FALSE(made.has_value()) << part;
    EXPECT_EQ(made.error().code, part.starts_with("/") ? Errc::NotFound : Errc::Invalid);
    EXPECT_THAT(made.error().what, AllOf(HasSubstr(part), Not(HasSubstr("secret"))));
  }
}

}  // namespace
}  // namespace jogak::net
