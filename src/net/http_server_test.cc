// SPDX-License-Identifier: Apache-2.0
//
// The server over real loopback sockets: what a client sees.
#include "net/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "net/testing/blocking_client.h"
#include "net/testing/loop_thread.h"

namespace jogak::net {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

using Writer = std::shared_ptr<ResponseWriter>;

class HttpServerTest : public testing::Test {
 protected:
  void TearDown() override {
    thread_.call([this] {
      streams_.clear();
      server_.reset();
    });
  }

  void start(HttpServerOptions options = {}) {
    thread_.call([&] {
      auto server = HttpServer::listen(thread_.loop(), std::move(options),
                                       [this](HttpRequest request, const Writer& writer) {
                                         handle(std::move(request), writer);
                                       });
      ASSERT_TRUE(server.has_value()) << server.error().what;
      server_ = std::move(*server);
    });
  }
  void start_tls(HttpServerOptions options = {}) {
    identity_ = make_self_signed({"127.0.0.1", "localhost", "::1"}).value();
    options.tls = TlsContext::make(identity_).value();
    start(std::move(options));
  }

  BlockingClient client(BlockingClientOptions options = {}) const {
    if (!identity_.certificate_pem.empty()) options.trusted_pem = identity_.certificate_pem;
    auto made = BlockingClient::connect(server_->port(), options);
    EXPECT_TRUE(made.has_value()) << made.error().what;
    return std::move(*made);
  }

  // On the loop.
  void handle(HttpRequest request, const Writer& writer) {
    ++requests_;
    if (request.target == "/echo") {
      writer->respond(200, {{"X-Method", request.method}}, std::move(request.body));
    } else if (request.target == "/headers") {
      std::string text;
      for (const auto& [name, value] : request.headers) text += name + "=" + value + "\n";
      writer->respond(200, {}, text);
    } else if (request.target.starts_with("/stream/")) {
      writer->begin(200, {{"Content-Type", "application/json"}});
      writer->on_close([this, target = request.target] {
        ++closed_;
        streams_.erase(target);
      });
      streams_[request.target] = writer;
    } else if (request.target == "/big") {
      writer->begin(200, {});
      auto left = std::make_shared<int>(100);
      // a self-made loop: every drain brings the next piece
      writer->on_drain([this, left, writer] {
        pending_max_ = std::max(pending_max_, writer->pending());
        if ((*left)-- > 0) {
          writer->write(std::string(1 << 20, 'x'));
        } else {
          writer->end();
        }
      });
    } else if (request.target == "/later") {
      thread_.loop().post([writer] { writer->respond(200, {}, "later"); });
    } else {
      writer->respond(200, {{"Content-Type", "text/plain"}}, request.method + " " + request.target);
    }
  }

  void send(const std::string& stream, const std::string& line) {
    thread_.call([&] {
      if (streams_.contains(stream)) streams_[stream]->write(line + "\n");
    });
  }
  // Waits until the loop sees this, asking it over and over.
  template <class F>
  bool eventually(F condition) {
    for (int i = 0; i < 100'000; ++i) {
      if (thread_.call(condition)) return true;
    }
    return false;
  }

  LoopThread thread_;
  TlsIdentity identity_;
  std::unique_ptr<HttpServer> server_;
  // of the loop's thread
  std::map<std::string, Writer> streams_;
  int requests_ = 0, closed_ = 0;
  std::size_t pending_max_ = 0;
  std::vector<int> handled_before_;  // requests, at each call of before_write
  bool may_write_ = true;
  bool is_closed_ = false;  // close() said so
};

TEST_F(HttpServerTest, AnswersOneAfterTheOtherOnOneConnection) {
  start();
  auto c = client();
  for (int i = 0; i < 3; ++i) {
    const auto response = c.request("GET", fmt::format("/{}", i));
    ASSERT_TRUE(response.has_value()) << response.error().what;
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, fmt::format("GET /{}", i));
    EXPECT_EQ(header(response->headers, "content-type"), "text/plain");
    EXPECT_EQ(header(response->headers, "connection"), "");
    EXPECT_THAT(std::string(header(response->headers, "date")), HasSubstr(" GMT"));
  }
  EXPECT_EQ(thread_.call([&] { return server_->counts().accepted; }), 1U);
}

TEST_F(HttpServerTest, BodiesComeByLengthOrInChunks) {
  start();
  auto c = client();
  const std::string large(1'000'000, 'b');
  EXPECT_EQ(c.request("POST", "/echo", {}, large)->body, large);
  ASSERT_TRUE(c.send_raw("PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "5\r\nhello\r\n7;ext=1\r\n, world\r\n0\r\nTrailer: t\r\n\r\n")
                  .has_value());
  const auto response = c.read_response();
  EXPECT_EQ(response->body, "hello, world");
  EXPECT_EQ(header(response->headers, "x-method"), "PUT");
}

TEST_F(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
  start();
  auto c = client();
  std::string all;
  const auto target = [](int i) { return i % 3 == 0 ? "/later" : fmt::format("/{}", i); };
  for (int i = 0; i < 100; ++i) {
    all += fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", target(i));
  }
  ASSERT_TRUE(c.send_raw(all).has_value());
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(c.read_response()->body, i % 3 == 0 ? "later" : "GET " + target(i));
  }
}

