// SPDX-License-Identifier: Apache-2.0
//
// Requests to a server in the same process, without sockets: what it answers is kept, and a peer
// that reads slowly or hangs up can be played.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/server/server.h"
#include "base/doc.h"
#include "net/http.h"

namespace jogak::playground::testing {

class Answer : public net::ResponseWriter {
 public:
  void respond(int code, net::Headers head, std::string text) override;
  void begin(int code, net::Headers head) override;
  void write(std::string_view bytes) override;
  void write_shared(std::shared_ptr<const std::string> bytes) override { write(*bytes); }
  void end() override;
  bool is_open() const override { return !is_over_; }
  std::size_t pending() const override { return is_slow ? body.size() : 0; }
  void on_close(std::function<void()> callback) override { on_close_ = std::move(callback); }
  void on_drain(std::function<void()> callback) override { on_drain_ = std::move(callback); }
  void abort() override;

  // The peer hangs up.
  void hang_up();
  // The peer has taken what was written.
  void drain();
  bool is_over() const { return is_over_; }

  std::string_view header(std::string_view name) const { return net::header(headers, name); }
  Doc json() const;  // of the whole body; a null Doc when it is not JSON
  // Of a watch: "ADDED a", "DELETED b", "BOOKMARK", "ERROR 410", in order.
  std::vector<std::string> events() const;
  std::vector<Doc> event_docs() const;

  int status = 0;
  net::Headers headers;
  std::string body;
  int writes = 0;
  bool was_aborted = false;
  bool is_slow = false;  // takes nothing: all that was written is pending

 private:
  void close();

  bool is_over_ = false;
  std::function<void()> on_close_, on_drain_;
};

using AnswerPtr = std::shared_ptr<Answer>;

// Hangs up when it goes, as a program's end closes its connections: a watch lives until then.
class Client {
 public:
  Client(api::Server& server, std::string token) : server_(server), token_(std::move(token)) {}
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  AnswerPtr send(std::string_view method, std::string_view target, std::string body = "",
                 net::Headers headers = {});
  AnswerPtr get(std::string_view target) { return send("GET", target); }
  AnswerPtr get_as(std::string_view target, std::string_view accept) {
    return send("GET", target, "", {{"Accept", std::string(accept)}});
  }
  AnswerPtr post(std::string_view target, const Doc& object) {
    return send("POST", target, object.json(), {{"Content-Type", "application/json"}});
  }
  // The next answers are never taken by the peer.
  bool is_slow = false;

 private:
  api::Server& server_;
  std::string token_;
  std::vector<std::weak_ptr<Answer>> answers_;  // those that may be open still
};

}  // namespace jogak::playground::testing
