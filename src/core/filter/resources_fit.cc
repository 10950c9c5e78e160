// SPDX-License-Identifier: Apache-2.0
// See resources_fit.h. This is the innermost function of every search: one pass, no allocation
// unless somebody asked for reasons.
#include "core/filter/resources_fit.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace jogak::core {
namespace {

// Collects what is short.
class Shortage {
 public:
  explicit Shortage(Reasons* reasons) : reasons_(reasons) {}

  // The difference may be negative (capacity lost under running pods); a request of nothing passes.
  static bool is_short(std::int64_t ask, std::int64_t allocatable, std::int64_t requested) {
    return ask > 0 && ask > allocatable - requested;
  }
  void add(bool beyond_capacity, std::string_view resource) {
    refuse(beyond_capacity, [&] { return "Insufficient " + std::string(resource); });
  }
  void add_pods() {
    refuse(false, [] { return std::string("Too many pods"); });
  }
  Verdict verdict() const {
    return code_ == Code::Fits ? Verdict{} : Verdict{Plugin::NodeResourcesFit, code_};
  }

 private:
  template <class Text>
  void refuse(bool beyond_capacity, const Text& text) {
    if (beyond_capacity) {
      code_ = Code::Unresolvable;
    } else if (code_ == Code::Fits) {
      code_ = Code::Unschedulable;
    }
    if (reasons_ != nullptr) reasons_->push_back(text());
  }

  Reasons* reasons_;
  Code code_ = Code::Fits;
};

}  // namespace

Verdict resources_fit_filter(const Cluster& cluster, const PodView& pod, const Node& node,
                             Reasons* reasons) {
  const Shape& ask = *pod.shape;
  Shortage shortage(reasons);
  if (node.pod_count() + 1 > node.pods_allocatable) shortage.add_pods();
  if (Shortage::is_short(ask.cpu, node.cpu_allocatable, node.cpu_requested)) {
    shortage.add(ask.cpu > node.cpu_allocatable, "cpu");
  }
  if (Shortage::is_short(ask.memory, node.memory_allocatable, node.memory_requested)) {
    shortage.add(ask.memory > node.memory_allocatable, "memory");
  }
  if (Shortage::is_short(ask.storage, node.storage_allocatable, node.storage_requested)) {
    shortage.add(ask.storage > node.storage_allocatable, "ephemeral-storage");
  }
  for (const ScalarRequest& scalar : ask.scalars) {
    const ScalarAmount* const amount = node.scalar(scalar.id);
    const std::int64_t allocatable = amount == nullptr ? 0 : amount->allocatable;
    const std::int64_t requested = amount == nullptr ? 0 : amount->requested;
    if (Shortage::is_short(scalar.amount, allocatable, requested)) {
      shortage.add(scalar.amount > allocatable, cluster.scalar_name(scalar.id));
    }
  }
  return shortage.verdict();
}

}  // namespace jogak::core
