// SPDX-License-Identifier: Apache-2.0
// The fragmentation measure F of the FGD paper (Weng et al., USENIX ATC 2023): how much of a node's
// free GPU the expected workload could not use. For a class m with probability p_m, T the node's
// free GPU milli and g_i the free milli of its devices:
//
//   f(m) = T                                if m asks for no GPU, or its models exclude the node,
//                                           or CPU or devices do not suffice for one pod of m
//        = sum of g_i over g_i < q_m        otherwise (pieces too small for m)
//   F    = sum over m of p_m * f(m)
//
// Probabilities are whole weights and F stays multiplied by their total, so that it is exact.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/policy/policy.h"

namespace jogak::core {

enum class FragCause : std::uint8_t {
  LacksGpuAndCpu,
  LacksGpu,  // includes the pieces too small for a class that does fit
  LacksCpu,
  CpuOnlyFits,  // the class asks for no GPU; the CPU would suffice
  CpuOnlyLacksCpu,
  ModelExcluded,
  Usable,  // not fragmented: what classes that fit could take
};
inline constexpr std::size_t kFragCauses = 7;

// In GPU milli times FragMix::total_weight(). All but Usable make up F.
struct FragBreakdown {
  std::array<std::int64_t, kFragCauses> by_cause{};
  std::int64_t fragmented() const;
  FragBreakdown& operator+=(const FragBreakdown& other);
};

// The expected workload as F uses it: classes merged without regard to memory, the most frequent
// first until they make up 95 % of the pods.
class FragMix {
 public:
  // An empty mix stands for a built-in guess: mostly one GPU or half a one, some 2, 4 and 8.
  void prepare(const Cluster& cluster, const WorkloadMix& mix);

  std::size_t class_count() const { return classes_.size(); }
  std::int64_t total_weight() const { return total_weight_; }
  // Of the classes that ask for GPUs.
  std::int64_t gpu_weight() const { return gpu_weight_; }

  // F and its causes for a node of this model with this free CPU and these devices' free milli.
  // `free` is sorted ascending.
  std::int64_t fragmentation(Symbol model, std::int64_t cpu, std::span<const std::int32_t> free);
  FragBreakdown breakdown(Symbol model, std::int64_t cpu, std::span<const std::int32_t> free);

 private:
  struct Class {
    std::int64_t cpu = 0;
    std::int32_t count = 0;
    std::int32_t milli = 0;
    std::size_t size_rank = 0;  // of milli within sizes_
    std::int64_t weight = 0;
    std::vector<std::string> models;
  };
  // What one pass over a node's sorted devices tells about each distinct request size.
  struct Room {
    std::int32_t fitting = 0;    // devices with at least that much
    std::int64_t too_small = 0;  // milli on the others
  };

  void measure(std::span<const std::int32_t> free);
  const std::vector<bool>& allowed(Symbol model);

  std::vector<Class> classes_;
  std::vector<std::int32_t> sizes_;  // distinct milli of GPU classes, ascending
  std::vector<Room> room_;           // per sizes_ entry, of the last measure()
  std::int64_t total_weight_ = 0;
  std::int64_t gpu_weight_ = 0;
  std::int64_t free_total_ = 0;
  struct Allowed {
    Symbol model;
    std::vector<bool> by_class;
  };
  std::vector<Allowed> allowed_;  // models seen, few
  const Cluster* cluster_ = nullptr;
};

}  // namespace jogak::core
