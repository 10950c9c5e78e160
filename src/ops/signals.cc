// SPDX-License-Identifier: Apache-2.0
//
// One signalfd for all of them.
#include "ops/signals.h"

#include <utility>

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/check.h"

namespace jogak::ops {

Signals::Signals(net::EpollLoop& loop, std::map<int, std::function<void()>> handlers)
    : loop_(loop), handlers_(std::move(handlers)) {
  sigset_t set;
  sigemptyset(&set);
  for (const auto& [number, handler] : handlers_) sigaddset(&set, number);
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  fd_ = ::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  JOGAK_CHECK(fd_ >= 0, "signalfd: no descriptor");
  loop_.add_fd(fd_, EPOLLIN, [this](std::uint32_t) { take(); });
}

Signals::~Signals() {
  loop_.remove_fd(fd_);
  ::close(fd_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Signals::take() {
  signalfd_siginfo info{};
  if (::read(fd_, &info, sizeof info) != sizeof info) return;
  const auto at = handlers_.find(static_cast<int>(info.ssi_signo));
  if (at != handlers_.end()) at->second();
}

}  // namespace jogak::ops
