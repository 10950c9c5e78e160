// SPDX-License-Identifier: Apache-2.0
//
// Requests are read one at a time: what comes behind one waits until its answer is whole, which
// keeps answers in order whatever the handlers do. http_connection.h has the picture.
#include "net/http_connection.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/core.h>

#include "base/check.h"
#include "net/http_text.h"

namespace jogak::net {
namespace {

// Input that may wait behind the request under way.
constexpr std::size_t kWaitingInputMax = 64 * 1024;
// Output beyond which the next pipelined request waits.
constexpr std::size_t kPipelineOutputMax = 256 * 1024;

bool has_body(int status) { return status >= 200 && status != 204 && status != 304; }

// These say how the bytes are framed, which is decided here.
bool is_framing(std::string_view name) {
  return is_same_name(name, "content-length") || is_same_name(name, "transfer-encoding") ||
         is_same_name(name, "connection") || is_same_name(name, "keep-alive");
}

std::string chunk_head(std::size_t size) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), size, 16).ptr;
  return std::string(digits.data(), end) + "\r\n";
}

}  // namespace

HttpAnswer plain_error_answer(int status, const std::string& why) {
  return {status, {{"Content-Type", "text/plain; charset=utf-8"}}, why + "\n"};
}

// The writer of one answer. Detached (connection_ null) once the peer is gone or the last byte
// left.
class HttpConnection::Response : public ResponseWriter {
 public:
  Response(HttpConnection* connection, bool is_head, bool is_chunked)
      : connection_(connection), is_head_(is_head), is_chunked_(is_chunked) {}

  void respond(int status, Headers headers, std::string body) override {
    if (!may_write() || has_begun_) return;
    has_begun_ = true;
    take_close(headers);
    std::string text = connection_->head(status, headers);
    if (has_body(status)) {
      text += fmt::format("Content-Length: {}\r\n", body.size());
    }
    text += "\r\n";
    connection_->start_output();
    connection_->output_.add(std::string_view(text));
    if (has_body(status) && !is_head_) connection_->output_.add(std::move(body));
    finish();
  }

  void begin(int status, Headers headers) override {
    if (!may_write() || has_begun_) return;
    has_begun_ = true;
    has_content_ = has_body(status) && !is_head_;
    take_close(headers);
    if (!is_chunked_) connection_->keeps_alive_ = false;  // the end of the connection ends it
    std::string text = connection_->head(status, headers);
    if (has_body(status) && is_chunked_) text += "Transfer-Encoding: chunked\r\n";
    text += "\r\n";
    connection_->start_output();
    connection_->output_.add(std::string_view(text));
    connection_->wake();
  }

  void write(std::string_view bytes) override {
    if (!begin_piece(bytes.size())) return;
    connection_->output_.add(bytes);
    end_piece();
  }

  void write_shared(std::shared_ptr<const std::string> bytes) override {
    if (!begin_piece(bytes->size())) return;
    connection_->output_.add(std::move(bytes));
    end_piece();
  }

  void end() override {
    if (!may_write() || !has_begun_) return;
    connection_->start_output();
    if (has_content_ && is_chunked_) connection_->output_.add(std::string_view("0\r\n\r\n"));
    finish();
  }

  bool is_open() const override { return connection_ != nullptr && !is_finished_; }
  std::size_t pending() const override {
    return connection_ == nullptr ? 0 : connection_->output_.size();
  }
  void on_close(std::function<void()> callback) override {
    if (connection_ != nullptr) on_close_ = std::move(callback);
  }
  void on_drain(std::function<void()> callback) override {
    if (is_open()) on_drain_ = std::move(callback);
  }
  void abort() override {
    if (connection_ != nullptr) connection_->lose();
  }

  bool has_begun() const { return has_begun_; }
  void drained() {
    if (!on_drain_) return;
    const auto callback = on_drain_;  // it may set another one
    callback();
  }
  // Nothing happens any more. The callbacks go, and with them what they hold: often this writer.
  void close() {
    connection_ = nullptr;
    on_drain_ = nullptr;
    if (const auto callback = std::exchange(on_close_, nullptr)) callback();
  }

