// SPDX-License-Identifier: Apache-2.0
//
// Sums by holder, which know when they are not complete.
#include "agent/exporter/pod_use.h"

#include <algorithm>

namespace jogak::agent {

namespace {

// A total of readings: absent when one that counts is not supported, or nobody could read it. A
// process that was not measured yet uses nothing so far.
class Sum {
 public:
  template <class T>
  void add(const nvml::Reading<T>& reading) {
    if (reading) {
      total_ += static_cast<std::int64_t>(*reading);
    } else if (reading.missing() != nvml::Missing::NoData) {
      is_known_ = false;
    }
  }
  std::optional<std::int64_t> total() const {
    return is_known_ ? std::optional(total_) : std::nullopt;
  }
  // Percentages of processes are measured one by one and may add up to a little more than all.
  std::optional<std::int64_t> percent() const {
    return is_known_ ? std::optional(std::min<std::int64_t>(total_, 100)) : std::nullopt;
  }

 private:
  std::int64_t total_ = 0;
  bool is_known_ = true;
};

struct Sums {
  Sum memory, sm, memory_copy, encoder, decoder;
  void add(const nvml::ProcessFacts& process) {
    memory.add(process.memory_bytes);
    sm.add(process.sm_percent);
    memory_copy.add(process.memory_percent);
    encoder.add(process.encoder_percent);
    decoder.add(process.decoder_percent);
  }
};

bool is_same_container(const Holder& owner, const Holder& holder) {
  return owner.pod == holder.pod && owner.pod_namespace == holder.pod_namespace &&
         (owner.container == holder.container || owner.container.empty());
}

}  // namespace

std::optional<std::int64_t> PodUse::of(Field::Share share) const {
  switch (share) {
    case Field::Share::Sm:
      return sm_percent;
    case Field::Share::Memory:
      return memory_bytes;
    case Field::Share::MemoryCopy:
      return memory_percent;
    case Field::Share::Encoder:
      return encoder_percent;
    case Field::Share::Decoder:
      return decoder_percent;
    case Field::Share::None:
      break;
  }
  return std::nullopt;
}

std::optional<DeviceUse> device_use(const nvml::GpuSample& sample, int gi_id,
                                    const ProcessOwners& owners,
                                    const std::vector<Holder>& holders) {
  if (!sample.processes) return std::nullopt;
  DeviceUse use;
  std::vector<Sums> sums(holders.size());
  for (const nvml::ProcessFacts& process : *sample.processes) {
    if (gi_id >= 0 && process.gi_id != gi_id) continue;
    const auto owner = owners.find(process.pid);
    const auto holder = owner == owners.end()
                            ? holders.end()
                            : std::ranges::find_if(holders, [&](const Holder& candidate) {
                                return is_same_container(owner->second, candidate);
                              });
    if (holder == holders.end()) {
      use.unattributed_memory_bytes += process.memory_bytes.value_or(0);
    } else {
      sums[static_cast<std::size_t>(holder - holders.begin())].add(process);
    }
  }
  for (std::size_t i = 0; i < holders.size(); ++i) {
    use.pods.push_back({.holder = holders[i],
                        .memory_bytes = sums[i].memory.total(),
                        .sm_percent = sums[i].sm.percent(),
                        .memory_percent = sums[i].memory_copy.percent(),
                        .encoder_percent = sums[i].encoder.percent(),
                        .decoder_percent = sums[i].decoder.percent()});
  }
  return use;
}

}  // namespace jogak::agent
