// SPDX-License-Identifier: Apache-2.0
//
// See pod_holders.h.
#include "agent/mig/pod_holders.h"

#include <set>

#include <fmt/format.h>

namespace jogak::agent {

namespace {

void note(MigHolders& result, const std::string& uuid, const DeviceHolders& holders) {
  std::set<std::string> pods;  // each once, however many containers and replicas it holds
  for (const DeviceHolder& holder : holders) {
    pods.insert(fmt::format("pod {}/{}", holder.holder.pod_namespace, holder.holder.pod));
  }
  if (!pods.empty()) result[uuid] = fmt::format("{}", fmt::join(pods, ", "));
}

}  // namespace

MigHolders pod_holders(const nvml::NodeFacts& facts, const HolderIndex& holders) {
  MigHolders result;
  for (const nvml::GpuFacts& gpu : facts.gpus) {
    note(result, gpu.uuid, holders.of_gpu(gpu.uuid));
    for (const nvml::MigInstanceFacts& row : gpu.mig_instances) {
      if (row.uuid.empty()) continue;
      // Some ids name the GPU instance: then all its compute instances are held.
      note(result, row.uuid, holders.of_instance(gpu.uuid, row.gi_id));
    }
  }
  return result;
}

}  // namespace jogak::agent
