// SPDX-License-Identifier: Apache-2.0
//
// Levels for what the driver tells as a state, counts for what only grows, latches for XIDs.
#include "agent/health/gpu_health.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace jogak::agent {

namespace {

constexpr std::size_t kXidsKept = 32;
constexpr TimeUs kHour = 3600 * kSecondInUs;

std::string_view action_text(int action) {
  switch (action) {
    case 1:
      return "reset the gpu";
    case 2:
      return "reboot the node";
    case 3:
      return "drain peer to peer";
    case 4:
      return "drain and reset the gpu";
    case 5:
      return "recover the imex domain";
    default:
      return "an action unknown here";
  }
}

// Draining peers and the IMEX domain leave a GPU usable for others.
bool action_stops_use(int action) { return action != 0 && action != 3 && action != 5; }

bool is_true(const nvml::Reading<bool>& reading) { return reading.value_or(false); }

}  // namespace

std::string_view health_kind_text(HealthKind kind) {
  static constexpr std::string_view kTexts[] = {"Lost",
                                                "Unresponsive",
                                                "Xid",
                                                "RecoveryAction",
                                                "RowRemapFailed",
                                                "EccUncorrected",
                                                "RowRemapPending",
                                                "ThermalHardware",
                                                "Temperature",
                                                "PowerBrake",
                                                "NvlinkErrors",
                                                "XidNoted",
                                                "ThermalSoftware",
                                                "EccRate",
                                                "PcieReplays"};
  static_assert(std::size(kTexts) == kHealthKinds);
  return kTexts[static_cast<std::size_t>(kind)];
}

std::string_view severity_text(Severity severity) {
  switch (severity) {
    case Severity::Info:
      return "info";
    case Severity::Warning:
      return "warning";
    case Severity::Critical:
      break;
  }
  return "critical";
}

std::int64_t GpuHealth::Count::update(const nvml::Reading<std::int64_t>& reading, TimeUs now) {
  if (!reading) return 0;
  const std::int64_t before = std::exchange(last, *reading);
  if (before < 0) return 0;
  if (*reading > before) grew_at = now;
  return *reading - before;
}

// ---- what comes in ---------------------------------------------------------------------------

void GpuHealth::on_facts(const nvml::GpuFacts& facts, bool driver_reloaded, TimeUs now) {
  slowdown_c_ = facts.temperature_slowdown_c.value_or(0);
  if (driver_reloaded) on_reset(now);
  note_lost(facts.is_lost, now, facts.lost_reason);
  settle();
}

void GpuHealth::on_unlisted(TimeUs now) {
  note_lost(true, now, "the driver does not list it any more");
  settle();
}

void GpuHealth::on_failure(const Error& error, TimeUs now) {
  if (error.code == Errc::Gone) {
    note_lost(true, now, error.what);
  } else {
    if (unresponsive_why_ != error.what) {
      unresponsive_why_ = error.what;
      is_dirty_ = is_dirty_ || unresponsive_.is_raised();
    }
    is_dirty_ |= unresponsive_.update(true, now, options_.unresponsive);
  }
  forget_xids(now);
  settle();
}

void GpuHealth::on_event(const nvml::GpuEvent& event) {
  switch (event.kind) {
    case nvml::GpuEventKind::Xid:
      if (options_.watches_xids || is_enforced(event.code)) note_xid(event);
      break;
    case nvml::GpuEventKind::GpuLost:
      note_lost(true, event.time, "the driver says that it is lost");
      break;
    case nvml::GpuEventKind::GpuRecovered:
      note_lost(false, event.time, {});
      break;
    case nvml::GpuEventKind::DriverReload:
      on_reset(event.time);
      break;
    // Each of these shows in the next sample or in the next facts, with the whole story.
    case nvml::GpuEventKind::RecoveryAction:
    case nvml::GpuEventKind::EccSingleBit:
    case nvml::GpuEventKind::EccDoubleBit:
    case nvml::GpuEventKind::MigChange:
    case nvml::GpuEventKind::Other:
      break;
  }
  settle();
}

void GpuHealth::on_sample(const nvml::GpuSample& sample) {
  note_lost(sample.is_lost, sample.time, "it does not answer any more");
  if (!sample.is_lost) {
    is_dirty_ |= unresponsive_.update(false, sample.time, options_.unresponsive);
    watch_counts(sample);
    watch_levels(sample);
    watch_ecc_rate(sample);
    watch_recovery(sample);
  }
  forget_xids(sample.time);
  settle();
}

