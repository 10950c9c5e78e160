// SPDX-License-Identifier: Apache-2.0
//
// An exchange waits for its credential, then is one of the client below; the caller's handle holds
// it, and it holds the client's.
#include "kube/connection.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/file.h"
#include "net/curl_client.h"
#include "net/curl_outcome.h"

namespace jogak::kube {
namespace {

constexpr std::int64_t kCaBytesMax = std::int64_t{16} << 20;

}  // namespace

struct Connection::Exchange {
  explicit Exchange(Loop& own_loop) : loop(own_loop) {}
  ~Exchange() { loop.cancel(timer); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  Loop& loop;
  net::ClientRequest request;
  net::ClientEvents events;
  TimeUs sent_at = 0;
  TimerId timer = 0;  // of the wait for a credential, or of an early end
  bool is_over = false;
  // The client lasts as long as its exchanges, whatever comes after it. The handle goes first.
  std::shared_ptr<net::CurlClient> client;
  std::shared_ptr<void> inner;
};

struct Connection::Impl : std::enable_shared_from_this<Impl> {
  Impl(net::EpollLoop& own_loop, Access own_access, ConnectionOptions own_options)
      : loop(own_loop), access(std::move(own_access)), options(std::move(own_options)) {}

  Result<void> make_client(const Credential& credential);
  Result<std::shared_ptr<net::CurlClient>> client_for(const Credential& credential);
  void go(const std::shared_ptr<Exchange>& exchange,
          Result<std::shared_ptr<const Credential>> credential);
  void end_soon(const std::shared_ptr<Exchange>& exchange, Error error);
  void arm_wait(const std::shared_ptr<Exchange>& exchange);
  void note_head(int status, const std::shared_ptr<const Credential>& credential);
  void note_end(Result<void>& outcome, const Credential& credential);

  net::EpollLoop& loop;
  Access access;
  ConnectionOptions options;
  std::unique_ptr<Credentials> credentials;
  net::Headers impersonation;

