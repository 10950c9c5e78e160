// SPDX-License-Identifier: Apache-2.0
//
// Claims and releases are patches that name the uid, so that a pod made anew under the same name
// is left alone.
#include "apiserver/controllers/pod_control.h"

#include <algorithm>

#include "apiserver/controllers/events.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

Doc controller_reference(const Doc& owner) {
  return Doc::object()
      .set("apiVersion", owner["apiVersion"])
      .set("kind", owner["kind"])
      .set("name", api::name_of(owner))
      .set("uid", api::uid_of(owner))
      .set("controller", true)
      .set("blockOwnerDeletion", true);
}

Doc pod_from_template(const Doc& pod_template, const Doc& owner) {
  Doc pod = Doc::object();
  pod.set("kind", "Pod").set("apiVersion", "v1");
  Doc& metadata = pod.at("metadata");
  metadata.set("generateName", api::name_of(owner) + "-")
      .set("namespace", api::namespace_of(owner));
  for (const std::string_view key : {"labels", "annotations", "finalizers"}) {
    if (const Doc* value = pod_template["metadata"].find(key)) metadata.set(key, *value);
  }
  metadata.set("ownerReferences", Doc::array().push(controller_reference(owner)));
  pod.set("spec", pod_template["spec"]);
  return pod;
}

void Expectations::seen(std::string_view key, store::EventType type, const PodView& pod) {
  const auto it = pending_.find(key);
  if (it == pending_.end()) return;
  it->second.erase("+" + pod.uid);
  if (type == store::EventType::Deleted || pod.is_deleting) it->second.erase("-" + pod.uid);
  if (it->second.empty()) pending_.erase(it);
}

void Expectations::forget(std::string_view key) {
  const auto it = pending_.find(key);
  if (it != pending_.end()) pending_.erase(it);
}

PodControl::PodControl(api::Api& api, PodIndex& pods, std::string component, std::string kind,
                       std::function<void(const std::string&)> enqueue)
    : api_(api),
      pods_(pods),
      component_(std::move(component)),
      kind_(std::move(kind)),
      enqueue_(std::move(enqueue)) {
  pods_.listen([this, alive = alive_](store::EventType type, const PodViewPtr& pod,
                                      const PodViewPtr& before) {
    if (*alive) on_pod(type, pod, before);
  });
}

void PodControl::on_pod(store::EventType type, const PodViewPtr& pod, const PodViewPtr& before) {
  for (const PodViewPtr& view : {pod, before}) {
    if (view == nullptr || view->owner_kind != kind_) continue;
    const std::string key = key_of(view->ns, view->owner_name);
    expectations_.seen(key, type, *pod);
    enqueue_(key);
  }
  if (type == store::EventType::Deleted || !pod->owner_uid.empty()) return;
  const std::string prefix = pod->ns + "/";
  for (auto it = selectors_.lower_bound(prefix);
       it != selectors_.end() && it->first.starts_with(prefix); ++it) {
    if (it->second.matches(pod->labels)) enqueue_(it->first);
  }
}

std::string PodControl::note_owner(const api::Api::Change& change) {
  std::string key = key_of(*change.object);
  if (change.type == store::EventType::Deleted) {
    selectors_.erase(key);
    expectations_.forget(key);
  } else {
    selectors_[key] = api::LabelSelector::from_object(change.object->get("spec", "selector"));
  }
  return key;
}

std::vector<PodViewPtr> PodControl::claim(const Doc& owner, const api::LabelSelector& selector) {
  std::vector<PodViewPtr> mine;
  const std::string& uid = api::uid_of(owner);
  const std::string& ns = api::namespace_of(owner);
  for (const PodViewPtr& pod : pods_.owned_by(uid)) {
    if (selector.matches(pod->labels)) {
      mine.push_back(pod);
      continue;
    }
    Doc patch = Doc::object();  // it says it is somebody else's now
    patch.at("metadata").set("uid", pod->uid);
    patch.at("metadata")
        .set("ownerReferences",
             Doc::array().push(Doc::object().set("$patch", "delete").set("uid", uid)));
    static_cast<void>(api_.patch("pods", ns, pod->name, api::PatchType::Strategic, patch));
  }
  if (api::is_deleting(owner)) return mine;
  for (const PodViewPtr& pod : pods_.orphans_in(ns)) {
    if (pod->is_deleting || pod->is_finished() || !selector.matches(pod->labels)) continue;
    Doc patch = Doc::object();
    patch.at("metadata").set("uid", pod->uid);
    patch.at("metadata").set("ownerReferences", Doc::array().push(controller_reference(owner)));
    const auto adopted = api_.patch("pods", ns, pod->name, api::PatchType::Strategic, patch);
    if (adopted.has_value()) mine.push_back(std::make_shared<const PodView>(view_of(*adopted)));
  }
  return mine;
}

api::ApiResult<Doc> PodControl::create(const std::string& key, const Doc& owner, Doc pod) {
  auto made = api_.create("pods", api::namespace_of(owner), std::move(pod));
  if (made.has_value()) {
    expectations_.created(key, api::uid_of(*made));
    write_event(api_, component_, owner, "Normal", "SuccessfulCreate",
                "Created pod: " + api::name_of(*made));
  } else {
    write_event(api_, component_, owner, "Warning", "FailedCreate",
                "Error creating: " + made.error().message);
  }
  return made;
}

api::ApiResult<void> PodControl::remove(const std::string& key, const Doc& owner,
                                        const PodView& pod) {
  auto removed = api_.remove("pods", pod.ns, pod.name,
                             Doc::object().set("preconditions", Doc::object().set("uid", pod.uid)));
  if (!removed.has_value() && removed.error().code == 404) return {};
  if (removed.has_value()) {
    expectations_.deleted(key, pod.uid);
    write_event(api_, component_, owner, "Normal", "SuccessfulDelete", "Deleted pod: " + pod.name);
  } else {
    write_event(api_, component_, owner, "Warning", "FailedDelete",
                "Error deleting: " + removed.error().message);
  }
  return removed;
}

bool goes_first(const PodView& a, const PodView& b,
                const std::map<std::string, int, std::less<>>& ranks) {
  if (a.node.empty() != b.node.empty()) return a.node.empty();
  const auto phase_rank = [](const PodView& pod) {
    return pod.phase == PodPhase::Pending ? 0 : (pod.phase == PodPhase::Unknown ? 1 : 2);
  };
  if (phase_rank(a) != phase_rank(b)) return phase_rank(a) < phase_rank(b);
  if (a.is_ready != b.is_ready) return !a.is_ready;
  if (a.deletion_cost != b.deletion_cost) return a.deletion_cost < b.deletion_cost;
  const auto crowd = [&](const PodView& pod) {
    const auto it = ranks.find(pod.node);
    return it == ranks.end() ? 0 : it->second;
  };
  if (crowd(a) != crowd(b)) return crowd(a) > crowd(b);
  if (a.is_ready && a.ready_since != b.ready_since) return a.ready_since > b.ready_since;
  if (a.restarts != b.restarts) return a.restarts > b.restarts;
  if (a.created != b.created) return a.created > b.created;
  return a.name > b.name;
}

bool is_available(const PodView& pod, TimeUs min_ready, TimeUs now, TimeUs& next) {
  if (!pod.is_ready) return false;
  const TimeUs since = pod.ready_since + min_ready;
  if (min_ready == 0 || since <= now) return true;
  next = next == 0 ? since : std::min(next, since);
  return false;
}

}  // namespace jogak::controllers
