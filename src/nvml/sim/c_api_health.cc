// SPDX-License-Identifier: Apache-2.0
//
// ECC, retired pages, remapped rows, repairs, and events.
#include <chrono>

#include "nvml/abi_constants.h"
#include "nvml/sim/c_call.h"
#include "nvml/sim/readings.h"

namespace jogak::nvml::abi {

namespace {

using sim::EventSetState;
using sim::FaultKind;
using sim::GpuState;
using sim::Machine;
using sim::on_driver;
using sim::on_gpu;
using sim::put;
using sim::Target;

constexpr std::uint64_t kSupportedEvents = kEventSingleBitEcc | kEventDoubleBitEcc | kEventPstate |
                                           kEventXid | kEventClock | kEventMigConfig |
                                           kEventRecoveryAction;

std::int64_t remapped(const Target& t, bool is_uncorrected) {
  const sim::CountersSpec& before = t.gpu.spec.counters;
  return (is_uncorrected ? before.rows_uncorrected : before.rows_corrected) +
         t.machine.counted(FaultKind::RowRemap, t.gpu.index, is_uncorrected ? 1 : 0, 0);
}

bool is_remap_pending(const Target& t) {
  return t.gpu.spec.counters.rows_pending ||
         t.machine.row_bit(t.gpu.index, 2, t.gpu.counting_since);
}

bool has_remap_failed(const Target& t) {
  return t.gpu.spec.counters.rows_failed || t.machine.row_bit(t.gpu.index, 4, 0);
}

std::int64_t retired(const Target& t, Enum cause) {
  const sim::CountersSpec& counters = t.gpu.spec.counters;
  return cause == kRetiredSingleBit ? counters.retired_single_bit : counters.retired_double_bit;
}

}  // namespace

Return nvmlDeviceGetEccMode(Device device, Enum* current, Enum* pending) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (current == nullptr || pending == nullptr) return Return::InvalidArgument;
    if (!t.gpu.spec.has_ecc) return Return::NotSupported;
    *current = t.gpu.spec.ecc_enabled ? 1 : 0;
    *pending = t.gpu.ecc_pending ? 1 : 0;
    return Return::Success;
  });
}

Return nvmlDeviceGetDefaultEccMode(Device device, Enum* mode) {
  return on_gpu(__func__, device, [&](Target& t) {
    return t.gpu.spec.has_ecc ? put(mode, 1) : Return::NotSupported;
  });
}

Return nvmlDeviceSetEccMode(Device device, Enum mode) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (mode > 1) return Return::InvalidArgument;
    if (!t.gpu.spec.has_ecc) return Return::NotSupported;
    t.gpu.ecc_pending = mode == 1;
    return Return::Success;
  });
}

Return nvmlDeviceClearEccErrorCounts(Device device, Enum counter) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (counter > kEccAggregate) return Return::InvalidArgument;
    if (!t.gpu.spec.has_ecc) return Return::NotSupported;
    // The volatile counters only: the aggregate ones are the board's memory.
    if (counter == kEccVolatile) t.gpu.counting_since = t.machine.now();
    return Return::Success;
  });
}

Return nvmlDeviceGetTotalEccErrors(Device device, Enum error, Enum counter, std::uint64_t* count) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (error > kErrorUncorrected || counter > kEccAggregate) return Return::InvalidArgument;
    if (!t.gpu.spec.has_ecc || !t.gpu.spec.ecc_enabled) return Return::NotSupported;
    return put(count, sim::ecc_errors(t.machine, t.gpu, error == kErrorUncorrected,
                                      counter == kEccAggregate));
  });
}

Return nvmlDeviceGetMemoryErrorCounter(Device device, Enum error, Enum counter, Enum location,
                                       std::uint64_t* count) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (error > kErrorUncorrected || counter > kEccAggregate || location >= kLocationCount) {
      return Return::InvalidArgument;
    }
    if (!t.gpu.spec.has_ecc || !t.gpu.spec.ecc_enabled) return Return::NotSupported;
    // All simulated errors are in device memory; newer boards count only it and SRAM.
    if (location == kLocationDram) {
      return put(count, sim::ecc_errors(t.machine, t.gpu, error == kErrorUncorrected,
                                        counter == kEccAggregate));
    }
    if (t.gpu.spec.has_row_remap && location != kLocationSram) return Return::NotSupported;
    return put(count, 0);
  });
}

