// SPDX-License-Identifier: Apache-2.0
// Written from the rules, not from the filters; each rule loops over everything each time.
#include "test/reference/reference_scheduler.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace jogak::reference {

using core::GpuAsk;
using core::Labels;
using core::LabelSelector;
using core::NodeSelectorTerm;
using core::NodeSpec;
using core::PodAffinityTerm;
using core::PodShape;
using core::Requirement;
using core::SelectorOp;
using core::SpreadConstraint;
using core::TaintEffect;
using core::Toleration;

namespace {

std::optional<std::string> value_of(const Labels& labels, const std::string& key) {
  for (const auto& [k, v] : labels) {
    if (k == key) return v;
  }
  return std::nullopt;
}

std::optional<long long> whole_number(const std::string& text) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool holds_for(const Requirement& r, const std::optional<std::string>& value) {
  const bool listed = value && std::count(r.values.begin(), r.values.end(), *value) > 0;
  if (r.op == SelectorOp::In) return listed;
  if (r.op == SelectorOp::NotIn) return !listed;
  if (r.op == SelectorOp::Exists) return value.has_value();
  if (r.op == SelectorOp::DoesNotExist) return !value.has_value();
  if (!value || r.values.size() != 1) return false;
  const auto left = whole_number(*value);
  const auto right = whole_number(r.values[0]);
  if (!left || !right) return false;
  return r.op == SelectorOp::Gt ? *left > *right : *left < *right;
}

bool all_hold(const std::vector<Requirement>& list, const Labels& labels) {
  for (const Requirement& r : list) {
    if (!holds_for(r, value_of(labels, r.key))) return false;
  }
  return true;
}

// A term with a comparison that is no number is skipped, so it matches nothing.
bool is_readable(const NodeSelectorTerm& term) {
  for (const Requirement& r : term.labels) {
    const bool compares = r.op == SelectorOp::Gt || r.op == SelectorOp::Lt;
    if (compares && (r.values.size() != 1 || !whole_number(r.values[0]))) return false;
  }
  return true;
}

bool term_matches(const NodeSelectorTerm& term, const NodeSpec& node) {
  if (term.labels.empty() && term.fields.empty()) return false;
  if (!is_readable(term) || !all_hold(term.labels, node.labels)) return false;
  for (const Requirement& field : term.fields) {
    if (!holds_for(field, node.name)) return false;
  }
  return true;
}

bool tolerates(const Toleration& t, const std::string& key, const std::string& value,
               TaintEffect effect) {
  const bool effect_ok = !t.effect.has_value() || *t.effect == effect;
  const bool key_ok = t.key.empty() || t.key == key;
  return effect_ok && key_ok && (t.exists || t.value == value);
}

std::int64_t amount_of(const core::ResourceList& list, const std::string& name) {
  for (const auto& [n, amount] : list) {
    if (n == name) return amount;
  }
  return 0;
}

}  // namespace

// ---- what is known --------------------------------------------------------------------------

void ReferenceScheduler::set_node(const NodeSpec& spec) {
  nodes_[spec.name] = spec;
  for (auto& [key, pod] : pods_) {
    if (pod.node == spec.name) settle_holds(pod, spec);
  }
}

void ReferenceScheduler::remove_node(const std::string& name) {
  if (nodes_.erase(name) == 0) return;
  for (auto& [key, pod] : pods_) {
    if (pod.nominated == name) pod.nominated.clear();
  }
}

void ReferenceScheduler::set_pod(const core::PodSpec& spec) {
  RefPod pod;
  pod.spec = spec;
  pod.node = spec.bound_node;
  if (pod.node.empty() && nodes_.contains(spec.nominated_node)) pod.nominated = spec.nominated_node;
  pod.holds = spec.holds.value_or(std::vector<core::GpuHold>{});
  pod.holds_known = spec.shape.gpu.kind == GpuAsk::None || spec.holds.has_value();
  if (nodes_.contains(pod.node)) settle_holds(pod, nodes_.at(pod.node));
  pods_[{spec.ns, spec.name}] = std::move(pod);
}

