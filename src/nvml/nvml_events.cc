// SPDX-License-Identifier: Apache-2.0
//
// What happens to GPUs: NVML's events, and the two that it does not tell, a GPU that stops or
// begins to answer and a driver that was reloaded.
#include <algorithm>

#include "nvml/abi_constants.h"
#include "nvml/nvml_source.h"
#include "nvml/sim/c_api.h"

namespace jogak::nvml {

namespace {

using abi::Return;

constexpr std::size_t kBatchMax = 256;

GpuEventKind kind_of(std::uint64_t type) {
  switch (type) {
    case abi::kEventXid:
      return GpuEventKind::Xid;
    case abi::kEventSingleBitEcc:
      return GpuEventKind::EccSingleBit;
    case abi::kEventDoubleBitEcc:
      return GpuEventKind::EccDoubleBit;
    case abi::kEventMigConfig:
      return GpuEventKind::MigChange;
    case abi::kEventRecoveryAction:
      return GpuEventKind::RecoveryAction;
    default:
      return GpuEventKind::Other;
  }
}

}  // namespace

GpuEvent NvmlSource::event_of(const abi::EventData& data) {
  GpuEvent event;
  event.kind = kind_of(data.event_type);
  event.code = data.event_data;
  event.time = now();
  if (event.kind == GpuEventKind::Other) event.code = data.event_type;
  const auto at = std::ranges::find(gpus_, data.device, &Gpu::handle);
  if (at != gpus_.end()) event.uuid = at->facts.uuid;
  // Lost before it could be named: without a name it would look like an event of every GPU.
  if (at != gpus_.end() && event.uuid.empty()) {
    event.kind = GpuEventKind::Other;
    event.code = data.event_type;
  }
  if (data.gpu_instance_id != abi::kNoInstance) {
    event.gi_id = static_cast<int>(data.gpu_instance_id);
    if (data.compute_instance_id != abi::kNoInstance) {
      event.ci_id = static_cast<int>(data.compute_instance_id);
    }
  }
  return event;
}

bool NvmlSource::looks_for_losses() {
  const TimeUs time = now();
  // Another call may have found one, which is told at once; the clock may have been set back.
  const bool is_due =
      time < last_loss_look_ || time - last_loss_look_ >= options_.loss_look_every ||
      std::ranges::any_of(gpus_, [](const Gpu& gpu) { return gpu.is_lost != gpu.is_told_lost; });
  if (is_due) last_loss_look_ = time;
  return is_due;
}

void NvmlSource::note_losses(std::vector<GpuEvent>& events) {
  if (!looks_for_losses()) return;
  for (Gpu& gpu : gpus_) {
    // The cheapest question that needs the GPU itself.
    abi::Memory memory{};
    Return result = Return::GpuIsLost;
    if (gpu.handle == nullptr) {
      const auto index = static_cast<std::uint32_t>(gpu.facts.index);
      result = call(f_.handle_by_index, index, &gpu.handle);
      if (result != Return::Success) gpu.handle = nullptr;
      if (result == Return::Success) read_identity(gpu);
    } else {
      result = call(f_.memory, gpu.handle, &memory);
    }
    const bool is_lost = missing_of(result) == Missing::Lost || gpu.handle == nullptr;
    missed(result, &gpu);
    if (is_ended_) return;
    gpu.is_lost = is_lost;
    gpu.facts.is_lost = is_lost;
    if (!is_lost) gpu.facts.lost_reason.clear();
    if (is_lost == gpu.is_told_lost) continue;
    gpu.is_told_lost = is_lost;
    events.push_back({.uuid = gpu.facts.uuid,
                      .kind = is_lost ? GpuEventKind::GpuLost : GpuEventKind::GpuRecovered,
                      .time = now()});
  }
}

Result<std::vector<GpuEvent>> NvmlSource::poll_events(TimeUs timeout) {
  const sim::UseMachine use(options_.machine.get());
  JOGAK_TRY_VOID(ensure_session());
  std::vector<GpuEvent> events;
  if (tells_reload_) {
    tells_reload_ = false;
    events.push_back(
        {.uuid = {}, .kind = GpuEventKind::DriverReload, .code = generation_, .time = now()});
  }
  note_losses(events);
  auto wait_ms = static_cast<std::uint32_t>(events.empty() ? timeout / kMsInUs : 0);
  while (events_ != nullptr && !is_ended_ && events.size() < kBatchMax) {
    abi::EventData data{};
    const Return result = call(f_.event_wait, events_, &data, wait_ms);
    // A GPU that is lost meanwhile is found by asking it, next time.
    if (result != Return::Success) {
      missed(result, nullptr);
      break;
    }
    events.push_back(event_of(data));
    wait_ms = 0;
  }
  if (is_ended_ && events.empty()) return fail(Errc::Unavailable, "the driver went away");
  return events;
}

}  // namespace jogak::nvml
