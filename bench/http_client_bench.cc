// SPDX-License-Identifier: Apache-2.0
//
// What the HTTP client costs: small POSTs a second and its CPU per request, 1 and 64 at once, plain
// and TLS, against our own server on a thread of its own. A dozen idle watches are open besides.
// Prints one table.
//
//   build/bench/bench/http_client_bench
#include <time.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "base/check.h"
#include "base/mono_clock.h"
#include "net/curl_client.h"
#include "net/http_server.h"

namespace jogak::bench {
namespace {

constexpr int kWatches = 12;
constexpr std::int64_t kRunNs = 3'000'000'000;
// A binding and the answer to it.
constexpr std::size_t kBodyBytes = 300, kAnswerBytes = 120;

std::int64_t thread_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// The server, on its thread.
class Server {
 public:
  explicit Server(bool is_tls) {
    net::HttpServerOptions options;
    if (is_tls) {
      identity_ = net::make_self_signed({"127.0.0.1"}).value();
      options.tls = net::TlsContext::make(identity_).value();
    }
    server_ = net::HttpServer::listen(loop_, std::move(options),
                                      [this](const net::HttpRequest& request, auto writer) {
                                        if (request.target == "/watch") {
                                          writer->begin(200, {});
                                          watches_.push_back(std::move(writer));
                                        } else {
                                          writer->respond(201, {}, std::string(kAnswerBytes, 'a'));
                                        }
                                      })
                  .value();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~Server() {
    std::promise<void> done;
    loop_.post([&] {
      watches_.clear();
      server_.reset();
      done.set_value();
    });
    done.get_future().wait();
    loop_.stop();
    thread_.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  net::CurlOptions options() const {
    return {.base_url = server_->url(), .ca_pem = identity_.certificate_pem};
  }

 private:
  net::EpollLoop loop_;
  net::TlsIdentity identity_;
  std::unique_ptr<net::HttpServer> server_;
  std::vector<std::shared_ptr<net::ResponseWriter>> watches_;
  std::thread thread_;
};

// Keeps `at_once` POSTs under way for a while.
class Posts {
 public:
  Posts(net::EpollLoop& loop, net::HttpClient& client, std::size_t at_once)
      : loop_(loop), client_(client), handles_(at_once) {}

  void run(std::string_view name) {
    const std::int64_t cpu = thread_cpu_ns(), start = mono_now_ns();
    end_ = start + kRunNs;
    for (std::size_t i = 0; i < handles_.size(); ++i) post(i);
    while (under_way_ > 0) loop_.turn(kSecondInUs);
    const double seconds = static_cast<double>(mono_now_ns() - start) / 1e9;
    const auto count = static_cast<double>(count_);
    fmt::print("{:<36}{:>10.0f} requests/s{:>8.1f} us of the client's CPU each\n", name,
               count / seconds, static_cast<double>(thread_cpu_ns() - cpu) / count / 1000);
  }

 private:
  void post(std::size_t i) {
    ++under_way_;
    net::ClientRequest request{.method = "POST",
                               .target = "/api/v1/namespaces/default/pods/some-pod-12345/binding",
                               .headers = {{"Content-Type", "application/json"},
                                           {"Accept", "application/json"},
                                           {"Authorization", "Bearer " + std::string(900, 't')}},
                               .body = std::string(kBodyBytes, 'b'),
                               .time_limit = 30 * kSecondInUs};
    handles_[i] = client_.send(
        std::move(request), {.on_body = [this](std::string_view bytes) { bytes_ += bytes.size(); },
                             .on_end =
                                 [this, i](Result<void> outcome) {
                                   JOGAK_CHECK(outcome.has_value(), "{}", outcome.error().what);
                                   --under_way_;
                                   ++count_;
                                   if (mono_now_ns() < end_) post(i);
                                 }});
  }

  net::EpollLoop& loop_;
  net::HttpClient& client_;
  std::vector<std::shared_ptr<void>> handles_;
  std::int64_t end_ = 0;
  std::size_t under_way_ = 0, count_ = 0, bytes_ = 0;
};

void measure(bool is_tls) {
  const Server server(is_tls);
  net::EpollLoop loop;
  const auto client = net::CurlClient::make(loop, server.options()).value();
  int open = 0;
  std::vector<std::shared_ptr<void>> watches;
  for (int i = 0; i < kWatches; ++i) {
    watches.push_back(client->send({.method = "GET", .target = "/watch"},
                                   {.on_head = [&open](int, const net::Headers&) { ++open; }}));
  }
  while (open < kWatches) loop.turn(kSecondInUs);
  for (const std::size_t at_once : {1, 64}) {
    Posts(loop, *client, at_once)
        .run(fmt::format("{} POST, {} at once", is_tls ? "TLS" : "plain", at_once));
  }
}

}  // namespace
}  // namespace jogak::bench

int main() {
  for (const bool is_tls : {false, true}) jogak::bench::measure(is_tls);
  return 0;
}
