// SPDX-License-Identifier: Apache-2.0
//
// One ordered set of those to try, one map of those refused; a pod is in at most one of them.
#include "live/pod_queue.h"

#include <algorithm>

namespace jogak::live {

namespace {

constexpr TimeUs kFirstBackoff = kSecondInUs;
constexpr TimeUs kLongestBackoff = 10 * kSecondInUs;

TimeUs backoff(int refusals) {
  return std::min(kLongestBackoff, kFirstBackoff << std::min(refusals - 1, 10));
}

}  // namespace

void PodQueue::add(std::string_view key, std::int32_t priority) {
  const auto [it, is_new] = entries_.try_emplace(std::string(key));
  Entry& entry = it->second;
  if (is_new) {
    entry.age = next_age_++;
  } else {
    ready_.erase(ready_key(it->first, entry));
    refused_.erase(it->first);
  }
  entry.priority = priority;
  ready_.insert(ready_key(it->first, entry));
}

void PodQueue::remove(std::string_view key) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  ready_.erase(ready_key(it->first, it->second));
  refused_.erase(it->first);
  entries_.erase(it);
}

std::optional<std::string> PodQueue::pop() {
  if (ready_.empty()) return std::nullopt;
  std::string key = ready_.begin()->second;
  ready_.erase(ready_.begin());
  return key;
}

void PodQueue::refuse(std::string_view key, std::int32_t priority, TimeUs now) {
  const auto [it, is_new] = entries_.try_emplace(std::string(key));
  Entry& entry = it->second;
  if (is_new) entry.age = next_age_++;
  ready_.erase(ready_key(it->first, entry));
  entry.priority = priority;
  entry.not_before = now + backoff(++entry.refusals);
  refused_.insert(it->first);
}

std::optional<TimeUs> PodQueue::release(TimeUs now) {
  std::optional<TimeUs> next;
  for (auto it = refused_.begin(); it != refused_.end();) {
    const Entry& entry = entries_.find(*it)->second;
    if (entry.not_before <= now) {
      ready_.insert(ready_key(*it, entry));
      it = refused_.erase(it);
    } else {
      next = std::min(next.value_or(entry.not_before), entry.not_before);
      ++it;
    }
  }
  return next;
}

}  // namespace jogak::live
