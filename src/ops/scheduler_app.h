// SPDX-License-Identifier: Apache-2.0
//
// The live scheduler put together: the questions before the start, the watches, the driver, the
// lease, the numbers, and what an operator sees and asks of them. It knows neither sockets nor
// flags: those are the command's (cli/cmd_scheduler.cc), so that all of this runs under virtual
// time too.
//
//   start --> asking the server --> following --> [standing by --> ] leading --> stopping --> end
//                 | not a server, not us, not permitted     | lease lost
//                 +--> end: Failed                          +--> end: LeaseLost
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/metrics.h"
#include "kube/api_client.h"
#include "kube/leader_election.h"
#include "live/config.h"
#include "live/kube_cluster.h"
#include "live/scheduler_driver.h"
#include "live/scheduler_metrics.h"
#include "net/http_client.h"
#include "ops/drift_run.h"
#include "ops/endpoint.h"
#include "ops/preflight.h"
#include "ops/series.h"

namespace jogak::ops {

struct SchedulerAppOptions {
  live::SchedulerConfig config;  // has passed check_config()
  std::string version;           // of this program
  std::string host;              // this machine, in events
  std::string identity;          // of this process in the lease, unlike any other's
  std::string server;            // "10.0.0.1:6443", in messages and labels
  // See PreflightOptions.
  std::function<std::string()> refusal = {};
  // The way the lease is renewed, so that no burst of other requests stands before it; null: that
  // of everything else. Outlives the app.
  net::HttpClient* lease_http = nullptr;
};

class SchedulerApp {
 public:
  enum class End : std::uint8_t {
    Stopped,    // as asked, with the lease given up
    LeaseLost,  // another may lead: the process must end at once
    Failed,     // it cannot work like this
  };
  // Once, on the loop; the app may be destroyed in it. No event before the constructor returns.
  using OnEnd = std::function<void(End end, const std::string& why)>;

  // Begins at once. `http` and `log` outlive it.
  SchedulerApp(net::HttpClient& http, Log& log, SchedulerAppOptions options, OnEnd on_end);
  ~SchedulerApp();
  SchedulerApp(const SchedulerApp&) = delete;
  SchedulerApp& operator=(const SchedulerApp&) = delete;

  // Decides no more, waits for bindings under way (5 s at most), gives the lease up, and ends.
  void stop();
  // Compares memory with the server; the outcome goes to the log, the metrics and /debug/drift.
  void compare();

  EndpointParts endpoint_parts();
  std::vector<Check> ready_checks() const;
  bool is_leading() const;
  const live::SchedulerDriver* driver() const { return driver_.get(); }

 private:
  void start_following(const std::string& server_version);
  Result<void> start_election();
  void watch_sync();
  void lead();
  void end(End end, const std::string& why);
  void drain();
  void compared(const Result<live::DriftReport>& report);
  TimeUs write_until() const;
  Result<std::string> state() const;
  std::vector<InformerView> informers() const;
  // Logs a failure that repeats once a minute, and whenever its words change.
  void warn_of(const std::string& what, const Error& error);
  void watch_failed(const std::string& resource, const Error& error);
  void look_for_recovery();
  Loop& loop() const { return http_.loop(); }
  TimeUs now() const { return http_.loop().now(); }

  net::HttpClient& http_;
  Log& log_;
  SchedulerAppOptions options_;
  OnEnd on_end_;
  Registry registry_;
  std::vector<std::string> profile_names_;
  live::SchedulerMetrics metrics_;
  ApiSeries api_series_;
  DriftSeries drift_series_;
  kube::ApiClient api_;
  kube::ApiClient lease_api_;
  std::string problem_;  // of the questions before the start, as long as they are not answered
  std::optional<Preflight> preflight_;
  std::unique_ptr<live::KubeCluster> cluster_;
  std::unique_ptr<live::SchedulerDriver> driver_;
  std::unique_ptr<kube::LeaderElection> election_;
  std::optional<DriftRun> drift_run_;
  std::string drift_text_ =
      "not compared yet; kill -USR2 the process, and come again in a minute\n";
  std::map<std::string, std::pair<TimeUs, std::string>> warned_;  // by what fails
  TimeUs started_ = 0;
  TimeUs stop_asked_ = 0;
  TimerId timer_ = 0;           // of watch_sync() and drain()
  TimerId recovery_timer_ = 0;  // while a watch fails
  TimeUs failing_since_ = 0;
  bool is_stopping_ = false;
  bool has_ended_ = false;
};

}  // namespace jogak::ops
