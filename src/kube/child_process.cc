// SPDX-License-Identifier: Apache-2.0
//
// posix_spawn with two pipes. The end is noticed by asking for it: when both pipes have ended, and
// now and then, since a grandchild may keep them open.
#include "kube/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/check.h"

extern char** environ;

namespace jogak::kube {
namespace {

constexpr std::size_t kErrorBytesMax = 4096;
constexpr TimeUs kFirstAskUs = 1 * kMsInUs, kAskUsMax = 50 * kMsInUs;

// A pipe's two ends, closed unless taken.
struct Pipe {
  int read_fd = -1, write_fd = -1;

  bool open() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    read_fd = ends[0];
    write_fd = ends[1];
    return ::fcntl(read_fd, F_SETFL, O_NONBLOCK) == 0;
  }
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    if (read_fd >= 0) ::close(read_fd);
    if (write_fd >= 0) ::close(write_fd);
  }
};

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

constexpr std::size_t kInputBytesMax = 4096;

// Filled before it is read: so much fits into every pipe.
bool fill(const Pipe& pipe, std::string_view text) {
  return text.size() <= kInputBytesMax &&
         ::write(pipe.write_fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// The part of spawn_entered() that is the child.
[[noreturn]] void be_child(const ChildOptions& options, const std::array<int, 3>& fds, int fault_fd,
                           char* const* argv, char* const* envp) {
  sigset_t none;
  sigemptyset(&none);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setpgid(0, 0);
  int code = 0;
  for (int fd = 0; fd < 3 && code == 0; ++fd) {
    if (::dup2(fds[static_cast<std::size_t>(fd)], fd) < 0) code = errno;
  }
  // Not every library opens its sockets so that they close by themselves.
  if (fault_fd != 3 && ::dup3(fault_fd, 3, O_CLOEXEC) == 3) fault_fd = 3;
  if (fault_fd == 3) ::close_range(4, ~0U, 0);
  if (code == 0) code = options.enter();
  if (code == 0) {
    ::execve(argv[0], argv, envp);
    code = errno;
  }
  [[maybe_unused]] const ssize_t told = ::write(fault_fd, &code, sizeof code);
  ::_exit(127);
}

// As spawn(), for a child that does something of its own before the program begins.
int spawn_entered(const ChildOptions& options, const std::array<int, 3>& fds, pid_t& pid) {
  Pipe fault;
  if (!fault.open() || ::fcntl(fault.read_fd, F_SETFL, 0) != 0) return errno;
  std::vector<std::string> args = options.args, environment = options.environment;
  args.insert(args.begin(), options.command);
  const std::vector<char*> argv = pointers_to(args), envp = pointers_to(environment);
  pid = ::_Fork();
  if (pid < 0) return errno;
  if (pid == 0) be_child(options, fds, fault.write_fd, argv.data(), envp.data());
  ::close(std::exchange(fault.write_fd, -1));
  int code = 0;
  ssize_t got = 0;
  do {
    got = ::read(fault.read_fd, &code, sizeof code);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof code)) return 0;  // it ended with the exec
  int ignored = 0;
  while (::waitpid(pid, &ignored, 0) < 0 && errno == EINTR) {
  }
  return code;
}

// 0, or the errno of why not.
int spawn(const ChildOptions& options, int input_fd, int output_fd, int error_fd, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  if (input_fd >= 0) {
    posix_spawn_file_actions_adddup2(&actions, input_fd, STDIN_FILENO);
  } else if (!options.keeps_stdin) {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, error_fd, STDERR_FILENO);
  // Not every library opens its sockets so that they close by themselves.
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);

  // Signals as a shell would hand them on. A group of its own, so that what it starts dies with it;
  // not with a terminal, which only the foreground group may read.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (!options.keeps_stdin) flags |= POSIX_SPAWN_SETPGROUP;
  posix_spawnattr_setflags(&attributes, static_cast<short>(flags));

  std::vector<std::string> args = options.args, environment = options.environment;
  args.insert(args.begin(), options.command);
  const std::vector<char*> argv = pointers_to(args), envp = pointers_to(environment);
  const int code = ::posix_spawnp(&pid, options.command.c_str(), &actions, &attributes, argv.data(),
                                  envp.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return code;
}

}  // namespace

struct ChildProcess::Impl : std::enable_shared_from_this<Impl> {
  Impl(net::EpollLoop& own_loop, ChildOptions own_options, Done own_done)
      : loop(own_loop), options(std::move(own_options)), done(std::move(own_done)) {}
  ~Impl() { stop(); }

  void watch(int& fd, std::string& into, std::size_t bytes_max, bool& is_full);
  // False once the pipe has ended.
  static bool drain(int fd, std::string& into, std::size_t bytes_max, bool& is_full);
  void close(int& fd);
  void ask();
  void ask_later(TimeUs delay);
  void kill() const;
  void stop();
  void finish(int status);

  net::EpollLoop& loop;
  ChildOptions options;
  Done done;
  pid_t pid = -1;  // -1: gone, and its status taken
  int output_fd = -1, error_fd = -1;
  bool is_error_full = false;  // what follows is read and dropped
  TimerId ask_timer = 0, limit_timer = 0;
  TimeUs ask_delay = kFirstAskUs;
  ChildOutcome outcome;
};

