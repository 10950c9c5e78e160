// SPDX-License-Identifier: Apache-2.0
//
// One HTTP/1.1 connection without its socket: bytes come in, requests go to the handler one at a
// time, answers come out in order. The owner moves bytes between this and the peer and asks for the
// deadline. Everything happens on the loop's thread.
//
//   receive() -> RequestParser -> handler -> ResponseWriter -> output() -> the owner -> sent()
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/loop.h"
#include "net/http.h"
#include "net/output_queue.h"
#include "net/request_parser.h"

namespace jogak::net {

struct HttpLimits {
  std::size_t head_bytes = 64 * 1024;  // of a request; at most 80 KiB
  std::size_t body_bytes = 3 * 1024 * 1024;
  // Writes to a peer that has not taken this many bytes yet drop it. A respond() is always taken.
  std::size_t pending_bytes = 64 * 1024 * 1024;
  TimeUs head_time =
      30 * kSecondInUs;  // from its first byte (or the connection's start) to its end
  TimeUs body_time = 60 * kSecondInUs;
  TimeUs idle_time = 180 * kSecondInUs;  // between requests
  TimeUs write_time = 60 * kSecondInUs;  // without the peer taking a byte that waits for it
};

struct HttpAnswer {
  int status = 200;
  Headers headers;
  std::string body;
};
// The answer to what never becomes a request: 400, 408, 413, 417, 431, 503, 505.
using HttpErrorAnswer = std::function<HttpAnswer(int status, const std::string& why)>;
// "why" as text/plain.
HttpAnswer plain_error_answer(int status, const std::string& why);

class HttpConnection {
 public:
  static constexpr TimeUs kNever = std::numeric_limits<TimeUs>::max();

  // Outlives its connections. `wake` is called whenever the owner has something to do: bytes to
  // write, input to ask for again, a connection to close.
  struct Context {
    Loop& loop;
    HttpLimits limits;
    HttpHandler handler;
    HttpErrorAnswer error_answer = plain_error_answer;
  };
  HttpConnection(const Context& context, std::function<void()> wake);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  void receive(std::string_view bytes);
  // The peer will send nothing more.
  void receive_end();
  // Whether more input is welcome: not while enough of it waits for its turn.
  bool wants_input() const;
  // Goes on with input that waits, once the answer before it has left or is leaving.
  void resume();

  const OutputQueue& output() const { return output_; }
  // The peer took that many bytes of the output.
  void sent(std::size_t bytes);

  // Close when the output is empty / at once.
  bool is_closing() const { return is_closing_; }
  bool is_dead() const { return is_dead_; }
  bool is_input_over() const { return is_input_over_; }
  // The peer is gone: nothing more can be written.
  void lose();
  // No request after the one under way.
  void finish();
  // Nothing under way and nothing to write.
  bool is_idle() const;
  // Answers with this error, and closes.
  void refuse(int status, const std::string& why);

  // When expire() is due; kNever while the handler works and the peer reads.
  TimeUs deadline() const;
  void expire();

 private:
  class Response;

  void process(std::string_view bytes);
  void dispatch();
  std::string head(int status, const Headers& headers) const;
  void start_output();
  void wake();
  void on_finished();
  void start_closing();
  void close_after_last();

  const Context& context_;
  std::function<void()> wake_;
  RequestParser parser_;
  std::string input_;  // behind the request under way
  OutputQueue output_;
  std::shared_ptr<Response> active_;
  // Answers whose last bytes have not left yet, with the count of output up to their end.
  std::deque<std::pair<std::uint64_t, std::shared_ptr<Response>>> leaving_;
  TimeUs phase_start_ = 0;  // of the head, the body or the idle time
  TimeUs progress_ = 0;     // when the peer last took something
  bool is_first_ = true;    // no request has come yet
  bool is_processing_ = false;
  bool keeps_alive_ = true;  // as the request under way says
  bool is_http_1_0_ = false;
  bool has_continued_ = false;
  bool is_finishing_ = false;
  bool is_input_over_ = false;
  bool is_closing_ = false;
  bool is_dead_ = false;
};

}  // namespace jogak::net
