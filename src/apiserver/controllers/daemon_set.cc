// SPDX-License-Identifier: Apache-2.0
//
// The daemon set controller (pkg/controller/daemon of Kubernetes is the model): one pod on every
// node that the template fits, put there by the scheduler.
#include <algorithm>

#include <fmt/core.h>

#include "apiserver/controllers/daemon_parts.h"
#include "apiserver/controllers/events.h"
#include "apiserver/controllers/pod_control.h"
#include "apiserver/controllers/revisions.h"
#include "apiserver/controllers/scaled.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/controllers/workloads.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kTable = "daemonsets.apps";
constexpr std::string_view kComponent = "daemonset-controller";
constexpr std::string_view kGenerationNote = "deprecated.daemonset.template.generation";
constexpr HistoryOf kHistory = {.table = kTable, .hash_label = kRevisionHash};
constexpr std::size_t kPerTurn = 25;  // pods made or deleted before others get the loop
// In a large fleet changes are gathered for a while; every look goes over all nodes.
constexpr std::size_t kManyNodes = 200;
constexpr TimeUs kGatherSpan = 100 * kMsInUs;
constexpr TimeUs kFirstBackoff = kSecondInUs;
constexpr TimeUs kLongestBackoff = 15 * 60 * kSecondInUs;

class DaemonSets : public Controller {
 public:
  explicit DaemonSets(const ControllerContext& context)
      : api_(context.make_api("kube-controller-manager")),
        queue_(api_->loop(), [this](const std::string& key) { return sync(key); }),
        control_(*api_, context.pods, std::string(kComponent), "DaemonSet",
                 [this](const std::string& key) { ask(key); }) {
    following_ = api_->follow(kTable, [this](const api::Api::Change& change) { on_set(change); });
    nodes_handle_ =
        api_->follow("nodes", [this](const api::Api::Change& change) { on_node(change); });
    pods_handle_ = api_->follow("pods", [this](const api::Api::Change& change) {
      const Doc& pod = *change.object;
      if (api::controller_of(pod)["kind"].as_string() != "DaemonSet") return;
      const bool waits = change.type != store::EventType::Deleted &&
                         pod.get("spec", "nodeName").as_string().empty();
      if (waits) {
        targets_[api::uid_of(pod)] = target_node(pod);
      } else {
        targets_.erase(api::uid_of(pod));
      }
    });
  }

 private:
  struct Set {
    std::string uid;
    Doc pod_spec;                                  // of the template, as the fits were judged
    std::map<std::string, Fit, std::less<>> fits;  // by node
    bool is_asked = false;
  };
  struct Backoff {
    TimeUs span = 0, since = 0;
  };
  struct Plan {
    std::vector<std::string> nodes;  // that need a pod
    std::vector<PodViewPtr> removed;
  };

  void on_set(const api::Api::Change& change) {
    const std::string key = control_.note_owner(change);
    if (change.type == store::EventType::Deleted) {
      sets_.erase(key);
      return;
    }
    sets_.try_emplace(key);
    queue_.add(key);
  }

  void on_node(const api::Api::Change& change) {
    const std::string& name = api::name_of(*change.object);
    if (change.type == store::EventType::Deleted) {
      nodes_.erase(name);
    } else {
      Doc brief = Doc::object();
      brief.at("metadata").set("name", name).set("labels", api::meta(*change.object)["labels"]);
      brief.at("spec").set("taints", change.object->get("spec", "taints"));
      Doc& known = nodes_[name];
      if (known == brief) return;  // a heartbeat
      known = std::move(brief);
    }
    for (auto& [key, set] : sets_) {
      set.fits.erase(name);
      ask(key);
    }
  }

  void ask(const std::string& key) {
    const auto it = sets_.find(key);
    if (it == sets_.end() || it->second.is_asked) return;
    if (nodes_.size() <= kManyNodes) {
      queue_.add(key);
    } else {
      it->second.is_asked = true;
      queue_.add_after(kGatherSpan, key);
    }
  }

