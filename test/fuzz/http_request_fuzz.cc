// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what a client sends: no crash, as many answers as requests and at most one refusal
// behind them, and the same requests and answers whatever pieces the bytes came in.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "base/sim_loop.h"
#include "net/http_connection.h"

namespace {

using jogak::SimLoop;
using jogak::net::HttpConnection;
using jogak::net::HttpRequest;
using jogak::net::ResponseWriter;

struct Heard {
  std::vector<std::string> requests;
  std::string output;
  std::size_t refusals = 0;
  std::size_t closed = 0;  // answers whose on_close came
};

std::string text_of(const HttpRequest& request) {
  std::string text = request.method + " " + request.target + "\n";
  for (const auto& [name, value] : request.headers) text += name + ":" + value + "\n";
  return text + "\n" + request.body;
}

// Answers in one of three ways, as the length of the target says: whole, in pieces, or later.
void answer(SimLoop& loop, const HttpRequest& request,
            const std::shared_ptr<ResponseWriter>& writer) {
  switch (request.target.size() % 3) {
    case 0:
      writer->respond(200, {{"X", request.method}}, request.body);
      break;
    case 1:
      writer->begin(200, {});
      writer->write(request.target);
      writer->end();
      break;
    default:
      loop.post([writer] { writer->respond(404, {}, "later"); });
  }
}

void take_output(HttpConnection& connection, std::string& output) {
  while (!connection.output().empty()) {
    std::array<std::string_view, 2> pieces;
    JOGAK_CHECK(connection.output().peek(pieces) > 0);
    const std::size_t size = pieces[0].size();
    output += pieces[0];
    connection.sent(size);
  }
}

// Whether the client is told to go on depends on how much of the body came along with the head.
std::string without_continue(std::string text) {
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  for (std::size_t at; (at = text.find(kContinue)) != std::string::npos;) {
    text.erase(at, kContinue.size());
  }
  return text;
}

Heard converse(std::string_view bytes, jogak::Rng* pieces) {
  Heard heard;
  SimLoop loop;
  HttpConnection::Context context{loop, {.head_bytes = 512, .body_bytes = 256}, {}};
  context.handler = [&](HttpRequest request, std::shared_ptr<ResponseWriter> writer) {
    JOGAK_CHECK(request.body.size() <= 256);
    heard.requests.push_back(text_of(request));
    writer->on_close([&heard] { ++heard.closed; });
    answer(loop, request, writer);
  };
  context.error_answer = [&](int status, const std::string& why) {
    JOGAK_CHECK(status >= 400 && !why.empty());
    ++heard.refusals;
    return jogak::net::plain_error_answer(status, why);
  };
  HttpConnection connection(context, [] {});
  const auto settle = [&] {
    for (std::size_t before = SIZE_MAX; before != heard.requests.size();) {
      before = heard.requests.size();
      loop.run_ready();
      take_output(connection, heard.output);
      connection.resume();
    }
  };
  while (!bytes.empty()) {
    const std::size_t size = pieces == nullptr
                                 ? bytes.size()
                                 : std::min<std::size_t>(1 + pieces->below(9), bytes.size());
    connection.receive(bytes.substr(0, size));
    bytes.remove_prefix(size);
    if (pieces == nullptr || pieces->chance(1, 2)) settle();
  }
  settle();
  connection.receive_end();
  settle();
  return heard;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Heard whole = converse(bytes, nullptr);
  JOGAK_CHECK(whole.refusals <= 1);
  JOGAK_CHECK(whole.closed == whole.requests.size());
  JOGAK_CHECK(whole.output.empty() || whole.output.starts_with("HTTP/1.1 "));

  jogak::Rng pieces(size, "pieces");
  const Heard pieced = converse(bytes, &pieces);
  JOGAK_CHECK(pieced.requests == whole.requests);
  JOGAK_CHECK(without_continue(pieced.output) == without_continue(whole.output));
  JOGAK_CHECK(pieced.refusals == whole.refusals);
  return 0;
}