void ReferenceScheduler::remove_pod(const std::string& ns, const std::string& name) {
  pods_.erase({ns, name});
}

void ReferenceScheduler::set_terminating(const std::string& ns, const std::string& name) {
  if (const auto it = pods_.find({ns, name}); it != pods_.end()) it->second.spec.terminating = true;
}

void ReferenceScheduler::nominate(const std::string& ns, const std::string& name,
                                  const std::string& node) {
  const auto it = pods_.find({ns, name});
  if (it == pods_.end() || !it->second.node.empty()) return;
  it->second.nominated = nodes_.contains(node) ? node : "";
}

void ReferenceScheduler::place(const std::string& ns, const std::string& name,
                               const std::string& node, const std::vector<core::GpuHold>& holds) {
  RefPod& pod = pods_.at({ns, name});
  pod.node = node;
  pod.nominated.clear();
  pod.holds = holds;
  pod.holds_known = true;
}

std::vector<const NodeSpec*> ReferenceScheduler::nodes_in_order() const {
  std::vector<const NodeSpec*> nodes;
  for (const auto& [name, node] : nodes_) nodes.push_back(&node);  // by name
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const NodeSpec* a, const NodeSpec* b) { return a->order < b->order; });
  return nodes;
}

// Pods on nodes that do not exist count nowhere.
ReferenceScheduler::Running ReferenceScheduler::running() const {
  Running running;
  for (const auto& [key, pod] : pods_) {
    if (nodes_.contains(pod.node)) running.push_back(&pod);
  }
  return running;
}

// ---- the question ---------------------------------------------------------------------------

std::vector<std::string> ReferenceScheduler::feasible(const std::string& ns,
                                                      const std::string& name) const {
  const RefPod& pod = pods_.at({ns, name});
  if (pod.spec.terminating || !pod.spec.shape.gates.empty()) return {};
  const auto fits = [&](const NodeSpec& node) {
    return refusal_beside_nominated(pod, node).empty();
  };
  if (!pod.nominated.empty() && fits(nodes_.at(pod.nominated))) return {pod.nominated};
  std::vector<std::string> names;
  for (const NodeSpec* node : nodes_in_order()) {
    if (fits(*node)) names.push_back(node->name);
  }
  return names;
}

std::string ReferenceScheduler::explain(const std::string& ns, const std::string& name) const {
  std::string text;
  for (const NodeSpec* node : nodes_in_order()) {
    const std::string why = refusal_beside_nominated(pods_.at({ns, name}), *node);
    text += " " + node->name + ": " + (why.empty() ? "fits" : why) + ";";
  }
  return text;
}

// It must fit beside the pods that were promised room there, and also without them.
std::string ReferenceScheduler::refusal_beside_nominated(const RefPod& pod,
                                                         const NodeSpec& node) const {
  Running with = running();
  std::vector<RefPod> seated;
  seated.reserve(pods_.size());  // pointers into it stay valid
  for (const auto& [key, other] : pods_) {
    if (&other == &pod || other.nominated != node.name || !other.node.empty()) continue;
    if (!other.spec.shape.gates.empty()) continue;
    if (other.spec.shape.priority < pod.spec.shape.priority) continue;
    RefPod seat = other;
    seat.node = node.name;
    std::vector<const RefPod*> there;
    for (const RefPod* p : with) {
      if (p->node == node.name) there.push_back(p);
    }
    const auto guess = guess_devices(seat.spec.shape.gpu, node, there);
    seat.holds = guess.value_or(std::vector<core::GpuHold>{});
    seat.holds_known = guess.has_value();
    seated.push_back(std::move(seat));
    with.push_back(&seated.back());
  }
  if (!seated.empty()) {
    const std::string why = refusal(pod, node, with);
    if (!why.empty()) return why + " (promised room)";
  }
  return refusal(pod, node, running());
}

