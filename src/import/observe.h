// SPDX-License-Identifier: Apache-2.0
// Objects of a running cluster, one at a time, as its API server completed them. Unlike a batch of
// files (import.h) nothing is looked up among other objects: what the cluster is in the end does
// not depend on the order in which its objects were seen.
#pragma once

#include <string_view>

#include "base/result.h"
#include "core/model/cluster.h"
#include "kube/objects.h"

namespace jogak::importer {

// Errors name the field and what would be right, without naming the object.
Result<core::NodeId> observe_node(core::Cluster& cluster, kube::Node&& node);
// Not for pods that have finished: they are forgotten.
Result<core::PodId> observe_pod(core::Cluster& cluster, kube::Pod&& pod);
// Any other kind that scheduling reads. True if that changed what the cluster knows; a kind that
// nobody reads changes nothing.
bool observe_object(core::Cluster& cluster, kube::Object&& object);
// An object of such a kind ("PersistentVolume") is gone. True if it was known.
bool forget_object(core::Cluster& cluster, std::string_view kind, std::string_view ns,
                   std::string_view name);

// ---- between the .cc files of this folder ----

// Takes an object that is neither node nor pod nor priority class. False: nothing changed.
bool put_object(core::Objects& objects, kube::Object&& object);

}  // namespace jogak::importer
