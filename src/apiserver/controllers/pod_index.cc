// SPDX-License-Identifier: Apache-2.0
//
// A change is taken out of the indexes with the old view and put in with the new one, and only then
// told to listeners.
#include "apiserver/controllers/pod_index.h"

#include <algorithm>
#include <charconv>

#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

PodPhase phase_of(std::string_view word) {
  if (word == "Running") return PodPhase::Running;
  if (word == "Succeeded") return PodPhase::Succeeded;
  if (word == "Failed") return PodPhase::Failed;
  return word == "Unknown" ? PodPhase::Unknown : PodPhase::Pending;
}

template <class Number>
Number number_of(std::string_view text) {
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

TimeUs time_of(const Doc& text) { return api::parse_time(text.as_string()).value_or(0); }

}  // namespace

std::string_view PodView::label(std::string_view key) const {
  const auto it =
      std::ranges::lower_bound(labels, key, {}, &std::pair<std::string, std::string>::first);
  return it == labels.end() || it->first != key ? std::string_view() : std::string_view(it->second);
}

PodView view_of(const Doc& pod) {
  PodView view;
  const Doc& metadata = api::meta(pod);
  view.ns = metadata["namespace"].as_string();
  view.name = metadata["name"].as_string();
  view.uid = metadata["uid"].as_string();
  view.revision = number_of<std::uint64_t>(metadata["resourceVersion"].as_string());
  for (const auto& [key, value] : metadata["labels"].members()) {
    view.labels.emplace_back(key, value.as_string());
  }
  std::ranges::sort(view.labels);
  const Doc& owner = api::controller_of(pod);
  view.owner_kind = owner["kind"].as_string();
  view.owner_name = owner["name"].as_string();
  view.owner_uid = owner["uid"].as_string();
  view.node = pod.get("spec", "nodeName").as_string();
  view.phase = phase_of(pod.get("status", "phase").as_string());
  const Doc& ready = api::condition_of(pod, "Ready");
  view.is_ready = ready["status"].as_string() == "True";
  if (view.is_ready) view.ready_since = time_of(ready["lastTransitionTime"]);
  view.is_deleting = api::is_deleting(pod);
  view.deletion_end = time_of(metadata["deletionTimestamp"]);
  view.has_finalizers = !metadata["finalizers"].empty();
  view.created = time_of(metadata["creationTimestamp"]);
  for (const Doc& status : pod.get("status", "containerStatuses").items()) {
    view.restarts += status["restartCount"].as_int();
    view.ended = std::max(view.ended, time_of(status.get("state", "terminated", "finishedAt")));
  }
  if (view.ended == 0 && ready["status"].as_string() == "False") {
    view.ended = time_of(ready["lastTransitionTime"]);
  }
  if (view.ended == 0) view.ended = view.is_deleting ? view.deletion_end : view.created;
  view.deletion_cost = number_of<std::int64_t>(
      metadata["annotations"]["controller.kubernetes.io/pod-deletion-cost"].as_string());
  return view;
}

PodIndex::PodIndex(api::Api& api) {
  following_ = api.follow("pods", [this](const api::Api::Change& change) { on_change(change); });
}

void PodIndex::listen(Listener listener) {
  for (const auto& [key, pod] : pods_) listener(store::EventType::Added, pod, nullptr);
  listeners_.push_back(std::move(listener));
}

void PodIndex::link(const PodView& pod, bool is_in) {
  const auto touch = [&](std::map<std::string, Keys, std::less<>>& map, const std::string& at) {
    if (at.empty()) return;
    if (is_in) {
      map[at].insert(pod.key());
    } else if (const auto it = map.find(at); it != map.end()) {
      it->second.erase(pod.key());
      if (it->second.empty()) map.erase(it);
    }
  };
  touch(by_node_, pod.node);
  touch(by_owner_, pod.owner_uid);
  if (pod.owner_uid.empty()) touch(orphans_, pod.ns);
}

void PodIndex::on_change(const api::Api::Change& change) {
  auto pod = std::make_shared<const PodView>(view_of(*change.object));
  const std::string key = pod->key();
  PodViewPtr before;
  if (const auto it = pods_.find(key); it != pods_.end()) before = it->second;
  if (before != nullptr) link(*before, false);
  if (change.type == store::EventType::Deleted) {
    pods_.erase(key);
  } else {
    link(*pod, true);
    pods_[key] = pod;
  }
  for (std::size_t i = 0; i < listeners_.size(); ++i) listeners_[i](change.type, pod, before);
}

PodViewPtr PodIndex::find(std::string_view ns, std::string_view name) const {
  std::string key(ns);
  key.append("/").append(name);
  const auto it = pods_.find(key);
  return it == pods_.end() ? nullptr : it->second;
}

std::vector<PodViewPtr> PodIndex::in_namespace(std::string_view ns) const {
  std::vector<PodViewPtr> found;
  const std::string prefix = std::string(ns) + "/";
  for (auto it = pods_.lower_bound(prefix); it != pods_.end() && it->first.starts_with(prefix);
       ++it) {
    found.push_back(it->second);
  }
  return found;
}

std::vector<PodViewPtr> PodIndex::found_in(const std::map<std::string, Keys, std::less<>>& map,
                                           std::string_view at) const {
  std::vector<PodViewPtr> found;
  const auto it = map.find(at);
  if (it == map.end()) return found;
  for (const std::string& key : it->second) found.push_back(pods_.find(key)->second);
  return found;
}

std::vector<PodViewPtr> PodIndex::on_node(std::string_view node) const {
  return found_in(by_node_, node);
}

std::vector<PodViewPtr> PodIndex::owned_by(std::string_view uid) const {
  return found_in(by_owner_, uid);
}

std::vector<PodViewPtr> PodIndex::orphans_in(std::string_view ns) const {
  return found_in(orphans_, ns);
}

std::vector<PodViewPtr> PodIndex::all() const {
  std::vector<PodViewPtr> found;
  found.reserve(pods_.size());
  for (const auto& [key, pod] : pods_) found.push_back(pod);
  return found;
}

}  // namespace jogak::controllers
