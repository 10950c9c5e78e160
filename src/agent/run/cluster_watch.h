// SPDX-License-Identifier: Apache-2.0
//
// What the agent hears from the API server: the labels and annotations of its own Node, and, where
// instances are cut on demand, what the pods of its node want of MIG devices. Each is watched under
// a field selector, so a node hears nothing of the others.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/labels/feature_labels.h"
#include "agent/run/mig_ask.h"
#include "base/log.h"
#include "kube/api_client.h"
#include "kube/reflector.h"

namespace jogak::agent {

class ClusterWatch {
 public:
  struct Options {
    std::string node;
    bool has_pods = false;
  };
  struct Events {
    // At first and whenever they changed. Annotations: only those named jogak.io/.
    std::function<void(const Labels& labels, const std::map<std::string, std::string>& annotations)>
        on_node;
    // All that have not ended, by pod; once they are all known, and whenever they changed.
    std::function<void(std::vector<MigAsk> asks)> on_asks;
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
