// SPDX-License-Identifier: Apache-2.0
//
// For tests: an EpollLoop on a thread of its own, as a server has it, while the test blocks on
// sockets.
#pragma once

#include <functional>
#include <future>
#include <thread>

#include "net/epoll_loop.h"

namespace jogak::net {

class LoopThread {
 public:
  LoopThread() : thread_([this] { loop_.run(); }) {}
  ~LoopThread() {
    loop_.stop();
    thread_.join();
  }

  EpollLoop& loop() { return loop_; }

  // Runs this on the loop and waits for its result.
  template <class F>
  auto call(F function) {
    std::packaged_task<std::invoke_result_t<F>()> task(std::move(function));
    auto result = task.get_future();
    loop_.post([&task] { task(); });
    return result.get();
  }

 private:
  EpollLoop loop_;
  std::thread thread_;
};

}  // namespace jogak::net
