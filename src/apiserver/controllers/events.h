// SPDX-License-Identifier: Apache-2.0
// Events as controllers of the real server write them (core v1, with source and counts).
#pragma once

#include <string_view>

#include "apiserver/registry/api.h"

namespace jogak::controllers {

// About `object` (kind and apiVersion set). `component` is the source, e.g.
// "replicaset-controller". An event that cannot be written is dropped: there is nobody to tell.
// `field_path` says which part of the object it is about, `host` where the component is.
void write_event(api::Api& api, std::string_view component, const Doc& object,
                 std::string_view type, std::string_view reason, std::string_view message,
                 std::string_view field_path = {}, std::string_view host = {});

}  // namespace jogak::controllers
