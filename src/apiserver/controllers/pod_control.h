// SPDX-License-Identifier: Apache-2.0
//
// What controllers that own pods have in common: making them from a template, taking in and letting
// go by selector, and waiting until one's own writes have come back, so that no pod is made twice.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/controllers/pod_index.h"
#include "apiserver/object/selector.h"
#include "apiserver/registry/api.h"

namespace jogak::controllers {

// An ownerReference with controller and blockOwnerDeletion set.
Doc controller_reference(const Doc& owner);
// Metadata and spec of the template, owned by `owner` (kind, apiVersion, metadata present).
Doc pod_from_template(const Doc& pod_template, const Doc& owner);

// Writes of one controller that its PodIndex has not seen yet, per owner's key.
class Expectations {
 public:
  void created(std::string_view key, std::string_view uid) {
    pending_[std::string(key)].insert("+" + std::string(uid));
  }
  void deleted(std::string_view key, std::string_view uid) {
    pending_[std::string(key)].insert("-" + std::string(uid));
  }
  // A change that the index shows.
  void seen(std::string_view key, store::EventType type, const PodView& pod);
  bool met(std::string_view key) const { return !pending_.contains(key); }
  void forget(std::string_view key);

 private:
  std::map<std::string, std::set<std::string>, std::less<>> pending_;
};

class PodControl {
 public:
  // `component` is the source of events, "replicaset-controller"; `kind` of the owners.
  PodControl(api::Api& api, PodIndex& pods, std::string component, std::string kind,
             std::function<void(const std::string& key)> enqueue);
  ~PodControl() { *alive_ = false; }
  PodControl(const PodControl&) = delete;
  PodControl& operator=(const PodControl&) = delete;

  // To be told of every change of an owner (selector in spec.selector), whose key it returns:
  // owners that take in pods by selector are told of orphans that match.
  std::string note_owner(const api::Api::Change& change);

  // The pods of an owner after taking in and letting go as its selector says.
  std::vector<PodViewPtr> claim(const Doc& owner, const api::LabelSelector& selector);

  // Creates a pod, with its event; the refusal when it could not be.
  api::ApiResult<Doc> create(const std::string& key, const Doc& owner, Doc pod);
  // Deletes it, with its event. A pod that is gone already is no failure.
  api::ApiResult<void> remove(const std::string& key, const Doc& owner, const PodView& pod);
  // The same for writes that the owner makes itself, with events of its own.
  void note_created(std::string_view key, std::string_view uid) { expectations_.created(key, uid); }
  void note_deleted(std::string_view key, std::string_view uid) { expectations_.deleted(key, uid); }
  bool is_settled(std::string_view key) const { return expectations_.met(key); }

 private:
  void on_pod(store::EventType type, const PodViewPtr& pod, const PodViewPtr& before);

  api::Api& api_;
  PodIndex& pods_;
  std::string component_, kind_;
  std::function<void(const std::string&)> enqueue_;
  Expectations expectations_;
  std::map<std::string, api::LabelSelector, std::less<>> selectors_;  // by owner's key
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// The order in which surplus pods go (pkg/controller ActivePodsWithRanks): true when `a` goes
// first. `ranks` counts the pods of the same owner on each node.
bool goes_first(const PodView& a, const PodView& b,
                const std::map<std::string, int, std::less<>>& ranks);

// Ready for at least `min_ready`; `next` becomes the moment when another might be.
bool is_available(const PodView& pod, TimeUs min_ready, TimeUs now, TimeUs& next);

}  // namespace jogak::controllers
