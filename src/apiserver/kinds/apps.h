// SPDX-License-Identifier: Apache-2.0
//
// The rules of apps/v1.
#pragma once

#include <memory>

#include "apiserver/kinds/kinds.h"
#include "apiserver/registry/resource.h"

namespace jogak::api {

std::shared_ptr<const Strategy> deployment_strategy(const KindOptions& options);
std::shared_ptr<const Strategy> replica_set_strategy(const KindOptions& options);
std::shared_ptr<const Strategy> stateful_set_strategy(const KindOptions& options);
std::shared_ptr<const Strategy> daemon_set_strategy(const KindOptions& options);
std::shared_ptr<const Strategy> controller_revision_strategy();

void add_apps_kinds(Registry& registry, const KindOptions& options);

}  // namespace jogak::api
