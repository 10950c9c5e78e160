// SPDX-License-Identifier: Apache-2.0
//
// An HttpClient for one server over sockets: libcurl's multi interface on an EpollLoop. Connections
// are kept and used again, over HTTP/1.1 one request at a time on each. Everything happens on the
// loop's thread; only names are looked up on threads of libcurl's own.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/loop.h"
#include "base/result.h"
#include "net/epoll_loop.h"
#include "net/http_client.h"

namespace jogak::net {

struct CurlOptions {
  // "https://10.0.0.1:6443/prefix": http or https, a host, a port where it is not the scheme's, and
  // what stands in front of every target.
  std::string base_url;

  // Certificates to trust, as PEM; empty: those of the system.
  std::string ca_pem = {};
  std::string ca_file = {};  // read once by make(), where ca_pem is empty
  // Both or neither. The key has no passphrase.
  std::string client_certificate_pem = {};
  std::string client_key_pem = {};
  // The name the server's certificate must be for (and that is sent as SNI); empty: the host.
  std::string tls_server_name = {};
  // Nobody checks who the server is. Not together with a CA.
  bool insecure_skip_verify = false;

  // "http://", "https://" or "socks5://" (names are then looked up by the proxy), for every
  // request. Empty: what HTTPS_PROXY, http_proxy and NO_PROXY in the environment say, which never
  // holds for this machine itself (localhost, 127.0.0.0/8, ::1). NO_PROXY is compared with
  // tls_server_name where there is one.
  std::string proxy_url = {};

  std::string user_agent = "jogak";
  bool compression = true;  // answers may come gzipped; they are handed on unpacked
  // Asks for HTTP/2 where TLS can agree on it: many requests share a connection. A peer that died
  // is then noticed by a request's limits alone, as libcurl sends no pings here.
  bool http2 = false;
  std::size_t connections_max = 128;        // at once; further requests wait for their turn
  TimeUs connect_limit = 15 * kSecondInUs;  // to a connection ready for the request, TLS included
};

class CurlClient : public HttpClient {
 public:
  // Invalid, naming the field: a URL that is none, PEM that cannot be read, a key that does not
  // belong to the certificate. Connects to nobody yet. The loop outlives the client.
  static Result<std::unique_ptr<CurlClient>> make(EpollLoop& loop, CurlOptions options);
  // Cancels what is under way. May happen inside an event.
  ~CurlClient() override;

  Loop& loop() override;
  std::shared_ptr<void> send(ClientRequest request, ClientEvents events) override;

  struct Counts {
    std::size_t active = 0;   // exchanges that have (or wait for) a connection of their own
    std::size_t waiting = 0;  // for their turn
  };
  Counts counts() const;
  // "127.0.0.1:6443": as messages name the server.
  const std::string& server() const;

 private:
  struct Impl;
  struct Transfer;
  struct Slot;
  class Handle;
  explicit CurlClient(std::shared_ptr<Impl> impl);
  // Shared with the frames on the stack, so that an event may drop the client.
  std::shared_ptr<Impl> impl_;
};

}  // namespace jogak::net
