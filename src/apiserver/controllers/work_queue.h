// SPDX-License-Identifier: Apache-2.0
//
// Keys to look after, each in a turn of the loop of its own: asked for many times, done once; what
// fails is tried again later, ever later. The heart of every controller.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/doc.h"
#include "base/loop.h"

namespace jogak::controllers {

enum class Outcome : std::uint8_t {
  Done,  // nothing left to do until something changes
  Retry  // a conflict or a refusal: try again after a while (5 ms doubling to 16 s)
};

class WorkQueue {
 public:
  using Work = std::function<Outcome(const std::string& key)>;

  WorkQueue(Loop& loop, Work work);
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  ~WorkQueue();

  void add(std::string_view key);
  // At a moment or after a span; an earlier wish for the same key stays as well.
  void add_at(TimeUs when, std::string_view key);
  void add_after(TimeUs span, std::string_view key) { add_at(loop_.now() + span, key); }
  bool idle() const { return queue_.empty(); }

 private:
  void pump();
  void run_one();

  Loop& loop_;
  Work work_;
  std::deque<std::string> queue_;
  std::set<std::string, std::less<>> queued_;
  std::map<std::string, int, std::less<>> failures_;
  std::set<std::pair<TimeUs, std::string>> later_;  // one timer for equal wishes
  bool is_scheduled_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// "ns/name" and back.
std::string key_of(std::string_view ns, std::string_view name);
std::string key_of(const Doc& object);
std::pair<std::string, std::string> split_key(std::string_view key);

}  // namespace jogak::controllers