 private:
  bool may_write() const { return connection_ != nullptr && !is_finished_; }

  void take_close(const Headers& headers) {
    if (has_token(header(headers, "connection"), "close")) connection_->keeps_alive_ = false;
  }

  // False when there is nothing to add to the output.
  bool begin_piece(std::size_t size) {
    if (!may_write() || !has_begun_ || !has_content_ || size == 0) return false;
    if (connection_->output_.size() > connection_->context_.limits.pending_bytes) {
      connection_->lose();  // too slow a reader
      return false;
    }
    connection_->start_output();
    if (is_chunked_) connection_->output_.add(std::string_view(chunk_head(size)));
    return true;
  }
  void end_piece() {
    if (is_chunked_) connection_->output_.add(std::string_view("\r\n"));
    connection_->wake();
  }
  void finish() {
    is_finished_ = true;
    on_drain_ = nullptr;
    connection_->on_finished();
  }

  HttpConnection* connection_;
  bool is_head_ = false;     // the request was HEAD: an answer without its body
  bool is_chunked_ = false;  // pieces are framed: HTTP/1.1
  bool has_begun_ = false;
  bool has_content_ = false;
  bool is_finished_ = false;
  std::function<void()> on_close_, on_drain_;
};

HttpConnection::HttpConnection(const Context& context, std::function<void()> wake)
    : context_(context),
      wake_(std::move(wake)),
      parser_({context.limits.head_bytes, context.limits.body_bytes}),
      phase_start_(context.loop.now()),
      progress_(phase_start_) {}

HttpConnection::~HttpConnection() { lose(); }

void HttpConnection::wake() { wake_(); }

std::string HttpConnection::head(int status, const Headers& headers) const {
  std::string text;
  text.reserve(256);
  text += fmt::format("HTTP/1.1 {} {}\r\n", status, reason_phrase(status));
  for (const auto& [name, value] : headers) {
    if (is_framing(name)) continue;
    text.append(name).append(": ");
    // A line break in a value would end the header.
    for (const char c : value) text += c == '\r' || c == '\n' ? ' ' : c;
    text += "\r\n";
  }
  text.append("Date: ").append(http_date(context_.loop.now())).append("\r\n");
  if (!keeps_alive_ || is_finishing_) {
    text += "Connection: close\r\n";
  } else if (is_http_1_0_) {
    text += "Connection: keep-alive\r\n";
  }
  return text;
}

// The time a slow reader has counts from the first byte that waits.
void HttpConnection::start_output() {
  if (output_.empty()) progress_ = context_.loop.now();
}

void HttpConnection::receive(std::string_view bytes) {
  if (is_closing_ || is_dead_ || bytes.empty()) return;
  if (active_ != nullptr || is_processing_ || !input_.empty() ||
      output_.size() > kPipelineOutputMax) {
    input_ += bytes;
    return;
  }
  process(bytes);
}

void HttpConnection::resume() {
  if (is_processing_ || input_.empty() || active_ != nullptr || is_closing_ || is_dead_) return;
  if (output_.size() > kPipelineOutputMax) return;
  const std::string waiting = std::exchange(input_, {});
  process(waiting);
}

void HttpConnection::process(std::string_view bytes) {
  is_processing_ = true;
  while (!bytes.empty() && active_ == nullptr && !is_closing_ && !is_dead_ &&
         output_.size() <= kPipelineOutputMax) {
    const RequestParser::State before = parser_.state();
    bytes.remove_prefix(parser_.feed(bytes));
    const RequestParser::State after = parser_.state();
    if (after != before) phase_start_ = context_.loop.now();
    if (after == RequestParser::State::Done) {
      dispatch();
    } else if (after == RequestParser::State::Failed) {
      keeps_alive_ = false;
      refuse(parser_.error_status(), parser_.error());
    } else if (parser_.wants_continue() && !std::exchange(has_continued_, true)) {
      start_output();
      output_.add(std::string_view("HTTP/1.1 100 Continue\r\n\r\n"));
      wake();
    }
  }
  is_processing_ = false;
  // What came in meanwhile is behind these.
  if (!is_closing_ && !is_dead_) input_.insert(0, bytes);
  close_after_last();
}

