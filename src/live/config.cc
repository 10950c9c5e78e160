// SPDX-License-Identifier: Apache-2.0
//
// Reading, checking and writing of the configuration. Field names are kube-scheduler's where it has
// the same thing.
#include "live/config.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include <arpa/inet.h>
#include <fmt/format.h>

#include "core/policy/policy.h"
#include "yaml/yaml_fields.h"

namespace jogak::live {

namespace {

constexpr std::string_view kApiVersion = "jogak.io/v1";
constexpr std::string_view kKind = "SchedulerConfiguration";
constexpr TimeUs kMinuteInUs = 60 * kSecondInUs;
constexpr TimeUs kHourInUs = 60 * kMinuteInUs;
constexpr int kBackoffMaxS = 3600;
constexpr int kBindingsMax = 10'000;
constexpr std::size_t kProfilesMax = 64;
constexpr std::array<std::string_view, 3> kLogFormats = {"auto", "json", "text"};

// ---- reading --------------------------------------------------------------------------------

void read_header(YamlFields& fields) {
  const std::string version = fields.required_text("apiVersion");
  if (!version.empty() && version != kApiVersion) {
    const bool is_kube = version.starts_with("kubescheduler.config.k8s.io/");
    fields.bad("apiVersion",
               fmt::format("expected {}, got {}{}", kApiVersion, version,
                           is_kube ? "; a configuration of kube-scheduler says other things" : ""));
  }
  const std::string kind = fields.required_text("kind");
  if (!kind.empty() && kind != kKind) {
    fields.bad("kind", fmt::format("expected {}, got {}", kKind, kind));
  }
}

void read_profiles(YamlFields& fields, SchedulerConfig& config) {
  const bool is_given = fields.has("profiles");
  std::vector<ProfileConfig> profiles;
  for (YamlFields& entry : fields.maps("profiles")) {
    ProfileConfig profile;
    profile.scheduler_name = entry.required_text("schedulerName");
    profile.policy = entry.text("policy", profile.policy);
    entry.finish();
    profiles.push_back(std::move(profile));
  }
  if (!is_given) return;
  if (profiles.empty()) fields.bad("profiles", "needs at least one; leave it out for the default");
  config.profiles = std::move(profiles);
}

void read_leader_election(YamlFields& fields, LeaderElectionConfig& config) {
  auto map = fields.map("leaderElection");
  if (!map) return;
  config.is_on = map->flag("leaderElect", config.is_on);
  config.ns = map->text("resourceNamespace", config.ns);
  config.name = map->text("resourceName", config.name);
  config.lease_duration = map->span("leaseDuration", config.lease_duration, kSecondInUs, kHourInUs);
  config.renew_deadline =
      map->span("renewDeadline", config.renew_deadline, kSecondInUs / 10, kHourInUs);
  config.retry_period = map->span("retryPeriod", config.retry_period, kSecondInUs / 10, kHourInUs);
  map->finish();
}

void read_client(YamlFields& fields, ClientConfig& config) {
  auto map = fields.map("clientConnection");
  if (!map) return;
  config.kubeconfig = map->text("kubeconfig", config.kubeconfig);
  config.context = map->text("context", config.context);
  config.request_timeout =
      map->span("requestTimeout", config.request_timeout, kSecondInUs, 10 * kMinuteInUs);
  map->finish();
}

std::uint16_t read_port(YamlFields& map, std::string_view name, std::uint16_t fallback) {
  return static_cast<std::uint16_t>(
      map.integer(name, fallback, 0, std::numeric_limits<std::uint16_t>::max()));
}

void read_server(YamlFields& fields, ServerConfig& config) {
  auto map = fields.map("server");
  if (!map) return;
  config.is_on = map->flag("enabled", config.is_on);
  config.bind_address = map->text("bindAddress", config.bind_address);
  config.port = read_port(*map, "port", config.port);
  config.tls_cert_file = map->text("tlsCertFile", config.tls_cert_file);
  config.tls_key_file = map->text("tlsPrivateKeyFile", config.tls_key_file);
  config.has_debug = map->flag("debug", config.has_debug);
  config.debug_port = read_port(*map, "debugPort", config.debug_port);
  map->finish();
}

void read_preemption(YamlFields& fields, PreemptionConfig& config) {
  auto map = fields.map("preemption");
  if (!map) return;
  config.is_on = map->flag("enabled", config.is_on);
  config.deadline = map->span("deadline", config.deadline, kSecondInUs, 24 * kHourInUs);
  map->finish();
}

void read_logging(YamlFields& fields, LoggingConfig& config) {
  auto map = fields.map("logging");
  if (!map) return;
  const auto level = parse_level(map->text("level", level_name(config.level)));
  if (level) {
    config.level = *level;
  } else {
    map->bad("level", level.error().what);
  }
  const std::string format =
      map->text("format", kLogFormats[static_cast<std::size_t>(config.format)]);
  const auto at = std::ranges::find(kLogFormats, format);
  if (at != kLogFormats.end()) {
    config.format = static_cast<LogFormat>(at - kLogFormats.begin());
  } else {
    map->bad("format", fmt::format("expected auto, json or text, got {}", format));
  }
  map->finish();
}

void read_all(YamlFields& fields, SchedulerConfig& config) {
  read_header(fields);
  read_profiles(fields, config);
  config.seed = static_cast<std::uint64_t>(
      fields.integer("seed", static_cast<std::int64_t>(config.seed), 0, std::int64_t{1} << 53));
  config.pod_initial_backoff_s = static_cast<int>(
      fields.integer("podInitialBackoffSeconds", config.pod_initial_backoff_s, 1, kBackoffMaxS));
  config.pod_max_backoff_s = static_cast<int>(
      fields.integer("podMaxBackoffSeconds", config.pod_max_backoff_s, 0, kBackoffMaxS));
  read_leader_election(fields, config.leader_election);
  read_client(fields, config.client);
  read_server(fields, config.server);
  config.volume_bind_timeout =
      fields.span("volumeBindTimeout", config.volume_bind_timeout, kSecondInUs, 24 * kHourInUs);
  read_preemption(fields, config.preemption);
  config.bindings_in_flight_max = static_cast<int>(
      fields.integer("bindingsInFlightMax", config.bindings_in_flight_max, 1, kBindingsMax));
  read_logging(fields, config.logging);
  fields.finish();
}

// ---- checks ---------------------------------------------------------------------------------

bool is_ip(const std::string& text) {
  in6_addr into{};
  return ::inet_pton(AF_INET, text.c_str(), &into) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), &into) == 1;
}

