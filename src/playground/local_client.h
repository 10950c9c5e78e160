// SPDX-License-Identifier: Apache-2.0
//
// An HTTP client of an API server in the same process, on any loop: no socket, the same order of
// events as over one. Whoever works through net/http_client.h runs here under virtual time.
#pragma once

#include <memory>
#include <string>

#include "apiserver/server/server.h"
#include "base/loop.h"
#include "net/http_client.h"

namespace jogak::playground {

class LocalClient : public net::HttpClient {
 public:
  // `server` runs on `loop`; both outlive the client and its exchanges. `token` stands for the user
  // (ServerOptions::tokens); "" sends none.
  LocalClient(Loop& loop, api::Server& server, std::string token = "");
  ~LocalClient() override;

  Loop& loop() override { return loop_; }
  // The request reaches the server in a task of its own. A handle dropped before that: the server
  // never hears of it; dropped later: its writer is closed.
  std::shared_ptr<void> send(net::ClientRequest request, net::ClientEvents events) override;

 private:
  Loop& loop_;
  api::Server& server_;
  std::string token_;
};

}  // namespace jogak::playground