void GpuHealth::on_tick(TimeUs now) {
  forget_xids(now);
  settle();
}

void GpuHealth::clear(TimeUs now) {
  const std::int64_t counted = std::max<std::int64_t>(ecc_uncorrected_.last, 0);
  on_reset(now);
  ecc_forgiven_ = counted;
  settle();
}

// ---- lost and back ---------------------------------------------------------------------------

void GpuHealth::note_lost(bool is_lost, TimeUs now, std::string_view why) {
  if (is_lost && !why.empty() && lost_why_ != why) {
    lost_why_ = why;
    is_dirty_ = is_dirty_ || lost_.is_raised();
  }
  if (!lost_.update(is_lost, now, {.raise_after = 0, .clear_after = options_.lost_clear})) return;
  is_dirty_ = true;
  // Whoever comes back from there was initialised anew.
  if (!is_lost) on_reset(now);
}

void GpuHealth::on_reset(TimeUs now) {
  is_dirty_ = is_dirty_ || !xids_.empty() || ecc_uncorrected_count_ > 0;
  xids_.clear();
  ecc_uncorrected_count_ = ecc_forgiven_ = 0;
  for (Count* count : {&ecc_uncorrected_, &ecc_corrected_, &energy_, &crc_, &replay_,
                       &link_recovery_, &pcie_replays_}) {
    *count = {};
  }
  rate_window_start_ = -1;
  for (Level* level : {&recovery_, &row_pending_, &nvlink_, &nvlink_recovery_, &pcie_, &ecc_rate_,
                       &unresponsive_}) {
    is_dirty_ = is_dirty_ || level->is_raised();
    level->reset(now);
  }
}

// ---- XIDs ------------------------------------------------------------------------------------

bool GpuHealth::is_enforced(std::uint64_t xid) const {
  return options_.enforces_all_xids || options_.enforced_xids.contains(xid);
}

void GpuHealth::note_xid(const nvml::GpuEvent& event) {
  const XidInfo info = xid_info(event.code);
  is_dirty_ = true;
  const auto same = std::ranges::find_if(xids_, [&](const Latch& xid) {
    return xid.info.code == event.code && xid.gi_id == event.gi_id;
  });
  const bool is_ignored = options_.ignored_xids.contains(event.code);
  const bool stops_use = is_enforced(event.code) || (!is_ignored && xid_stops_use(info.kind));
  if (same != xids_.end()) {
    same->last = std::max(same->last, event.time);
    same->stops_use = stops_use;
    ++same->count;
    return;
  }
  if (xids_.size() == kXidsKept) {
    // The least of them goes: one that stops nothing, then the oldest.
    xids_.erase(std::ranges::min_element(xids_, {}, [](const Latch& xid) {
      return std::tuple(xid.stops_use, xid.until_reset, xid.last);
    }));
  }
  xids_.push_back({.info = info,
                   .gi_id = event.gi_id,
                   .stops_use = stops_use,
                   .until_reset = stops_use || info.kind == XidClass::Contained,
                   .first = event.time,
                   .last = event.time,
                   .count = 1});
}

void GpuHealth::forget_xids(TimeUs now) {
  const auto is_over = [&](const Latch& xid) {
    if (!xid.until_reset) return now - xid.last >= options_.xid_note_kept;
    return options_.xid_forgotten_after > 0 && now - xid.last >= options_.xid_forgotten_after;
  };
  if (std::erase_if(xids_, is_over) > 0) is_dirty_ = true;
}

// Where the driver says what is to be done, it knows better than a table of codes.
void GpuHealth::watch_recovery(const nvml::GpuSample& sample) {
  if (!sample.recovery_action) return;
  const int action = *sample.recovery_action;
  if (action != 0 && action != recovery_action_) {
    recovery_action_ = action;
    is_dirty_ = true;
  }
  is_dirty_ |= recovery_.update(action != 0, sample.time, {});
  if (action != 0) return;
  for (Latch& xid : xids_) {
    if (!xid.until_reset || sample.time - xid.last < options_.recovery_settles) continue;
    // A contained error asks for a reset some day, and no action says so.
    if (xid.info.kind == XidClass::Contained) continue;
    xid.stops_use = false;
    xid.until_reset = false;
    is_dirty_ = true;
  }
}