TEST_F(HttpServerTest, HeadGetsTheHeadAlone) {
  start();
  auto c = client();
  const auto response = c.request("HEAD", "/x");
  EXPECT_EQ(header(response->headers, "content-length"), "7");
  EXPECT_EQ(response->body, "");
  EXPECT_EQ(c.request("GET", "/y")->body, "GET /y");
}

TEST_F(HttpServerTest, StreamsGoOutPieceByPiece) {
  start();
  auto c = client();
  ASSERT_TRUE(c.send_request("GET", "/stream/a").has_value());
  const auto head = c.read_head();
  EXPECT_EQ(header(head->headers, "transfer-encoding"), "chunked");
  EXPECT_EQ(header(head->headers, "content-type"), "application/json");
  for (const char* line : {"one", "two", "three"}) {
    send("/stream/a", line);
    EXPECT_EQ(**c.read_line(), line);
  }
  thread_.call([&] { streams_["/stream/a"]->end(); });
  EXPECT_FALSE(c.read_line()->has_value());
  EXPECT_TRUE(eventually([&] { return closed_ == 1; }));  // the last byte has left
  EXPECT_EQ(c.request("GET", "/after")->body, "GET /after");
}

TEST_F(HttpServerTest, SharedBytesReachAllPeers) {
  start();
  std::vector<BlockingClient> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(client());
    ASSERT_TRUE(clients.back().send_request("GET", fmt::format("/stream/{}", i)).has_value());
    ASSERT_TRUE(clients.back().read_head().has_value());
  }
  const auto shared = std::make_shared<const std::string>(std::string(5000, 's') + "\n");
  thread_.call([&] {
    for (const auto& [name, writer] : streams_) writer->write_shared(shared);
  });
  for (BlockingClient& each : clients) EXPECT_EQ(**each.read_line() + "\n", *shared);
  EXPECT_TRUE(eventually([&] { return shared.use_count() == 1; }));
}

TEST_F(HttpServerTest, AHandlerHearsThatThePeerHasGone) {
  start();
  std::optional<BlockingClient> c = client();
  ASSERT_TRUE(c->send_request("GET", "/stream/a").has_value());
  ASSERT_TRUE(c->read_head().has_value());
  c.reset();
  EXPECT_TRUE(eventually([&] { return closed_ == 1 && streams_.empty(); }));
  EXPECT_TRUE(eventually([&] { return server_->counts().connections == 0; }));
}

TEST_F(HttpServerTest, AResetIsNoticedToo) {
  start();
  auto c = client();
  ASSERT_TRUE(c.send_request("GET", "/stream/a").has_value());
  ASSERT_TRUE(c.read_head().has_value());
  c.reset();
  EXPECT_TRUE(eventually([&] { return closed_ == 1; }));
}

TEST_F(HttpServerTest, ALargeAnswerIsMadeAsThePeerTakesIt) {
  start();
  auto c = client();
  const auto response = c.request("GET", "/big");
  ASSERT_TRUE(response.has_value()) << response.error().what;
  EXPECT_EQ(response->body.size(), std::size_t{100} << 20);
  EXPECT_LE(thread_.call([&] { return pending_max_; }), std::size_t{1} << 20);
}

TEST_F(HttpServerTest, TlsCarriesTheSame) {
  start_tls();
  EXPECT_THAT(server_->url(), StartsWith("https://127.0.0.1:"));
  auto c = client();
  const std::string large(1'000'000, 'b');
  EXPECT_EQ(c.request("POST", "/echo", {}, large)->body, large);
  EXPECT_EQ(c.request("GET", "/big")->body.size(), std::size_t{100} << 20);
  ASSERT_TRUE(c.send_request("GET", "/stream/a").has_value());
  ASSERT_TRUE(c.read_head().has_value());
  send("/stream/a", "line");
  EXPECT_EQ(**c.read_line(), "line");
}

TEST_F(HttpServerTest, TlsIsForThoseWhoTrustIt) {
  start_tls();
  const auto stranger = make_self_signed({"127.0.0.1"}).value();
  const auto refused =
      BlockingClient::connect(server_->port(), {.trusted_pem = stranger.certificate_pem});
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().what, HasSubstr("TLS"));
  EXPECT_EQ(client().request("GET", "/x")->body, "GET /x");
}

