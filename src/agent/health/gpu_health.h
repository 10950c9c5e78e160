// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with one GPU, from what it said: samples, events, failed calls. Pure: the time
// comes with each of them. Facts appear and go with hysteresis, so that one hot second or one lost
// answer moves nothing, and every fact has a way back:
//
//   kind              appears                               goes
//   Lost              the GPU is lost or not listed         it answers for lost_clear
//   Unresponsive      calls fail for unresponsive.raise     they work for unresponsive.clear
//   Xid               an XID that stops use                 a reset; recovery action 0 where the
//                                                           driver tells it; the operator
//   XidNoted          any other XID                         after xid_note_kept without another
//                                                           (a contained error: a reset)
//   RecoveryAction    the driver asks for one               it does not any more
//   EccUncorrected    the count grew                        a reset
//   EccRate           many corrected errors in an hour      an hour with few
//   RowRemapFailed, RowRemapPending, thermal and power      the driver's flag, held for a while
//   NvlinkErrors, PcieReplays   counts keep growing         they do not for a while
//
// A reset is seen by a driver reload, by counters that start anew, and by a lost GPU that is back.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/health/level.h"
#include "agent/health/xid.h"
#include "base/loop.h"
#include "base/result.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

enum class HealthKind : std::uint8_t {
  Lost,
  Unresponsive,
  Xid,
  RecoveryAction,
  RowRemapFailed,
  EccUncorrected,
  RowRemapPending,
  ThermalHardware,
  Temperature,
  PowerBrake,
  NvlinkErrors,
  XidNoted,
  ThermalSoftware,
  EccRate,
  PcieReplays,
};
inline constexpr std::size_t kHealthKinds = 15;
std::string_view health_kind_text(HealthKind kind);  // "XidNoted": CamelCase, as reasons are

enum class Severity : std::uint8_t { Info, Warning, Critical };
std::string_view severity_text(Severity severity);  // "info"

struct HealthFact {
  HealthKind kind = HealthKind::Lost;
  Severity severity = Severity::Info;
  bool stops_use = false;  // no new pod should get the device
  TimeUs since = 0;
  std::uint64_t code = 0;  // of Xid, XidNoted (the XID) and RecoveryAction
  int gi_id = -1;          // the MIG instance that it concerns; -1: the whole GPU
  std::string text = {};   // one line, lower case, without the GPU's name
  friend bool operator==(const HealthFact&, const HealthFact&) = default;
};

struct HealthOptions {
  // What the incumbent device plugin takes for errors of applications. Such an XID is only noted.
  std::set<std::uint64_t> ignored_xids = {13, 31, 43, 45, 68, 109};
  // XIDs that stop use whatever their class, the list above and watches_xids say; or all of them.
  std::set<std::uint64_t> enforced_xids = {};
  bool enforces_all_xids = false;
  bool watches_xids = true;
  TimeUs xid_note_kept = 600 * kSecondInUs;
  // After so long without the same XID the GPU is taken for well again, reset or not. 0: never.
  TimeUs xid_forgotten_after = 0;
  // A recovery action that was read sooner after an XID may be the one from before it.
  TimeUs recovery_settles = 5 * kSecondInUs;

  TimeUs lost_clear = 10 * kSecondInUs;
  LevelRule unresponsive = {.raise_after = 15 * kSecondInUs, .clear_after = 10 * kSecondInUs};
  LevelRule thermal_hardware = {.raise_after = 30 * kSecondInUs, .clear_after = 300 * kSecondInUs};
  LevelRule thermal_software = {.raise_after = 1800 * kSecondInUs,
                                .clear_after = 300 * kSecondInUs};
  LevelRule temperature = {.raise_after = 300 * kSecondInUs, .clear_after = 300 * kSecondInUs};
  int temperature_margin_c = 5;  // below the slowdown threshold
  int temperature_back_c = 2;    // further below it before it counts as cooler
  LevelRule power_brake = {.raise_after = 30 * kSecondInUs, .clear_after = 300 * kSecondInUs};
  LevelRule row_remap_pending = {.raise_after = 0, .clear_after = 60 * kSecondInUs};
  LevelRule nvlink_errors = {.raise_after = 600 * kSecondInUs, .clear_after = 1800 * kSecondInUs};
  LevelRule pcie_replays = {.raise_after = 900 * kSecondInUs, .clear_after = 1800 * kSecondInUs};
  TimeUs growth_window = 60 * kSecondInUs;  // a count that grew within it is growing
  std::int64_t corrected_per_hour_max = 1000;
};

