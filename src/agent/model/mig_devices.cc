// SPDX-License-Identifier: Apache-2.0
// Compares all instances with the first.
#include "agent/model/mig_devices.h"

#include <cstddef>

#include <fmt/format.h>

namespace jogak::agent {

bool is_usable(const nvml::MigInstanceFacts& instance) {
  return !instance.uuid.empty() && instance.ci_id >= 0;
}

std::optional<std::string> single_problem(const nvml::NodeFacts& facts) {
  std::size_t known = 0, with_mig = 0;
  for (const nvml::GpuFacts& gpu : facts.gpus) {
    if (gpu.is_lost && gpu.uuid.empty()) continue;
    ++known;
    if (gpu.mig_enabled) ++with_mig;
  }
  if (with_mig != known) {
    return fmt::format(
        "mig strategy single needs MIG on or off on all gpus, and {} of {} have it on; use mixed, "
        "or change the layout",
        with_mig, known);
  }
  const nvml::MigInstanceFacts* first = nullptr;
  for (const nvml::GpuFacts& gpu : facts.gpus) {
    if (gpu.is_lost && gpu.uuid.empty()) continue;
    bool is_empty = true;
    for (const nvml::MigInstanceFacts& instance : gpu.mig_instances) {
      if (!is_usable(instance)) continue;
      is_empty = false;
      if (first == nullptr) first = &instance;
      if (instance.profile == first->profile && instance.memory_mib == first->memory_mib &&
          instance.multiprocessors == first->multiprocessors) {
        continue;
      }
      const auto text = [](const nvml::MigInstanceFacts& of) {
        return fmt::format("{} ({} MiB, {} multiprocessors)", of.profile, of.memory_mib,
                           of.multiprocessors);
      };
      return fmt::format(
          "mig strategy single needs MIG devices of one profile, and there are {} and, on gpu {}, "
          "{}; use mixed, or change the layout",
          text(*first), gpu.index, text(instance));
    }
    if (is_empty) {
      return fmt::format(
          "mig strategy single needs MIG devices on every gpu, and gpu {} has none; use mixed, or "
          "make some",
          gpu.index);
    }
  }
  return std::nullopt;
}

}  // namespace jogak::agent