std::string ReferenceScheduler::refusal(const RefPod& pod, const NodeSpec& node,
                                        const Running& running) const {
  const PodShape& shape = pod.spec.shape;
  if (!cordon_excused(shape, node)) return "cordoned";
  if (!shape.node_name.empty() && shape.node_name != node.name) return "node name";
  if (!tolerated(shape, node)) return "taint";
  if (!wanted(shape, node)) return "node affinity";
  if (!ports_free(shape, node, running)) return "port";
  if (!resources_left(shape, node, running)) return "resources";
  if (!spread_kept(pod, node, running)) return "spread";
  if (!affinity_kept(pod, node, running)) return "pod affinity";
  for (const std::string& feature : shape.required_features) {
    if (std::count(node.declared_features.begin(), node.declared_features.end(), feature) == 0) {
      return "feature";
    }
  }
  std::vector<const RefPod*> there;
  for (const RefPod* p : running) {
    if (p->node == node.name) there.push_back(p);
  }
  return devices_left(shape.gpu, node, there) ? "" : "devices";
}

bool ReferenceScheduler::cordon_excused(const PodShape& shape, const NodeSpec& node) const {
  if (!node.unschedulable) return true;
  for (const Toleration& t : shape.tolerations) {
    if (tolerates(t, "node.kubernetes.io/unschedulable", "", TaintEffect::NoSchedule)) return true;
  }
  return false;
}

bool ReferenceScheduler::tolerated(const PodShape& shape, const NodeSpec& node) const {
  for (const core::Taint& taint : node.taints) {
    if (taint.effect == TaintEffect::PreferNoSchedule) continue;
    bool ok = false;
    for (const Toleration& t : shape.tolerations) {
      ok |= tolerates(t, taint.key, taint.value, taint.effect);
    }
    if (!ok) return false;
  }
  return true;
}

bool ReferenceScheduler::wanted(const PodShape& shape, const NodeSpec& node) const {
  if (!all_hold(shape.node_selector, node.labels)) return false;
  if (!shape.node_affinity) return true;
  for (const NodeSelectorTerm& term : *shape.node_affinity) {
    if (term_matches(term, node)) return true;
  }
  return false;
}

bool ReferenceScheduler::ports_free(const PodShape& shape, const NodeSpec& node,
                                    const Running& running) const {
  for (const core::HostPort& want : shape.host_ports) {
    for (const RefPod* other : running) {
      if (other->node != node.name) continue;
      for (const core::HostPort& used : other->spec.shape.host_ports) {
        const bool same_ip = want.ip == used.ip || want.ip == "0.0.0.0" || used.ip == "0.0.0.0";
        if (same_ip && want.protocol == used.protocol && want.port == used.port) return false;
      }
    }
  }
  return true;
}

bool ReferenceScheduler::resources_left(const PodShape& shape, const NodeSpec& node,
                                        const Running& running) const {
  std::int64_t count = 0;
  for (const RefPod* other : running) count += other->node == node.name ? 1 : 0;
  if (count + 1 > amount_of(node.allocatable, "pods")) return false;
  for (const auto& [name, amount] : shape.requests) {
    if (name == "pods" || amount == 0) continue;
    std::int64_t used = 0;
    for (const RefPod* other : running) {
      if (other->node == node.name) used += amount_of(other->spec.shape.requests, name);
    }
    if (amount > amount_of(node.allocatable, name) - used) return false;
  }
  return true;
}

// ---- topology -------------------------------------------------------------------------------

const std::string* ReferenceScheduler::topology(const std::string& node,
                                                const std::string& key) const {
  const auto it = nodes_.find(node);
  if (it == nodes_.end()) return nullptr;
  for (const auto& [k, v] : it->second.labels) {
    if (k == key) return &v;
  }
  return nullptr;
}

