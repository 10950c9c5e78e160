// SPDX-License-Identifier: Apache-2.0
//
// `jogak scheduler`: the live scheduler on a real control plane. Flags and files become one
// configuration; sockets, signals and the log are made here; the rest is ops/scheduler_app.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include <fmt/core.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/parse_number.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "kube/connection.h"
#include "live/config.h"
#include "net/http_server.h"
#include "ops/scheduler_app.h"
#include "ops/signals.h"

namespace jogak::cli {

namespace {

constexpr Flag kFlags[] = {
    {.name = "config",
     .letter = 'c',
     .metavar = "FILE",
     .help = "configuration, apiVersion jogak.io/v1; flags win over it"},
    {.name = "kubeconfig",
     .metavar = "FILE",
     .help = "how to reach the cluster; else $KUBECONFIG, ~/.kube/config, or the account of the "
             "pod this runs in"},
    {.name = "context", .metavar = "NAME", .help = "context of the kubeconfig"},
    {.name = "scheduler-name",
     .letter = 'n',
     .kind = FlagKind::Repeated,
     .metavar = "NAME",
     .help = "pods with this spec.schedulerName are ours; instead of the profiles of the file "
             "(default jogak)"},
    {.name = "policy",
     .metavar = "NAME",
     .help = "who chooses among the nodes that fit, for all names: jogak, kube, best-fit, ..."},
    {.name = "leader-elect",
     .kind = FlagKind::Choice,
     .metavar = "true|false",
     .help = "hold a lease, so that of several replicas one decides (default true)"},
    {.name = "metrics-address",
     .metavar = "IP:PORT",
     .help = "where metrics and health are served (default 0.0.0.0:10269); off: nowhere"},
    {.name = "debug-port",
     .metavar = "PORT",
     .help = "port of 127.0.0.1 for /debug/state and /configz (default 10270); off: none"},
    {.name = "log-level", .metavar = "LEVEL", .help = "error, warn, info or debug (default info)"},
    {.name = "print-config",
     .kind = FlagKind::Switch,
     .help = "print the effective configuration, with every field, and stop"},
};

constexpr std::string_view kExamples[] = {
    "jogak scheduler --kubeconfig jogak.kubeconfig --leader-elect=false",
    "jogak scheduler --print-config > scheduler.yaml; jogak scheduler --config scheduler.yaml",
    "jogak scheduler --scheduler-name default-scheduler --policy kube",
    "curl -s localhost:10270/debug/state > now.json; jogak explain -f now.json --pod team/a",
};

constexpr ArgTable kTable = {
    .command = "jogak scheduler",
    .summary =
        "Schedules the pods of a cluster that ask for it by spec.schedulerName, beside "
        "kube-scheduler or instead of it (docs/operate.md). It runs until SIGTERM or Ctrl-C, which "
        "gives the lease up; SIGUSR2 compares what it knows with the API server. Exits 0 when "
        "asked to stop, 1 when it could not start or lost its lease, 2 for bad flags or "
        "configuration.",
    .flags = kFlags,
    .examples = kExamples,
};

// "0.0.0.0:10269", "[::]:10269".
Result<void> read_address(const std::string& text, live::ServerConfig& server) {
  if (text == "off") {
    server.is_on = false;
    return {};
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos)
    return invalid("--metrics-address: expected IP:PORT, got {}", text);
  server.is_on = true;
  server.bind_address = text.substr(0, colon);
  if (server.bind_address.starts_with('[') && server.bind_address.ends_with(']')) {
    server.bind_address = server.bind_address.substr(1, server.bind_address.size() - 2);
  }
  const auto port = parse_int(text.substr(colon + 1), 0, 65'535);
  if (!port) return invalid("--metrics-address: port: {}", port.error().what);
  server.port = static_cast<std::uint16_t>(*port);
  return {};
}

Result<void> apply_flags(const ParsedArgs& args, live::SchedulerConfig& config) {
  if (args.is_given("kubeconfig")) config.client.kubeconfig = args.text("kubeconfig");
  if (args.is_given("context")) config.client.context = args.text("context");
  if (!args.list("scheduler-name").empty()) {
    const std::string policy = config.profiles.front().policy;
    config.profiles.clear();
    for (const std::string& name : args.list("scheduler-name")) {
      config.profiles.push_back({.scheduler_name = name, .policy = policy});
    }
  }
  if (args.is_given("policy")) {
    for (live::ProfileConfig& profile : config.profiles) profile.policy = args.text("policy");
  }
  if (args.is_given("leader-elect")) {
    config.leader_election.is_on = args.text("leader-elect") == "true";
  }
  if (args.is_given("metrics-address")) {
    JOGAK_TRY_VOID(read_address(args.text("metrics-address"), config.server));
  }
  if (args.is_given("debug-port")) {
    const std::string text = args.text("debug-port");
    config.server.has_debug = text != "off";
    if (config.server.has_debug) {
      const auto port = parse_int(text, 0, 65'535);
      if (!port) return invalid("--debug-port: {}", port.error().what);
      config.server.debug_port = static_cast<std::uint16_t>(*port);
    }
  }
  if (args.is_given("log-level")) {
    const auto level = parse_level(args.text("log-level"));
    if (!level) return invalid("--log-level: {}", level.error().what);
    config.logging.level = *level;
  }
  return {};
}

Result<live::SchedulerConfig> config_of(const ParsedArgs& args) {
  live::SchedulerConfig config;
  if (args.is_given("config")) {
    const std::string file = args.text("config");
    JOGAK_TRY(const std::string text, read_file(file, 1 << 20));
    JOGAK_TRY(config, live::read_config(file, text));
  }
  JOGAK_TRY_VOID(apply_flags(args, config));
  JOGAK_TRY_VOID(live::check_config(config));
  return config;
}

std::string host_name() {
  std::string name(256, '\0');
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  name.resize(name.find('\0'));
  return name.empty() ? "unknown" : name;
}

// Unlike that of any other process, and of this one after a restart.
Result<std::string> new_identity(const std::string& host) {
  JOGAK_TRY(std::string uuid, read_file("/proc/sys/kernel/random/uuid"));
  while (!uuid.empty() && uuid.back() == '\n') uuid.pop_back();
  return host + "_" + uuid;
}

Result<std::shared_ptr<net::TlsContext>> tls_of(const live::ServerConfig& config) {
  if (config.tls_cert_file.empty()) return nullptr;
  JOGAK_TRY(std::string certificate, read_file(config.tls_cert_file));
  JOGAK_TRY(std::string key, read_file(config.tls_key_file));
  auto context =
      net::TlsContext::make({.certificate_pem = std::move(certificate), .key_pem = std::move(key)});
  if (!context) return in_context("server.tlsCertFile", std::move(context).error());
  return context;
}

struct Servers {
  std::unique_ptr<net::HttpServer> everybody, loopback;
};

Result<Servers> listen(net::EpollLoop& loop, const live::ServerConfig& config,
                       ops::SchedulerApp& app) {
  Servers servers;
  if (config.is_on) {
    net::HttpServerOptions options{.address = config.bind_address, .port = config.port};
    JOGAK_TRY(options.tls, tls_of(config));
    options.connections_max = 256;
    auto server = net::HttpServer::listen(loop, std::move(options),
                                          ops::public_handler(app.endpoint_parts()));
    if (!server) return in_context("server.port", std::move(server).error());
    servers.everybody = *std::move(server);
  }
  if (config.has_debug) {
    net::HttpServerOptions options{.port = config.debug_port};
    options.connections_max = 16;
    auto server =
        net::HttpServer::listen(loop, std::move(options), ops::debug_handler(app.endpoint_parts()));
    if (!server) return in_context("server.debugPort", std::move(server).error());
    servers.loopback = *std::move(server);
  }
  return servers;
}

std::string names_text(const live::SchedulerConfig& config) {
  std::string text;
  for (const live::ProfileConfig& profile : config.profiles) {
    text.append(text.empty() ? "" : ",").append(profile.scheduler_name);
    text.append("=").append(profile.policy);
  }
  return text;
}

LogForm form_of(const live::LoggingConfig& config) {
  if (config.format == live::LogFormat::Json) return LogForm::Json;
  if (config.format == live::LogFormat::Text) return LogForm::Text;
  return form_for(STDERR_FILENO);
}

// How it ended, as an exit code; what is to be said about it has been said.
int run(net::EpollLoop& loop, Log& log, kube::Connection& connection,
        kube::Connection& lease_connection, const live::SchedulerConfig& config,
        const std::string& identity, const std::string& host) {
  int exit_code = kExitFailed;
  ops::SchedulerApp app(connection, log,
                        {.config = config,
                         .version = JOGAK_VERSION,
                         .host = host,
                         .identity = identity,
                         .server = connection.server(),
                         .refusal = [&connection] { return connection.refusal(); },
                         .lease_http = &lease_connection},
                        [&](ops::SchedulerApp::End end, const std::string& why) {
                          if (end == ops::SchedulerApp::End::Stopped) exit_code = kExitDone;
                          if (end == ops::SchedulerApp::End::Failed)
                            log.error("cannot start", {{"error", why}});
                          if (end == ops::SchedulerApp::End::LeaseLost) {
                            log.error("the lease is lost; ending at once", {{"error", why}});
                            // Whatever has not been written must not be: another may lead already.
                            std::_Exit(kExitFailed);
                          }
                          loop.stop();
                        });
  const auto servers = listen(loop, config.server, app);
  if (!servers) {
    log.error("cannot listen", {{"error", servers.error().what}});
    return kExitFailed;
  }
  if (servers->everybody) log.info("serving metrics", {{"url", servers->everybody->url()}});
  if (servers->loopback) log.info("serving state", {{"url", servers->loopback->url()}});
  bool was_asked = false;
  const auto stop = [&] {
    if (was_asked) std::_Exit(kExitFailed);  // asked twice: at once
    was_asked = true;
    app.stop();
  };
  const ops::Signals signals(
      loop, {{SIGTERM, stop},
             {SIGINT, stop},
             {SIGUSR2, [&] { app.compare(); }},
             {SIGHUP, [&] {
                log.info("nothing is read again on SIGHUP; restart to change the configuration",
                         {{"log_level", level_name(log.level())}});
              }}});
  loop.run();
  return exit_code;
}

Result<int> run_command(const ParsedArgs& args) {
  JOGAK_TRY(const live::SchedulerConfig config, config_of(args));
  if (args.is_on("print-config")) {
    fmt::print("{}", live::config_doc(config).yaml());
    return kExitDone;
  }
  std::signal(SIGPIPE, SIG_IGN);  // a log nobody reads is no reason to end
  const std::string host = host_name();
  JOGAK_TRY(const std::string identity, new_identity(host));
  JOGAK_TRY(kube::Access access, kube::find_access({.kubeconfig = config.client.kubeconfig,
                                                    .context = config.client.context},
                                                   kube::Environment::of_process()));
  const std::string source = access.source;
  net::EpollLoop loop;
  const auto sink = fd_sink(STDERR_FILENO, form_of(config.logging));
  Log log(loop, *sink, config.logging.level);
  kube::ConnectionOptions options{
      .user_agent = fmt::format("jogak-scheduler/{}", JOGAK_VERSION),
      .connections_max = static_cast<std::size_t>(config.bindings_in_flight_max + 64),
      .has_terminal = ::isatty(STDIN_FILENO) == 1};
  JOGAK_TRY(const auto connection, kube::connect(loop, access, options));
  options.connections_max = 2;
  JOGAK_TRY(const auto lease_connection, kube::connect(loop, std::move(access), options));
  log.info("starting", {{"version", JOGAK_VERSION},
                        {"server", connection->server()},
                        {"from", source},
                        {"profiles", names_text(config)},
                        {"identity", identity}});
  log.debug("configuration",
            {{"config", live::config_doc(config).json(JsonWriter::Style::Compact)}});
  return run(loop, log, *connection, *lease_connection, config, identity, host);
}

}  // namespace

int cmd_scheduler(Args words) { return answer(kTable, words, run_command); }

}  // namespace jogak::cli