TEST_F(HttpServerTest, TlsCertificatesAreForTheirHosts) {
  identity_ = make_self_signed({"10.1.2.3", "example"}).value();
  HttpServerOptions options;
  options.tls = TlsContext::make(identity_).value();
  start(std::move(options));
  const auto refused =
      BlockingClient::connect(server_->port(), {.trusted_pem = identity_.certificate_pem});
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().what, HasSubstr("mismatch"));
}

TEST_F(HttpServerTest, PlainHttpToTlsGetsAHint) {
  start_tls();
  auto c = BlockingClient::connect(server_->port());
  ASSERT_TRUE(c->send_request("GET", "/x").has_value());
  EXPECT_THAT(c->read_to_end().value(), HasSubstr("sent an HTTP request to an HTTPS server"));
}

TEST_F(HttpServerTest, AnUpgradeIsAnsweredLikeAnyOther) {
  start();
  auto c = client();
  const auto response =
      c.request("GET", "/exec", {{"Connection", "Upgrade"}, {"Upgrade", "websocket"}});
  EXPECT_EQ(response->body, "GET /exec");
  EXPECT_EQ(header(response->headers, "connection"), "close");
  EXPECT_EQ(*c.read_to_end(), "");
}

TEST_F(HttpServerTest, ExpectContinueIsAnswered) {
  start();
  auto c = client();
  ASSERT_TRUE(c.send_raw("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
                         "Expect: 100-continue\r\n\r\n")
                  .has_value());
  // The body is sent only now; read_response() skips the "100 Continue" before the answer.
  ASSERT_TRUE(c.send_raw("ab").has_value());
  EXPECT_EQ(c.read_response()->body, "ab");
}

// The client is still sending when it is refused: a plain close would reset its answer away.
TEST_F(HttpServerTest, TooLargeABodyGetsItsAnswer) {
  HttpServerOptions options;
  options.limits.body_bytes = 1000;
  options.error_answer = [](int status, const std::string& why) {
    return HttpAnswer{status, {{"Content-Type", "application/json"}}, "{\"why\":\"" + why + "\"}"};
  };
  start(std::move(options));
  auto c = client();
  ASSERT_TRUE(c.send_request("POST", "/echo", {}, std::string(5'000'000, 'b')).has_value());
  const auto response = c.read_response();
  ASSERT_TRUE(response.has_value()) << response.error().what;
  EXPECT_EQ(response->status, 413);
  EXPECT_EQ(response->body, "{\"why\":\"request body too large\"}");
  EXPECT_EQ(thread_.call([&] { return requests_; }), 0);
}

TEST_F(HttpServerTest, OneConnectionTooManyIsTold) {
  HttpServerOptions options;
  options.connections_max = 2;
  start(std::move(options));
  auto first = client(), second = client();
  ASSERT_TRUE(first.request("GET", "/1").has_value());
  ASSERT_TRUE(second.request("GET", "/2").has_value());
  auto third = client();
  EXPECT_EQ(third.read_response()->status, 503);
  EXPECT_EQ(*third.read_to_end(), "");
  EXPECT_EQ(first.request("GET", "/again")->status, 200);
  EXPECT_EQ(thread_.call([&] { return server_->counts().refused; }), 1U);
}

TEST_F(HttpServerTest, TooSlowARequestTimesOut) {
  HttpServerOptions options;
  options.limits.head_time = 50 * kMsInUs;
  start(std::move(options));
  auto c = client();
  ASSERT_TRUE(c.send_raw("GET / HTTP/1.1\r\nHo").has_value());
  EXPECT_EQ(c.read_response()->status, 408);
  EXPECT_EQ(thread_.call([&] { return server_->counts().timed_out; }), 1U);
}

TEST_F(HttpServerTest, IdleConnectionsAreClosed) {
  HttpServerOptions options;
  options.limits.idle_time = 50 * kMsInUs;
  start(std::move(options));
  auto c = client();
  ASSERT_TRUE(c.request("GET", "/x").has_value());
  EXPECT_EQ(*c.read_to_end(), "");
}

