// SPDX-License-Identifier: Apache-2.0
// Made-up clusters and workloads of the common shapes, drawn from a seed: for demonstrations, tests
// and first steps. They are written in the scenario format and read back like any other file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/doc.h"
#include "base/result.h"

namespace jogak::sim {

// A GPU model as it is sold: its short name here, its label value, and what usually comes with it.
struct SampleModel {
  std::string_view name;     // "A100-80"
  std::string_view product;  // as nvidia.com/gpu.product says it
  std::int64_t memory_mib = 0;
  std::int64_t cpu_per_gpu = 0;
  std::int64_t memory_gib_per_gpu = 0;
  bool has_nvlink = false;
};

// `count` nodes of `gpus` devices each; gpus 0 and model nullptr: CPU nodes.
struct SampleGroup {
  std::int64_t count = 0;
  std::int32_t gpus = 0;
  const SampleModel* model = nullptr;
};

inline constexpr std::string_view kSampleNodes = "12x8xH100-80,16x8xA100-80,16x4xL40S,16x2xT4";

// "64x8xA100-80,4xCPU". Errors name the group and the models there are.
Result<std::vector<SampleGroup>> parse_sample_groups(std::string_view text);
std::string sample_model_names();  // with commas between them
std::int64_t sample_gpus(const std::vector<SampleGroup>& groups);

// A scenario file with nodes only. CPU and memory per GPU, zone and rack differ from node to node.
Doc sample_cluster(const std::vector<SampleGroup>& groups, std::uint64_t seed);
// The same nodes as a Kubernetes v1 List.
Doc sample_cluster_k8s(const std::vector<SampleGroup>& groups, std::uint64_t seed);

struct SampleLoad {
  std::int64_t for_seconds = 3600;  // pods arrive within that time
  std::int64_t load_percent = 110;  // GPU time asked for, in percent of what the cluster has in it
  std::int64_t pods_max = 100'000;
};

// A scenario file with pods only: shares, whole GPUs up to 8, CPU pods; a tenth urgent, some that
// name a model.
Doc sample_workload(const std::vector<SampleGroup>& groups, const SampleLoad& load,
                    std::uint64_t seed);

}  // namespace jogak::sim
