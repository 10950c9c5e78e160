// SPDX-License-Identifier: Apache-2.0
//
// What the HTTP server costs: requests a second of a handler that does nothing over 8 keep-alive
// connections, plain and TLS; a large answer; and how late an event reaches 20 watchers. Client and
// server share the machine. Prints one table.
//
//   build/bench/bench/http_bench
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "base/check.h"
#include "base/mono_clock.h"
#include "net/http_server.h"

namespace jogak::bench {
namespace {

using net::HttpRequest;
using net::ResponseWriter;

constexpr int kConnections = 8, kWatchers = 20, kEvents = 2000;
constexpr std::size_t kBodyBytes = 3500, kLargeBytes = std::size_t{150} << 20;
constexpr std::int64_t kRunNs = 3'000'000'000;

// A blocking connection that knows how long its answers are.
class Client {
 public:
  Client(std::uint16_t port, bool is_tls) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    JOGAK_CHECK(::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!is_tls) return;
    static SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
    ssl_ = SSL_new(context);
    SSL_set_fd(ssl_, fd_);
    JOGAK_CHECK(SSL_connect(ssl_) == 1);
  }
  ~Client() {
    SSL_free(ssl_);
    ::close(fd_);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(std::string_view bytes) {
    const auto sent = ssl_ != nullptr
                          ? SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()))
                          : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    JOGAK_CHECK(sent == static_cast<ssize_t>(bytes.size()));
  }
  std::string_view receive() {
    const auto got = ssl_ != nullptr
                         ? SSL_read(ssl_, buffer_.data(), static_cast<int>(buffer_.size()))
                         : ::recv(fd_, buffer_.data(), buffer_.size(), 0);
    JOGAK_CHECK(got > 0);
    return {buffer_.data(), static_cast<std::size_t>(got)};
  }
  // The answer's head, and its body by Content-Length.
  void exchange(std::string_view request) {
    send(request);
    std::string head;
    std::size_t end = std::string::npos;
    while (end == std::string::npos) {
      head += receive();
      end = head.find("\r\n\r\n");
    }
    const std::size_t at = head.find("Content-Length: ") + 16;
    const std::size_t size = std::stoul(head.substr(at, 12));
    for (std::size_t got = head.size() - end - 4; got < size;) got += receive().size();
  }

 private:
  int fd_ = -1;
  SSL* ssl_ = nullptr;
  std::array<char, 64 * 1024> buffer_;
};