  Outcome sync(const std::string& key) {
    const auto it = sets_.find(key);
    if (it == sets_.end()) return Outcome::Done;
    it->second.is_asked = false;
    const auto [ns, name] = split_key(key);
    const auto set = api_->get(kTable, ns, name);
    if (!set.has_value() || api::is_deleting(*set)) return Outcome::Done;
    if (set->get("spec", "selector").empty()) {
      write_event(*api_, kComponent, *set, "Warning", "SelectingAll",
                  "This daemon set is selecting all pods. A non-empty selector is required.");
      return Outcome::Done;
    }
    std::vector<Doc> revisions = revisions_of(*api_, *set);
    const auto current = keep_current_revision(*api_, kHistory, *set, revisions);
    if (!current.has_value()) return Outcome::Retry;
    const std::string hash = api::meta(*current)["labels"][kRevisionHash].as_string();
    judge(it->second, *set);
    const DaemonsByNode pods = pods_by_node(*set);
    bool is_right = true;
    const bool is_settled = control_.is_settled(key);
    if (is_settled) is_right = manage(key, it->second, *set, pods, hash);
    if (is_right && is_settled) is_right = drop_history(*set, revisions, *current);
    const bool is_written = write_status(key, it->second, *set, hash, is_settled);
    return is_right && is_written ? Outcome::Done : Outcome::Retry;
  }

  // What is not known yet of where the pods may be.
  void judge(Set& known, const Doc& set) {
    const Doc& spec = set.get("spec", "template", "spec");
    if (known.uid != api::uid_of(set) || known.pod_spec != spec) {
      known.uid = api::uid_of(set);
      known.pod_spec = spec;
      known.fits.clear();
    }
    if (known.fits.size() == nodes_.size()) return;
    const Doc full = daemon_spec(set);
    for (const auto& [name, node] : nodes_) {
      if (!known.fits.contains(name)) known.fits.emplace(name, fit_on(full, node));
    }
  }

  DaemonsByNode pods_by_node(const Doc& set) {
    DaemonsByNode pods;
    const auto selector = api::LabelSelector::from_object(set.get("spec", "selector"));
    for (const PodViewPtr& pod : control_.claim(set, selector)) {
      if (pod->is_finished() && pod->is_deleting) continue;
      const std::string node = node_of(*pod);
      if (!node.empty()) pods[node].push_back(pod);
    }
    for (auto& [node, on_node] : pods) sort_daemons(on_node);
    return pods;
  }

  std::string node_of(const PodView& pod) const {
    if (!pod.node.empty()) return pod.node;
    const auto it = targets_.find(pod.uid);
    if (it != targets_.end()) return it->second;
    const auto object = api_->get("pods", pod.ns, pod.name);  // adopted a moment ago
    return object.has_value() ? target_node(*object) : "";
  }

  bool manage(const std::string& key, const Set& known, const Doc& set, const DaemonsByNode& pods,
              const std::string& hash) {
    Plan plan;
    for (const auto& [node, fit] : known.fits) {
      const auto on_node = pods.find(node);
      if (on_node == pods.end()) {
        if (fit.runs) plan.nodes.push_back(node);
      } else if (fit.stays) {
        look_after(key, set, node, fit, on_node->second, hash, plan);
      } else {
        for (const PodViewPtr& pod : on_node->second) {
          if (!pod->is_deleting) plan.removed.push_back(pod);
        }
      }
    }
    for (const auto& [node, on_node] : pods) {  // pods that wait for a node that is gone
      if (known.fits.contains(node)) continue;
      for (const PodViewPtr& pod : on_node) {
        if (pod->node.empty() && !pod->is_deleting) plan.removed.push_back(pod);
      }
    }
    if (!carry_out(key, set, plan, hash)) return false;
    if (!control_.is_settled(key)) return true;
    const bool rolls = set.get("spec", "updateStrategy", "type").as_string() == "RollingUpdate";
    return !rolls || roll(key, known, set, pods, hash);
  }

