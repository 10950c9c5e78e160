// SPDX-License-Identifier: Apache-2.0
//
// Threads that take the next index from one counter until there is none.
#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace jogak {

namespace {

// The first failure, first by index and not by time, so that the same run gives the same error.
class FirstFailure {
 public:
  void note(std::size_t index, std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (failure_ && index_ <= index) return;
    index_ = index;
    failure_ = std::move(failure);
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::size_t index_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

void parallel_for(std::size_t n, std::size_t jobs, const std::function<void(std::size_t)>& fn) {
  if (jobs == 0) jobs = std::max(1U, std::thread::hardware_concurrency());
  jobs = std::min(jobs, n);

  std::atomic<std::size_t> next{0};
  FirstFailure first_failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < n; i = next++) {
      try {
        fn(i);
      } catch (...) {
        first_failure.note(i, std::current_exception());
        next = n;
      }
    }
  };

  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < jobs; ++i) threads.emplace_back(work);
    work();
  }
  first_failure.rethrow();
}

}  // namespace jogak
