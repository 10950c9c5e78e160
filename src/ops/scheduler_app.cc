// SPDX-License-Identifier: Apache-2.0
//
// See scheduler_app.h. Parts are made in the order in which they need each other, and everything
// that may be asked for before a part is there answers without it.
#include "ops/scheduler_app.h"

#include <algorithm>

#include <fmt/format.h>

#include "import/export.h"
#include "yaml/yaml_fields.h"

namespace jogak::ops {

namespace {

constexpr TimeUs kSyncLook = 100 * kMsInUs;
constexpr TimeUs kDrainLook = 50 * kMsInUs;
constexpr TimeUs kDrainMax = 5 * kSecondInUs;
constexpr TimeUs kAlways = 3600 * kSecondInUs;  // longer than any write may take
constexpr TimeUs kRecoveryLook = kSecondInUs;
constexpr TimeUs kWarnAgain = 60 * kSecondInUs;
// A watch that fails for longer than this makes the whole not ready: what is known is too old.
constexpr TimeUs kFailingMax = 60 * kSecondInUs;

std::vector<std::string> names_of(const live::SchedulerConfig& config) {
  std::vector<std::string> names;
  for (const live::ProfileConfig& profile : config.profiles)
    names.push_back(profile.scheduler_name);
  return names;
}

live::DriverOptions driver_options(const live::SchedulerConfig& config,
                                   live::DriverObserver& observer) {
  live::DriverOptions options;
  options.profiles.clear();
  for (const live::ProfileConfig& profile : config.profiles) {
    options.profiles.push_back(
        {.scheduler_name = profile.scheduler_name, .policy = profile.policy});
  }
  options.seed = config.seed;
  options.backoff.first =
      config.pod_max_backoff_s == 0 ? 0 : config.pod_initial_backoff_s * kSecondInUs;
  options.backoff.longest = config.pod_max_backoff_s * kSecondInUs;
  options.bindings_max = static_cast<std::size_t>(config.bindings_in_flight_max);
  options.volume_bind_timeout = config.volume_bind_timeout;
  options.may_preempt = config.preemption.is_on;
  options.nomination_max = config.preemption.deadline;
  options.is_standby = config.leader_election.is_on;
  options.observer = &observer;
  return options;
}

std::string seconds_text(TimeUs span) {
  return span_text(span < kSecondInUs ? span / kMsInUs * kMsInUs
                                      : span / kSecondInUs * kSecondInUs);
}

}  // namespace

SchedulerApp::SchedulerApp(net::HttpClient& http, Log& log, SchedulerAppOptions options,
                           OnEnd on_end)
    : http_(http),
      log_(log),
      options_(std::move(options)),
      on_end_(std::move(on_end)),
      profile_names_(names_of(options_.config)),
      metrics_(registry_, log, profile_names_),
      api_series_(registry_, options_.server),
      drift_series_(registry_),
      api_(http),
      lease_api_(options_.lease_http == nullptr ? http : *options_.lease_http),
      started_(http.loop().now()) {
  for (kube::ApiClient* api : {&api_, &lease_api_}) {
    api->on_call = [this](const kube::ApiCall& call) { api_series_.called(call); };
  }
  add_process_series(registry_, options_.version);
  add_informer_series(registry_, [this] { return informers(); }, [this] { return now(); });
  add_leader_series(registry_, options_.config.leader_election.name,
                    [this] { return is_leading(); });
  problem_ = "the API server has not been asked yet";
  const bool has_election = options_.config.leader_election.is_on;
  preflight_.emplace(
      api_,
      PreflightOptions{.server = options_.server,
                       .lease_namespace = has_election ? options_.config.leader_election.ns : "",
                       .lease_name = options_.config.leader_election.name,
                       .refusal = options_.refusal},
      Preflight::Events{
          .on_passed = [this](const std::string& version) { start_following(version); },
          .on_failed = [this](const Error& error) { end(End::Failed, error.what); },
          .on_retry =
              [this](const Error& error, TimeUs wait) {
                problem_ = error.what;
                log_.warn("not started yet, trying again",
                          {{"error", error.what}, {"wait", span_text(wait)}});
              }});
}

SchedulerApp::~SchedulerApp() {
  loop().cancel(timer_);
  loop().cancel(recovery_timer_);
}

void SchedulerApp::start_following(const std::string& server_version) {
  problem_.clear();
  log_.info("the API server accepts us",
            {{"server", options_.server}, {"version", server_version}});
  const live::LeaderElectionConfig& lease = options_.config.leader_election;
  cluster_ = std::make_unique<live::KubeCluster>(
      api_, live::KubeClusterOptions{
                .host = options_.host,
                .request_limit = options_.config.client.request_timeout,
                .write_until = [this] { return write_until(); },
                .write_grace = std::max<TimeUs>(lease.lease_duration - lease.renew_deadline, 0),
                .seed = options_.config.seed});
  cluster_->on_watch_error = [this](const std::string& resource, const Error& error) {
    watch_failed(resource, error);
  };
  auto driver = live::SchedulerDriver::make(*cluster_, driver_options(options_.config, metrics_));
  if (!driver) return end(End::Failed, driver.error().what);
  driver_ = *std::move(driver);
  add_cluster_series(registry_, driver_->cluster(), [this] { return driver_->binds_in_flight(); });
  if (!lease.is_on) {
    log_.info("deciding without a lease; there must be no other with these profiles");
  } else if (const auto election = start_election(); !election) {
    return end(End::Failed, election.error().what);
  }
  watch_sync();
}

Result<void> SchedulerApp::start_election() {
  const live::LeaderElectionConfig& lease = options_.config.leader_election;
  JOGAK_TRY(election_,
            kube::LeaderElection::make(
                lease_api_,
                {.ns = lease.ns,
                 .name = lease.name,
                 .identity = options_.identity,
                 .lease_duration = lease.lease_duration,
                 .renew_deadline = lease.renew_deadline,
                 .retry_period = lease.retry_period,
                 .seed = options_.config.seed + std::hash<std::string>()(options_.identity)},
                {.on_lead = [this] { lead(); },
                 .on_lose = [this](const std::string& why) { end(End::LeaseLost, why); },
                 .on_new_leader =
                     [this](const std::string& holder) {
                       if (holder != options_.identity)
                         log_.info("standing by", {{"leader", holder}});
                     },
                 .on_error =
                     [this](const Error& error) {
                       warn_of("cannot hold or ask for the lease", error);
                     }}));
  return {};
}

void SchedulerApp::lead() {
  if (is_stopping_) return;
  log_.info("leading", {{"lease", options_.config.leader_election.name}});
  driver_->lead();
}

void SchedulerApp::watch_sync() {
  if (!driver_->is_synced()) {
    timer_ = loop().after(kSyncLook, [this] { watch_sync(); });
    return;
  }
  timer_ = 0;
  log_.info("everything has been seen", {{"nodes", driver_->cluster().node_count()},
                                         {"waiting", driver_->waiting()},
                                         {"after", seconds_text(now() - started_)}});
}

TimeUs SchedulerApp::write_until() const {
  if (is_stopping_ || has_ended_) return 0;
  return election_ == nullptr ? now() + kAlways : election_->valid_until();
}

bool SchedulerApp::is_leading() const {
  if (driver_ == nullptr || is_stopping_ || has_ended_) return false;
  return election_ == nullptr ? driver_->is_leading() : election_->is_leader();
}

void SchedulerApp::end(End end, const std::string& why) {
  if (has_ended_) return;
  has_ended_ = true;
  loop().cancel(timer_);
  timer_ = 0;
  const OnEnd told = on_end_;
  told(end, why);
}

void SchedulerApp::stop() {
  if (is_stopping_ || has_ended_) return;
  log_.info("stopping", {{"bindings", driver_ == nullptr ? 0 : driver_->binds_in_flight()}});
  is_stopping_ = true;
  stop_asked_ = now();
  loop().cancel(timer_);
  timer_ = 0;
  preflight_.reset();
  drain();
}

// What was sent is waited for, so that its outcome is known before another leads.
void SchedulerApp::drain() {
  const bool is_open = driver_ != nullptr && driver_->binds_in_flight() > 0;
  if (is_open && now() - stop_asked_ < kDrainMax) {
    timer_ = loop().after(kDrainLook, [this] { drain(); });
    return;
  }
  timer_ = 0;
  if (election_ == nullptr || !election_->is_leader()) return end(End::Stopped, "");
  if (is_open) {
    // One of them may still be carried out, and whoever leads next must not decide before that.
    log_.warn("bindings are without an answer: the lease is left to run out",
              {{"bindings", driver_->binds_in_flight()}});
    return end(End::Stopped, "");
  }
  election_->release([this] {
    log_.info("the lease is given up");
    end(End::Stopped, "");
  });
}

void SchedulerApp::warn_of(const std::string& what, const Error& error) {
  auto& [time, words] = warned_[what];
  if (words == error.what && now() - time < kWarnAgain) return;
  time = now();
  words = error.what;
  log_.warn(what, {{"error", error.what}});
}

// A server that is away fails every watch: that is one piece of news. Anything else is each
// resource's own.
void SchedulerApp::watch_failed(const std::string& resource, const Error& error) {
  if (recovery_timer_ == 0) {
    failing_since_ = now();
    recovery_timer_ = loop().after(kRecoveryLook, [this] { look_for_recovery(); });
  }
  const bool is_outage = error.code == Errc::Unavailable || error.code == Errc::Timeout;
  if (!is_outage) return warn_of("cannot follow " + resource, error);
  auto& [time, words] = warned_["outage"];
  if (time != 0 && now() - time < kWarnAgain) return;
  time = now();
  log_.warn("cannot follow the API server", {{"resource", resource}, {"error", error.what}});
}

void SchedulerApp::look_for_recovery() {
  const std::vector<InformerView> views = informers();
  const bool is_failing = std::ranges::any_of(
      views, [](const InformerView& view) { return view.state.failing_since != 0; });
  if (is_failing) {
    recovery_timer_ = loop().after(kRecoveryLook, [this] { look_for_recovery(); });
    return;
  }
  recovery_timer_ = 0;
  warned_.erase("outage");
  log_.info("the API server is followed again", {{"after", seconds_text(now() - failing_since_)}});
}

// ---- what an operator sees ------------------------------------------------------------------

std::vector<InformerView> SchedulerApp::informers() const {
  std::vector<InformerView> views;
  if (cluster_ == nullptr) return views;
  for (const live::KubeCluster::Informer& informer : cluster_->informers()) {
    views.push_back(
        {.resource = informer.resource, .state = *informer.state, .objects = informer.objects});
  }
  return views;
}

std::vector<Check> SchedulerApp::ready_checks() const {
  std::vector<Check> checks;
  checks.push_back({.name = "api-server",
                    .is_ok = problem_.empty(),
                    .detail = problem_.empty() ? options_.server : problem_});
  for (const InformerView& view : informers()) {
    const kube::ReflectorState& state = view.state;
    const TimeUs failing = state.failing_since == 0 ? 0 : now() - state.failing_since;
    Check check{.name = "informer-" + view.resource,
                .is_ok = state.is_synced && failing <= kFailingMax,
                .detail = fmt::format("{} objects", view.objects)};
    if (!state.is_synced) check.detail = "the first list is not complete";
    if (failing > 0 || !state.last_error.empty()) {
      check.detail += fmt::format("; failing for {}: {}", seconds_text(failing), state.last_error);
    }
    checks.push_back(std::move(check));
  }
  Check lease{.name = "leader-election", .is_ok = true, .detail = "off"};
  if (election_ != nullptr) {
    lease.detail = is_leading()                  ? "this replica leads"
                   : election_->holder().empty() ? "nobody leads yet"
                                                 : "standing by; " + election_->holder() + " leads";
  } else if (options_.config.leader_election.is_on) {
    lease.detail = "not begun";
  }
  checks.push_back(std::move(lease));
  if (driver_ != nullptr && !driver_->last_fault().empty()) {
    checks.push_back({.name = "last-fault", .is_ok = true, .detail = driver_->last_fault()});
  }
  if (is_stopping_ || has_ended_) checks.push_back({.name = "shutdown", .is_ok = false});
  return checks;
}

Result<std::string> SchedulerApp::state() const {
  if (driver_ == nullptr) return fail(Errc::Unavailable, "nothing is known yet: {}", problem_);
  const core::Cluster& cluster = driver_->cluster();
  return importer::export_list(
      cluster, {.style = JsonWriter::Style::Compact, .scheduler_name = [&](core::PodId pod) {
                  return driver_->scheduler_name_of(cluster.identity_of(pod).ns,
                                                    cluster.pod(pod).name);
                }});
}

EndpointParts SchedulerApp::endpoint_parts() {
  return {.registry = registry_,
          .program = "jogak scheduler " + options_.version,
          .ready = [this] { return ready_checks(); },
          .config = [this] { return live::config_doc(options_.config).json(); },
          .state = [this] { return state(); },
          .drift = [this] { return drift_text_; }};
}

// ---- comparison with the server -------------------------------------------------------------

void SchedulerApp::compare() {
  if (driver_ == nullptr || !driver_->is_synced()) {
    return log_.warn("nothing to compare yet", {{"why", "not everything has been seen"}});
  }
  if (drift_run_.has_value()) return log_.info("a comparison is under way");
  log_.info("comparing memory with the API server");
  drift_run_.emplace(api_, driver_->cluster(),
                     DriftRunOptions{.is_assumed =
                                         [this](std::string_view ns, std::string_view name) {
                                           return driver_->is_assumed(ns, name);
                                         }},
                     [this](const Result<live::DriftReport>& report) { compared(report); });
}

void SchedulerApp::compared(const Result<live::DriftReport>& report) {
  drift_run_.reset();
  if (!report) {
    drift_series_.failed();
    drift_text_ = "could not compare: " + report.error().what + "\n";
    return log_.warn("could not compare", {{"error", report.error().what}});
  }
  drift_series_.checked(*report, now());
  drift_text_ = report->text(1000);
  if (report->is_clean()) {
    return log_.info(
        "memory is as the server says",
        {{"nodes", report->nodes}, {"pods", report->pods}, {"changing", report->changing}});
  }
  for (const live::Drift& drift : report->items) {
    if (&drift - report->items.data() >= 50) break;
    log_.error("memory differs from the server", {{"kind", live::drift_kind_name(drift.kind)},
                                                  {"object", drift.object},
                                                  {"detail", drift.detail}});
  }
  log_.error("memory has drifted; a restart reads everything again",
             {{"differences", report->items.size()}});
}

}  // namespace jogak::ops
