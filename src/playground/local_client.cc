// SPDX-License-Identifier: Apache-2.0
//
// What the server writes is queued and given to the client in a task of the loop: a watch writes
// inside the store, where the client must not act.
#include "playground/local_client.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

namespace jogak::playground {

namespace {

class Exchange : public net::ResponseWriter, public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(Loop& loop, net::ClientEvents events, TimeUs time_limit, TimeUs silence_limit)
      : loop_(loop),
        events_(std::move(events)),
        silence_limit_(silence_limit),
        last_sign_(loop.now()) {
    if (time_limit > 0) end_at_ = loop.now() + time_limit;
    watch_clock();
  }

  // ResponseWriter: the side of the server.
  void respond(int status, net::Headers headers, std::string body) override;
  void begin(int status, net::Headers headers) override;
  void write(std::string_view bytes) override;
  void write_shared(std::shared_ptr<const std::string> bytes) override { write(*bytes); }
  void end() override;
  bool is_open() const override { return !is_closed_; }
  std::size_t pending() const override { return pending_; }
  void on_close(std::function<void()> callback) override { on_close_ = std::move(callback); }
  void on_drain(std::function<void()> callback) override { on_drain_ = std::move(callback); }
  void abort() override;

  bool is_dropped() const { return is_dropped_; }
  // The client is no longer interested.
  void drop();

 private:
  struct Piece {
    int status = 0;  // not 0: the head
    net::Headers headers;
    std::string bytes;
    std::optional<Result<void>> outcome;
  };

  void queue(Piece piece);
  void deliver();
  void watch_clock();
  void on_clock();
  void fail_now(std::string what);
  void close();

  Loop& loop_;
  net::ClientEvents events_;
  TimeUs silence_limit_;
  TimeUs last_sign_;
  TimeUs end_at_ = 0;
  TimerId timer_ = 0;
  std::deque<Piece> pieces_;
  std::size_t pending_ = 0;
  bool is_delivering_ = false;  // a task that delivers is posted or runs
  bool has_ended_ = false;      // the server wrote its last
  bool is_closed_ = false;      // the server is told that nobody listens
  bool is_dropped_ = false;     // no more events
  std::function<void()> on_close_, on_drain_;
};

void Exchange::queue(Piece piece) {
  if (is_dropped_) return;
  pending_ += piece.bytes.size();
  pieces_.push_back(std::move(piece));
  if (std::exchange(is_delivering_, true)) return;
  loop_.post([self = shared_from_this()] { self->deliver(); });
}

void Exchange::deliver() {
  while (!pieces_.empty() && !is_dropped_) {
    const Piece piece = std::move(pieces_.front());
    pieces_.pop_front();
    last_sign_ = loop_.now();
    pending_ -= piece.bytes.size();
    if (piece.outcome.has_value()) {
      const auto on_end = std::move(events_.on_end);
      drop();
      if (on_end) on_end(*piece.outcome);
    } else if (piece.status != 0) {
      if (events_.on_head) events_.on_head(piece.status, piece.headers);
    } else if (events_.on_body) {
      events_.on_body(piece.bytes);
    }
  }
  is_delivering_ = false;
  if (is_dropped_) events_ = {};
  const auto drained = on_drain_;  // it may end the answer
  if (pending_ == 0 && !is_closed_ && drained) drained();
}

void Exchange::respond(int status, net::Headers headers, std::string body) {
  begin(status, std::move(headers));
  if (!body.empty()) queue({.status = 0, .headers = {}, .bytes = std::move(body), .outcome = {}});
  end();
}

void Exchange::begin(int status, net::Headers headers) {
  if (has_ended_) return;
  queue({.status = status, .headers = std::move(headers), .bytes = {}, .outcome = {}});
}

void Exchange::write(std::string_view bytes) {
  if (has_ended_ || bytes.empty()) return;
  queue({.status = 0, .headers = {}, .bytes = std::string(bytes), .outcome = {}});
}

void Exchange::end() {
  if (std::exchange(has_ended_, true)) return;
  queue({.status = 0, .headers = {}, .bytes = {}, .outcome = Result<void>()});
}

void Exchange::abort() {
  if (!std::exchange(has_ended_, true)) {
    queue({.status = 0,
           .headers = {},
           .bytes = {},
           .outcome = fail(Errc::Timeout, "the server dropped the connection")});
  }
  close();
}

void Exchange::watch_clock() {
  TimeUs when = end_at_;
  if (silence_limit_ > 0) {
    const TimeUs silent = last_sign_ + silence_limit_;
    when = when == 0 ? silent : std::min(when, silent);
  }
  if (when == 0) return;
  // `this` is safe: drop() cancels the timer before the exchange can go
  timer_ = loop_.at(when, [this] { on_clock(); });
}

void Exchange::on_clock() {
  timer_ = 0;
  const TimeUs now = loop_.now();
  if (end_at_ != 0 && now >= end_at_) return fail_now("no answer within the time limit");
  if (silence_limit_ > 0 && now >= last_sign_ + silence_limit_) {
    return fail_now("the server has gone silent");
  }
  watch_clock();
}

void Exchange::fail_now(std::string what) {
  const auto self = shared_from_this();
  const auto on_end = std::move(events_.on_end);
  drop();
  if (on_end) on_end(std::unexpected(Error{.code = Errc::Timeout, .what = std::move(what)}));
}

void Exchange::close() {
  if (std::exchange(is_closed_, true)) return;
  on_drain_ = nullptr;
  const auto callback = std::exchange(on_close_, nullptr);
  if (callback) callback();
}

void Exchange::drop() {
  if (std::exchange(is_dropped_, true)) return;
  const auto self = shared_from_this();  // callbacks may hold the last owner
  loop_.cancel(timer_);
  timer_ = 0;
  pieces_.clear();
  pending_ = 0;
  if (!is_delivering_) events_ = {};  // else one of them may be running
  close();
}

// What the client holds; the exchange itself also lives in the server's writer.
struct Handle {
  explicit Handle(std::shared_ptr<Exchange> of) : exchange(std::move(of)) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { exchange->drop(); }

  std::shared_ptr<Exchange> exchange;
};

}  // namespace

LocalClient::LocalClient(Loop& loop, api::Server& server, std::string token)
    : loop_(loop), server_(server), token_(std::move(token)) {}

LocalClient::~LocalClient() = default;

std::shared_ptr<void> LocalClient::send(net::ClientRequest request, net::ClientEvents events) {
  auto exchange = std::make_shared<Exchange>(loop_, std::move(events), request.time_limit,
                                             request.silence_limit);
  auto http = std::make_shared<net::HttpRequest>();
  http->method = std::move(request.method);
  http->target = std::move(request.target);
  http->headers = std::move(request.headers);
  http->body = std::move(request.body);
  if (!token_.empty()) http->headers.emplace_back("Authorization", "Bearer " + token_);
  loop_.post([&server = server_, http, exchange] {
    if (!exchange->is_dropped()) server.handle(std::move(*http), exchange);
  });
  return std::make_shared<Handle>(std::move(exchange));
}

}  // namespace jogak::playground
