// SPDX-License-Identifier: Apache-2.0
//
// Events go an hour after they were last written. The real server leaves that to the leases of its
// store; here one timer walks along a queue.
#include <algorithm>
#include <deque>
#include <map>

#include "apiserver/controllers/object_controllers.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr TimeUs kEventTtl = 3600 * kSecondInUs;
constexpr int kPerTurn = 50;

TimeUs time_of(const Doc& text) { return api::parse_time(text.as_string()).value_or(0); }

class EventTtl : public Controller {
 public:
  explicit EventTtl(const ControllerContext& context) : api_(context.make_api("kube-apiserver")) {
    following_ =
        api_->follow("events", [this](const api::Api::Change& change) { on_event(change); });
  }
  ~EventTtl() override { api_->loop().cancel(timer_); }

 private:
  struct Due {
    TimeUs when = 0;
    std::string key, version;
  };

  void on_event(const api::Api::Change& change) {
    const Doc& event = *change.object;
    const std::string key = key_of(event);
    if (change.type == store::EventType::Deleted) {
      versions_.erase(key);
      return;
    }
    // An event of an earlier run is as old as it says; what is written now is new.
    TimeUs written = api_->now();
    if (change.type == store::EventType::Added) {
      const TimeUs said =
          std::max({time_of(api::meta(event)["creationTimestamp"]), time_of(event["lastTimestamp"]),
                    time_of(event.get("series", "lastObservedTime"))});
      if (said > 0) written = std::min(written, said);
    }
    const std::string& version = api::meta(event)["resourceVersion"].as_string();
    versions_[key] = version;
    due_.push_back({.when = written + kEventTtl, .key = key, .version = version});
    if (due_.size() > 1 && due_[due_.size() - 2].when > due_.back().when) is_sorted_ = false;
    schedule();
  }

  void schedule() {
    if (timer_ != 0 || due_.empty()) return;
    if (!is_sorted_) {
      std::ranges::sort(due_, {}, &Due::when);
      is_sorted_ = true;
    }
    timer_ = api_->loop().at(due_.front().when, [this] {
      timer_ = 0;
      collect();
    });
  }

  void collect() {
    const TimeUs now = api_->now();
    for (int i = 0; i < kPerTurn && !due_.empty() && due_.front().when <= now; ++i) {
      const Due due = std::move(due_.front());
      due_.pop_front();
      const auto known = versions_.find(due.key);
      if (known == versions_.end() || known->second != due.version) continue;  // gone or newer
      const auto [ns, name] = split_key(due.key);
      // what cannot be deleted stays for good; nothing would be won by trying again
      static_cast<void>(api_->remove("events", ns, name));
    }
    schedule();
  }

  std::unique_ptr<api::Api> api_;
  std::deque<Due> due_;
  bool is_sorted_ = true;
  std::map<std::string, std::string, std::less<>> versions_;  // of each event
  std::shared_ptr<void> following_;
  TimerId timer_ = 0;
};

}  // namespace

std::unique_ptr<Controller> event_ttl_controller(const ControllerContext& context) {
  return std::make_unique<EventTtl>(context);
}

}  // namespace jogak::controllers
