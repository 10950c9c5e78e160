// SPDX-License-Identifier: Apache-2.0
//
// `jogak up`: the playground behind a socket, until it is told to stop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/doc.h"
#include "base/result.h"
#include "net/epoll_loop.h"
#include "net/http_server.h"
#include "playground/access.h"
#include "playground/playground.h"

namespace jogak::playground {

struct UpOptions {
  PlaygroundOptions playground;
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any that is free
  bool has_tls = true;     // kubectl sends its token over https only
  std::string kubeconfig = "jogak.kubeconfig";
  std::string token;         // "" for a random one
  std::vector<Doc> objects;  // created at the start
};

class Up {
 public:
  // Starts everything; the server answers once the loop turns.
  static Result<std::unique_ptr<Up>> start(net::EpollLoop& loop, UpOptions options);
  ~Up();

  const Access& access() const { return access_; }
  Playground& playground() { return *playground_; }
  std::size_t loaded() const { return loaded_; }
  // Answers what is under way, then calls `done`.
  void stop(std::function<void()> done);

 private:
  Up() = default;

  Access access_;
  std::size_t loaded_ = 0;
  std::unique_ptr<Playground> playground_;
  std::unique_ptr<net::HttpServer> http_;
};

}  // namespace jogak::playground
