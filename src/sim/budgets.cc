// SPDX-License-Identifier: Apache-2.0
// See budgets.h.
#include "sim/budgets.h"

#include "core/filter/selector.h"

namespace jogak::sim {

void change_budgets(core::Cluster& cluster, const core::Identity& identity, std::int32_t by) {
  // A pod without labels is covered by no budget, also not by one that only says what must not be.
  if (cluster.objects().pdbs.empty() || identity.labels.empty()) return;
  cluster.change_objects([&](core::Objects& objects) {
    bool has_changed = false;
    for (auto& [key, pdb] : objects.pdbs) {
      const bool covers = pdb.ns == identity.ns && pdb.selector &&
                          !pdb.selector->requirements.empty() &&
                          core::matches(*pdb.selector, identity.labels);
      if (!covers) continue;
      pdb.disruptions_allowed += by;
      has_changed = true;
    }
    return has_changed;
  });
}

}  // namespace jogak::sim