// What the API server takes as a name of a namespace, a Lease or a scheduler.
bool is_dns_name(std::string_view text) {
  const auto is_inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  return !text.empty() && text.size() <= 253 && std::ranges::all_of(text, is_inner) &&
         text.front() != '-' && text.front() != '.' && text.back() != '-' && text.back() != '.';
}

Result<void> check_profiles(const std::vector<ProfileConfig>& profiles) {
  if (profiles.size() > kProfilesMax) return invalid("profiles: at most {}", kProfilesMax);
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const ProfileConfig& profile = profiles[i];
    if (!is_dns_name(profile.scheduler_name)) {
      return invalid(
          "profiles[{}].schedulerName: \"{}\" is not a name that a pod can ask for; use "
          "lower-case letters, digits and -",
          i, profile.scheduler_name);
    }
    if (!names.insert(profile.scheduler_name).second) {
      return invalid("profiles[{}].schedulerName: {} is taken by another profile", i,
                     profile.scheduler_name);
    }
    if (auto policy = core::make_policy(profile.policy, 0); !policy) {
      return in_context(fmt::format("profiles[{}].policy", i), std::move(policy).error());
    }
  }
  return {};
}

Result<void> check_leader_election(const LeaderElectionConfig& c) {
  if (!is_dns_name(c.ns)) return invalid("leaderElection.resourceNamespace: not a name: {}", c.ns);
  if (!is_dns_name(c.name)) return invalid("leaderElection.resourceName: not a name: {}", c.name);
  if (c.lease_duration % kSecondInUs != 0) {
    return invalid("leaderElection.leaseDuration: {} must be whole seconds, as a Lease has them",
                   span_text(c.lease_duration));
  }
  if (c.lease_duration <= c.renew_deadline) {
    return invalid(
        "leaderElection.leaseDuration: {} must be longer than renewDeadline {}, or two "
        "could lead at once",
        span_text(c.lease_duration), span_text(c.renew_deadline));
  }
  // Attempts are spread by up to a fifth.
  if (c.renew_deadline * 5 <= c.retry_period * 6) {
    return invalid("leaderElection.renewDeadline: {} must be longer than 1.2 times retryPeriod {}",
                   span_text(c.renew_deadline), span_text(c.retry_period));
  }
  return {};
}

