// SPDX-License-Identifier: Apache-2.0
//
// The handle that a client holds closes its exchange when it is dropped; every event looks first
// whether the exchange is still open.
#include "kube/testing/scripted_http.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace jogak::kube::testing {

ScriptedHttp::Exchange::Exchange(Loop& loop, net::ClientRequest request, net::ClientEvents events)
    : loop_(loop),
      request_(std::move(request)),
      events_(std::move(events)),
      sent_at_(loop.now()),
      heard_at_(loop.now()) {}

void ScriptedHttp::Exchange::post(std::function<void(Exchange&)> event) {
  loop_.post([self = shared_from_this(), event = std::move(event)] {
    if (!self->is_open_) return;
    self->heard_at_ = self->loop_.now();
    event(*self);
  });
}

void ScriptedHttp::Exchange::start_limits() {
  if (request_.time_limit > 0) {
    limit_timer_ = loop_.after(request_.time_limit, [self = shared_from_this()] {
      self->finish(fail(Errc::Timeout, "no whole answer within the time limit"));
    });
  }
  if (request_.silence_limit > 0) watch_silence();
}

void ScriptedHttp::Exchange::watch_silence() {
  silence_timer_ = loop_.at(heard_at_ + request_.silence_limit, [self = shared_from_this()] {
    if (self->loop_.now() - self->heard_at_ < self->request_.silence_limit) {
      return self->watch_silence();
    }
    self->finish(fail(Errc::Timeout, "the peer is silent"));
  });
}

void ScriptedHttp::Exchange::finish(Result<void> outcome) {
  if (!std::exchange(is_open_, false)) return;
  loop_.cancel(limit_timer_);
  loop_.cancel(silence_timer_);
  const auto on_end = std::move(events_.on_end);
  if (on_end) on_end(std::move(outcome));
}

void ScriptedHttp::Exchange::head(int status, net::Headers headers) {
  post([status, headers = std::move(headers)](Exchange& self) {
    // A copy: the event may drop the exchange.
    const auto on_head = self.events_.on_head;
    if (on_head) on_head(status, headers);
  });
}

void ScriptedHttp::Exchange::body(std::string bytes) {
  post([bytes = std::move(bytes)](Exchange& self) {
    const auto on_body = self.events_.on_body;
    if (on_body) on_body(bytes);
  });
}

void ScriptedHttp::Exchange::end() {
  post([](Exchange& self) { self.finish({}); });
}

void ScriptedHttp::Exchange::cut(Errc code, std::string what) {
  post([code, what = std::move(what)](Exchange& self) {
    self.finish(std::unexpected(Error{.code = code, .what = what}));
  });
}

void ScriptedHttp::Exchange::answer(const Answer& answer) {
  if (answer.delay > 0) {
    Answer later = answer;
    later.delay = 0;
    loop_.after(answer.delay, [self = shared_from_this(), later] { self->answer(later); });
    return;
  }
  if (answer.status != 0) head(answer.status, answer.headers);
  const std::string_view all = answer.body;
  const std::size_t step = answer.piece_bytes == 0 ? all.size() : answer.piece_bytes;
  for (std::size_t at = 0; at < all.size(); at += step) body(std::string(all.substr(at, step)));
  if (answer.cut) {
    cut(answer.cut->code, answer.cut->what);
  } else if (!answer.stays_open) {
    end();
  }
}

void ScriptedHttp::on(std::string method, std::string target_prefix, Answer answer) {
  scripts_.push_back({std::move(method), std::move(target_prefix), std::move(answer)});
}

std::vector<std::string> ScriptedHttp::lines() const {
  std::vector<std::string> result;
  for (const ExchangePtr& exchange : exchanges_) {
    result.push_back(exchange->request().method + " " + exchange->request().target);
  }
  return result;
}

std::size_t ScriptedHttp::open_count() const {
  return static_cast<std::size_t>(
      std::count_if(exchanges_.begin(), exchanges_.end(),
                    [](const ExchangePtr& exchange) { return exchange->is_open(); }));
}

std::shared_ptr<void> ScriptedHttp::send(net::ClientRequest request, net::ClientEvents events) {
  const auto exchange = std::make_shared<Exchange>(loop_, std::move(request), std::move(events));
  exchanges_.push_back(exchange);
  exchange->start_limits();
  const auto script =
      std::find_if(scripts_.begin(), scripts_.end(), [&exchange](const Script& candidate) {
        return candidate.method == exchange->request().method &&
               exchange->request().target.starts_with(candidate.prefix);
      });
  if (script != scripts_.end()) {
    const Answer answer = std::move(script->answer);
    scripts_.erase(script);
    exchange->answer(answer);
  } else if (server_) {
    // As over a socket, the server sees the request after the client went on.
    loop_.post([exchange, server = server_] { server(exchange); });
  }
  // The handle closes the exchange; the script or the test may keep the exchange longer.
  return {exchange.get(), [exchange](void*) {
            exchange->is_open_ = false;
            exchange->loop_.cancel(exchange->limit_timer_);
            exchange->loop_.cancel(exchange->silence_timer_);
            // What the events hold goes too, but not while one of them runs.
            exchange->loop_.post([exchange] { exchange->events_ = {}; });
          }};
}

}  // namespace jogak::kube::testing
