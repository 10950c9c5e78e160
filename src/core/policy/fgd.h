// SPDX-License-Identifier: Apache-2.0
// Baseline "FGD", fragmentation gradient descent: place where the fragmentation measure F of the
// node grows least. Everything it computes depends on the node's (model, free CPU, sorted free
// devices), so that state is numbered once and scores are remembered per (state, request).
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/policy/fragmentation.h"
#include "core/policy/gpu_view.h"
#include "core/policy/policy.h"

namespace jogak::core {

// trunc(100 * sigma(x / 1000)) for x = difference / weight, sigma the logistic function: the number
// of thresholds that x reaches. Exact, in whole numbers.
class LogisticSteps {
 public:
  explicit LogisticSteps(std::int64_t weight);
  std::int64_t step(std::int64_t difference) const;

 private:
  std::array<std::int64_t, 99> least_{};  // smallest difference that reaches step i + 1
};

// Score by (node state, request), both numbered densely. Open addressing, powers of two.
class ScoreMemo {
 public:
  static constexpr std::int64_t kMissing = -1;
  std::int64_t find(std::uint64_t key) const;
  void insert(std::uint64_t key, std::int64_t score);  // key not present
  void clear();
  std::size_t size() const { return size_; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::int64_t score = kMissing;
  };
  std::size_t home(std::uint64_t key) const;
  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

class FgdPolicy final : public Policy {
 public:
  FgdPolicy() : steps_(1) {}
  std::string_view name() const override { return "fgd"; }
  void prepare(const Cluster& cluster, const WorkloadMix& mix) override;
  std::int64_t score(const Cluster& cluster, const Shape& shape, const Node& node) override;
  void choose(const Cluster& cluster, const Shape& shape, const Node& node,
              std::vector<GpuHold>& out) override;

 private:
  // A numbered node state; its devices, ascending, lie in free_pool_.
  struct State {
    Symbol model;
    std::int64_t cpu = 0;
    std::size_t first = 0;
    std::size_t size = 0;
    std::int64_t fragmentation = 0;
  };
  struct NodeState {
    std::uint64_t version = 0;
    std::uint32_t state = 0;
  };
  struct Request {
    std::int64_t cpu = 0;
    std::int32_t count = 0;
    std::int32_t milli = 0;
    friend bool operator==(const Request&, const Request&) = default;
  };

  std::uint32_t state_of(const Cluster& cluster, const Node& node);
  std::uint32_t intern(Symbol model, std::int64_t cpu, std::span<const std::int32_t> free);
  bool is_state(const State& state, Symbol model, std::int64_t cpu,
                std::span<const std::int32_t> free) const;
  std::uint32_t request_number(const Request& request);
  std::span<const std::int32_t> free_of(const State& state) const;
  void forget();

  std::int64_t compute(const State& state, const Request& request);
  // The score when one share goes to a device that has `value` free.
  std::int64_t share_step(const State& state, const Request& request, std::int32_t value);

  GpuView view_;
  FragMix mix_;
  LogisticSteps steps_;
  std::vector<State> states_;
  std::vector<std::int32_t> free_pool_;
  std::vector<std::uint32_t> state_slots_;  // open addressing over states_: index + 1; 0: empty
  std::vector<NodeState> node_states_;      // by node slot
  std::vector<Request> requests_;
  std::uint32_t last_request_ = 0;
  ScoreMemo memo_;
  std::vector<std::int32_t> sorted_;  // scratch
  std::vector<std::int32_t> after_;   // scratch
};

}  // namespace jogak::core
