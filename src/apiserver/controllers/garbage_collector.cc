// SPDX-License-Identifier: Apache-2.0
//
// The garbage collector (pkg/controller/garbagecollector of Kubernetes is the model): a graph of
// all objects by uid, kept by following every table; what lost all its owners is deleted, after the
// server itself was asked.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "apiserver/controllers/object_controllers.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kOrphan = "orphan";
constexpr std::string_view kForeground = "foregroundDeletion";
constexpr std::string_view kCrds = "customresourcedefinitions.apiextensions.k8s.io";
constexpr TimeUs kNewTables = kSecondInUs;  // after a definition changed

class GarbageCollector : public Controller {
 public:
  explicit GarbageCollector(const ControllerContext& context)
      : api_(context.make_api("kube-controller-manager")),
        queue_(api_->loop(), [this](const std::string& uid) { return sync(uid); }) {
    follow_tables();
    crds_ = api_->follow(kCrds, [this](const api::Api::Change&) {
      api_->loop().after(kNewTables, [this, alive = alive_] {
        if (*alive) follow_tables();
      });
    });
  }
  ~GarbageCollector() override { *alive_ = false; }

 private:
  struct Owner {
    std::string uid, table, name;
    bool blocks = false;
    friend bool operator==(const Owner&, const Owner&) = default;
  };
  struct Node {
    std::string table, ns, name;
    std::vector<Owner> owners;
    bool is_deleting = false, is_orphaning = false, is_foreground = false;
  };

  void follow_tables() {
    for (const api::Api::Table& table : api_->tables()) {
      kinds_[{table.api_version, table.kind}] = table;
      // events come and go by the thousand and own nothing
      if (table.name == "events" || following_.contains(table.name)) continue;
      following_[table.name] = api_->follow(
          table.name,
          [this, name = table.name](const api::Api::Change& change) { on_change(name, change); });
    }
  }

  std::string table_of(const Doc& reference) const {
    const auto it =
        kinds_.find({reference["apiVersion"].as_string(), reference["kind"].as_string()});
    return it == kinds_.end() ? "" : it->second.name;
  }

  void on_change(const std::string& table, const api::Api::Change& change) {
    const Doc& object = *change.object;
    const std::string& uid = api::uid_of(object);
    if (change.type == store::EventType::Deleted) {
      forget(uid);
      // whoever it owned may be without an owner now; whoever owns it may wait for it
      if (const auto it = dependents_.find(uid); it != dependents_.end()) {
        for (const std::string& dependent : it->second) queue_.add(dependent);
      }
      return;
    }
    Node node{.table = table,
              .ns = api::namespace_of(object),
              .name = api::name_of(object),
              .owners = {},
              .is_deleting = api::is_deleting(object),
              .is_orphaning = api::is_deleting(object) && api::has_finalizer(object, kOrphan),
              .is_foreground = api::is_deleting(object) && api::has_finalizer(object, kForeground)};
    for (const Doc& reference : api::meta(object)["ownerReferences"].items()) {
      node.owners.push_back({.uid = reference["uid"].as_string(),
                             .table = table_of(reference),
                             .name = reference["name"].as_string(),
                             .blocks = reference["blockOwnerDeletion"].as_bool()});
    }
    unlink(uid);
    const bool has_work = !node.owners.empty() || node.is_orphaning || node.is_foreground;
    for (const Owner& owner : node.owners) dependents_[owner.uid].insert(uid);
    nodes_[uid] = std::move(node);
    if (has_work) queue_.add(uid);
  }

  void unlink(const std::string& uid) {
    const auto it = nodes_.find(uid);
    if (it == nodes_.end()) return;
    for (const Owner& owner : it->second.owners) {
      const auto list = dependents_.find(owner.uid);
      if (list == dependents_.end()) continue;
      list->second.erase(uid);
      if (list->second.empty()) dependents_.erase(list);
    }
  }

  void forget(const std::string& uid) {
    const auto it = nodes_.find(uid);
    if (it == nodes_.end()) return;
    for (const Owner& owner : it->second.owners) {
      const auto of_owner = nodes_.find(owner.uid);
      if (of_owner != nodes_.end() && of_owner->second.is_foreground) queue_.add(owner.uid);
    }
    unlink(uid);
    nodes_.erase(uid);
  }

  std::vector<std::string> dependents_of(const std::string& uid) const {
    const auto it = dependents_.find(uid);
    if (it == dependents_.end()) return {};
    return {it->second.begin(), it->second.end()};
  }

  Outcome sync(const std::string& uid) {
    const auto it = nodes_.find(uid);
    if (it == nodes_.end()) return Outcome::Done;
    const Node node = it->second;  // what follows may change the graph
    if (node.is_orphaning) return orphan(uid, node);
    if (node.is_foreground) {
      const Outcome outcome = delete_foreground(uid, node);
      if (outcome != Outcome::Done) return outcome;
    }
    return node.owners.empty() || node.is_deleting ? Outcome::Done : check_owners(uid, node);
  }

  enum class Presence : std::uint8_t { Solid, Waiting, Absent };

