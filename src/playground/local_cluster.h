// SPDX-License-Identifier: Apache-2.0
//
// The live driver's door to an API server in the same process.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "apiserver/registry/api.h"
#include "live/cluster_api.h"

namespace jogak::playground {

class LocalCluster : public live::ClusterApi {
 public:
  // `api` writes as "kube-scheduler" and outlives this.
  explicit LocalCluster(api::Api& api) : api_(api) {}

  Loop& loop() override { return api_.loop(); }
  std::shared_ptr<void> follow(std::string_view resource, Follower follower) override;
  void bind(const live::Binding& binding, Done done) override;
  void refuse(const Refusal& refusal, Done done) override;
  void preempt(const live::PodRef& victim, const std::string& message, Done done) override;
  void plan_claim(const live::ClaimPlan& plan, Done done) override;
  void read_pod(const live::PodRef& pod,
                std::function<void(Result<std::string> json)> done) override;
  void note(const live::PodNote& note) override;

 private:
  api::Api& api_;
};

}  // namespace jogak::playground
