// SPDX-License-Identifier: Apache-2.0
//
// Bytes are kept as they come; the lines of a watch are taken apart when a test asks.
#include "test/playground/http_probe.h"

#include <utility>

#include <fmt/core.h>

#include "apiserver/codec/codec.h"
#include "apiserver/object/meta.h"

namespace jogak::playground::testing {

void Answer::respond(int code, net::Headers head, std::string text) {
  begin(code, std::move(head));
  body = std::move(text);
  end();
}

void Answer::begin(int code, net::Headers head) {
  status = code;
  headers = std::move(head);
}

void Answer::write(std::string_view bytes) {
  if (is_over_) return;
  body += bytes;
  ++writes;
}

void Answer::end() { close(); }

void Answer::abort() {
  was_aborted = true;
  close();
}

void Answer::hang_up() { close(); }

void Answer::close() {
  if (std::exchange(is_over_, true)) return;
  on_drain_ = nullptr;
  const auto callback = std::exchange(on_close_, nullptr);
  if (callback) callback();
}

void Answer::drain() {
  const auto callback = on_drain_;  // it may end the answer
  if (callback) callback();
}

Doc Answer::json() const {
  auto parsed = codec::parse_json(body);
  return parsed.has_value() ? std::move(parsed->doc) : Doc();
}

std::vector<Doc> Answer::event_docs() const {
  std::vector<Doc> docs;
  for (std::string_view rest = body; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    auto parsed = codec::parse_json(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    docs.push_back(parsed.has_value() ? std::move(parsed->doc) : Doc("not JSON"));
  }
  return docs;
}

std::vector<std::string> Answer::events() const {
  std::vector<std::string> list;
  for (const Doc& event : event_docs()) {
    std::string text = event["type"].as_string();
    const Doc& object = event["object"];
    if (text == "ERROR") text += fmt::format(" {}", object["code"].as_int());
    if (const std::string& name = api::name_of(object); !name.empty()) text += " " + name;
    list.push_back(std::move(text));
  }
  return list;
}

Client::~Client() {
  for (const auto& weak : answers_) {
    if (const AnswerPtr answer = weak.lock()) answer->hang_up();
  }
}

AnswerPtr Client::send(std::string_view method, std::string_view target, std::string body,
                       net::Headers headers) {
  auto answer = std::make_shared<Answer>();
  answer->is_slow = is_slow;
  if (!token_.empty()) headers.emplace_back("Authorization", "Bearer " + token_);
  server_.handle({.method = std::string(method),
                  .target = std::string(target),
                  .headers = std::move(headers),
                  .body = std::move(body)},
                 answer);
  if (!answer->is_over()) answers_.push_back(answer);
  return answer;
}

}  // namespace jogak::playground::testing
