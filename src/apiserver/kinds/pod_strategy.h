// SPDX-License-Identifier: Apache-2.0
//
// The rules of pods, for the generic handlers.
#pragma once

#include <memory>

#include "apiserver/kinds/kinds.h"
#include "apiserver/registry/resource.h"

namespace jogak::api {

std::shared_ptr<const Strategy> pod_strategy(const KindOptions& options);
std::shared_ptr<const Strategy> pod_template_strategy(const KindOptions& options);

// Handlers of subresources that do more than store an object.
ApiResult<Answer> bind_pod(Ops& ops, Call& call);
ApiResult<Answer> evict_pod(Ops& ops, Call& call);
ApiResult<Answer> read_pod_log(Ops& ops, Call& call);
// exec, attach, portforward and proxy: what a real server says before it would call a kubelet, and
// then that there is none.
ApiResult<Answer> refuse_pod_stream(Ops& ops, Call& call);

}  // namespace jogak::api
