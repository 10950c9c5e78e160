// SPDX-License-Identifier: Apache-2.0
//
// posix_spawn, so that a test program with threads forks safely.
#include "test/kubelet/child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/check.h"

extern "C" char** environ;

namespace jogak::testing {

namespace {

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

Child::Child(const std::vector<std::string>& words, const std::vector<std::string>& variables,
             const std::string& log_file) {
  std::vector<std::string> texts = words;
  std::vector<std::string> settings = variables;
  for (char** one = environ; *one != nullptr; ++one) settings.emplace_back(*one);
  std::vector<char*> argv, environment;
  for (std::string& text : texts) argv.push_back(text.data());
  for (std::string& setting : settings) environment.push_back(setting.data());
  argv.push_back(nullptr);
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log_file.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  const int error = ::posix_spawn(&pid_, texts.front().c_str(), &actions, nullptr, argv.data(),
                                  environment.data());
  posix_spawn_file_actions_destroy(&actions);
  JOGAK_CHECK(error == 0, "{} cannot be started", texts.front());
}

Child::~Child() {
  kill();
  (void)wait();
}

std::vector<std::string> Child::this_test(const std::string& name) {
  return {std::filesystem::read_symlink("/proc/self/exe").string(), "--gtest_filter=" + name};
}

bool Child::is_running() {
  int status = 0;
  if (code_ < 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) code_ = code_of(status);
  return code_ < 0;
}

void Child::kill() const {
  if (code_ < 0) ::kill(pid_, SIGKILL);
}

int Child::wait() {
  int status = 0;
  if (code_ < 0 && ::waitpid(pid_, &status, 0) == pid_) code_ = code_of(status);
  return code_;
}

}  // namespace jogak::testing
