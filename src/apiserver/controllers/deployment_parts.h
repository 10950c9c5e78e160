// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of a deployment: how many pods a rolling update may have more or less, which
// replica sets are old, what the status says. No writes here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/doc.h"
#include "base/loop.h"

namespace jogak::controllers {

inline constexpr std::string_view kRevision = "deployment.kubernetes.io/revision";
inline constexpr std::string_view kRevisionHistory = "deployment.kubernetes.io/revision-history";
inline constexpr std::string_view kDesired = "deployment.kubernetes.io/desired-replicas";
inline constexpr std::string_view kMaxReplicas = "deployment.kubernetes.io/max-replicas";
inline constexpr std::string_view kHashLabel = "pod-template-hash";

struct Limits {
  std::int64_t surge = 0, unavailable = 0;
};
Limits limits_of(const Doc& deployment);

std::int64_t replicas_of(const Doc& object);  // spec.replicas, 1 when absent
std::int64_t status_of_set(const Doc& set, std::string_view member);
std::int64_t revision_of(const Doc& object);  // of the annotation, 0 when absent
std::int64_t total_replicas(const std::vector<Doc>& sets);
bool is_same_template(const Doc& deployment, const Doc& set);
// Of the newest replica set: how many it may have now.
std::int64_t new_set_replicas(const Doc& deployment, const std::vector<Doc>& all,
                              const Doc& current);

// Conditions in the order of their last change, as kubectl shows them. Nothing happens when status
// and reason are as before, unless `renew`.
void set_deployment_condition(Doc& deployment, std::string_view type, std::string_view status,
                              std::string_view reason, std::string_view message, TimeUs now,
                              bool renew = false);

// status of a deployment from its replica sets; `current` is a null Doc when there is none yet.
Doc deployment_status(const Doc& deployment, const std::vector<Doc>& all, const Doc& current,
                      TimeUs now);

}  // namespace jogak::controllers