Return nvmlDeviceGetDetailedEccErrors(Device device, Enum error, Enum counter,
                                      EccErrorCounts* counts) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (counts == nullptr || error > kErrorUncorrected || counter > kEccAggregate) {
      return Return::InvalidArgument;
    }
    if (!t.gpu.spec.has_ecc || !t.gpu.spec.ecc_enabled) return Return::NotSupported;
    *counts = {};
    return put(&counts->device_memory, sim::ecc_errors(t.machine, t.gpu, error == kErrorUncorrected,
                                                       counter == kEccAggregate));
  });
}

Return nvmlDeviceGetSramEccErrorStatus(Device device, EccSramErrorStatusV1* status) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (status == nullptr) return Return::InvalidArgument;
    if (status->version != version_of<EccSramErrorStatusV1>(1)) {
      return Return::ArgumentVersionMismatch;
    }
    if (!t.gpu.spec.has_ecc || !t.gpu.spec.has_row_remap) return Return::NotSupported;
    const std::uint32_t version = status->version;
    *status = {};
    status->version = version;
    return Return::Success;
  });
}

Return nvmlDeviceGetRetiredPages_v2(Device device, Enum cause, std::uint32_t* count,
                                    std::uint64_t* addresses, std::uint64_t* timestamps) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (count == nullptr || cause > kRetiredDoubleBit) return Return::InvalidArgument;
    if (t.gpu.spec.has_row_remap) return Return::NotSupported;
    const auto pages = static_cast<std::uint32_t>(retired(t, cause));
    const std::uint32_t room = *count;
    *count = pages;
    if (pages == 0) return Return::Success;
    if (room < pages) return Return::InsufficientSize;
    if (addresses == nullptr) return Return::InvalidArgument;
    for (std::uint32_t i = 0; i < pages; ++i) {
      addresses[i] = 0x10000ULL * (i + 1);
      if (timestamps != nullptr) timestamps[i] = 0;
    }
    return Return::Success;
  });
}

Return nvmlDeviceGetRetiredPages(Device device, Enum cause, std::uint32_t* count,
                                 std::uint64_t* addresses) {
  return nvmlDeviceGetRetiredPages_v2(device, cause, count, addresses, nullptr);
}

Return nvmlDeviceGetRetiredPagesPendingStatus(Device device, Enum* is_pending) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (t.gpu.spec.has_row_remap) return Return::NotSupported;
    return put(is_pending, t.gpu.spec.counters.retirement_pending ? 1 : 0);
  });
}

Return nvmlDeviceGetRemappedRows(Device device, std::uint32_t* corrected,
                                 std::uint32_t* uncorrected, std::uint32_t* is_pending,
                                 std::uint32_t* has_failed) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (corrected == nullptr || uncorrected == nullptr || is_pending == nullptr ||
        has_failed == nullptr) {
      return Return::InvalidArgument;
    }
    if (!t.gpu.spec.has_row_remap) return Return::NotSupported;
    *corrected = static_cast<std::uint32_t>(remapped(t, false));
    *uncorrected = static_cast<std::uint32_t>(remapped(t, true));
    *is_pending = is_remap_pending(t) ? 1 : 0;
    *has_failed = has_remap_failed(t) ? 1 : 0;
    return Return::Success;
  });
}

Return nvmlDeviceGetRemappedRows_v2(Device device, RemappedRowsInfoV2* info) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (info == nullptr) return Return::InvalidArgument;
    if (!t.gpu.spec.has_row_remap) return Return::NotSupported;
    *info = {};
    info->corr_active_remaps = static_cast<std::uint32_t>(remapped(t, false));
    info->unc_active_remaps = static_cast<std::uint32_t>(remapped(t, true));
    info->is_pending = is_remap_pending(t) ? 1 : 0;
    info->has_failed = has_remap_failed(t) ? 1 : 0;
    return Return::Success;
  });
}

Return nvmlDeviceGetRowRemapperHistogram(Device device, RowRemapperHistogramValues* values) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (values == nullptr) return Return::InvalidArgument;
    if (!t.gpu.spec.has_row_remap || t.gpu.spec.banks == 0) return Return::NotSupported;
    *values = {};
    // Each remapped row has cost its bank one spare.
    const auto banks = static_cast<std::uint32_t>(t.gpu.spec.banks);
    const auto hit = static_cast<std::uint32_t>(remapped(t, false) + remapped(t, true));
    values->high = std::min(hit, banks);
    values->none = has_remap_failed(t) && values->high > 0 ? 1 : 0;
    values->high -= values->none;
    values->max = banks - values->high - values->none;
    return Return::Success;
  });
}

