// SPDX-License-Identifier: Apache-2.0
//
// What controllers and simulated kubelets know of every pod: a few fields each, kept in step with
// the server, found by key, namespace, node and controller. Whole pods are read when needed; fifty
// thousand of them parsed would take a gigabyte.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/registry/api.h"

namespace jogak::controllers {

enum class PodPhase : std::uint8_t { Pending, Running, Succeeded, Failed, Unknown };

struct PodView {
  std::string ns, name, uid;
  std::uint64_t revision = 0;  // metadata.resourceVersion
  api::Labels labels;
  std::string owner_kind, owner_name, owner_uid;  // of the controller; "" for none
  std::string node;                               // spec.nodeName
  PodPhase phase = PodPhase::Pending;
  bool is_ready = false;
  TimeUs ready_since = 0;  // lastTransitionTime of Ready=True
  bool is_deleting = false;
  TimeUs deletion_end = 0;  // deletionTimestamp
  bool has_finalizers = false;
  TimeUs created = 0;
  TimeUs ended = 0;                // its last container, else when it became unready, else made
  std::int64_t restarts = 0;       // of its containers together
  std::int64_t deletion_cost = 0;  // controller.kubernetes.io/pod-deletion-cost

  bool is_finished() const { return phase == PodPhase::Succeeded || phase == PodPhase::Failed; }
  std::string key() const { return ns + "/" + name; }
  std::string_view label(std::string_view key) const;  // "" when absent
};
using PodViewPtr = std::shared_ptr<const PodView>;

PodView view_of(const Doc& pod);

class PodIndex {
 public:
  explicit PodIndex(api::Api& api);

  // `pod` after the change (Deleted: the last state), `before` null for Added.
  using Listener =
      std::function<void(store::EventType type, const PodViewPtr& pod, const PodViewPtr& before)>;
  // Listeners added later are told of all pods at once, as Added.
  void listen(Listener listener);

  PodViewPtr find(std::string_view ns, std::string_view name) const;
  // In the order of their keys.
  std::vector<PodViewPtr> in_namespace(std::string_view ns) const;
  std::vector<PodViewPtr> on_node(std::string_view node) const;
  std::vector<PodViewPtr> owned_by(std::string_view uid) const;
  std::vector<PodViewPtr> orphans_in(std::string_view ns) const;  // without a controller
  std::vector<PodViewPtr> all() const;
  std::size_t size() const { return pods_.size(); }

 private:
  void on_change(const api::Api::Change& change);
  void link(const PodView& pod, bool is_in);

  std::vector<PodViewPtr> found_in(
      const std::map<std::string, std::set<std::string, std::less<>>, std::less<>>& map,
      std::string_view at) const;

  using Keys = std::set<std::string, std::less<>>;
  std::map<std::string, PodViewPtr, std::less<>> pods_;  // by ns/name
  std::map<std::string, Keys, std::less<>> by_node_, by_owner_, orphans_;
  std::vector<Listener> listeners_;
  std::shared_ptr<void> following_;
};

}  // namespace jogak::controllers
