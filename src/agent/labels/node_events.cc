// SPDX-License-Identifier: Apache-2.0
//
// One exchange at a time. New events go before counts of old ones.
#include "agent/labels/node_events.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "kube/event.h"

namespace jogak::agent {

namespace {

constexpr std::string_view kReporter = "jogak-agent";
constexpr std::string_view kCollection = "/apis/events.k8s.io/v1/namespaces/default/events";
constexpr std::size_t kWordBytesMax = 128;
constexpr std::size_t kNodeNameInName = 220;  // of 253, with what makes the name unique

// As the kubelet does it: a Node is known by its name, and `kubectl describe` asks by both.
std::string event_json(const NodeNote& note, const std::string& node, const std::string& name,
                       TimeUs time) {
  const std::string reason = kube::cut_text(note.reason, kWordBytesMax);
  return kube::event_json(
      {.ns = "default",
       .name = name,
       .reporter = kReporter,
       .instance = kube::cut_text(fmt::format("{}-{}", kReporter, node), kWordBytesMax),
       .action = reason,
       .reason = reason,
       .type = note.is_warning ? "Warning" : "Normal",
       .note = note.text,
       .regarding = {.kind = "Node", .ns = {}, .name = node, .uid = node},
       .related = {}},
      time);
}

}  // namespace

template <class Fn>
auto NodeEvents::guarded(Fn fn) {
  return [alive = std::weak_ptr<bool>(alive_), fn = std::move(fn)](auto&&... args) mutable {
    if (!alive.expired()) fn(std::forward<decltype(args)>(args)...);
  };
}

NodeEvents::NodeEvents(kube::ApiClient& api, Log& log, NodeEventsOptions options)
    : api_(api),
      log_(log),
      options_(std::move(options)),
      tokens_(options_.burst),
      refilled_at_(api.loop().now()) {}

NodeEvents::~NodeEvents() { api_.loop().cancel(timer_); }

void NodeEvents::tell(NodeNote note) {
  ++counts_.told;
  const TimeUs now = api_.loop().now();
  forget_old();
  std::string key = fmt::format("{}|{}|{}", note.is_warning, note.reason, note.about);
  // What is said of the same thing in other words is another event.
  if (note.about.empty()) key += "|" + note.text;
  const auto known = series_.find(key);
  if (known != series_.end()) {
    ++known->second.count;
    known->second.last = now;
  } else if (queue_.size() >= options_.queue_max || series_.size() >= options_.series_max) {
    ++counts_.dropped;
    return;
  } else {
    series_[key] = {.count = 1, .last = now};
    queue_.push_back({.key = std::move(key), .note = std::move(note), .time = now});
  }
  pump();
}

void NodeEvents::forget_old() {
  const TimeUs now = api_.loop().now();
  std::erase_if(series_, [&](const auto& entry) {
    const Series& series = entry.second;
    return !series.name.empty() && series.count == series.written &&
           now - series.last > options_.series_ends_after;
  });
}

void NodeEvents::refill() {
  const TimeUs now = api_.loop().now();
  const TimeUs more = (now - refilled_at_) / options_.refill;
  if (more <= 0) return;
  tokens_ = static_cast<int>(std::min<TimeUs>(options_.burst, tokens_ + more));
  refilled_at_ += more * options_.refill;
}

void NodeEvents::wake_after(TimeUs delay) {
  api_.loop().cancel(timer_);
  timer_ = api_.loop().after(std::max<TimeUs>(delay, 1), guarded([this] {
                               timer_ = 0;
                               pump();
                             }));
}

void NodeEvents::pump() {
  if (is_busy_) return;
  const TimeUs now = api_.loop().now();
  if (now < not_before_) return wake_after(not_before_ - now);
  refill();
  if (!queue_.empty() && tokens_ > 0) {
    --tokens_;
    Waiting event = std::move(queue_.front());
    queue_.pop_front();
    return create(std::move(event));
  }
  if (patch_one()) return;
  if (!queue_.empty()) wake_after(refilled_at_ + options_.refill - now);
}

void NodeEvents::create(Waiting event) {
  is_busy_ = true;
  last_name_ = std::max(last_name_ + 1, static_cast<std::uint64_t>(event.time) * 1000);
  const std::string name =
      fmt::format("{}.{:x}", kube::cut_text(options_.node, kNodeNameInName), last_name_);
  kube::ApiRequest request = {.method = "POST", .target = std::string(kCollection)};
  request.body = event_json(event.note, options_.node, name, event.time);
  request.retries_max = 0;
  api_.call_ok(std::move(request),
               guarded([this, event = std::move(event), name](const Result<std::string>& answer) {
                 on_created(event, name, answer);
               }));
}

void NodeEvents::on_created(Waiting event, const std::string& name,
                            const Result<std::string>& answer) {
  is_busy_ = false;
  if (answer) {
    ++counts_.created;
    problem_.clear();
    if (const auto at = series_.find(event.key); at != series_.end()) {
      at->second.name = name;
      at->second.written = 1;
      at->second.written_at = api_.loop().now();
    }
    return pump();
  }
  const Errc code = answer.error().code;
  const bool may_retry = code == Errc::Unavailable || code == Errc::Timeout ||
                         code == Errc::Conflict;  // its name was taken
  if (!may_retry || ++event.tries >= options_.tries_max) {
    drop(event.key, answer.error().what);
  } else {
    not_before_ = api_.loop().now() + (options_.retry << (event.tries - 1));
    ++tokens_;
    queue_.push_front(std::move(event));
  }
  pump();
}

void NodeEvents::drop(const std::string& key, const std::string& why) {
  ++counts_.dropped;
  series_.erase(key);
  if (std::exchange(problem_, why) == why) return;
  log_.warn("an Event of the node could not be written", {{"error", why}});
}

// Whether one is being written. Sees to it that the next comes in its time.
bool NodeEvents::patch_one() {
  const TimeUs now = api_.loop().now();
  TimeUs next = 0;
  for (auto& [key, series] : series_) {
    if (series.name.empty() || series.count == series.written) continue;
    const TimeUs due = series.written_at + options_.series_every;
    if (due > now) {
      next = next == 0 ? due : std::min(next, due);
      continue;
    }
    is_busy_ = true;
    series.written = series.count;
    series.written_at = now;
    kube::ApiRequest request = {
        .method = "PATCH",
        .target = fmt::format("{}/{}", kCollection, kube::escape(series.name)),
        .body = kube::event_series_json(series.count, series.last),
        .content_type = "application/merge-patch+json"};
    request.retries_max = 0;
    api_.call_ok(std::move(request), guarded([this, key](const Result<std::string>& answer) {
                   is_busy_ = false;
                   if (answer) {
                     ++counts_.patched;
                   } else if (answer.error().code != Errc::Unavailable) {
                     // The event is gone: the next one is new. A server that is away gets the
                     // count with the next one.
                     series_.erase(key);
                   }
                   pump();
                 }));
    return true;
  }
  if (next != 0) wake_after(next - now);
  return false;
}

}  // namespace jogak::agent
