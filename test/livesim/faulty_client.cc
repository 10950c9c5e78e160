// SPDX-License-Identifier: Apache-2.0
//
// A request is a flight with two legs: to the server on the world's loop, and back to the client on
// its own. What is to go wrong is drawn when it leaves. A leg of a client that is gone goes on.
#include "test/livesim/faulty_client.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace jogak::livesim {

namespace {

constexpr TimeUs kWire = 500;                     // each way, without faults
constexpr TimeUs kLateMax = 30 * kSecondInUs;     // of requests without a time limit
constexpr TimeUs kKeepAlive = 900 * kSecondInUs;  // then the system ends a dead connection
constexpr TimeUs kSlowListMax = 20 * kSecondInUs;
constexpr TimeUs kWatchEventIn = 120 * kSecondInUs;  // when something befalls a watch
constexpr TimeUs kBatchMax = 20 * kSecondInUs;

bool is_watch(std::string_view target) {
  return target.find("watch=1") != std::string_view::npos ||
         target.find("watch=true") != std::string_view::npos;
}

// The place of a query parameter's value.
std::optional<std::pair<std::size_t, std::size_t>> find_value(std::string_view target,
                                                              std::string_view name) {
  for (std::size_t at = target.find('?'); at != std::string_view::npos;
       at = target.find('&', at + 1)) {
    const std::string_view rest = target.substr(at + 1);
    if (!rest.starts_with(name) || rest.substr(name.size(), 1) != "=") continue;
    const std::size_t from = at + 1 + name.size() + 1;
    return std::pair(from, std::min(target.find('&', from), target.size()) - from);
  }
  return std::nullopt;
}

std::string status_text(int code, std::string_view reason, std::string_view message,
                        std::optional<int> retry_after_s = std::nullopt) {
  return fmt::format(
      R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{}",)"
      R"("reason":"{}",{}"code":{}}})",
      message, reason,
      retry_after_s.has_value()
          ? fmt::format(R"("details":{{"retryAfterSeconds":{}}},)", *retry_after_s)
          : "",
      code);
}

enum class Fate : std::uint8_t {
  Pass,        // handled and answered
  Refused,     // no connection
  Lost,        // never handled, no answer
  AnswerLost,  // handled, no answer
  AnswerCut,   // handled, a part of the answer
  Replaced,    // not handled, another answer
  Masked,      // handled, another answer
};

struct Answer {
  int status = 0;
  std::string body;
  std::optional<int> retry_after_s;
};

struct Plan {
  Fate fate = Fate::Pass;
  TimeUs before = kWire, after = kWire;
  Answer answer;          // Replaced, Masked
  bool is_reset = false;  // Lost, AnswerLost: the client hears of a reset
  TimeUs reset_after = 0;
  std::size_t bytes_max = SIZE_MAX;  // AnswerCut, watches: then the connection breaks
  // watches
  bool closes_at_once = false;
  bool is_quiet = false;
  bool has_batches = false;
  TimeUs silent_from = 0;  // of the world; 0: never
  TimeUs gone_at = 0;
};

// What happens to one request, drawn in one go so that a run is a function of its seed.
class Drawing {
 public:
  Drawing(Network& network, net::ClientRequest& request) : net_(network), request_(request) {}

  Plan draw() {
    if (!net_.is_faulty) return plan_;
    const FaultRates& rates = net_.rates;
    draw_delays();
    if (rates.is_token_expired) return answered(Fate::Replaced, 401, "Unauthorized", false);
    if (chance(rates.refuse)) return with(Fate::Refused);
    if (chance(rates.lose)) return without_answer(Fate::Lost);
    if (chance(rates.lose_answer)) return without_answer(Fate::AnswerLost);
    if (chance(rates.throttle)) return answered(Fate::Replaced, 429, "TooManyRequests", true);
    if (chance(rates.unavailable)) return answered(Fate::Replaced, 503, "ServiceUnavailable", true);
    if (chance(rates.server_error)) return answered(handled_or_not(), 500, "ServerTimeout", true);
    if (chance(rates.gateway)) return answered(handled_or_not(), 504, "Timeout", true);
    if (is_watch(request_.target)) {
      draw_watch();
      return plan_;
    }
    if (chance(rates.cut_answer)) {
      plan_.fate = Fate::AnswerCut;
      plan_.bytes_max = net_.rng.below(400);
      return plan_;
    }
    if (request_.method == "GET") draw_list();
    return plan_;
  }