bool ChildProcess::Impl::drain(int fd, std::string& into, std::size_t bytes_max, bool& is_full) {
  std::array<char, 16 * 1024> buffer;
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    const std::size_t room = bytes_max - into.size();
    if (static_cast<std::size_t>(got) > room) is_full = true;
    into.append(buffer.data(), std::min(static_cast<std::size_t>(got), room));
    if (is_full && bytes_max != kErrorBytesMax) return true;
  }
}

void ChildProcess::Impl::close(int& fd) {
  if (fd < 0) return;
  loop.remove_fd(fd);
  ::close(std::exchange(fd, -1));
}

void ChildProcess::Impl::watch(int& fd, std::string& into, std::size_t bytes_max, bool& is_full) {
  loop.add_fd(fd, EPOLLIN, [this, &fd, &into, bytes_max, &is_full](std::uint32_t) {
    const bool is_open = drain(fd, into, bytes_max, is_full);
    if (outcome.is_output_too_long) {
      close(output_fd);
      kill();
      return ask();
    }
    if (is_open) return;
    close(fd);
    if (output_fd < 0 && error_fd < 0) ask();
  });
}

void ChildProcess::Impl::kill() const {
  if (pid > 0) ::kill(options.keeps_stdin ? pid : -pid, SIGKILL);
}

void ChildProcess::Impl::ask_later(TimeUs delay) {
  loop.cancel(ask_timer);
  ask_timer = loop.after(delay, [this] { ask(); });
}

// Whether it has ended.
void ChildProcess::Impl::ask() {
  const auto self = shared_from_this();  // done() may drop this
  loop.cancel(std::exchange(ask_timer, 0));
  int status = 0;
  const pid_t got = ::waitpid(pid, &status, WNOHANG);
  if (got == pid || (got < 0 && errno == ECHILD)) return finish(got == pid ? status : 0);
  ask_later(ask_delay);
  ask_delay = std::min(ask_delay * 2, kAskUsMax);
}

void ChildProcess::Impl::finish(int status) {
  pid = -1;
  if (output_fd >= 0 && !outcome.is_output_too_long) {
    drain(output_fd, outcome.output, options.output_bytes_max, outcome.is_output_too_long);
  }
  if (error_fd >= 0) drain(error_fd, outcome.errors, kErrorBytesMax, is_error_full);
  outcome.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  stop();
  if (const Done call = std::exchange(done, nullptr); call) call(std::move(outcome));
}

void ChildProcess::Impl::stop() {
  loop.cancel(std::exchange(ask_timer, 0));
  loop.cancel(std::exchange(limit_timer, 0));
  close(output_fd);
  close(error_fd);
  if (pid < 0) return;
  kill();
  int ignored = 0;
  while (::waitpid(pid, &ignored, 0) < 0 && errno == EINTR) {
  }
  pid = -1;
}

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(net::EpollLoop& loop,
                                                          ChildOptions options, Done done) {
  Pipe input, output, errors;
  if (!input.open() || !output.open() || !errors.open() || !fill(input, options.input)) {
    return fail(Errc::Unavailable, "run {}: no pipe: {}", options.command,
                std::generic_category().message(errno));
  }
  auto impl = std::make_shared<Impl>(loop, std::move(options), std::move(done));
  pid_t pid = -1;
  // The program waits for its input if it wants any.
  const bool has_input = ::fcntl(input.read_fd, F_SETFL, 0) == 0 && !impl->options.input.empty();
  const int code =
      impl->options.enter
          ? spawn_entered(impl->options, {input.read_fd, output.write_fd, errors.write_fd}, pid)
          : spawn(impl->options, has_input ? input.read_fd : -1, output.write_fd, errors.write_fd,
                  pid);
  if (code != 0) {
    return fail(code == ENOENT ? Errc::NotFound : Errc::Invalid, "run {}: {}",
                impl->options.command, std::generic_category().message(code));
  }
  impl->pid = pid;
  impl->output_fd = std::exchange(output.read_fd, -1);
  impl->error_fd = std::exchange(errors.read_fd, -1);
  impl->watch(impl->output_fd, impl->outcome.output, impl->options.output_bytes_max,
              impl->outcome.is_output_too_long);
  impl->watch(impl->error_fd, impl->outcome.errors, kErrorBytesMax, impl->is_error_full);
  impl->ask_later(kAskUsMax);
  impl->limit_timer = loop.after(impl->options.time_limit, [own = impl.get()] {
    own->limit_timer = 0;
    own->outcome.is_timed_out = true;
    own->kill();
    own->ask();
  });
  return std::unique_ptr<ChildProcess>(new ChildProcess(std::move(impl)));
}

ChildProcess::ChildProcess(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

// A frame of ask() may still hold the rest: nothing is called any more.
ChildProcess::~ChildProcess() {
  impl_->done = nullptr;
  impl_->stop();
}

std::vector<std::string> process_environment() {
  std::vector<std::string> all;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) all.emplace_back(*each);
  return all;
}

}  // namespace jogak::kube
