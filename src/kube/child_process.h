// SPDX-License-Identifier: Apache-2.0
//
// Runs a program and collects what it writes, without ever blocking the loop: its pipes are watched
// like sockets.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "net/epoll_loop.h"

namespace jogak::kube {

struct ChildOptions {
  std::string command;  // with a slash: a path; else looked up in PATH
  std::vector<std::string> args = {};
  std::vector<std::string> environment = {};  // all of it, "NAME=value"
  // Keeps our standard input (a terminal); else it reads /dev/null.
  bool keeps_stdin = false;
  // What it reads instead; at most 4 KiB.
  std::string input = {};
  // Runs in the child before the program does, to choose its surroundings; gives 0, or the errno of
  // why not. It may do nothing but system calls: other threads' locks are locked there for good.
  // The command must then be a path.
  std::function<int()> enter = nullptr;
  TimeUs time_limit = 60 * kSecondInUs;  // then it is killed
  std::size_t output_bytes_max = std::size_t{1} << 20;
};

struct ChildOutcome {
  int exit_code = 0;  // 128 + the signal's number where one ended it
  bool is_timed_out = false;
  bool is_output_too_long = false;  // it was killed for it
  std::string output = {};          // may be a secret
  std::string errors = {};          // the first 4 KiB of its standard error
};

class ChildProcess {
 public:
  using Done = std::function<void(ChildOutcome)>;
  // Calls `done` once, on the loop, when the program has ended. NotFound when there is no such
  // program, Invalid when it cannot be run. Dropping the object kills the program; `done` is then
  // not called. It may be dropped inside `done`.
  static Result<std::unique_ptr<ChildProcess>> start(net::EpollLoop& loop, ChildOptions options,
                                                     Done done);
  ~ChildProcess();

 private:
  struct Impl;
  explicit ChildProcess(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// The environment of this process.
std::vector<std::string> process_environment();

}  // namespace jogak::kube