 private:
  bool chance(int thousandths) {
    return thousandths > 0 && net_.rng.chance(static_cast<std::uint64_t>(thousandths), 1000);
  }
  TimeUs up_to(TimeUs max) {
    return static_cast<TimeUs>(net_.rng.below(static_cast<std::uint64_t>(max) + 1));
  }

  void draw_delays() {
    if (!chance(net_.rates.delay)) return;
    const TimeUs limit = request_.time_limit > 0 ? request_.time_limit : kLateMax;
    const TimeUs before = up_to(net_.rates.delay_max);
    const TimeUs after = up_to(net_.rates.delay_max);
    plan_.before = kWire + std::min(before, limit - kMsInUs);
    plan_.after = kWire + after;
  }

  Plan with(Fate fate) {
    plan_.fate = fate;
    return plan_;
  }
  Fate handled_or_not() {
    return request_.method != "GET" && net_.rng.chance(1, 2) ? Fate::Masked : Fate::Replaced;
  }
  Plan without_answer(Fate fate) {
    plan_.fate = fate;
    plan_.is_reset = net_.rng.chance(1, 2);
    plan_.reset_after = up_to(10 * kSecondInUs);
    return plan_;
  }
  Plan answered(Fate fate, int code, std::string_view reason, bool may_retry) {
    plan_.fate = fate;
    plan_.answer.status = code;
    if (may_retry && net_.rng.chance(1, 2)) {
      plan_.answer.retry_after_s = static_cast<int>(net_.rng.between(1, 5));
    }
    plan_.answer.body =
        status_text(code, reason, "the simulated server says so", plan_.answer.retry_after_s);
    return plan_;
  }

  void draw_list() {
    const std::string_view target = request_.target;
    if (target.find("limit=") == std::string_view::npos) return;
    if (chance(net_.rates.slow_list)) plan_.after += up_to(kSlowListMax);
    if (find_value(target, "continue").has_value() && chance(net_.rates.expire_continue)) {
      plan_.fate = Fate::Replaced;
      plan_.answer = {.status = 410,
                      .body = status_text(410, "Expired",
                                          "The provided continue parameter is too old to display "
                                          "a consistent list result."),
                      .retry_after_s = {}};
    }
  }

  void draw_watch() {
    const FaultRates& rates = net_.rates;
    const TimeUs now = net_.world.now();
    if (!rates.has_watch_list && find_value(request_.target, "sendInitialEvents").has_value()) {
      plan_.fate = Fate::Replaced;
      plan_.answer = {.status = 422,
                      .body = status_text(422, "Invalid",
                                          "sendInitialEvents: Forbidden: sendInitialEvents is "
                                          "forbidden for watch unless the WatchList feature gate "
                                          "is enabled"),
                      .retry_after_s = {}};
      return;
    }
    const auto version = find_value(request_.target, "resourceVersion");
    std::uint64_t since = 0;
    if (version.has_value()) {
      const char* from = request_.target.data() + version->first;
      std::from_chars(from, from + version->second, since);
    }
    plan_.is_quiet = chance(rates.watch_quiet);
    plan_.has_batches = chance(rates.watch_batch);
    plan_.closes_at_once = chance(rates.watch_close);
    if (chance(rates.watch_cut)) plan_.bytes_max = net_.rng.below(20'000);
    if (chance(rates.watch_silent)) plan_.silent_from = now + up_to(kWatchEventIn);
    if (chance(rates.watch_gone_later)) plan_.gone_at = now + kSecondInUs + up_to(kWatchEventIn);
    if (since == 0) return;
    if (chance(rates.watch_gone)) {
      const std::string status = status_text(
          410, "Expired", fmt::format("too old resource version: {} ({})", since, since + 7));
      const bool is_event = net_.rng.chance(1, 2);
      plan_.fate = Fate::Replaced;
      plan_.answer = {
          .status = is_event ? 200 : 410,
          .body = is_event ? fmt::format("{{\"type\":\"ERROR\",\"object\":{}}}\n", status) : status,
          .retry_after_s = {}};
    } else if (chance(rates.watch_replay)) {
      const std::uint64_t back = 1 + net_.rng.below(6);
      if (since <= back + 1) return;
      request_.target.replace(version->first, version->second, std::to_string(since - back));
    }
  }

  Network& net_;
  net::ClientRequest& request_;
  Plan plan_;
};

class Flight : public std::enable_shared_from_this<Flight> {
 public:
  Flight(Network& network, ProcessLoop& loop, int process, net::ClientRequest request,
         net::ClientEvents events)
      : net_(network), loop_(loop), request_(std::move(request)), events_(std::move(events)) {
    call_.number = ++net_.calls;
    call_.process = process;
    call_.method = request_.method;
    call_.target = request_.target;
    call_.body = request_.body;
    call_.sent_at = net_.world.now();
    is_watch_ = is_watch(request_.target);
  }