  Presence presence(const Node& dependent, const Owner& owner) const {
    if (owner.table.empty()) return Presence::Solid;  // a kind that is not served: no verdict
    const auto known = nodes_.find(owner.uid);
    if (known != nodes_.end() && known->second.is_foreground) return Presence::Waiting;
    // An owner in another namespace is no owner; a cluster-wide one has no namespace.
    auto object = api_->get(owner.table, dependent.ns, owner.name);
    if (!object.has_value()) object = api_->get(owner.table, "", owner.name);
    if (!object.has_value() || api::uid_of(*object) != owner.uid) return Presence::Absent;
    return Presence::Solid;
  }

  Outcome check_owners(const std::string& uid, const Node& node) {
    std::set<std::string> absent, waiting;
    bool has_solid = false;
    for (const Owner& owner : node.owners) {
      switch (presence(node, owner)) {
        case Presence::Solid:
          has_solid = true;
          break;
        case Presence::Waiting:
          waiting.insert(owner.uid);
          break;
        case Presence::Absent:
          absent.insert(owner.uid);
          break;
      }
    }
    if (has_solid) {
      absent.insert(waiting.begin(), waiting.end());
      return absent.empty() ? Outcome::Done : drop_references(uid, node, absent);
    }
    const auto live = api_->get(node.table, node.ns, node.name);
    if (!live.has_value() || api::uid_of(*live) != uid) return Outcome::Done;
    std::string policy = "Background";
    if (!waiting.empty() && !dependents_of(uid).empty()) policy = "Foreground";
    if (api::has_finalizer(*live, kOrphan)) policy = "Orphan";
    if (api::has_finalizer(*live, kForeground)) policy = "Foreground";
    return remove(uid, node, policy);
  }

  Outcome remove(const std::string& uid, const Node& node, std::string_view policy) {
    const auto removed = api_->remove(node.table, node.ns, node.name,
                                      Doc::object()
                                          .set("propagationPolicy", policy)
                                          .set("preconditions", Doc::object().set("uid", uid)));
    const bool is_gone =
        removed.has_value() || removed.error().code == 404 || removed.error().code == 409;
    return is_gone ? Outcome::Done : Outcome::Retry;
  }

  Outcome drop_references(const std::string& uid, const Node& node,
                          const std::set<std::string>& gone) {
    auto object = api_->get(node.table, node.ns, node.name);
    if (!object.has_value() || api::uid_of(*object) != uid) return Outcome::Done;
    Doc kept = Doc::array();
    for (const Doc& reference : api::meta(*object)["ownerReferences"].items()) {
      if (!gone.contains(reference["uid"].as_string())) kept.push(reference);
    }
    return write_metadata(node, uid, "ownerReferences", std::move(kept));
  }

  Outcome write_metadata(const Node& node, const std::string& uid, std::string_view member,
                         Doc value) {
    Doc patch = Doc::object();
    patch.at("metadata").set("uid", uid).set(member, value.empty() ? Doc() : std::move(value));
    const auto written = api_->patch(node.table, node.ns, node.name, api::PatchType::Merge, patch);
    const bool is_gone = !written.has_value() && written.error().code == 404;
    return written.has_value() || is_gone ? Outcome::Done : Outcome::Retry;
  }

  Outcome drop_finalizer(const std::string& uid, const Node& node, std::string_view name) {
    const auto object = api_->get(node.table, node.ns, node.name);
    if (!object.has_value() || api::uid_of(*object) != uid) return Outcome::Done;
    Doc kept = Doc::array();
    for (const Doc& finalizer : api::meta(*object)["finalizers"].items()) {
      if (finalizer.as_string() != name) kept.push(finalizer);
    }
    return write_metadata(node, uid, "finalizers", std::move(kept));
  }

  Outcome orphan(const std::string& uid, const Node& node) {
    for (const std::string& dependent : dependents_of(uid)) {
      const auto it = nodes_.find(dependent);
      if (it == nodes_.end()) continue;
      const Node of_dependent = it->second;
      if (drop_references(dependent, of_dependent, {uid}) == Outcome::Retry) {
        return Outcome::Retry;
      }
    }
    return drop_finalizer(uid, node, kOrphan);
  }

  Outcome delete_foreground(const std::string& uid, const Node& node) {
    bool is_blocked = false;
    for (const std::string& dependent : dependents_of(uid)) {
      const auto it = nodes_.find(dependent);
      if (it == nodes_.end()) continue;
      const bool blocks = std::ranges::any_of(
          it->second.owners, [&](const Owner& owner) { return owner.uid == uid && owner.blocks; });
      is_blocked = is_blocked || blocks;
      if (!it->second.is_deleting) queue_.add(dependent);
    }
    return is_blocked ? Outcome::Done : drop_finalizer(uid, node, kForeground);
  }

  std::unique_ptr<api::Api> api_;
  WorkQueue queue_;
  std::map<std::pair<std::string, std::string>, api::Api::Table> kinds_;
  std::map<std::string, Node, std::less<>> nodes_;                        // by uid
  std::map<std::string, std::set<std::string>, std::less<>> dependents_;  // uids by owner's uid
  std::map<std::string, std::shared_ptr<void>, std::less<>> following_;
  std::shared_ptr<void> crds_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::unique_ptr<Controller> garbage_collector(const ControllerContext& context) {
  return std::make_unique<GarbageCollector>(context);
}

}  // namespace jogak::controllers