void HttpConnection::dispatch() {
  is_first_ = false;
  has_continued_ = false;
  keeps_alive_ = parser_.keeps_alive();
  is_http_1_0_ = parser_.is_http_1_0();
  HttpRequest request = parser_.take();
  active_ = std::make_shared<Response>(this, request.method == "HEAD", !is_http_1_0_);
  const std::shared_ptr<Response> response = active_;
  context_.handler(std::move(request), response);
}

// The answer under way is whole. Called inside respond() and end().
void HttpConnection::on_finished() {
  leaving_.emplace_back(output_.added(), std::exchange(active_, nullptr));
  phase_start_ = context_.loop.now();
  if (!keeps_alive_ || is_finishing_) start_closing();
  if (!is_processing_) close_after_last();
  wake();
}

void HttpConnection::start_closing() {
  is_closing_ = true;
  input_ = {};
}

// Once the peer sends nothing more, the answer to its last request is the last thing said.
void HttpConnection::close_after_last() {
  if (is_input_over_ && active_ == nullptr && input_.empty()) start_closing();
}

void HttpConnection::sent(std::size_t bytes) {
  output_.consume(bytes);
  progress_ = context_.loop.now();
  while (!leaving_.empty() && leaving_.front().first <= output_.consumed()) {
    const std::shared_ptr<Response> response = std::move(leaving_.front().second);
    leaving_.pop_front();
    response->close();
  }
  if (output_.empty() && active_ != nullptr) {
    const std::shared_ptr<Response> response = active_;
    response->drained();
  }
}

void HttpConnection::receive_end() {
  if (is_dead_ || is_input_over_) return;
  is_input_over_ = true;
  // A stream nobody can end any more is over. A short answer may still be wanted by a client that
  // has shut down its half.
  const bool is_stream = active_ != nullptr && active_->has_begun();
  const bool is_pointless = active_ == nullptr && leaving_.empty() && input_.empty();
  if (is_stream || is_pointless) return lose();
  close_after_last();
  wake();
}

bool HttpConnection::wants_input() const {
  return !is_dead_ && !is_input_over_ && (is_closing_ || input_.size() < kWaitingInputMax);
}

void HttpConnection::lose() {
  if (std::exchange(is_dead_, true)) return;
  start_closing();
  output_.clear();
  auto leaving = std::exchange(leaving_, {});
  const std::shared_ptr<Response> active = std::exchange(active_, nullptr);
  for (const auto& [end, response] : leaving) response->close();
  if (active != nullptr) active->close();
  wake();
}

bool HttpConnection::is_idle() const {
  return active_ == nullptr && leaving_.empty() && output_.empty() && input_.empty() &&
         parser_.state() == RequestParser::State::Idle;
}

void HttpConnection::finish() {
  is_finishing_ = true;
  if (active_ == nullptr && parser_.state() == RequestParser::State::Idle && input_.empty()) {
    start_closing();
  }
  wake();
}

void HttpConnection::refuse(int status, const std::string& why) {
  if (is_closing_ || is_dead_ || active_ != nullptr) return;
  keeps_alive_ = false;
  HttpAnswer answer = context_.error_answer(status, why);
  active_ = std::make_shared<Response>(this, false, true);
  const std::shared_ptr<Response> response = active_;
  response->respond(answer.status, std::move(answer.headers), std::move(answer.body));
}

TimeUs HttpConnection::deadline() const {
  const HttpLimits& limits = context_.limits;
  if (!output_.empty()) return progress_ + limits.write_time;
  if (active_ != nullptr) return kNever;
  switch (parser_.state()) {
    case RequestParser::State::Head:
      return phase_start_ + limits.head_time;
    case RequestParser::State::Body:
      return phase_start_ + limits.body_time;
    default:
      return phase_start_ + (is_first_ ? limits.head_time : limits.idle_time);
  }
}

void HttpConnection::expire() {
  const bool is_asking = parser_.state() == RequestParser::State::Head ||
                         parser_.state() == RequestParser::State::Body;
  if (is_asking && output_.empty() && !is_closing_) {
    refuse(408, "the request took too long to arrive");
  } else {
    lose();
  }
}

}  // namespace jogak::net
