// SPDX-License-Identifier: Apache-2.0
//
// What the agent hears from the API server: the labels and annotations of its own Node; where
// instances are cut on demand, what the pods of its node want of MIG devices; and, where series
// carry the labels of pods, those. Each is watched under a field selector, so a node hears nothing
// of the others.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/labels/feature_labels.h"
#include "agent/model/node_model.h"
#include "agent/run/mig_ask.h"
#include "base/log.h"
#include "kube/api_client.h"
#include "kube/reflector.h"

namespace jogak::agent {

class ClusterWatch {
 public:
  struct Options {
    std::string node;
    bool has_pods = false;  // what pods want of MIG devices is listened to
    bool has_pod_labels = false;
  };
  struct Events {
    // At first and whenever they changed. Annotations: only those named jogak.io/.
    std::function<void(const Labels& labels, const std::map<std::string, std::string>& annotations)>
        on_node;
    // All that have not ended, by pod; once they are all known, and whenever they changed.
    std::function<void(std::vector<MigAsk> asks)> on_asks;
    // The same of their labels.
    std::function<void(PodTable pods)> on_pods = nullptr;
  };
  // Begins at once. `api` and `log` outlive it. No event before the call returns, none after its
  // end.
  ClusterWatch(kube::ApiClient& api, Log& log, const Options& options, Events events);
  ~ClusterWatch();
  ClusterWatch(const ClusterWatch&) = delete;
  ClusterWatch& operator=(const ClusterWatch&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace jogak::agent
