// SPDX-License-Identifier: Apache-2.0
//
// Three ordered sets of pointers into one map; a pod is in at most one of them, and each step costs
// the logarithm of their size, however many wait.
#include "live/pod_queue.h"

#include <algorithm>

namespace jogak::live {

TimeUs PodQueue::backoff(int times) const {
  return std::min(backoff_.longest, backoff_.first << std::clamp(times - 1, 0, 10));
}

void PodQueue::take_out(Item item) {
  switch (item->second.where) {
    case Where::Ready:
      ready_.erase(item);
      break;
    case Where::Timed:
      timed_.erase(item);
      break;
    case Where::Settled:
      settled_.erase(item);
      break;
    case Where::Nowhere:
      break;
  }
  item->second.where = Where::Nowhere;
}

PodQueue::Item PodQueue::unlisted(std::string_view key, TimeUs now) {
  auto it = entries_.find(key);
  if (it == entries_.end()) {
    it = entries_.try_emplace(std::string(key)).first;
    it->second.age = next_age_++;
    it->second.since = now;
  }
  take_out(&*it);
  return &*it;
}

void PodQueue::make_ready(Item item) {
  item->second.where = Where::Ready;
  ready_.insert(item);
}

void PodQueue::add(std::string_view key, std::int32_t priority, TimeUs now) {
  const Item item = unlisted(key, now);
  item->second.priority = priority;
  make_ready(item);
}

void PodQueue::remove(std::string_view key) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  take_out(&*it);
  entries_.erase(it);
}

std::optional<std::string> PodQueue::pop() {
  if (ready_.empty()) return std::nullopt;
  const Item item = *ready_.begin();
  take_out(item);
  return item->first;
}

void PodQueue::refuse(std::string_view key, std::int32_t priority, TimeUs now) {
  const Item item = unlisted(key, now);
  Entry& entry = item->second;
  entry.priority = priority;
  entry.failures = 0;
  entry.is_failed = false;
  entry.refused_at = now;
  entry.change = change_;
  entry.due = now + backoff(++entry.refusals);
  entry.where = Where::Timed;
  timed_.insert(item);
}

void PodQueue::retry(std::string_view key, std::int32_t priority, TimeUs now) {
  const Item item = unlisted(key, now);
  Entry& entry = item->second;
  entry.priority = priority;
  entry.is_failed = true;
  entry.due = now + backoff(++entry.failures);
  entry.where = Where::Timed;
  timed_.insert(item);
}

std::optional<TimeUs> PodQueue::release(TimeUs now, bool has_changed) {
  if (has_changed) {
    ++change_;
    while (!settled_.empty()) {
      const Item item = *settled_.begin();
      take_out(item);
      make_ready(item);
    }
  }
  while (!timed_.empty() && (*timed_.begin())->second.due <= now) {
    const Item item = *timed_.begin();
    take_out(item);
    Entry& entry = item->second;
    entry.due = entry.refused_at + backoff_.refused_max;
    if (entry.is_failed || entry.change != change_ || entry.due <= now) {
      make_ready(item);
    } else {
      entry.where = Where::Settled;
      settled_.insert(item);
    }
  }
  while (!settled_.empty() && (*settled_.begin())->second.due <= now) {
    const Item item = *settled_.begin();
    take_out(item);
    make_ready(item);
  }
  std::optional<TimeUs> next;
  for (const auto* set : {&timed_, &settled_}) {
    if (set->empty()) continue;
    const TimeUs due = (*set->begin())->second.due;
    next = std::min(next.value_or(due), due);
  }
  return next;
}

PodQueue::History PodQueue::history(std::string_view key) const {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return {};
  return {.attempts = it->second.refusals + it->second.failures, .since = it->second.since};
}

}  // namespace jogak::live
