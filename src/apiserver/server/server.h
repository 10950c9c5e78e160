// SPDX-License-Identifier: Apache-2.0
//
// The embedded API server put together: store, kinds, admission, handlers. Give it a loop (real or
// virtual) and it answers requests (handler()) and calls from the same process (api()).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "apiserver/kinds/kinds.h"
#include "apiserver/ops/ops.h"
#include "apiserver/registry/api.h"
#include "apiserver/rest/handler.h"
#include "apiserver/store/store.h"
#include "base/loop.h"
#include "base/result.h"
#include "net/http.h"

namespace jogak::api {

struct ServerOptions {
  KindOptions kinds;
  store::StoreOptions store;
  Tokens tokens;                   // none: nobody gets in over HTTP
  NodeProxy node_proxy;            // null: no node listens anywhere
  bool allows_privileged = false;  // containers, as kubeadm's clusters do
  std::uint64_t seed = 1;          // of uids, generated names and allocated ports
  // A folder that keeps the objects across restarts; "" for memory alone.
  std::string data_dir;
};

class Server {
 public:
  // Opens the data folder, or starts with the objects that every cluster has. An error says what is
  // wrong with the folder; nothing in it is changed then.
  static Result<std::unique_ptr<Server>> make(Loop& loop, ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer);
  // A client in this process whose writes carry that field manager.
  std::unique_ptr<Api> api(std::string manager);

  Ops& ops();
  store::Store& store();
  Registry& registry();
  // Makes what was written durable; call before answers leave (the loop's end of turn). Once it
  // fails, writes are refused and the reason is shown to clients.
  Result<void> flush();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace jogak::api