Return nvmlDeviceGetRepairStatus(Device device, RepairStatusV1* status) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (status == nullptr) return Return::InvalidArgument;
    if (status->version != version_of<RepairStatusV1>(1)) return Return::ArgumentVersionMismatch;
    if (t.gpu.spec.compute_major < 9) return Return::NotSupported;
    status->is_channel_repair_pending = status->is_tpc_repair_pending = 0;
    return Return::Success;
  });
}

Return nvmlDeviceGetUnrepairableMemoryFlag_v1(Device device, UnrepairableMemoryStatusV1* status) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (status == nullptr) return Return::InvalidArgument;
    if (t.gpu.spec.compute_major < 9) return Return::NotSupported;
    return put(&status->is_memory_unrepairable, has_remap_failed(t) ? 1 : 0);
  });
}

Return nvmlEventSetCreate(EventSet* set) {
  return on_driver(__func__, [&](Machine& machine) {
    if (set == nullptr) return Return::InvalidArgument;
    const void* const made = machine.create_event_set();
    if (made == nullptr) return Return::Memory;
    *set = sim::as_handle<EventSet>(reinterpret_cast<std::uint64_t>(made));
    return Return::Success;
  });
}

Return nvmlDeviceGetSupportedEventTypes(Device device, std::uint64_t* types) {
  return on_gpu(__func__, device, [&](Target& t) {
    const bool has_recovery = t.gpu.spec.compute_major >= 9;
    return put(types, has_recovery ? kSupportedEvents : kSupportedEvents & ~kEventRecoveryAction);
  });
}

Return nvmlDeviceRegisterEvents(Device device, std::uint64_t types, EventSet set) {
  return on_gpu(__func__, device, [&](Target& t) {
    EventSetState* const state = t.machine.event_set(set);
    if (state == nullptr) return Return::InvalidArgument;
    if ((types & ~kSupportedEvents) != 0) return Return::NotSupported;
    state->registrations.push_back(
        {.gpu = t.gpu.index, .types = types, .from = t.machine.log_end()});
    return Return::Success;
  });
}

namespace {

EventData event_data(Machine& machine, const sim::LoggedEvent& event) {
  EventData data{};
  data.device = sim::as_handle<Device>(machine.device_handle(event.gpu));
  data.event_type = event.type;
  data.event_data = event.data;
  data.gpu_instance_id = event.gi_id < 0 ? kNoInstance : static_cast<std::uint32_t>(event.gi_id);
  data.compute_instance_id =
      event.ci_id < 0 ? kNoInstance : static_cast<std::uint32_t>(event.ci_id);
  return data;
}

// Until an event, the next fault or the deadline, whichever is first.
void wait_a_while(Machine& machine, std::unique_lock<std::mutex>& lock, TimeUs deadline) {
  const TimeUs now = machine.now();
  const TimeUs until = std::min(deadline, machine.next_fault_at().value_or(deadline));
  machine.changed().wait_for(lock,
                             std::chrono::microseconds(std::max<TimeUs>(until - now, 0) + 500));
  machine.advance();
}

}  // namespace

Return nvmlEventSetWait_v2(EventSet set, EventData* data, std::uint32_t timeout_ms) {
  Machine* const machine = sim::current_machine();
  if (machine == nullptr) return Return::DriverNotLoaded;
  std::unique_lock lock(machine->mutex());
  machine->advance();
  sim::wait_if_slow(*machine, lock, __func__, -1);
  const TimeUs deadline = machine->now() + TimeUs{timeout_ms} * kMsInUs;
  while (true) {
    if (const Return no = sim::may_call(*machine, __func__, -1); no != Return::Success) return no;
    EventSetState* const state = machine->event_set(set);
    if (state == nullptr || data == nullptr) return Return::InvalidArgument;
    if (const auto event = machine->take_event(*state)) {
      *data = event_data(*machine, *event);
      return Return::Success;
    }
    if (machine->is_virtual() || machine->now() >= deadline) return Return::Timeout;
    wait_a_while(*machine, lock, deadline);
  }
}

Return nvmlEventSetWait(EventSet set, EventData* data, std::uint32_t timeout_ms) {
  EventData full{};
  const Return result = nvmlEventSetWait_v2(set, &full, timeout_ms);
  // The struct of old callers ends before the instance ids.
  if (result == Return::Success) {
    if (data == nullptr) return Return::InvalidArgument;
    std::memcpy(data, &full, offsetof(EventData, gpu_instance_id));
  }
  return result;
}

Return nvmlEventSetFree(EventSet set) {
  return on_driver(__func__, [&](Machine& machine) {
    if (machine.event_set(set) == nullptr) return Return::InvalidArgument;
    machine.free_event_set(set);
    return Return::Success;
  });
}

}  // namespace jogak::nvml::abi