TEST_F(HttpServerTest, AReaderThatLagsIsDroppedAndTheRestAreNot) {
  HttpServerOptions options;
  options.limits.pending_bytes = 1 << 20;
  start(std::move(options));
  auto slow = client({.receive_buffer_bytes = 4096}), quick = client();
  ASSERT_TRUE(slow.send_request("GET", "/stream/slow").has_value());
  ASSERT_TRUE(slow.read_head().has_value());
  ASSERT_TRUE(quick.send_request("GET", "/stream/quick").has_value());
  ASSERT_TRUE(quick.read_head().has_value());
  const std::string line(100'000, 'l');
  bool is_dropped = false;
  for (int i = 0; i < 1000 && !is_dropped; ++i) {
    send("/stream/slow", line);
    send("/stream/quick", line);
    EXPECT_EQ(**quick.read_line(), line);
    is_dropped = thread_.call([&] { return !streams_.contains("/stream/slow"); });
  }
  EXPECT_TRUE(is_dropped);
}

TEST_F(HttpServerTest, AnswersWaitForWhatMustBeDoneBefore) {
  HttpServerOptions options;
  options.before_write = [this] {
    handled_before_.push_back(requests_);
    return may_write_;
  };
  start(std::move(options));
  auto c = client();
  EXPECT_EQ(c.request("GET", "/1")->status, 200);
  EXPECT_THAT(thread_.call([&] { return handled_before_; }), testing::ElementsAre(1));
  // What one write brings together asks once.
  ASSERT_TRUE(c.send_raw("GET /2 HTTP/1.1\r\nHost: x\r\n\r\nGET /3 HTTP/1.1\r\nHost: x\r\n\r\n")
                  .has_value());
  EXPECT_EQ(c.read_response()->body, "GET /2");
  EXPECT_EQ(c.read_response()->body, "GET /3");
  EXPECT_THAT(thread_.call([&] { return handled_before_; }), testing::ElementsAre(1, 3));
  thread_.call([&] { may_write_ = false; });
  EXPECT_FALSE(c.request("GET", "/4").has_value());  // not acknowledged
}

TEST_F(HttpServerTest, ClosesInOrder) {
  start();
  auto idle = client(), busy = client();
  ASSERT_TRUE(idle.request("GET", "/x").has_value());
  ASSERT_TRUE(busy.send_request("GET", "/stream/a").has_value());
  ASSERT_TRUE(busy.read_head().has_value());
  thread_.call([&] { server_->close(30 * kSecondInUs, [&] { is_closed_ = true; }); });
  EXPECT_EQ(*idle.read_to_end(), "");
  EXPECT_FALSE(BlockingClient::connect(server_->port()).has_value());
  send("/stream/a", "still here");
  EXPECT_EQ(**busy.read_line(), "still here");
  EXPECT_FALSE(thread_.call([&] { return is_closed_; }));
  thread_.call([&] { streams_["/stream/a"]->end(); });
  EXPECT_FALSE(busy.read_line()->has_value());
  EXPECT_EQ(*busy.read_to_end(), "");
  {
    BlockingClient gone = std::move(busy);
  }
  {
    BlockingClient gone = std::move(idle);
  }
  EXPECT_TRUE(eventually([&] { return is_closed_; }));
}

TEST_F(HttpServerTest, ClosingDropsWhatOutlivesTheGrace) {
  start();
  auto busy = client();
  ASSERT_TRUE(busy.send_request("GET", "/stream/a").has_value());
  ASSERT_TRUE(busy.read_head().has_value());
  thread_.call([&] { server_->close(10 * kMsInUs, [&] { is_closed_ = true; }); });
  EXPECT_FALSE(busy.read_line().has_value());  // without its last chunk
  EXPECT_TRUE(eventually([&] { return is_closed_ && closed_ == 1; }));
}

TEST_F(HttpServerTest, ClosingAnEmptyServerIsQuick) {
  start();
  thread_.call([&] { server_->close(kSecondInUs, [&] { is_closed_ = true; }); });
  EXPECT_TRUE(eventually([&] { return is_closed_; }));
}

TEST_F(HttpServerTest, AnAddressThatCannotBe) {
  start();
  EpollLoop loop;
  const auto taken = HttpServer::listen(loop, {.port = server_->port()}, {});
  EXPECT_EQ(taken.error().code, Errc::Conflict);
  EXPECT_THAT(taken.error().what, HasSubstr("in use"));
  const auto elsewhere = HttpServer::listen(loop, {.address = "192.0.2.1"}, {});
  EXPECT_EQ(elsewhere.error().code, Errc::Invalid);
  const auto name = HttpServer::listen(loop, {.address = "localhost"}, {});
  EXPECT_THAT(name.error().what, HasSubstr("not an IP address"));
}

TEST_F(HttpServerTest, ListensOnIpv6Too) {
  EpollLoop loop;
  const auto server = HttpServer::listen(loop, {.address = "::1"}, {});
  if (!server) GTEST_SKIP() << server.error().what;
  EXPECT_EQ((*server)->url(), fmt::format("http://[::1]:{}", (*server)->port()));
}

TEST_F(HttpServerTest, ManyClientsAtOnce) {
  start_tls();
  std::vector<std::jthread> threads;
  std::atomic<int> answered = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      auto c = client();
      for (int i = 0; i < 200; ++i) {
        const std::string body(static_cast<std::size_t>((t * 997 + i * 131) % 20'000 + 1), 'a');
        const auto response = c.request("POST", "/echo", {}, body);
        if (response && response->body == body) ++answered;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(answered, 8 * 200);
}

}  // namespace
}  // namespace jogak::net
