// SPDX-License-Identifier: Apache-2.0
//
// What the driver tells (driver_observer.h) as Prometheus series: kube-scheduler's well-known ones
// under their own names, labels and bounds, so that dashboards made for it work, and our own beside
// them. Faults are logged too. What each series means for an operator: docs/operate.md.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/metrics.h"
#include "live/driver_observer.h"

namespace jogak::live {

class SchedulerMetrics : public DriverObserver {
 public:
  // Series of these profiles are there from the start, at zero. Registry and log outlive this.
  SchedulerMetrics(Registry& registry, Log& log, std::span<const std::string> profiles);

  void attempted(const Attempt& attempt) override;
  void bound(const Bound& bound) override;
  void bind_failed(Errc code) override;
  void binds_in_flight(std::size_t count) override;
  void refused(std::string_view profile, std::span<const std::string_view> plugins) override;
  void refused_no_more(std::string_view profile,
                       std::span<const std::string_view> plugins) override;
  void preemption_tried(std::size_t victims) override;
  void queued(QueueKind queue, std::string_view event, std::size_t pods) override;
  void queue_lengths(const std::array<std::size_t, kQueueKinds>& lengths) override;
  void plan_invalid(std::string_view pod, std::string_view why) override;
  void unreadable(std::string_view kind, std::string_view object, std::string_view why) override;

 private:
  static constexpr std::size_t kResults = 3;
  static constexpr std::size_t kErrcs = 6;
  static constexpr int kAttemptsMax = 15;  // more are "15+", as upstream

  struct Profile {
    std::array<Counter*, kResults> attempts{};
    std::array<Histogram*, kResults> durations{};
    std::map<std::string, Gauge*, std::less<>> refused;  // by plugin
  };

  Profile& profile(std::string_view name);
  void tell(const Attempt& attempt);
  Gauge& refused_gauge(std::string_view profile, std::string_view plugin);

  Log& log_;
  // Faults come in crowds when a server is away: so many are warned of in a minute.
  static constexpr int kWarningsMax = 10;
  TimeUs minute_begin_ = 0;
  int warnings_ = 0;
  Family<Counter>& attempts_;
  Family<Histogram>& durations_;
  Histogram& algorithm_;
  Histogram& decisions_;
  Family<Histogram>& sli_;
  Histogram& pod_attempts_;
  Family<Gauge>& pending_;
  Family<Counter>& incoming_;
  Counter& preemptions_;
  Histogram& victims_;
  Family<Gauge>& refused_;
  Gauge& in_flight_;
  Family<Counter>& bind_errors_;
  Counter& invalid_plans_;
  Family<Counter>& unreadable_;

  std::map<std::string, Profile, std::less<>> profiles_;
  std::array<Histogram*, kAttemptsMax + 1> sli_by_attempts_{};
  std::array<Gauge*, kQueueKinds> pending_by_queue_{};
  std::array<std::map<std::string, Counter*, std::less<>>, kQueueKinds> incoming_by_event_;
  std::array<Counter*, kErrcs> bind_errors_by_code_{};
};

// Labels: "scheduled"; "active"; "NotFound".
std::string_view result_name(AttemptResult result);
std::string_view queue_name(QueueKind queue);
std::string_view errc_name(Errc code);

}  // namespace jogak::live
