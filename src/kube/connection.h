// SPDX-License-Identifier: Apache-2.0
//
// The way to one API server: an HttpClient that knows who we are. It adds what proves it to every
// request, waits while that is being fetched, takes note of a 401, and goes on with a new client
// when the certificate is another one.
//
//   auto connection = connect(loop, access, {.user_agent = ...});   // nothing is sent yet
//   ApiClient api(**connection);
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "kube/credentials.h"
#include "kube/kubeconfig.h"
#include "net/epoll_loop.h"
#include "net/http_client.h"

namespace jogak::kube {

struct ConnectionOptions {
  std::string user_agent = "jogak";
  std::size_t connections_max = 128;
  TimeUs connect_limit = 15 * kSecondInUs;
  // Of credential programs: "NAME=value"; empty: that of this process.
  std::vector<std::string> environment = {};
  bool has_terminal = false;  // on standard input, for programs that ask the user
  TimeUs program_limit = 60 * kSecondInUs;
};

class Connection : public net::HttpClient {
 public:
  ~Connection() override;

  Loop& loop() override;
  // As http_client.h says. A time limit counts the wait for a credential; that it could not be had
  // is Unavailable. Exchanges under way keep the client they began with.
  std::shared_ptr<void> send(net::ClientRequest request, net::ClientEvents events) override;

  const Access& access() const;
  // "10.0.0.1:6443": as messages name it.
  const std::string& server() const;
  // Why the last answer was a 401, in one line with a cure; "" when it was not.
  std::string refusal() const;

 private:
  friend Result<std::unique_ptr<Connection>> connect(net::EpollLoop& loop, Access access,
                                                     ConnectionOptions options);
  struct Impl;
  struct Exchange;
  explicit Connection(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// Invalid, naming field and file: what of the access cannot be used (a certificate that is none).
// The loop outlives the connection.
Result<std::unique_ptr<Connection>> connect(net::EpollLoop& loop, Access access,
                                            ConnectionOptions options = {});

}  // namespace jogak::kube