  // One node on which the pods may stay: the finished go, and all but one of the others.
  void look_after(const std::string& key, const Doc& set, const std::string& node, const Fit& fit,
                  const std::vector<PodViewPtr>& on_node, const std::string& hash, Plan& plan) {
    std::vector<PodViewPtr> running;
    for (const PodViewPtr& pod : on_node) {
      if (pod->is_deleting) continue;
      if (pod->phase == PodPhase::Failed) {
        if (!may_replace(key, set, node)) continue;
        write_event(*api_, kComponent, set, "Warning", "FailedDaemonPod",
                    fmt::format("Found failed daemon pod {}/{} on node {}, will try to kill it",
                                pod->ns, pod->name, node));
        plan.removed.push_back(pod);
      } else if (pod->phase == PodPhase::Succeeded) {
        write_event(
            *api_, kComponent, set, "Normal", "SucceededDaemonPod",
            fmt::format("Found succeeded daemon pod {}/{} on node {}, will try to delete it",
                        pod->ns, pod->name, node));
        plan.removed.push_back(pod);
      } else {
        running.push_back(pod);
      }
    }
    if (!allows_surge(set)) {
      for (std::size_t i = 1; i < running.size(); ++i) plan.removed.push_back(running[i]);
    } else if (running.empty()) {
      if (fit.runs) plan.nodes.push_back(node);
    } else if (running.size() > 1) {
      keep_two(key, set, running, hash, plan);
    }
  }

  // Surging: the oldest of the new and of the old template, while the new one is not up.
  void keep_two(const std::string& key, const Doc& set, const std::vector<PodViewPtr>& running,
                const std::string& hash, Plan& plan) {
    PodViewPtr fresh, old;
    for (const PodViewPtr& pod : running) {
      PodViewPtr& place = pod->label(kRevisionHash) == hash ? fresh : old;
      if (place == nullptr) {
        place = pod;
      } else {
        plan.removed.push_back(pod);
      }
    }
    if (fresh == nullptr || old == nullptr) return;
    TimeUs next = 0;
    const TimeUs min_ready = set.get("spec", "minReadySeconds").as_int() * kSecondInUs;
    if (!old->is_ready || is_available(*fresh, min_ready, api_->now(), next)) {
      plan.removed.push_back(old);
    }
    if (next != 0) queue_.add_at(next, key);
  }

  // A daemon that fails again and again is replaced ever more slowly.
  bool may_replace(const std::string& key, const Doc& set, const std::string& node) {
    const TimeUs now = api_->now();
    std::erase_if(backoffs_, [&](const auto& entry) {
      return now - entry.second.since > 2 * kLongestBackoff;
    });
    Backoff& backoff = backoffs_[fmt::format(
        "{}/{}/{}", api::uid_of(set), set.get("status", "observedGeneration").as_int(), node)];
    if (now - backoff.since < backoff.span) {
      queue_.add_at(backoff.since + backoff.span, key);
      return false;
    }
    backoff.span = backoff.span == 0 ? kFirstBackoff : std::min(2 * backoff.span, kLongestBackoff);
    backoff.since = now;
    return true;
  }

  bool carry_out(const std::string& key, const Doc& set, const Plan& plan,
                 const std::string& hash) {
    const std::size_t made = std::min(plan.nodes.size(), kPerTurn);
    for (std::size_t i = 0; i < made; ++i) {
      auto created = control_.create(key, set, daemon_for(set, plan.nodes[i], hash));
      if (created.has_value()) continue;
      const auto& causes = created.error().causes;
      if (!causes.empty() && causes[0].reason == "NamespaceTerminating") return true;
      return false;
    }
    const std::size_t removed = std::min(plan.removed.size(), kPerTurn);
    for (std::size_t i = 0; i < removed; ++i) {
      if (!control_.remove(key, set, *plan.removed[i]).has_value()) return false;
    }
    if (made < plan.nodes.size() || removed < plan.removed.size()) queue_.add(key);
    return true;
  }

  static Doc daemon_for(const Doc& set, const std::string& node, const std::string& hash) {
    Doc pod = pod_from_template(set.get("spec", "template"), set);
    pod.set("spec", daemon_spec(set));
    pin_to_node(pod.at("spec"), node);
    Doc& labels = pod.at("metadata", "labels");
    const Doc& generation = api::meta(set)["annotations"][kGenerationNote];
    if (!generation.is_null()) labels.set(kTemplateGeneration, generation);
    labels.set(kRevisionHash, hash);
    return pod;
  }

