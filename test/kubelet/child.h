// SPDX-License-Identifier: Apache-2.0
//
// A process that a test starts, watches and kills: a program of its own, or this test program again
// with one test of it. What it prints goes into a file. Calls block; they are for the test's
// thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>
#include <vector>

namespace jogak::testing {

class Child {
 public:
  // `variables` ("NAME=value") come on top of this process's environment.
  Child(const std::vector<std::string>& words, const std::vector<std::string>& variables,
        const std::string& log_file);
  // Kills it if it still runs.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // This program, running the one test of that name.
  static std::vector<std::string> this_test(const std::string& name);

  bool is_running();
  // SIGKILL. Any thread.
  void kill() const;
  // Until it ends: its exit code, or 128 + signal.
  int wait();

 private:
  pid_t pid_ = -1;
  std::atomic<int> code_ = -1;  // -1: not ended yet
};

}  // namespace jogak::testing
