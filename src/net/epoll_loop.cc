// SPDX-License-Identifier: Apache-2.0
//
// The steady clock is the one that counts while the machine sleeps, moved to UTC once.
#include "net/epoll_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace jogak::net {
namespace {

constexpr std::size_t kEventsPerTurn = 256;
constexpr std::uint64_t kWakeWatch = 0;  // the number of wake_fd_; watches count from 1

TimeUs read_clock(clockid_t clock) {
  timespec time{};
  JOGAK_CHECK(::clock_gettime(clock, &time) == 0);
  return time.tv_sec * kSecondInUs + time.tv_nsec / 1000;
}

}  // namespace

EpollLoop::EpollLoop()
    : offset_us_(read_clock(CLOCK_REALTIME) - read_clock(CLOCK_BOOTTIME)),
      epoll_fd_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  JOGAK_CHECK(epoll_fd_ >= 0 && wake_fd_ >= 0, "no descriptors for a loop: {}",
              std::strerror(errno));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeWatch;
  JOGAK_CHECK(::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, wake_fd_, &event) == 0);
}

EpollLoop::~EpollLoop() {
  ::close(wake_fd_);
  ::close(epoll_fd_);
}

TimeUs EpollLoop::now() const { return read_clock(CLOCK_BOOTTIME) + offset_us_; }

std::function<TimeUs()> EpollLoop::clock() const {
  return [offset_us = offset_us_] { return read_clock(CLOCK_BOOTTIME) + offset_us; };
}

void EpollLoop::wake() const {
  const std::uint64_t one = 1;
  // It can only fail when the counter is full, and then the loop is awake anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_fd_, &one, sizeof one);
}

void EpollLoop::post(Task task) {
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(task));
    must_wake = std::exchange(is_waiting_, false);
  }
  if (must_wake) wake();
}

void EpollLoop::stop() {
  is_stopped_.store(true);
  wake();
}

TimerId EpollLoop::at(TimeUs when, Task task) {
  const TimerId timer = ++last_timer_;
  timers_.emplace(std::pair(when, timer), std::move(task));
  deadlines_.emplace(timer, when);
  return timer;
}

void EpollLoop::cancel(TimerId timer) {
  due_.erase(timer);
  const auto it = deadlines_.find(timer);
  if (it == deadlines_.end()) return;
  timers_.erase({it->second, timer});
  deadlines_.erase(it);
}

void EpollLoop::add_fd(int fd, std::uint32_t events, FdHandler handler) {
  const std::uint64_t number = ++last_watch_;
  JOGAK_CHECK(watch_of_fd_.emplace(fd, number).second, "descriptor {} is watched already", fd);
  auto watch = std::make_shared<Watch>();
  watch->fd = fd;
  watch->handler = std::move(handler);
  watches_.emplace(number, std::move(watch));
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  JOGAK_CHECK(::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0, "descriptor {}: {}", fd,
              std::strerror(errno));
}

void EpollLoop::change_fd(int fd, std::uint32_t events) {
  const auto it = watch_of_fd_.find(fd);
  JOGAK_CHECK(it != watch_of_fd_.end(), "descriptor {} is not watched", fd);
  epoll_event event{};
  event.events = events;
  event.data.u64 = it->second;
  JOGAK_CHECK(::epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event) == 0, "descriptor {}: {}", fd,
              std::strerror(errno));
}

void EpollLoop::remove_fd(int fd) {
  const auto it = watch_of_fd_.find(fd);
  if (it == watch_of_fd_.end()) return;
  watches_.erase(it->second);
  watch_of_fd_.erase(it);
  ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
}

// How long epoll may wait: not at all while there are tasks, at most to the next timer. Rounded up,
// so that no turn runs just short of a deadline.
int EpollLoop::wait_ms(TimeUs wait_max) {
  TimeUs wait = std::clamp<TimeUs>(wait_max, 0, 3600 * kSecondInUs);
  if (!timers_.empty()) wait = std::clamp<TimeUs>(timers_.begin()->first.first - now(), 0, wait);
  if (is_stopped_.load()) wait = 0;
  const std::lock_guard lock(mutex_);
  if (!posted_.empty()) wait = 0;
  is_waiting_ = wait > 0;
  return static_cast<int>((wait + kMsInUs - 1) / kMsInUs);
}

void EpollLoop::run_fds(int wait) {
  std::array<epoll_event, kEventsPerTurn> events;
  const int count = ::epoll_wait(epoll_fd_, events.data(), kEventsPerTurn, wait);
  JOGAK_CHECK(count >= 0 || errno == EINTR, "epoll_wait: {}", std::strerror(errno));
  {
    const std::lock_guard lock(mutex_);
    is_waiting_ = false;
  }
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == kWakeWatch) {
      std::uint64_t ignored = 0;
      [[maybe_unused]] const ssize_t got = ::read(wake_fd_, &ignored, sizeof ignored);
      continue;
    }
    const auto it = watches_.find(event.data.u64);
    if (it == watches_.end()) continue;
    const std::shared_ptr<Watch> watch = it->second;  // the handler may remove it
    watch->handler(event.events);
  }
}

// Moves due timers, then posted tasks, to the tasks of this turn.
void EpollLoop::take_due() {
  if (!timers_.empty()) {
    const TimeUs time = now();
    while (!timers_.empty() && timers_.begin()->first.first <= time) {
      const TimerId timer = timers_.begin()->first.second;
      deadlines_.erase(timer);
      due_.insert(timer);
      ready_.push_back({timer, std::move(timers_.begin()->second)});
      timers_.erase(timers_.begin());
    }
  }
  const std::lock_guard lock(mutex_);
  for (Task& task : posted_) ready_.push_back({0, std::move(task)});
  posted_.clear();
}

void EpollLoop::turn(TimeUs wait_max) {
  run_fds(wait_ms(wait_max));
  take_due();
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    const Ready ready = std::move(ready_[i]);  // what it holds goes before the next one runs
    if (ready.timer == 0 || due_.erase(ready.timer) > 0) ready.task();
  }
  ready_.clear();
}

void EpollLoop::run() {
  do {
    turn(3600 * kSecondInUs);
  } while (!is_stopped_.load());
  is_stopped_.store(false);
}

}  // namespace jogak::net