  std::shared_ptr<net::CurlClient> client;
  std::uint64_t client_certificate = 0;  // its number
  std::string ca_pem;                    // what the client trusts, of a file
  bool is_ca_stale = false;
  std::string server;
  std::shared_ptr<const Credential> refused;  // by the last answer
};

Result<void> Connection::Impl::make_client(const Credential& credential) {
  std::string ca = access.ca_pem;
  if (ca.empty() && !access.ca_file.empty()) {
    auto text = read_file(access.ca_file, kCaBytesMax);
    if (!text && ca_pem.empty()) {
      return in_context("certificate-authority", std::move(text).error());
    }
    ca = text ? *std::move(text) : ca_pem;
  }
  JOGAK_TRY(auto made, net::CurlClient::make(
                           loop, {.base_url = access.server,
                                  .ca_pem = ca,
                                  .client_certificate_pem = credential.client_certificate_pem,
                                  .client_key_pem = credential.client_key_pem,
                                  .tls_server_name = access.tls_server_name,
                                  .insecure_skip_verify = access.insecure_skip_verify,
                                  .proxy_url = access.proxy_url,
                                  .user_agent = options.user_agent,
                                  .compression = !access.disable_compression,
                                  .connections_max = options.connections_max,
                                  .connect_limit = options.connect_limit}));
  client = std::move(made);
  client_certificate = credential.certificate_number;
  ca_pem = std::move(ca);
  is_ca_stale = false;
  server = client->server();
  return {};
}

// A connection carries the certificate it was made with, so a new one needs a new client.
Result<std::shared_ptr<net::CurlClient>> Connection::Impl::client_for(
    const Credential& credential) {
  if (credential.certificate_number != client_certificate || is_ca_stale) {
    JOGAK_TRY_VOID(make_client(credential));
  }
  return client;
}

void Connection::Impl::end_soon(const std::shared_ptr<Exchange>& exchange, Error error) {
  exchange->is_over = true;
  loop.cancel(exchange->timer);
  exchange->timer = loop.after(0, [here = weak_from_this(), weak = std::weak_ptr(exchange),
                                   error = std::move(error)]() mutable {
    const auto own = weak.lock();
    if (own == nullptr) return;
    own->timer = 0;
    if (here.expired()) return;
    const auto on_end = std::move(own->events.on_end);
    if (on_end) on_end(std::unexpected(std::move(error)));
  });
}

void Connection::Impl::arm_wait(const std::shared_ptr<Exchange>& exchange) {
  const TimeUs limit = exchange->request.time_limit;
  if (limit <= 0) return;
  exchange->timer =
      loop.after(limit, [here = weak_from_this(), limit, weak = std::weak_ptr(exchange)] {
        const auto own = weak.lock();
        const auto impl = here.lock();
        if (own == nullptr || impl == nullptr) return;
        own->timer = 0;
        impl->end_soon(
            own, {.code = Errc::Unavailable,
                  .what = fmt::format("no credential for {} within {}: the program {} is still "
                                      "running",
                                      impl->server, net::duration_text(limit),
                                      impl->access.exec ? impl->access.exec->command : "")});
      });
}

void Connection::Impl::note_head(int status, const std::shared_ptr<const Credential>& credential) {
  if (status == 401) {
    refused = credential;
    credentials->refused(*credential);
  } else {
    refused.reset();
    credentials->accepted(*credential);
  }
}

// A refused certificate: ours may have ended, or theirs may be signed by a new authority whose file
// is here already.
void Connection::Impl::note_end(Result<void>& outcome, const Credential& credential) {
  if (outcome || outcome.error().code != Errc::Invalid) return;
  if (!access.ca_file.empty() && access.ca_pem.empty()) {
    const auto text = read_file(access.ca_file, kCaBytesMax);
    if (text && *text != ca_pem) is_ca_stale = true;
  }
  if (outcome.error().what.find("client certificate") != std::string::npos &&
      !credential.client_certificate_pem.empty()) {
    credentials->refused(credential);
    outcome.error().what += fmt::format(
        " ({})", credentials->describe({.number = credential.number,
                                        .authorization = "",
                                        .certificate_number = 0,
                                        .client_certificate_pem = credential.client_certificate_pem,
                                        .client_key_pem = ""}));
  }
}

// The credential is there, or will not come.
void Connection::Impl::go(const std::shared_ptr<Exchange>& exchange,
                          Result<std::shared_ptr<const Credential>> credential) {
  if (exchange->is_over) return;
  loop.cancel(std::exchange(exchange->timer, 0));
  if (!credential) return end_soon(exchange, std::move(credential).error());
  auto chosen = client_for(**credential);
  if (!chosen) return end_soon(exchange, std::move(chosen).error());
  exchange->client = *std::move(chosen);

  net::ClientRequest request = std::move(exchange->request);
  if (request.time_limit > 0) {
    const TimeUs waited = loop.now() - exchange->sent_at;
    request.time_limit = std::max<TimeUs>(request.time_limit - waited, 1);
  }
  if (access.is_https()) {
    const auto& authorization = (*credential)->authorization;
    if (!authorization.empty()) request.headers.emplace_back("Authorization", authorization);
    request.headers.insert(request.headers.end(), impersonation.begin(), impersonation.end());
  }

  net::ClientEvents events = std::move(exchange->events);
  // An event may drop the handle; and where the connection is gone, there are no events.
  const auto wrap = [weak = weak_from_this(), own = std::weak_ptr(exchange)](auto note, auto next) {
    return [weak, own, note = std::move(note), next = std::move(next)](auto&&... args) {
      const auto alive = own.lock();
      const auto impl = weak.lock();
      if (alive == nullptr || impl == nullptr) return;
      note(*impl, args...);
      if (next) next(std::forward<decltype(args)>(args)...);
    };
  };
  events.on_head =
      wrap([sent_with = *credential](Impl& impl, int status,
                                     const net::Headers&) { impl.note_head(status, sent_with); },
           std::move(events.on_head));
  events.on_body = wrap([](Impl&, std::string_view) {}, std::move(events.on_body));
  events.on_end =
      wrap([sent_with = *credential](Impl& impl,
                                     Result<void>& outcome) { impl.note_end(outcome, *sent_with); },
           std::move(events.on_end));
  exchange->inner = exchange->client->send(std::move(request), std::move(events));
}

Result<std::unique_ptr<Connection>> connect(net::EpollLoop& loop, Access access,
                                            ConnectionOptions options) {
  if (options.environment.empty()) options.environment = process_environment();
  auto impl = std::make_shared<Connection::Impl>(loop, std::move(access), std::move(options));
  const auto failed = [&impl](Error error) { return in_context(impl->access.source, error); };
  auto credentials = Credentials::make(loop, impl->access,
                                       {.run = program_runner(loop),
                                        .environment = impl->options.environment,
                                        .has_terminal = impl->options.has_terminal,
                                        .program_limit = impl->options.program_limit});
  if (!credentials) return failed(std::move(credentials).error());
  impl->credentials = *std::move(credentials);
  impl->impersonation = impersonation_headers(impl->access);
  // Refuses now what could never work. Its certificate may come later, from a program.
  if (Result<void> made = impl->make_client(Credential{}); !made) {
    return failed(std::move(made).error());
  }
  return std::unique_ptr<Connection>(new Connection(std::move(impl)));
}

Connection::Connection(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
// Exchanges whose handles are still held end with the client, without an event.
Connection::~Connection() = default;

Loop& Connection::loop() { return impl_->loop; }

std::shared_ptr<void> Connection::send(net::ClientRequest request, net::ClientEvents events) {
  const std::shared_ptr<Impl> impl = impl_;
  auto exchange = std::make_shared<Exchange>(impl->loop);
  exchange->request = std::move(request);
  exchange->events = std::move(events);
  exchange->sent_at = impl->loop.now();
  impl->arm_wait(exchange);
  impl->credentials->get([weak = std::weak_ptr(impl), own = std::weak_ptr(exchange)](
                             Result<std::shared_ptr<const Credential>> credential) {
    const auto here = weak.lock();
    const auto waiting = own.lock();
    if (here != nullptr && waiting != nullptr) here->go(waiting, std::move(credential));
  });
  return exchange;
}

const Access& Connection::access() const { return impl_->access; }
const std::string& Connection::server() const { return impl_->server; }

std::string Connection::refusal() const {
  if (impl_->refused == nullptr) return "";
  return fmt::format("{} does not accept the {}; log in anew, or check the kubeconfig's user",
                     impl_->server, impl_->credentials->describe(*impl_->refused));
}

}  // namespace jogak::kube