  void start(bool leaves);
  void drop();

 private:
  struct Piece {
    int status = 0;
    net::Headers headers;
    std::string bytes;
    std::optional<Result<void>> outcome;
  };

  void go();
  void forward();
  void on_head(int status, const net::Headers& headers);
  void on_body(std::string_view bytes);
  void on_end(const Result<void>& outcome);
  void pass_bytes(std::string_view bytes);
  void pass_lines(std::string_view bytes);
  void answer_instead();
  void break_off();
  bool is_silent();
  void say_gone();
  TimeUs arrival();
  void bring(Piece piece);
  void give(const Piece& piece);
  void finish(const Result<void>& outcome);
  void watch_clock();
  void on_clock();
  void hear_nothing(TimeUs reset_at);

  Network& net_;
  ProcessLoop& loop_;  // until dropped
  net::ClientRequest request_;
  net::ClientEvents events_;
  Call call_;
  Plan plan_;
  bool is_watch_ = false;
  bool is_dropped_ = false;  // the client hears nothing any more
  bool is_giving_ = false;   // inside an event
  bool is_cut_ = false;      // nothing more leaves the server for this client
  std::shared_ptr<void> inner_;
  std::size_t passed_ = 0;             // bytes
  std::string line_;                   // of a watch whose lines are looked at
  TimeUs last_arrival_ = 0;            // of the world
  TimeUs held_until_ = 0;              // a batch
  TimeUs last_sign_ = 0, end_at_ = 0;  // of the client's clock
  TimerId timer_ = 0;
};

void Flight::start(bool leaves) {
  last_sign_ = loop_.now();
  if (request_.time_limit > 0) end_at_ = loop_.now() + request_.time_limit;
  watch_clock();
  if (!leaves) return;  // the process is dead
  plan_ = Drawing(net_, request_).draw();
  if (net_.observer != nullptr) net_.observer->on_sent(call_);
  net_.world.at(net_.world.now() + plan_.before, [self = shared_from_this()] { self->go(); });
}

void Flight::go() {
  if (is_dropped_ && request_.method == "GET") return;
  switch (plan_.fate) {
    case Fate::Refused:
      return bring({.status = 0,
                    .headers = {},
                    .bytes = {},
                    .outcome = fail(Errc::Unavailable, "connection refused")});
    case Fate::Lost:
      return hear_nothing(net_.world.now() + plan_.reset_after);
    case Fate::Replaced:
      return answer_instead();
    default:
      return forward();
  }
}

void Flight::forward() {
  call_.handled_at = net_.world.now();
  if (net_.observer != nullptr) net_.observer->on_handled(call_);
  net::ClientRequest copy = request_;
  copy.time_limit = copy.silence_limit = 0;
  const auto self = shared_from_this();
  inner_ = net_.inner.send(
      std::move(copy),
      {.on_head = [self](int status,
                         const net::Headers& headers) { self->on_head(status, headers); },
       .on_body = [self](std::string_view bytes) { self->on_body(bytes); },
       .on_end = [self](const Result<void>& outcome) { self->on_end(outcome); }});
  if (plan_.gone_at > 0) {
    net_.world.at(plan_.gone_at, [weak = weak_from_this()] {
      if (const auto flight = weak.lock()) flight->say_gone();
    });
  }
}

void Flight::on_head(int status, const net::Headers& headers) {
  call_.status = status;
  if (net_.observer != nullptr) net_.observer->on_answered(call_);
  if (plan_.fate == Fate::AnswerLost) return hear_nothing(net_.world.now() + plan_.reset_after);
  if (plan_.fate == Fate::Masked) return answer_instead();
  bring({.status = status, .headers = headers, .bytes = {}, .outcome = {}});
  if (plan_.closes_at_once && status == 200) {
    bring({.status = 0, .headers = {}, .bytes = {}, .outcome = Result<void>()});
    break_off();
  }
}

void Flight::on_body(std::string_view bytes) {
  if (is_cut_ || is_silent()) return;
  if (is_watch_ && plan_.is_quiet) return pass_lines(bytes);
  pass_bytes(bytes);
}

void Flight::pass_bytes(std::string_view bytes) {
  if (is_cut_ || plan_.fate == Fate::AnswerLost || plan_.fate == Fate::Masked) return;
  const bool is_end = net_.is_faulty && passed_ + bytes.size() > plan_.bytes_max;
  if (is_end) bytes = bytes.substr(0, plan_.bytes_max - std::min(passed_, plan_.bytes_max));
  passed_ += bytes.size();
  if (!bytes.empty()) {
    bring({.status = 0, .headers = {}, .bytes = std::string(bytes), .outcome = {}});
  }
  if (!is_end) return;
  bring({.status = 0,
         .headers = {},
         .bytes = {},
         .outcome = fail(Errc::Timeout, "the connection broke")});
  break_off();
}

// Leaves out bookmarks, but for the one that ends a streamed list.
void Flight::pass_lines(std::string_view bytes) {
  line_ += bytes;
  for (std::size_t end = line_.find('\n'); end != std::string::npos; end = line_.find('\n')) {
    const std::string whole = line_.substr(0, end + 1);
    line_.erase(0, end + 1);
    const bool is_bookmark = whole.starts_with(R"({"type":"BOOKMARK")");
    const bool ends_list = whole.find("k8s.io/initial-events-end") != std::string::npos;
    if (!is_bookmark || ends_list || !net_.is_faulty) pass_bytes(whole);
  }
}

void Flight::on_end(const Result<void>& outcome) {
  // An answer in pieces whose head was all that mattered ends here too.
  if (is_cut_ || is_silent() || plan_.fate == Fate::AnswerLost || plan_.fate == Fate::Masked)
    return;
  bring({.status = 0, .headers = {}, .bytes = {}, .outcome = outcome});
}

void Flight::answer_instead() {
  net::Headers headers = {{"Content-Type", "application/json"}};
  if (plan_.answer.retry_after_s.has_value()) {
    headers.emplace_back("Retry-After", std::to_string(*plan_.answer.retry_after_s));
  }
  bring({.status = plan_.answer.status, .headers = std::move(headers), .bytes = {}, .outcome = {}});
  bring({.status = 0, .headers = {}, .bytes = plan_.answer.body, .outcome = {}});
  bring({.status = 0, .headers = {}, .bytes = {}, .outcome = Result<void>()});
}

// The server loses its client.
void Flight::break_off() {
  is_cut_ = true;
  net_.world.post([inner = std::exchange(inner_, nullptr)] {});
}

bool Flight::is_silent() {
  if (is_cut_) return true;
  if (plan_.silent_from == 0 || net_.world.now() < plan_.silent_from) return false;
  if (!net_.is_faulty) {
    plan_.silent_from = 0;  // it never began
    return false;
  }
  break_off();
  hear_nothing(net_.world.now() + kKeepAlive);
  return true;
}

void Flight::say_gone() {
  if (is_cut_ || is_dropped_ || !net_.is_faulty || is_silent()) return;
  const std::string status =
      status_text(410, "Expired", "The resourceVersion for the provided watch is too old.");
  bring({.status = 0,
         .headers = {},
         .bytes = fmt::format("{{\"type\":\"ERROR\",\"object\":{}}}\n", status),
         .outcome = {}});
  bring({.status = 0, .headers = {}, .bytes = {}, .outcome = Result<void>()});
  break_off();
}

// When what leaves the server now is at the client.
TimeUs Flight::arrival() {
  const TimeUs now = net_.world.now();
  if (plan_.has_batches && net_.is_faulty && now >= held_until_ && net_.rng.chance(1, 4)) {
    held_until_ = now + static_cast<TimeUs>(net_.rng.below(kBatchMax));
  }
  const TimeUs way = net_.is_faulty ? plan_.after : kWire;
  last_arrival_ = std::max({now + way, held_until_, last_arrival_});
  return last_arrival_;
}

void Flight::bring(Piece piece) {
  if (is_dropped_) return;
  net_.world.at(arrival(), [self = shared_from_this(), piece = std::move(piece)] {
    if (self->is_dropped_) return;
    self->loop_.post([self, piece] { self->give(piece); });
  });
}

// No answer comes: a reset then, unless the client's own limits are over before.
void Flight::hear_nothing(TimeUs reset_at) {
  const bool waits = request_.time_limit > 0 || request_.silence_limit > 0;
  if (waits && !plan_.is_reset) return;
  net_.world.at(reset_at, [self = shared_from_this()] {
    if (self->is_dropped_) return;
    self->loop_.post([self] {
      self->give({.status = 0,
                  .headers = {},
                  .bytes = {},
                  .outcome = fail(Errc::Timeout, "connection reset")});
    });
  });
}

void Flight::give(const Piece& piece) {
  if (is_dropped_) return;
  last_sign_ = loop_.now();
  if (piece.outcome.has_value()) return finish(*piece.outcome);
  is_giving_ = true;
  if (piece.status != 0) {
    call_.told_status = piece.status;
    if (net_.observer != nullptr) net_.observer->on_told(call_);
    if (events_.on_head) events_.on_head(piece.status, piece.headers);
  } else if (events_.on_body) {
    events_.on_body(piece.bytes);
  }
  is_giving_ = false;
  if (is_dropped_) events_ = {};
}

void Flight::finish(const Result<void>& outcome) {
  const auto self = shared_from_this();
  const auto on_end = std::move(events_.on_end);
  drop();
  if (on_end) on_end(outcome);
}

void Flight::drop() {
  if (std::exchange(is_dropped_, true)) return;
  loop_.cancel(timer_);
  timer_ = 0;
  if (!is_giving_) events_ = {};
  if (net_.observer != nullptr) net_.observer->on_ended(call_);
  // A write that is at the server already is carried out; a stream ends.
  if (request_.method == "GET" && inner_ != nullptr) break_off();
}

void Flight::watch_clock() {
  TimeUs when = end_at_;
  if (request_.silence_limit > 0) {
    const TimeUs silent = last_sign_ + request_.silence_limit;
    when = when == 0 ? silent : std::min(when, silent);
  }
  if (when == 0) return;
  timer_ = loop_.at(when, [self = weak_from_this()] {
    if (const auto flight = self.lock()) flight->on_clock();
  });
}

void Flight::on_clock() {
  timer_ = 0;
  const TimeUs now = loop_.now();
  if (end_at_ != 0 && now >= end_at_) {
    return finish(fail(Errc::Timeout, "no answer within the time limit"));
  }
  if (request_.silence_limit > 0 && now >= last_sign_ + request_.silence_limit) {
    return finish(fail(Errc::Timeout, "the server has gone silent"));
  }
  watch_clock();
}

struct Handle {
  explicit Handle(std::shared_ptr<Flight> of) : flight(std::move(of)) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { flight->drop(); }

  std::shared_ptr<Flight> flight;
};

}  // namespace

std::shared_ptr<void> FaultyClient::send(net::ClientRequest request, net::ClientEvents events) {
  auto flight =
      std::make_shared<Flight>(network_, loop_, process_, std::move(request), std::move(events));
  flight->start(loop_.step());
  return std::make_shared<Handle>(std::move(flight));
}

}  // namespace jogak::livesim
