// SPDX-License-Identifier: Apache-2.0
// Passes every call on once there is somebody to take it.
#include "nvml/late_source.h"

#include <utility>

namespace jogak::nvml {

template <class Call>
auto LateSource::with_source(Call call) -> decltype(call(std::declval<GpuSource&>())) {
  if (source_ == nullptr) return std::unexpected(problem_);
  return call(*source_);
}

Result<NodeFacts> LateSource::facts() {
  if (source_ == nullptr) {
    auto opened = open_();
    if (!opened) {
      problem_ = opened.error();
      return std::unexpected(std::move(opened).error());
    }
    source_ = *std::move(opened);
  }
  return source_->facts();
}

Result<GpuSample> LateSource::sample(const std::string& uuid, const SampleWants& wants) {
  return with_source([&](GpuSource& source) { return source.sample(uuid, wants); });
}

Result<std::vector<GpuEvent>> LateSource::poll_events(TimeUs timeout) {
  return with_source([&](GpuSource& source) { return source.poll_events(timeout); });
}

Result<std::vector<ProcessFacts>> LateSource::processes(const std::string& uuid) {
  return with_source([&](GpuSource& source) { return source.processes(uuid); });
}

Result<bool> LateSource::is_recut(const std::string& uuid) {
  return with_source([&](GpuSource& source) { return source.is_recut(uuid); });
}

Result<void> LateSource::set_compute_mode(const std::string& uuid, int mode) {
  return with_source([&](GpuSource& source) { return source.set_compute_mode(uuid, mode); });
}

Result<bool> LateSource::set_mig_mode(const std::string& uuid, bool is_enabled) {
  return with_source([&](GpuSource& source) { return source.set_mig_mode(uuid, is_enabled); });
}

Result<std::vector<MigInstanceFacts>> LateSource::create_instance(
    const std::string& uuid, int profile_id, MigPlacement placement,
    const std::vector<int>& ci_profile_ids) {
  return with_source([&](GpuSource& source) {
    return source.create_instance(uuid, profile_id, placement, ci_profile_ids);
  });
}

Result<std::vector<MigInstanceFacts>> LateSource::create_instance_in_parts(
    const std::string& uuid, int profile_id, MigPlacement placement,
    const std::vector<int>& part_slices) {
  return with_source([&](GpuSource& source) {
    return source.create_instance_in_parts(uuid, profile_id, placement, part_slices);
  });
}

Result<void> LateSource::destroy_instance(const std::string& uuid, int gi_id) {
  return with_source([&](GpuSource& source) { return source.destroy_instance(uuid, gi_id); });
}

Result<void> LateSource::destroy_compute_instance(const std::string& uuid, int gi_id, int ci_id) {
  return with_source(
      [&](GpuSource& source) { return source.destroy_compute_instance(uuid, gi_id, ci_id); });
}

Result<MigInstanceFacts> LateSource::create_compute_instance(const std::string& uuid, int gi_id,
                                                             int ci_profile_id) {
  return with_source([&](GpuSource& source) {
    return source.create_compute_instance(uuid, gi_id, ci_profile_id);
  });
}

}  // namespace jogak::nvml
