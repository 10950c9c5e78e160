// SPDX-License-Identifier: Apache-2.0
//
// `jogak agent run` as a process of its own: started with some flags, asked over HTTP, told to
// stop. Calls block; they are for the test's thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace jogak::agent {

// What $JOGAK_BINARY names; the test fails where it names nothing.
std::string jogak_binary();
// How often the part stands in the text.
std::size_t count_of(const std::string& text, const std::string& part);

class AgentProcess {
 public:
  // With --exporter-address on a free port of loopback. Waits until it says where it serves.
  AgentProcess(const std::string& binary, const std::vector<std::string>& flags);
  // Kills it if it still runs.
  ~AgentProcess();
  AgentProcess(const AgentProcess&) = delete;
  AgentProcess& operator=(const AgentProcess&) = delete;

  // Status and body; nothing when it does not answer.
  struct Page {
    int status = 0;
    std::string body;
  };
  std::optional<Page> get(const std::string& path) const;

  void signal(int number) const;
  pid_t pid() const { return pid_; }
  // Sends SIGTERM and waits; the exit code, or 128 + signal.
  int stop();
  // Waits until it ends by itself.
  int wait();
  // What it logged until it ended; to be called after stop() or wait().
  const std::string& log() const { return log_; }

 private:
  pid_t pid_ = -1;
  int stderr_fd_ = -1;
  std::string log_;
  std::uint16_t port_ = 0;
};

}  // namespace jogak::agent