// ---- counts and levels -----------------------------------------------------------------------

void GpuHealth::watch_counts(const nvml::GpuSample& sample) {
  const TimeUs now = sample.time;
  // Energy and volatile errors count from the start of the driver, or from the last reset.
  const bool is_anew = energy_.update(sample.energy_mj, now) < 0 ||
                       ecc_corrected_.update(sample.ecc.corrected_volatile, now) < 0;
  const std::int64_t grown = ecc_uncorrected_.update(sample.ecc.uncorrected_volatile, now);
  if (is_anew || grown < 0) {
    on_reset(now);
    // The new start is where counting goes on from.
    energy_.update(sample.energy_mj, now);
    ecc_corrected_.update(sample.ecc.corrected_volatile, now);
    ecc_uncorrected_.update(sample.ecc.uncorrected_volatile, now);
  }
  // All since the last reset, also those from before the agent came: nothing has mended them.
  const auto& uncorrected = sample.ecc.uncorrected_volatile;
  if (uncorrected) {
    if (*uncorrected < ecc_forgiven_) ecc_forgiven_ = 0;  // counted anew
    const std::int64_t count = *uncorrected - ecc_forgiven_;
    if (ecc_uncorrected_count_ == 0) ecc_uncorrected_at_ = now;
    is_dirty_ = is_dirty_ || count != ecc_uncorrected_count_;
    ecc_uncorrected_count_ = count;
  }
  // Newer boards count one kind of checksum error only.
  crc_.update(
      sample.nvlink.crc_data_errors ? sample.nvlink.crc_data_errors : sample.nvlink.crc_flit_errors,
      now);
  replay_.update(sample.nvlink.replay_errors, now);
  link_recovery_.update(sample.nvlink.recovery_errors, now);
  pcie_replays_.update(sample.pcie_replays, now);

  const TimeUs window = options_.growth_window;
  const bool link_grows = crc_.grew_within(window, now) || replay_.grew_within(window, now);
  is_dirty_ |= nvlink_.update(link_grows, now, options_.nvlink_errors);
  // A link that had to be brought up again is news the first time.
  is_dirty_ |= nvlink_recovery_.update(
      link_recovery_.grew_within(window, now), now,
      {.raise_after = 0, .clear_after = options_.nvlink_errors.clear_after});
  is_dirty_ |= pcie_.update(pcie_replays_.grew_within(window, now), now, options_.pcie_replays);
}

void GpuHealth::watch_levels(const nvml::GpuSample& sample) {
  const TimeUs now = sample.time;
  if (sample.throttle_reasons) {
    const std::uint64_t bits = *sample.throttle_reasons;
    const bool is_brake = (bits & nvml::kThrottleHwPowerBrake) != 0;
    // The general hardware bit comes with one of the two special ones; alone it means heat on
    // older models.
    const bool is_hot = (bits & nvml::kThrottleHwThermal) != 0 ||
                        ((bits & nvml::kThrottleHwSlowdown) != 0 && !is_brake);
    is_dirty_ |= power_brake_.update(is_brake, now, options_.power_brake);
    is_dirty_ |= thermal_hardware_.update(is_hot, now, options_.thermal_hardware);
    is_dirty_ |= thermal_software_.update((bits & nvml::kThrottleSwThermal) != 0, now,
                                          options_.thermal_software);
  }
  if (sample.temperature_c && slowdown_c_ > 0) {
    const int back = temperature_.is_raised() ? options_.temperature_back_c : 0;
    const int bound = slowdown_c_ - options_.temperature_margin_c - back;
    is_dirty_ |= temperature_.update(*sample.temperature_c > bound, now, options_.temperature);
  }
  if (sample.rows.is_pending || sample.rows.retirement_pending) {
    const bool is_pending =
        is_true(sample.rows.is_pending) || is_true(sample.rows.retirement_pending);
    is_dirty_ |= row_pending_.update(is_pending, now, options_.row_remap_pending);
  }
  if (sample.rows.has_failed) {
    is_dirty_ |= row_failed_.update(*sample.rows.has_failed, now, options_.row_remap_pending);
  }
}