class Bench {
 public:
  explicit Bench(bool is_tls) : is_tls_(is_tls) {
    net::HttpServerOptions options;
    if (is_tls) {
      auto identity = net::make_self_signed({"127.0.0.1"});
      JOGAK_CHECK(identity.has_value());
      options.tls = net::TlsContext::make(*identity).value();
    }
    auto made = net::HttpServer::listen(
        loop_, std::move(options),
        [this](HttpRequest request, auto writer) { handle(request, std::move(writer)); });
    JOGAK_CHECK(made.has_value(), "{}", made.error().what);
    server_ = std::move(*made);
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~Bench() {
    on_loop([this] {
      watchers_.clear();
      server_.reset();
    });
    loop_.stop();
    thread_.join();
  }

  void run() {
    print("GET, answer of 3.5 kB, 8 connections", requests("GET /small"), "requests/s");
    print("  CPU of the server per request", server_us_per_request_, "us");
    print("POST of 3.5 kB, 8 connections",
          requests(fmt::format("POST /small"), std::string(kBodyBytes, 'b')), "requests/s");
    large();
    watches();
  }

 private:
  void print(std::string_view what, double value, std::string_view unit) const {
    fmt::print("{:<6}{:<44}{:>12.1f} {}\n", is_tls_ ? "TLS" : "plain", what, value, unit);
  }
  template <class F>
  void on_loop(F function) {
    std::promise<void> done;
    loop_.post([&] {
      function();
      done.set_value();
    });
    done.get_future().wait();
  }

  void handle(const HttpRequest& request, std::shared_ptr<ResponseWriter> writer) {
    if (request.target == "/watch") {
      writer->begin(200, {});
      watchers_.push_back(std::move(writer));
    } else if (request.target == "/large") {
      writer->respond(200, {}, std::string(kLargeBytes, 'l'));
    } else {
      writer->respond(200, {{"Content-Type", "application/json"}}, body_);
    }
  }

  std::int64_t server_cpu_ns() {
    std::int64_t used = 0;
    on_loop([&] {
      timespec time{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      used = time.tv_sec * 1'000'000'000 + time.tv_nsec;
    });
    return used;
  }

  double requests(const std::string& line, const std::string& body = "") {
    const std::string request = fmt::format(
        "{} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {}\r\n\r\n{}", line, body.size(), body);
    std::atomic<std::int64_t> count = 0;
    const std::int64_t cpu = server_cpu_ns(), start = mono_now_ns();
    std::vector<std::thread> threads;
    for (int i = 0; i < kConnections; ++i) {
      threads.emplace_back([&] {
        Client client(server_->port(), is_tls_);
        while (mono_now_ns() - start < kRunNs) {
          client.exchange(request);
          ++count;
        }
      });
    }
    for (std::thread& each : threads) each.join();
    const double seconds = static_cast<double>(mono_now_ns() - start) / 1e9;
    const auto total = static_cast<double>(count.load());
    server_us_per_request_ = static_cast<double>(server_cpu_ns() - cpu) / total / 1000;
    return total / seconds;
  }

  void large() {
    Client client(server_->port(), is_tls_);
    const std::int64_t start = mono_now_ns();
    client.exchange("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    const double seconds = static_cast<double>(mono_now_ns() - start) / 1e9;
    print("one answer of 150 MiB", static_cast<double>(kLargeBytes >> 20) / seconds, "MiB/s");
  }

  // Each event carries the time it was written; a watcher notes how late it reads it.
  void watches() {
    std::vector<std::vector<std::int64_t>> delays(kWatchers);
    std::vector<std::thread> threads;
    for (auto& own : delays) {
      threads.emplace_back([&] {
        Client client(server_->port(), is_tls_);
        client.send("GET /watch HTTP/1.1\r\nHost: x\r\n\r\n");
        std::string input;
        while (own.size() < kEvents) {
          input += client.receive();
          for (std::size_t at; (at = input.find("@")) != std::string::npos;) {
            const std::size_t end = input.find('\n', at);
            if (end == std::string::npos) break;
            own.push_back(mono_now_ns() - std::stoll(input.substr(at + 1, 20)));
            input.erase(0, end + 1);
          }
        }
      });
    }
    while (true) {
      std::size_t ready = 0;
      on_loop([&] { ready = watchers_.size(); });
      if (ready == kWatchers) break;
      std::this_thread::yield();
    }
    tell(kEvents);
    for (std::thread& each : threads) each.join();
    std::vector<std::int64_t> all;
    for (const auto& own : delays) all.insert(all.end(), own.begin(), own.end());
    std::sort(all.begin(), all.end());
    const auto at = [&](double part) {
      const auto index = static_cast<std::size_t>(part * static_cast<double>(all.size() - 1));
      return static_cast<double>(all[index]) / 1000;
    };
    print("event to 20 watchers, 1,000 a second: median", at(0.5), "us");
    print("  99 of 100", at(0.99), "us");
    on_loop([this] { watchers_.clear(); });
  }

  void tell(int left) {
    std::promise<void> done;
    std::function<void()> next = [&] {
      std::string text = fmt::format("@{:020}", mono_now_ns());
      text.resize(kBodyBytes, 'e');
      text += '\n';
      const auto shared = std::make_shared<const std::string>(std::move(text));
      for (const auto& watcher : watchers_) watcher->write_shared(shared);
      if (--left == 0) return done.set_value();
      loop_.after(kMsInUs, next);
    };
    loop_.post(next);
    done.get_future().wait();
  }

  bool is_tls_;
  net::EpollLoop loop_;
  std::unique_ptr<net::HttpServer> server_;
  std::vector<std::shared_ptr<ResponseWriter>> watchers_;
  const std::string body_ = std::string(kBodyBytes, 'a');
  double server_us_per_request_ = 0;
  std::thread thread_;
};

}  // namespace
}  // namespace jogak::bench

int main() {
  for (const bool is_tls : {false, true}) jogak::bench::Bench(is_tls).run();
  return 0;
}
