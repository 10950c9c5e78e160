// SPDX-License-Identifier: Apache-2.0
//
// TLS for a server (OpenSSL; versions 1.2 and 1.3, ALPN http/1.1), and certificates for loopback.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/stream.h"

namespace jogak::net {

struct TlsIdentity {
  std::string certificate_pem;  // the server's own first, then those that vouch for it
  std::string key_pem;
};

// A fresh key (P-256) and a certificate for these host names and addresses, signed by itself and
// good for a year, for either side of a connection: peers trust it by having it. It never leaves
// memory here.
Result<TlsIdentity> make_self_signed(const std::vector<std::string>& hosts);

class TlsContext {
 public:
  // `client_ca_pem` not empty: clients must show a certificate that one of these has signed.
  static Result<std::shared_ptr<TlsContext>> make(const TlsIdentity& identity,
                                                  const std::string& client_ca_pem = {},
                                                  bool only_tls13 = false);
  virtual ~TlsContext() = default;

  // The server's side of a connection on that socket, which it does not close.
  virtual std::unique_ptr<Stream> accept(int fd) = 0;
};

}  // namespace jogak::net
