// SPDX-License-Identifier: Apache-2.0
//
// GPUs whose driver may come later: on a node where the library is not there yet (a driver that a
// container brings along, or no GPU at all) every call answers Unavailable and why, until one of
// facts() finds it. From then on it is the source that was found.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nvml/gpu_source.h"

namespace jogak::nvml {

class LateSource final : public GpuSource {
 public:
  using Open = std::function<Result<std::unique_ptr<GpuSource>>()>;

  // `open` is called on the NVML thread. `problem`: why it is not open yet.
  LateSource(Open open, Error problem) : open_(std::move(open)), problem_(std::move(problem)) {}

  Result<NodeFacts> facts() override;
  Result<GpuSample> sample(const std::string& uuid, const SampleWants& wants) override;
  Result<std::vector<GpuEvent>> poll_events(TimeUs timeout) override;
  Result<std::vector<ProcessFacts>> processes(const std::string& uuid) override;
  Result<bool> is_recut(const std::string& uuid) override;
  Result<void> set_compute_mode(const std::string& uuid, int mode) override;
  Result<bool> set_mig_mode(const std::string& uuid, bool is_enabled) override;
  Result<std::vector<MigInstanceFacts>> create_instance(
      const std::string& uuid, int profile_id, MigPlacement placement,
      const std::vector<int>& ci_profile_ids) override;
  Result<std::vector<MigInstanceFacts>> create_instance_in_parts(
      const std::string& uuid, int profile_id, MigPlacement placement,
      const std::vector<int>& part_slices) override;
  Result<void> destroy_instance(const std::string& uuid, int gi_id) override;
  Result<void> destroy_compute_instance(const std::string& uuid, int gi_id, int ci_id) override;
  Result<MigInstanceFacts> create_compute_instance(const std::string& uuid, int gi_id,
                                                   int ci_profile_id) override;

 private:
  // The call on what was found, or why there is nothing.
  template <class Call>
  auto with_source(Call call) -> decltype(call(std::declval<GpuSource&>()));

  const Open open_;
  Error problem_;
  std::unique_ptr<GpuSource> source_;
};

}  // namespace jogak::nvml
