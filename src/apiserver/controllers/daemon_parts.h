// SPDX-License-Identifier: Apache-2.0
//
// What a daemon set's pod looks like and which pods of it go when the template changes. No writes
// here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/controllers/pod_index.h"
#include "base/doc.h"

namespace jogak::controllers {

inline constexpr std::string_view kRevisionHash = "controller-revision-hash";
inline constexpr std::string_view kTemplateGeneration = "pod-template-generation";

// The template's spec with the tolerations that every daemon has.
Doc daemon_spec(const Doc& set);
// Pins the pod to the node: the default scheduler puts it there and nowhere else.
void pin_to_node(Doc& pod_spec, std::string_view node);
// Where the pod is or will be; "" when nothing says so.
std::string target_node(const Doc& pod);

// May it be put on the node, and may it stay there?
struct Fit {
  bool runs = false, stays = false;
};
// `node` is {metadata: {name, labels}, spec: {taints}}; `spec` of daemon_spec().
Fit fit_on(const Doc& spec, const Doc& node);

// Bound pods first, then by age.
void sort_daemons(std::vector<PodViewPtr>& pods);

using DaemonsByNode = std::map<std::string, std::vector<PodViewPtr>, std::less<>>;

struct DaemonUpdate {
  std::vector<std::string> nodes;  // that get a pod more
  std::vector<PodViewPtr> removed;
};

struct DaemonRules {
  std::string hash;
  std::int64_t surge = 0, unavailable = 0, desired = 0;
  TimeUs min_ready = 0, now = 0;
  TimeUs next = 0;  // set to the moment when another pod might be available
};
// The strategy's numbers for so many wanted pods.
DaemonRules rules_of(const Doc& set, std::int64_t desired);
bool allows_surge(const Doc& set);

// One step of a rolling update.
DaemonUpdate next_update(DaemonRules& rules, const DaemonsByNode& pods,
                         const std::map<std::string, Fit, std::less<>>& fits);

}  // namespace jogak::controllers