void GpuHealth::watch_ecc_rate(const nvml::GpuSample& sample) {
  if (!sample.ecc.corrected_volatile) return;
  const TimeUs now = sample.time;
  const std::int64_t count = *sample.ecc.corrected_volatile;
  if (rate_window_start_ < 0) {
    rate_window_start_ = now;
    rate_window_count_ = count;
    return;
  }
  const bool is_many = count - rate_window_count_ > options_.corrected_per_hour_max;
  if (is_many) is_dirty_ |= ecc_rate_.update(true, now, {});
  if (now - rate_window_start_ < kHour) return;
  if (!is_many) is_dirty_ |= ecc_rate_.update(false, now, {});
  rate_window_start_ = now;
  rate_window_count_ = count;
}

// ---- what goes out ---------------------------------------------------------------------------

void GpuHealth::add(HealthKind kind, Severity severity, bool stops_use, TimeUs since,
                    std::string text, std::uint64_t code) {
  facts_.push_back({.kind = kind,
                    .severity = severity,
                    .stops_use = stops_use,
                    .since = since,
                    .code = code,
                    .text = std::move(text)});
}

void GpuHealth::add_level(const Level& level, HealthKind kind, Severity severity, bool stops_use,
                          std::string_view text) {
  if (level.is_raised()) add(kind, severity, stops_use, level.since(), std::string(text));
}

void GpuHealth::settle() {
  if (!is_dirty_) return;
  is_dirty_ = false;
  const std::vector<HealthFact> before = std::exchange(facts_, {});
  using enum HealthKind;
  using enum Severity;
  add_level(lost_, Lost, Critical, true,
            lost_why_.empty() ? std::string_view("it does not answer any more") : lost_why_);
  if (unresponsive_.is_raised()) {
    add(Unresponsive, Critical, true, unresponsive_.since(),
        fmt::format("calls about it fail: {}", unresponsive_why_));
  }
  for (const Latch& xid : xids_) {
    const bool is_severe = xid.stops_use;
    add(is_severe ? Xid : XidNoted,
        is_severe                                         ? Critical
        : xid_stops_use(xid.info.kind) || xid.until_reset ? Warning
                                                          : Info,
        is_severe, xid.first,
        fmt::format("xid {}: {}{}", xid.info.code, xid.info.text,
                    xid.gi_id < 0 ? "" : fmt::format(" (gpu instance {})", xid.gi_id)),
        xid.info.code);
    facts_.back().gi_id = xid.gi_id;
  }
  if (recovery_.is_raised()) {
    add(RecoveryAction, action_stops_use(recovery_action_) ? Critical : Warning,
        action_stops_use(recovery_action_), recovery_.since(),
        fmt::format("the driver asks to {}", action_text(recovery_action_)),
        static_cast<std::uint64_t>(recovery_action_));
  }
  add_level(row_failed_, RowRemapFailed, Critical, true,
            "a memory row could not be replaced: the board is to be exchanged");
  if (ecc_uncorrected_count_ > 0) {
    add(EccUncorrected, Critical, false, ecc_uncorrected_at_,
        fmt::format("{} uncorrectable memory errors since the last reset", ecc_uncorrected_count_));
  }
  add_level(row_pending_, RowRemapPending, Warning, false,
            "a memory row waits to be replaced: reset the gpu when it is idle");
  add_level(thermal_hardware_, ThermalHardware, Warning, false, "slowed down by the hardware: hot");
  add_level(temperature_, Temperature, Warning, false, "near the temperature that slows it down");
  add_level(power_brake_, PowerBrake, Warning, false, "slowed down by the power brake");
  if (nvlink_.is_raised() || nvlink_recovery_.is_raised()) {
    add(NvlinkErrors, Warning, false,
        nvlink_.is_raised() ? nvlink_.since() : nvlink_recovery_.since(),
        nvlink_recovery_.is_raised() ? "an nvlink had to be brought up again"
                                     : "nvlink errors keep growing");
  }
  add_level(thermal_software_, ThermalSoftware, Info, false, "slowed down by the driver: warm");
  add_level(ecc_rate_, EccRate, Info, false, "many corrected memory errors");
  add_level(pcie_, PcieReplays, Info, false, "pcie transfers have to be repeated");
  std::ranges::stable_sort(facts_, {}, [](const HealthFact& fact) {
    return std::tuple(fact.kind, fact.code, fact.gi_id);
  });
  if (facts_ != before) ++changes_;
}

}  // namespace jogak::agent
