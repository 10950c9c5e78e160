// SPDX-License-Identifier: Apache-2.0
//
// Facts: pkg/controller/daemon of Kubernetes.
#include "apiserver/controllers/daemon_parts.h"

#include <algorithm>
#include <array>

#include "apiserver/controllers/node_match.h"
#include "apiserver/controllers/pod_control.h"
#include "apiserver/controllers/scaled.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

struct Taint {
  std::string_view key, effect;
};
constexpr std::array<Taint, 6> kTolerated = {{
    {"node.kubernetes.io/not-ready", "NoExecute"},
    {"node.kubernetes.io/unreachable", "NoExecute"},
    {"node.kubernetes.io/disk-pressure", "NoSchedule"},
    {"node.kubernetes.io/memory-pressure", "NoSchedule"},
    {"node.kubernetes.io/pid-pressure", "NoSchedule"},
    {"node.kubernetes.io/unschedulable", "NoSchedule"},
}};
constexpr Taint kNoNetwork = {"node.kubernetes.io/network-unavailable", "NoSchedule"};

void tolerate(Doc& spec, const Taint& taint) {
  const Doc wanted =
      Doc::object().set("key", taint.key).set("operator", "Exists").set("effect", taint.effect);
  Doc& list = spec.at("tolerations");
  if (list.is_null()) list = Doc::array();
  for (Doc& one : list.items()) {
    const bool is_same = one["key"] == wanted["key"] && one["effect"] == wanted["effect"] &&
                         one["operator"] == wanted["operator"] && one["value"].as_string().empty();
    if (is_same) {
      one = wanted;
      return;
    }
  }
  list.push(wanted);
}

constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";

// The one old and the one new pod of a node; false when there are more of a sort.
bool split_pods(const std::vector<PodViewPtr>& pods, std::string_view hash, PodViewPtr& fresh,
                PodViewPtr& old) {
  for (const PodViewPtr& pod : pods) {
    if (pod->is_deleting) continue;
    PodViewPtr& place = pod->label(kRevisionHash) == hash ? fresh : old;
    if (place != nullptr) return false;
    place = pod;
  }
  return true;
}

template <class T>
void append_first(std::vector<T>& to, const std::vector<T>& from, std::int64_t count) {
  const auto most = static_cast<std::int64_t>(from.size());
  const auto taken = static_cast<std::ptrdiff_t>(std::clamp<std::int64_t>(count, 0, most));
  to.insert(to.end(), from.begin(), from.begin() + taken);
}

// Old pods go first, so that there may be `unavailable` too few.
DaemonUpdate replace_in_place(DaemonRules& rules, const DaemonsByNode& pods) {
  DaemonUpdate update;
  std::vector<PodViewPtr> candidates;
  std::int64_t unavailable = 0;
  for (const auto& [node, on_node] : pods) {
    PodViewPtr fresh, old;
    const bool is_clear = split_pods(on_node, rules.hash, fresh, old);
    if (!is_clear || (fresh == nullptr) == (old == nullptr)) {
      ++unavailable;  // the next look at this node puts it right
    } else if (fresh != nullptr) {
      if (!is_available(*fresh, rules.min_ready, rules.now, rules.next)) ++unavailable;
    } else if (!is_available(*old, rules.min_ready, rules.now, rules.next)) {
      update.removed.push_back(old);
      ++unavailable;
    } else {
      candidates.push_back(old);
    }
  }
  append_first(update.removed, candidates, rules.unavailable - unavailable);
  return update;
}

