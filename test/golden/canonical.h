// SPDX-License-Identifier: Apache-2.0
// One form for recorded and computed results, in which equal means equal: sets are sorted, what has
// no meaning is left out, absent is spelled as its default.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/model/cluster.h"
#include "core/plan/evaluation.h"

namespace jogak::golden {

nlohmann::json canonical(const nlohmann::json& recorded);
nlohmann::json canonical(const core::Cluster& cluster, const core::Evaluation& evaluation);

// "path: got X, want Y" for each leaf that differs.
std::vector<std::string> compare(const nlohmann::json& got, const nlohmann::json& want);

}  // namespace jogak::golden
