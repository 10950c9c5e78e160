// SPDX-License-Identifier: Apache-2.0
//
// Ids are matched against the facts once, when either changes.
#include "agent/model/holders.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace jogak::agent {

namespace {

const DeviceHolders kNobody;

std::optional<int> small_number(std::string_view text) {
  if (text.empty() || text.size() > 4) return std::nullopt;
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

// "nvidia0", "nvidia0/gi7", "nvidia0/vgpu3".
std::optional<DeviceKey> parse_named(std::string_view id) {
  constexpr std::string_view kNvidia = "nvidia";
  if (!id.starts_with(kNvidia)) return std::nullopt;
  id.remove_prefix(kNvidia.size());
  const std::size_t slash = std::min(id.find('/'), id.size());
  DeviceKey key;
  const auto index = small_number(id.substr(0, slash));
  if (!index) return std::nullopt;
  key.gpu_index = *index;
  if (slash == id.size()) return key;
  std::string_view part = id.substr(slash + 1);
  int* number = nullptr;
  if (part.starts_with("gi")) {
    part.remove_prefix(2);
    number = &key.gi_id;
  } else if (part.starts_with("vgpu")) {
    part.remove_prefix(4);
    number = &key.replica;
  } else {
    return std::nullopt;
  }
  const auto value = small_number(part);
  if (!value) return std::nullopt;
  *number = *value;
  return key;
}

void insert_sorted(DeviceHolders& holders, const DeviceHolder& holder) {
  const auto at = std::ranges::lower_bound(holders, holder);
  if (at == holders.end() || *at != holder) holders.insert(at, holder);
}

}  // namespace

DeviceKey parse_device_id(std::string_view device_id) {
  if (auto named = parse_named(device_id)) return *std::move(named);
  DeviceKey key;
  const std::size_t mark = device_id.rfind("::");
  if (mark != std::string_view::npos) {
    if (const auto replica = small_number(device_id.substr(mark + 2))) {
      key.replica = *replica;
      device_id = device_id.substr(0, mark);
    }
  }
  key.uuid = device_id;
  return key;
}

HolderIndex::HolderIndex(const nvml::NodeFacts& facts, const std::vector<Holding>& holdings) {
  for (const Holding& holding : holdings) add(facts, holding);
  std::ranges::sort(strangers_);
  strangers_.erase(std::ranges::unique(strangers_).begin(), strangers_.end());
}

void HolderIndex::add(const nvml::NodeFacts& facts, const Holding& holding) {
  const DeviceKey key = parse_device_id(holding.device_id);
  const DeviceHolder holder = {.holder = holding.holder, .replica = key.replica};
  for (const nvml::GpuFacts& gpu : facts.gpus) {
    const bool is_gpu = key.uuid.empty() ? gpu.index == key.gpu_index : gpu.uuid == key.uuid;
    if (is_gpu && key.gi_id < 0) {
      insert_sorted(by_uuid_[gpu.uuid], holder);
      return;
    }
    for (const nvml::MigInstanceFacts& mig : gpu.mig_instances) {
      const bool is_mig =
          is_gpu ? mig.gi_id == key.gi_id : !key.uuid.empty() && mig.uuid == key.uuid;
      if (!is_mig) continue;
      if (!mig.uuid.empty()) insert_sorted(by_uuid_[mig.uuid], holder);
      insert_sorted(by_instance_[{gpu.uuid, mig.gi_id}], holder);
      return;
    }
  }
  if (key.uuid.starts_with("GPU-") || key.uuid.starts_with("MIG-")) {
    strangers_.push_back(holding.device_id);
  }
}

const DeviceHolders& HolderIndex::of_gpu(std::string_view uuid) const {
  const auto at = by_uuid_.find(uuid);
  return at == by_uuid_.end() ? kNobody : at->second;
}

const DeviceHolders& HolderIndex::of_mig(std::string_view mig_uuid) const {
  return of_gpu(mig_uuid);
}

const DeviceHolders& HolderIndex::of_instance(std::string_view gpu_uuid, int gi_id) const {
  const auto at = by_instance_.find({std::string(gpu_uuid), gi_id});
  return at == by_instance_.end() ? kNobody : at->second;
}

}  // namespace jogak::agent
