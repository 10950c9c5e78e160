// SPDX-License-Identifier: Apache-2.0
//
// A child with a pipe for its standard error, and HTTP/1.1 by hand: nothing of ours is in between.
#include "test/agent/agent_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>

#include "base/check.h"

extern "C" char** environ;

namespace jogak::agent {

namespace {

// The rest until the other end is closed, or until `until` is there.
bool read_into(int fd, std::string& text, const std::string& until = "") {
  char buffer[4096];
  while (until.empty() || text.find(until) == std::string::npos) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got <= 0) return false;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace

std::string jogak_binary() {
  const char* const value = std::getenv("JOGAK_BINARY");
  EXPECT_NE(value, nullptr) << "JOGAK_BINARY names the jogak executable";
  return value == nullptr ? "" : value;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

AgentProcess::AgentProcess(const std::string& binary, const std::vector<std::string>& flags) {
  std::vector<std::string> words = {binary, "agent", "run", "--exporter-address", "127.0.0.1:0"};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int ends[2] = {};
  JOGAK_CHECK(::pipe(ends) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  const int error = ::posix_spawn(&pid_, binary.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  JOGAK_CHECK(error == 0, "{} cannot be started", binary);
  stderr_fd_ = ends[0];
  const std::string before_port = "http://127.0.0.1:";
  if (!read_into(stderr_fd_, log_, before_port)) return;
  const std::size_t at = log_.find(before_port) + before_port.size();
  for (std::size_t i = at; i < log_.size() && log_[i] >= '0' && log_[i] <= '9'; ++i) {
    port_ = static_cast<std::uint16_t>(port_ * 10 + (log_[i] - '0'));
  }
}

AgentProcess::~AgentProcess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(stderr_fd_);
}

std::optional<AgentProcess::Page> AgentProcess::get(const std::string& path) const {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(request.size())) {
    read_into(fd, answer);
  }
  ::close(fd);
  const std::size_t end = answer.find("\r\n\r\n");
  if (!answer.starts_with("HTTP/1.1 ") || end == std::string::npos) return std::nullopt;
  return Page{.status = std::stoi(answer.substr(9, 3)), .body = answer.substr(end + 4)};
}

void AgentProcess::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

int AgentProcess::stop() {
  ::kill(pid_, SIGTERM);
  return wait();
}

int AgentProcess::wait() {
  read_into(stderr_fd_, log_);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace jogak::agent