bool ReferenceScheduler::spread_kept(const RefPod& pod, const NodeSpec& node,
                                     const Running& running) const {
  std::vector<const SpreadConstraint*> hard;
  for (const SpreadConstraint& c : pod.spec.shape.spread) {
    if (c.hard) hard.push_back(&c);
  }
  for (const SpreadConstraint* c : hard) {
    std::optional<LabelSelector> selector = c->selector;
    for (const std::string& key : c->match_label_keys) {
      const auto value = value_of(pod.spec.labels, key);
      if (!value) continue;
      if (!selector) selector.emplace();
      selector->requirements.push_back({key, SelectorOp::In, {*value}});
    }
    std::map<std::string, std::int64_t> count;  // by value, of the nodes that take part
    std::set<std::string> taking_part;
    for (const auto& [name, n] : nodes_) {
      bool has_all = true;
      for (const SpreadConstraint* other : hard) {
        has_all = has_all && topology(name, other->topology_key) != nullptr;
      }
      if (!has_all) continue;
      if (c->honor_node_affinity && !wanted(pod.spec.shape, n)) continue;
      if (c->honor_node_taints && !tolerated(pod.spec.shape, n)) continue;
      taking_part.insert(name);
      count.try_emplace(*topology(name, c->topology_key), 0);
    }
    for (const RefPod* other : running) {
      if (!taking_part.contains(other->node) || other->spec.terminating) continue;
      if (!selector || selector->requirements.empty() || other->spec.ns != pod.spec.ns) continue;
      if (!all_hold(selector->requirements, other->spec.labels)) continue;
      ++count[*topology(other->node, c->topology_key)];
    }
    const std::string* const value = topology(node.name, c->topology_key);
    if (value == nullptr) return false;
    std::int64_t smallest = 0;
    if (!count.empty() && static_cast<std::int64_t>(count.size()) >= c->min_domains) {
      smallest = count.begin()->second;
      for (const auto& [v, n] : count) smallest = std::min(smallest, n);
    }
    const std::int64_t self = selector && all_hold(selector->requirements, pod.spec.labels) ? 1 : 0;
    const auto here = count.find(*value);
    if ((here == count.end() ? 0 : here->second) + self - smallest > c->max_skew) return false;
  }
  return true;
}

bool ReferenceScheduler::selects(const PodAffinityTerm& term, const std::string& owner_ns,
                                 const RefPod& other) const {
  if (!term.selector || !all_hold(term.selector->requirements, other.spec.labels)) return false;
  if (term.namespaces.empty() && !term.namespace_selector) return other.spec.ns == owner_ns;
  for (const std::string& ns : term.namespaces) {
    if (ns == other.spec.ns) return true;
  }
  if (!term.namespace_selector) return false;
  const auto it = namespaces_.find(other.spec.ns);
  return all_hold(term.namespace_selector->requirements,
                  it == namespaces_.end() ? Labels{} : it->second);
}

bool ReferenceScheduler::affinity_kept(const RefPod& pod, const NodeSpec& node,
                                       const Running& running) const {
  const auto near = [&](const RefPod& other, const std::string& key) {
    const std::string* const here = topology(node.name, key);
    const std::string* const there = topology(other.node, key);
    return here != nullptr && there != nullptr && *here == *there;
  };
  const auto& wants = pod.spec.shape.required_affinity;
  const auto selected_by_all = [&](const RefPod& other) {
    for (const PodAffinityTerm& term : wants) {
      if (!selects(term, pod.spec.ns, other)) return false;
    }
    return true;
  };
  bool all_near = true;
  bool anybody = false;
  for (const PodAffinityTerm& term : wants) {
    if (topology(node.name, term.topology_key) == nullptr) return false;
    bool found = false;
    for (const RefPod* other : running) {
      if (!selected_by_all(*other)) continue;
      anybody = anybody || topology(other->node, term.topology_key) != nullptr;
      found = found || near(*other, term.topology_key);
    }
    all_near = all_near && found;
  }
  // The first of a series may go anywhere.
  if (!all_near && (anybody || !selected_by_all(pod))) return false;

  for (const RefPod* other : running) {
    for (const PodAffinityTerm& term : pod.spec.shape.required_anti_affinity) {
      if (near(*other, term.topology_key) && selects(term, pod.spec.ns, *other)) return false;
    }
    for (const PodAffinityTerm& term : other->spec.shape.required_anti_affinity) {
      if (near(*other, term.topology_key) && selects(term, other->spec.ns, pod)) return false;
    }
  }
  return true;
}

}  // namespace jogak::reference