Result<void> check_server(const ServerConfig& c) {
  if (!is_ip(c.bind_address)) {
    return invalid("server.bindAddress: expected an IP address like 0.0.0.0, got {}",
                   c.bind_address);
  }
  if (c.tls_cert_file.empty() != c.tls_key_file.empty()) {
    return invalid("server.{}: give tlsCertFile and tlsPrivateKeyFile, or neither",
                   c.tls_cert_file.empty() ? "tlsCertFile" : "tlsPrivateKeyFile");
  }
  if (c.has_debug && c.port != 0 && c.port == c.debug_port) {
    return invalid("server.debugPort: {} is the port of the metrics too", c.debug_port);
  }
  return {};
}

}  // namespace

Result<void> check_config(const SchedulerConfig& config) {
  JOGAK_TRY_VOID(check_profiles(config.profiles));
  if (config.pod_max_backoff_s != 0 && config.pod_max_backoff_s < config.pod_initial_backoff_s) {
    return invalid("podMaxBackoffSeconds: {} is less than podInitialBackoffSeconds {}",
                   config.pod_max_backoff_s, config.pod_initial_backoff_s);
  }
  JOGAK_TRY_VOID(check_leader_election(config.leader_election));
  return check_server(config.server);
}

Result<SchedulerConfig> read_config(const std::string& file, std::string_view text) {
  SchedulerConfig config;
  JOGAK_TRY_VOID(read_yaml_map(file, text, "a map that begins with apiVersion: jogak.io/v1",
                               [&](YamlFields& fields) { read_all(fields, config); }));
  if (auto checked = check_config(config); !checked) {
    return in_context(file, std::move(checked).error());
  }
  return config;
}

Doc config_doc(const SchedulerConfig& config) {
  Doc profiles = Doc::array();
  for (const ProfileConfig& profile : config.profiles) {
    Doc entry = Doc::object();
    entry.set("schedulerName", profile.scheduler_name).set("policy", profile.policy);
    profiles.push(std::move(entry));
  }
  const LeaderElectionConfig& e = config.leader_election;
  Doc election = Doc::object();
  election.set("leaderElect", e.is_on)
      .set("resourceNamespace", e.ns)
      .set("resourceName", e.name)
      .set("leaseDuration", span_text(e.lease_duration))
      .set("renewDeadline", span_text(e.renew_deadline))
      .set("retryPeriod", span_text(e.retry_period));
  Doc client = Doc::object();
  client.set("kubeconfig", config.client.kubeconfig)
      .set("context", config.client.context)
      .set("requestTimeout", span_text(config.client.request_timeout));
  const ServerConfig& s = config.server;
  Doc server = Doc::object();
  server.set("enabled", s.is_on)
      .set("bindAddress", s.bind_address)
      .set("port", s.port)
      .set("tlsCertFile", s.tls_cert_file)
      .set("tlsPrivateKeyFile", s.tls_key_file)
      .set("debug", s.has_debug)
      .set("debugPort", s.debug_port);
  Doc preemption = Doc::object();
  preemption.set("enabled", config.preemption.is_on)
      .set("deadline", span_text(config.preemption.deadline));
  Doc logging = Doc::object();
  logging.set("level", level_name(config.logging.level))
      .set("format", kLogFormats[static_cast<std::size_t>(config.logging.format)]);
  Doc doc = Doc::object();
  doc.set("apiVersion", kApiVersion)
      .set("kind", kKind)
      .set("profiles", std::move(profiles))
      .set("seed", config.seed)
      .set("podInitialBackoffSeconds", config.pod_initial_backoff_s)
      .set("podMaxBackoffSeconds", config.pod_max_backoff_s)
      .set("leaderElection", std::move(election))
      .set("clientConnection", std::move(client))
      .set("server", std::move(server))
      .set("volumeBindTimeout", span_text(config.volume_bind_timeout))
      .set("preemption", std::move(preemption))
      .set("bindingsInFlightMax", config.bindings_in_flight_max)
      .set("logging", std::move(logging));
  return doc;
}

}  // namespace jogak::live
