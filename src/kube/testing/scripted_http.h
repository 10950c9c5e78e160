// SPDX-License-Identifier: Apache-2.0
//
// An HttpClient whose peer is the test: answers queued for a method and target, or a function that
// is given each request and answers it when it likes, in pieces, or never. Time limits hold, and
// events come over the loop, as from a socket. Under base/sim_loop.h a run repeats exactly.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "net/http_client.h"

namespace jogak::kube::testing {

struct Answer {
  int status = 200;
  std::string body = {};
  net::Headers headers = {};
  TimeUs delay = 0;               // before the head
  std::optional<Error> cut = {};  // after the body; status 0: no head at all
  std::size_t piece_bytes = 0;    // of the body; 0: all at once
  bool stays_open = false;        // the test feeds more
};

class ScriptedHttp : public net::HttpClient {
 public:
  explicit ScriptedHttp(Loop& loop) : loop_(loop) {}

  // One request, seen from the server. What is sent after the peer dropped it goes nowhere.
  class Exchange : public std::enable_shared_from_this<Exchange> {
   public:
    Exchange(Loop& loop, net::ClientRequest request, net::ClientEvents events);

    const net::ClientRequest& request() const { return request_; }
    TimeUs sent_at() const { return sent_at_; }
    // The client still listens.
    bool is_open() const { return is_open_; }

    // Each is told to the client over the loop, in the order of the calls.
    void head(int status, net::Headers headers = {});
    void body(std::string bytes);
    void end();
    void cut(Errc code, std::string what = "the connection broke");
    void answer(const Answer& answer);

   private:
    friend class ScriptedHttp;
    void start_limits();
    void post(std::function<void(Exchange&)> event);
    void watch_silence();
    void finish(Result<void> outcome);

    Loop& loop_;
    net::ClientRequest request_;
    net::ClientEvents events_;
    TimeUs sent_at_;
    TimeUs heard_at_;
    TimerId limit_timer_ = 0;
    TimerId silence_timer_ = 0;
    bool is_open_ = true;
  };
  using ExchangePtr = std::shared_ptr<Exchange>;

  // The next request of that method whose target starts so is answered so; several wait in line.
  // Before serve() is asked.
  void on(std::string method, std::string target_prefix, Answer answer);
  // Everything else. Without it, a request that no script awaits is never answered.
  void serve(std::function<void(const ExchangePtr&)> server) { server_ = std::move(server); }

  // All so far, in order, kept until forget(). "GET /api/v1/pods?limit=500".
  const std::vector<ExchangePtr>& exchanges() const { return exchanges_; }
  std::vector<std::string> lines() const;
  const ExchangePtr& last() const { return exchanges_.back(); }
  void forget() { exchanges_.clear(); }
  // Requests that the client has not ended or dropped.
  std::size_t open_count() const;

  Loop& loop() override { return loop_; }
  std::shared_ptr<void> send(net::ClientRequest request, net::ClientEvents events) override;

 private:
  struct Script {
    std::string method, prefix;
    Answer answer;
  };
  Loop& loop_;
  std::deque<Script> scripts_;
  std::function<void(const ExchangePtr&)> server_;
  std::vector<ExchangePtr> exchanges_;
};

}  // namespace jogak::kube::testing