  bool roll(const std::string& key, const Set& known, const Doc& set, const DaemonsByNode& pods,
            const std::string& hash) {
    const std::int64_t desired =
        std::ranges::count_if(known.fits, [](const auto& entry) { return entry.second.runs; });
    DaemonRules rules = rules_of(set, desired);
    rules.hash = hash;
    rules.now = api_->now();
    DaemonsByNode all = pods;  // a node without its pod counts as one that is not available
    for (const auto& [node, fit] : known.fits) {
      if (fit.runs) all.try_emplace(node);
    }
    const DaemonUpdate update = next_update(rules, all, known.fits);
    if (rules.next != 0) queue_.add_at(rules.next, key);
    return carry_out(key, set, {.nodes = update.nodes, .removed = update.removed}, hash);
  }

  bool drop_history(const Doc& set, const std::vector<Doc>& revisions, const Doc& current) {
    if (revisions.size() <= 1) return true;
    std::set<std::string, std::less<>> live = {
        api::meta(current)["labels"][kRevisionHash].as_string()};
    const auto selector = api::LabelSelector::from_object(set.get("spec", "selector"));
    for (const PodViewPtr& pod : control_.claim(set, selector)) {
      live.emplace(pod->label(kRevisionHash));
    }
    std::vector<const Doc*> unused;
    for (const Doc& revision : revisions) {
      const bool is_live = live.contains(api::meta(revision)["labels"][kRevisionHash].as_string());
      if (!is_live) unused.push_back(&revision);
    }
    return drop_old_revisions(*api_, set, std::move(unused)).has_value();
  }

  bool write_status(const std::string& key, const Set& known, const Doc& set,
                    const std::string& hash, bool has_acted) {
    const auto now_set = api_->get(kTable, api::namespace_of(set), api::name_of(set));
    if (!now_set.has_value()) return true;
    std::int64_t desired = 0, current = 0, misplaced = 0, ready = 0, available = 0, updated = 0;
    TimeUs next = 0;
    const TimeUs min_ready = set.get("spec", "minReadySeconds").as_int() * kSecondInUs;
    const std::string& generation = api::meta(set)["annotations"][kGenerationNote].as_string();
    const DaemonsByNode pods = pods_by_node(set);
    for (const auto& [node, fit] : known.fits) {
      const auto on_node = pods.find(node);
      if (fit.runs) ++desired;
      if (on_node == pods.end()) continue;
      if (!fit.runs) {
        ++misplaced;
        continue;
      }
      ++current;
      const PodView& pod = *on_node->second.front();
      if (pod.is_ready) ++ready;
      if (is_available(pod, min_ready, api_->now(), next)) ++available;
      const bool is_updated = pod.label(kRevisionHash) == hash ||
                              (!generation.empty() && pod.label(kTemplateGeneration) == generation);
      if (is_updated) ++updated;
    }
    if (next != 0) queue_.add_at(next, key);
    Doc changed = *now_set;
    Doc& status = changed.at("status");
    put_count(status, "desiredNumberScheduled", desired, true);
    put_count(status, "currentNumberScheduled", current, true);
    put_count(status, "numberMisscheduled", misplaced, true);
    put_count(status, "numberReady", ready, true);
    put_count(status, "updatedNumberScheduled", updated);
    put_count(status, "numberAvailable", available);
    put_count(status, "numberUnavailable", desired - available);
    if (has_acted) status.set("observedGeneration", api::meta(set)["generation"].as_int());
    if (status == (*now_set)["status"]) return true;
    return api_->update(kTable, std::move(changed), "status").has_value();
  }

  std::unique_ptr<api::Api> api_;
  WorkQueue queue_;
  PodControl control_;
  std::map<std::string, Set, std::less<>> sets_;             // by ns/name
  std::map<std::string, Doc, std::less<>> nodes_;            // name, labels and taints of each
  std::map<std::string, std::string, std::less<>> targets_;  // uid of a waiting pod: its node
  std::map<std::string, Backoff, std::less<>> backoffs_;
  std::shared_ptr<void> following_, nodes_handle_, pods_handle_;
};

}  // namespace

std::unique_ptr<Controller> daemon_set_controller(const ControllerContext& context) {
  return std::make_unique<DaemonSets>(context);
}

}  // namespace jogak::controllers