class GpuHealth {
 public:
  // `options` outlives it.
  explicit GpuHealth(const HealthOptions& options) : options_(options) {}

  void on_facts(const nvml::GpuFacts& facts, bool driver_reloaded, TimeUs now);
  // The driver does not list it any more.
  void on_unlisted(TimeUs now);
  void on_sample(const nvml::GpuSample& sample);
  // A call about it failed; that it is gone has Errc::Gone.
  void on_failure(const Error& error, TimeUs now);
  void on_event(const nvml::GpuEvent& event);
  // Time passed.
  void on_tick(TimeUs now);
  // Somebody who looked at it says that it is well.
  void clear(TimeUs now);

  // Worst first: by kind, then code and instance.
  const std::vector<HealthFact>& facts() const { return facts_; }
  // Grows whenever facts() changed.
  std::uint64_t changes() const { return changes_; }
  bool is_lost() const { return lost_.is_raised(); }

 private:
  struct Latch {
    XidInfo info;
    int gi_id = -1;
    bool stops_use = false;
    bool until_reset = false;
    TimeUs first = 0, last = 0;
    std::int64_t count = 0;
  };
  // A count of the driver; a smaller one than before means that it began anew.
  struct Count {
    std::int64_t last = -1;
    TimeUs grew_at = -1;
    // By how much it grew; negative when it began anew.
    std::int64_t update(const nvml::Reading<std::int64_t>& reading, TimeUs now);
    bool grew_within(TimeUs window, TimeUs now) const {
      return grew_at >= 0 && now - grew_at < window;
    }
  };

  bool is_enforced(std::uint64_t xid) const;
  void note_xid(const nvml::GpuEvent& event);
  void on_reset(TimeUs now);
  void forget_xids(TimeUs now);
  void watch_counts(const nvml::GpuSample& sample);
  void watch_levels(const nvml::GpuSample& sample);
  void watch_ecc_rate(const nvml::GpuSample& sample);
  void watch_recovery(const nvml::GpuSample& sample);
  void note_lost(bool is_lost, TimeUs now, std::string_view why);
  // Makes facts_ afresh when something changed.
  void settle();
  void add(HealthKind kind, Severity severity, bool stops_use, TimeUs since, std::string text,
           std::uint64_t code = 0);
  void add_level(const Level& level, HealthKind kind, Severity severity, bool stops_use,
                 std::string_view text);

  const HealthOptions& options_;
  std::vector<Latch> xids_;  // at most kXidsKept
  Level lost_, unresponsive_, recovery_, row_failed_, row_pending_, thermal_hardware_,
      thermal_software_, temperature_, power_brake_, nvlink_, nvlink_recovery_, pcie_, ecc_rate_;
  std::string lost_why_, unresponsive_why_;
  int recovery_action_ = 0;
  int slowdown_c_ = 0;  // 0: not known
  Count ecc_uncorrected_, ecc_corrected_, energy_, crc_, replay_, link_recovery_, pcie_replays_;
  std::int64_t ecc_uncorrected_count_ = 0;  // since the last reset, without the next
  std::int64_t ecc_forgiven_ = 0;           // those that the operator has called well
  TimeUs ecc_uncorrected_at_ = 0;
  TimeUs rate_window_start_ = -1;
  std::int64_t rate_window_count_ = 0;

  bool is_dirty_ = false;
  std::vector<HealthFact> facts_;
  std::uint64_t changes_ = 0;
};

}  // namespace jogak::agent
