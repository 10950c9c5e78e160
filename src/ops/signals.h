// SPDX-License-Identifier: Apache-2.0
//
// Signals as events of the loop (signalfd), so that what they ask for is done between two turns and
// not in the middle of one.
#pragma once

#include <csignal>
#include <functional>
#include <map>

#include "net/epoll_loop.h"

namespace jogak::ops {

class Signals {
 public:
  // From now on these signals do nothing but call their handlers, on the loop. Before any thread is
  // started: others inherit that they are blocked.
  Signals(net::EpollLoop& loop, std::map<int, std::function<void()>> handlers);
  // They do again what they did before.
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  void take();

  net::EpollLoop& loop_;
  std::map<int, std::function<void()>> handlers_;
  sigset_t before_{};
  int fd_ = -1;
};

}  // namespace jogak::ops
