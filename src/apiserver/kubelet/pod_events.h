// SPDX-License-Identifier: Apache-2.0
//
// What a kubelet says about containers, in events: `kubectl describe pod` ends with them.
#pragma once

#include <string_view>

#include "apiserver/registry/api.h"

namespace jogak::kubelet {

// Each container of the pod was pulled, created, started.
void tell_started(api::Api& api, const Doc& pod, std::string_view node);
// Each container is told to stop.
void tell_killing(api::Api& api, const Doc& pod, std::string_view node);
// Each container waits before it is started again.
void tell_backoff(api::Api& api, const Doc& pod, std::string_view node);

}  // namespace jogak::kubelet
