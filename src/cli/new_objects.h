// SPDX-License-Identifier: Apache-2.0
// What `kubectl apply -f` of some manifests would bring into being, as far as scheduling sees it:
// pods as they are, and those that the controllers of Deployments, ReplicaSets, StatefulSets,
// ReplicationControllers and Jobs would make, with the names and labels that selectors and the
// default spreading look at.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/doc.h"
#include "base/result.h"
#include "core/model/cluster.h"

namespace jogak::cli {

struct NewObjects {
  struct Object {
    Doc doc;
    std::string file_name;  // that it came from
  };
  std::vector<Object> objects;                   // pods among them
  std::vector<std::string> pods;                 // "ns/name", in the order of their creation
  std::set<std::string, std::less<>> pod_names;  // the same
  std::vector<std::string> left_out;  // for people: "ConfigMap default/x (scheduling does not ...)"
};

struct NewObjectOptions {
  std::string ns = "default";  // of objects that name none
  // Of claims that name none; "" for none.
  std::string default_storage_class = {};
  // Whether a pod of that name is there already.
  std::function<bool(std::string_view ns, std::string_view name)> has_pod;
};

// `documents` of one file, whose name is for messages. Appends to `into`, so that several files
// give their pods different names. Errors are one line: "FILE: Kind ns/name: field: what is wrong".
Result<void> add_new_objects(std::vector<Doc> documents, std::string_view file_name,
                             const NewObjectOptions& options, NewObjects& into);

// Adds them to a cluster; the ids of their pods, which wait, in the order of `objects.pods`.
// `priority_classes`: those of the cluster, one object after another (cluster_input.h).
Result<std::vector<core::PodId>> create_objects(const NewObjects& objects,
                                                std::string_view priority_classes,
                                                core::Cluster& cluster);

}  // namespace jogak::cli
