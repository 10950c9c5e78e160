// SPDX-License-Identifier: Apache-2.0
//
// A Loop on the real clock, which also watches file descriptors (Linux epoll). A turn is: wait for
// something to do, descriptors that are ready, then timers that are due and tasks posted so far.
// What is posted during a turn's tasks waits for the next turn, so that descriptors get their
// share.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/loop.h"

namespace jogak::net {

class EpollLoop : public Loop {
 public:
  EpollLoop();
  ~EpollLoop() override;

  // The machine's clock at construction, then steady: setting the clock does not move it, time the
  // machine is asleep counts. Any thread.
  TimeUs now() const override;
  // now(), for whoever may outlive the loop.
  std::function<TimeUs()> clock() const;
  void post(Task task) override;
  TimerId at(TimeUs when, Task task) override;
  void cancel(TimerId timer) override;

  // Turns until stop(). Tasks left over stay for the next run(). On one thread at a time.
  void run();
  // Ends run() after the turn under way; a stop() before run() ends it after its first turn. From
  // any thread, and from a signal handler.
  void stop();
  // One turn, waiting at most so long for something to do.
  void turn(TimeUs wait_max);

  // EPOLLIN, EPOLLOUT and the like as epoll_ctl(2) has them, level-triggered. A descriptor is
  // watched at most once; forget it before it is closed.
  using FdHandler = std::function<void(std::uint32_t events)>;
  void add_fd(int fd, std::uint32_t events, FdHandler handler);
  void change_fd(int fd, std::uint32_t events);
  // No call follows, not even for events that arrived in this turn.
  void remove_fd(int fd);

 private:
  // Events in flight name a watch by its number: the descriptor may be another file by then.
  struct Watch {
    int fd = -1;
    FdHandler handler;
  };

  int wait_ms(TimeUs wait_max);
  void run_fds(int wait);
  void take_due();
  void wake() const;

  TimeUs offset_us_ = 0;  // from the steady clock to UTC
  int epoll_fd_ = -1;
  int wake_fd_ = -1;
  std::atomic<bool> is_stopped_ = false;

  std::mutex mutex_;
  std::vector<Task> posted_;  // guarded by mutex_
  bool is_waiting_ = false;   // guarded by mutex_: a post must wake the loop

  struct Ready {
    TimerId timer = 0;  // 0: posted
    Task task;
  };
  std::vector<Ready> ready_;         // of this turn, in order
  std::unordered_set<TimerId> due_;  // timers in ready_ that nobody cancelled
  TimerId last_timer_ = 0;
  std::map<std::pair<TimeUs, TimerId>, Task> timers_;
  std::unordered_map<TimerId, TimeUs> deadlines_;

  std::uint64_t last_watch_ = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<Watch>> watches_;
  std::unordered_map<int, std::uint64_t> watch_of_fd_;
};

}  // namespace jogak::net
