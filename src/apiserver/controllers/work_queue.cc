// SPDX-License-Identifier: Apache-2.0
//
// One key is looked after in each turn, so that requests are answered in between.
#include "apiserver/controllers/work_queue.h"

#include <algorithm>
#include <utility>

#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr TimeUs kFirstRetry = 5 * kMsInUs;
constexpr int kMaxDoublings = 12;  // 5 ms to about 20 s

}  // namespace

WorkQueue::WorkQueue(Loop& loop, Work work) : loop_(loop), work_(std::move(work)) {}

WorkQueue::~WorkQueue() { *alive_ = false; }

void WorkQueue::add(std::string_view key) {
  if (!queued_.emplace(key).second) return;
  queue_.emplace_back(key);
  pump();
}

void WorkQueue::add_at(TimeUs when, std::string_view key) {
  const std::pair<TimeUs, std::string> wish(when, key);
  if (!later_.insert(wish).second) return;
  loop_.at(when, [this, alive = alive_, wish] {
    if (!*alive) return;
    later_.erase(wish);
    add(wish.second);
  });
}

void WorkQueue::pump() {
  if (is_scheduled_ || queue_.empty()) return;
  is_scheduled_ = true;
  loop_.post([this, alive = alive_] {
    if (!*alive) return;
    is_scheduled_ = false;
    run_one();
    pump();
  });
}

void WorkQueue::run_one() {
  const std::string key = std::move(queue_.front());
  queue_.pop_front();
  queued_.erase(key);
  if (work_(key) == Outcome::Done) {
    failures_.erase(key);
    return;
  }
  const int failures = std::min(failures_[key]++, kMaxDoublings);
  add_after(kFirstRetry << failures, key);
}

std::string key_of(std::string_view ns, std::string_view name) {
  std::string key(ns);
  key += '/';
  key += name;
  return key;
}

std::string key_of(const Doc& object) {
  return key_of(api::namespace_of(object), api::name_of(object));
}

std::pair<std::string, std::string> split_key(std::string_view key) {
  const std::size_t slash = std::min(key.find('/'), key.size());
  return {std::string(key.substr(0, slash)),
          std::string(key.substr(std::min(slash + 1, key.size())))};
}

}  // namespace jogak::controllers
