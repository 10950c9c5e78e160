// SPDX-License-Identifier: Apache-2.0
//
// The socket's own refusals (a body too large, a request that is none) are Statuses too, as from
// the real server.
#include "playground/up.h"

#include <utility>

#include "apiserver/object/api_error.h"
#include "net/tls.h"

namespace jogak::playground {

namespace {

constexpr TimeUs kStopGrace = kSecondInUs;
constexpr std::size_t kBodyMax = 3 * 1024 * 1024;  // as the real server takes

// What never becomes a request is refused as a Status too.
net::HttpAnswer status_answer(int status, const std::string& why) {
  api::ApiError error;
  error.code = status;
  error.message = why;
  switch (status) {
    case 413:
      error.reason = "RequestEntityTooLarge";
      error.message = "Request entity too large: limit is " + std::to_string(kBodyMax);
      break;
    case 408:
      error.reason = "Timeout";
      break;
    case 429:
    case 503:
      error.reason = "ServiceUnavailable";
      break;
    default:
      error.reason = status < 500 ? "BadRequest" : "InternalError";
  }
  std::string body;
  api::status_of(error).append_json(body);
  return {.status = status, .headers = {{"Content-Type", "application/json"}}, .body = body};
}

}  // namespace

Up::~Up() {
  http_.reset();  // no request may meet a server that is going
}

Result<std::unique_ptr<Up>> Up::start(net::EpollLoop& loop, UpOptions options) {
  auto up = std::unique_ptr<Up>(new Up());
  if (options.token.empty()) {
    JOGAK_TRY(up->access_.token, random_token());
  } else {
    up->access_.token = options.token;
  }
  options.playground.server.tokens[up->access_.token] = api::User{
      .name = "admin", .uid = "admin", .groups = {"system:masters", "system:authenticated"}};
  options.playground.server.allows_privileged = true;  // node agents are; most clusters let them
  net::HttpServerOptions http;
  http.address = options.address;
  http.port = options.port;
  http.limits.body_bytes = kBodyMax;
  http.error_answer = status_answer;
  if (options.has_tls) {
    JOGAK_TRY(const net::TlsIdentity identity,
              net::make_self_signed({options.address, "localhost", "kubernetes"}));
    JOGAK_TRY(http.tls, net::TlsContext::make(identity));
    up->access_.ca_pem = identity.certificate_pem;
    options.playground.controllers.root_ca = identity.certificate_pem;
  }
  JOGAK_TRY(up->playground_, Playground::make(loop, std::move(options.playground)));
  api::Server& server = up->playground_->server();
  http.before_write = [&server] { return server.flush().has_value(); };
  JOGAK_TRY(up->http_,
            net::HttpServer::listen(
                loop, std::move(http),
                [&server](net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) {
                  server.handle(std::move(request), std::move(writer));
                }));
  up->access_.url = up->http_->url();
  JOGAK_TRY(up->loaded_, up->playground_->load(std::move(options.objects)));
  JOGAK_TRY_VOID(server.flush());
  if (!options.kubeconfig.empty()) {
    JOGAK_TRY_VOID(write_kubeconfig(options.kubeconfig, up->access_));
  }
  return up;
}

void Up::stop(std::function<void()> done) { http_->close(kStopGrace, std::move(done)); }

}  // namespace jogak::playground
