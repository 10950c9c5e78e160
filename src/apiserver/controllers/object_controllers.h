// SPDX-License-Identifier: Apache-2.0
//
// Controllers that look after objects of every kind, and after what each namespace must have.
#pragma once

#include <memory>

#include "apiserver/controllers/controllers.h"

namespace jogak::controllers {

// Deletes what nobody owns any more; orphan and foreground deletion.
std::unique_ptr<Controller> garbage_collector(const ControllerContext& context);
// Empties a namespace that is being deleted, then lets it go.
std::unique_ptr<Controller> namespace_controller(const ControllerContext& context);
// The service account `default` and the config map kube-root-ca.crt of each namespace.
std::unique_ptr<Controller> namespace_contents_controller(const ControllerContext& context);
// Pods whose node is gone, and those that end without ever having had one.
std::unique_ptr<Controller> pod_gc_controller(const ControllerContext& context);
// Events go an hour after they were last written.
std::unique_ptr<Controller> event_ttl_controller(const ControllerContext& context);

}  // namespace jogak::controllers
