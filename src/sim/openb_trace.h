// SPDX-License-Identifier: Apache-2.0
// The openb trace (Alibaba's GPU-sharing cluster, 2023) as values: its node list, its pod lists,
// one file per variant, and the submission orders of the published runs. Reading is strict: the
// first bad line is an error that names file, line and column, or with skip_bad it is left out and
// told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/policy/policy.h"

namespace jogak::sim {

struct OpenbNode {
  std::string name;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::int32_t gpus = 0;
  std::string model;
};

struct OpenbPod {
  std::string name;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::int32_t gpus = 0;            // devices
  std::int32_t gpu_milli = 0;       // per device; 1000 when gpus > 1, 0 when gpus is 0
  std::vector<std::string> models;  // allowed, sorted; empty: any
  std::int64_t gpu_total() const { return std::int64_t{gpus} * gpu_milli; }
};

struct ReadOptions {
  bool skip_bad = false;
};

// `skipped`: the errors of the rows left out.
struct OpenbNodes {
  std::vector<OpenbNode> nodes;  // sorted by name
  std::vector<std::string> skipped;
  std::int64_t gpu_milli() const;
};
struct OpenbPods {
  static constexpr std::int32_t kNoPod = -1;
  std::vector<OpenbPod> pods;            // in file order
  std::vector<std::int32_t> pod_of_row;  // data row of the file -> index in pods, or kNoPod
  std::vector<std::string> skipped;
};

Result<OpenbNodes> parse_openb_nodes(std::string file, std::string_view text, ReadOptions options);
Result<OpenbPods> parse_openb_pods(std::string file, std::string_view text, ReadOptions options);

// The order of one run: what is submitted, one after another, and which node wins ties.
struct OpenbOrder {
  std::int64_t seed = 0;
  std::vector<std::int32_t> arrivals;   // indices into OpenbPods::pods
  std::vector<std::int32_t> node_rank;  // by OpenbNodes::nodes index; a permutation
  bool is_published = false;            // read from a file, not drawn here
};

// Orders of the seeds asked for, from a sequences file: lines `arrivals SEED COUNT ROW...` and
// `nodeorder SEED COUNT RANK...`. An error names a seed the file does not have.
Result<std::vector<OpenbOrder>> parse_openb_orders(std::string file, std::string_view text,
                                                   const OpenbNodes& nodes, const OpenbPods& pods,
                                                   const std::vector<std::int64_t>& seeds);

// A submission order of the same distribution, drawn from the seed: the variant's pods shuffled,
// then clones until 130 % of the GPU capacity is asked for, or pods taken out if they ask for more
// already.
OpenbOrder draw_openb_order(const OpenbNodes& nodes, const OpenbPods& pods, std::int64_t seed);

// The pods' classes with their frequencies, what a policy may know of the workload.
core::WorkloadMix openb_mix(const OpenbPods& pods);

// Files of a trace folder.
std::string openb_node_file(const std::string& dir);
std::string openb_pod_file(const std::string& dir, std::string_view variant);
std::string openb_order_file(const std::string& dir, std::string_view variant);
// Variants with a pod file in the folder, sorted.
Result<std::vector<std::string>> list_openb_variants(const std::string& dir);

// Everything that the runs of one variant need.
struct OpenbVariant {
  std::string name;
  OpenbPods pods;
  core::WorkloadMix mix;
  std::vector<OpenbOrder> orders;  // one per seed asked for
};

struct OpenbLoadOptions {
  std::string dir;
  std::vector<std::string> variants;
  std::vector<std::int64_t> seeds;
  std::string order_dir;  // of sequences files; empty: orders are drawn
  bool skip_bad = false;
};

struct OpenbData {
  OpenbNodes nodes;
  std::vector<OpenbVariant> variants;  // as asked for
  std::vector<std::string> skipped;
};

// Reads what the runs need. An unknown variant is an error that names the known ones.
Result<OpenbData> load_openb(const OpenbLoadOptions& options);
// One variant alone, without orders: for a workload mix.
Result<OpenbPods> load_openb_pods(const std::string& dir, std::string_view variant,
                                  ReadOptions options);

}  // namespace jogak::sim