// New pods come first, up to `surge` at a time.
DaemonUpdate surge(DaemonRules& rules, const DaemonsByNode& pods,
                   const std::map<std::string, Fit, std::less<>>& fits) {
  DaemonUpdate update;
  std::vector<std::string> candidates;
  std::vector<PodViewPtr> misplaced;
  std::int64_t surging = 0, available = 0;
  const auto is_up = [&](const PodViewPtr& pod) {
    return is_available(*pod, rules.min_ready, rules.now, rules.next);
  };
  for (const auto& [node, on_node] : pods) {
    PodViewPtr fresh, old;
    if (!split_pods(on_node, rules.hash, fresh, old)) {
      ++surging;
      continue;
    }
    const PodViewPtr& counted = old != nullptr ? old : fresh;
    if (counted != nullptr && is_up(counted)) ++available;
    if (old == nullptr) continue;
    const auto fit = fits.find(node);
    const bool runs = fit != fits.end() && fit->second.runs;
    if (fresh == nullptr) {
      if (!runs) {
        (is_up(old) ? misplaced : update.removed).push_back(old);
      } else if (!is_up(old)) {
        update.nodes.push_back(node);
      } else {
        candidates.push_back(node);
      }
    } else if (!is_up(fresh)) {
      ++surging;
    } else {
      update.removed.push_back(old);
    }
  }
  append_first(update.removed, misplaced, available - rules.desired);
  append_first(update.nodes, candidates, rules.surge - surging);
  return update;
}

}  // namespace

Doc daemon_spec(const Doc& set) {
  Doc spec = set.get("spec", "template", "spec");
  for (const Taint& taint : kTolerated) tolerate(spec, taint);
  if (spec["hostNetwork"].as_bool()) tolerate(spec, kNoNetwork);
  return spec;
}

void pin_to_node(Doc& pod_spec, std::string_view node) {
  Doc field = Doc::object();
  field.set("key", "metadata.name").set("operator", "In").set("values", Doc::array().push(node));
  Doc term = Doc::object().set("matchFields", Doc::array().push(std::move(field)));
  pod_spec.at("affinity", "nodeAffinity", kRequired)
      .set("nodeSelectorTerms", Doc::array().push(std::move(term)));
}

std::string target_node(const Doc& pod) {
  const std::string& bound = pod.get("spec", "nodeName").as_string();
  if (!bound.empty()) return bound;
  const Doc& required = pod.get("spec", "affinity", "nodeAffinity", kRequired);
  for (const Doc& term : required["nodeSelectorTerms"].items()) {
    for (const Doc& field : term["matchFields"].items()) {
      const bool names_one = field["key"].as_string() == "metadata.name" &&
                             field["operator"].as_string() == "In" && field["values"].size() == 1;
      if (names_one) return field["values"].items()[0].as_string();
    }
  }
  return "";
}

Fit fit_on(const Doc& spec, const Doc& node) {
  const std::string& wanted = spec["nodeName"].as_string();
  if (!wanted.empty() && wanted != api::name_of(node)) return {};
  if (!selects_node(spec, node)) return {};
  const Doc& taints = node.get("spec", "taints");
  if (tolerates_all(spec["tolerations"], taints, true)) return {.runs = true, .stays = true};
  return {.runs = false, .stays = tolerates_all(spec["tolerations"], taints, false)};
}

void sort_daemons(std::vector<PodViewPtr>& pods) {
  std::ranges::sort(pods, {}, [](const PodViewPtr& pod) {
    return std::tuple(pod->node.empty(), pod->created, std::string_view(pod->name));
  });
}

bool allows_surge(const Doc& set) {
  const Doc& strategy = set.get("spec", "updateStrategy");
  return strategy["type"].as_string() == "RollingUpdate" &&
         scaled_value(strategy.get("rollingUpdate", "maxSurge"), 1, true) > 0;
}

DaemonRules rules_of(const Doc& set, std::int64_t desired) {
  DaemonRules rules;
  const Doc& rolling = set.get("spec", "updateStrategy", "rollingUpdate");
  rules.desired = desired;
  rules.surge = scaled_value(rolling["maxSurge"], desired, true);
  rules.unavailable = scaled_value(rolling["maxUnavailable"], desired, true);
  if (desired > 0 && rules.surge == 0 && rules.unavailable == 0) rules.unavailable = 1;
  rules.min_ready = set.get("spec", "minReadySeconds").as_int() * kSecondInUs;
  return rules;
}

DaemonUpdate next_update(DaemonRules& rules, const DaemonsByNode& pods,
                         const std::map<std::string, Fit, std::less<>>& fits) {
  return rules.surge == 0 ? replace_in_place(rules, pods) : surge(rules, pods, fits);
}

}  // namespace jogak::controllers
