// SPDX-License-Identifier: Apache-2.0
//
// `jogak agent run`: the node agent. Flags, environment and files become one value; sockets,
// signals and the log are made here; the rest is agent/run.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "agent/mig/config_file.h"
#include "agent/run/agent_app.h"
#include "agent/run/config_choice.h"
#include "agent/run/spare_memory.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "kube/connection.h"
#include "nvml/late_source.h"
#include "nvml/nvml_source.h"
#include "ops/signals.h"

namespace jogak::cli {

namespace {

constexpr std::int64_t kMigConfigBytesMax = 1 << 20;
constexpr TimeUs kSampleEveryMin = 100 * kMsInUs, kSampleEveryMax = 60 * kSecondInUs;

constexpr Flag kFlags[] = {
    {.name = "nvml",
     .metavar = "auto|LIBRARY|sim:NAME|sim:FILE",
     .help = "the driver's library, another one, or a simulation",
     .fallback = "auto"},
    {.name = "node-name",
     .metavar = "NAME",
     .help = "of the Node object (default $NODE_NAME, else the host's name)"},
    {.name = "device-plugin",
     .kind = FlagKind::Choice,
     .metavar = "true|false",
     .help = "offer the devices to the kubelet",
     .fallback = "true"},
    {.name = "kubelet-dir",
     .metavar = "DIR",
     .help = "the kubelet's folder, with device-plugins/ and pod-resources/",
     .fallback = "/var/lib/kubelet"},
    {.name = "cdi-dir",
     .metavar = "DIR",
     .help = "where CDI files go, if a list strategy uses them",
     .fallback = "/var/run/cdi"},
    {.name = "device-nodes",
     .kind = FlagKind::Choice,
     .metavar = "true|false",
     .help = "make device nodes of the driver that are missing, and remove those of MIG instances "
             "that are gone; as root, and where the driver allows it",
     .fallback = "true"},
    {.name = "system-root",
     .metavar = "DIR",
     .help = "where /proc and /sys of the driver are seen",
     .fallback = "/"},
    {.name = "exporter-address",
     .metavar = "IP:PORT",
     .help = "where /metrics, /livez and /readyz are served (default $DCGM_EXPORTER_LISTEN, else "
             "0.0.0.0:9400); off: nowhere"},
    {.name = "collectors",
     .metavar = "FILE",
     .help = "counters to publish, in the format of dcgm-exporter; a change takes force at once "
             "(default $DCGM_EXPORTER_COLLECTORS, else its default set)"},
    {.name = "web-config-file",
     .metavar = "FILE",
     .help = "TLS and passwords of that port, in the format of Prometheus' exporters (default "
             "$DCGM_EXPORTER_WEB_CONFIG_FILE)"},
    {.name = "naming",
     .kind = FlagKind::Choice,
     .metavar = "classic|modern",
     .help = "names of the default counters: of dcgm-exporter up to 4.8, or since",
     .fallback = "classic"},
    {.name = "mig-board",
     .kind = FlagKind::Choice,
     .metavar = "once|repeat",
     .help = "power, heat, clocks and errors of a GPU that is cut with MIG: once, as those of the "
             "GPU, or repeated for each instance, as dcgm-exporter does",
     .fallback = "once"},
    {.name = "labels",
     .kind = FlagKind::Choice,
     .metavar = "auto|off|file|node",
     .help = "the labels of GPU feature discovery: on the node, or in a file for NFD; auto: on the "
             "node if there is an API server to tell",
     .fallback = "auto"},
    {.name = "report",
     .kind = FlagKind::Choice,
     .metavar = "true|false",
     .help = "write conditions and annotations of the node, and which GPUs each pod holds",
     .fallback = "true"},
    {.name = "taints",
     .kind = FlagKind::Choice,
     .metavar = "never|any|all",
     .help = "taint the node when any or all of its GPUs are unusable",
     .fallback = "never"},
    {.name = "kubeconfig",
     .metavar = "FILE",
     .help = "how to reach the cluster; else the account of the pod this runs in, else no API "
             "server is told anything; off: the same even in a pod"},
    {.name = "context", .metavar = "NAME", .help = "context of the kubeconfig"},
    {.name = "mig-journal",
     .metavar = "FILE",
     .help = "where a change of MIG layouts that was cut short is looked for at the start",
     .fallback = "/var/lib/jogak/mig-journal.json"},
    {.name = "mig-label",
     .kind = FlagKind::Choice,
     .metavar = "true|false",
     .help = "carry out the MIG configuration that the node's label nvidia.com/mig.config names",
     .fallback = "true"},
    {.name = "mig-keep",
     .kind = FlagKind::Choice,
     .metavar = "true|false",
     .help = "make the layout of that label again where a reset or somebody's hand undid it",
     .fallback = "true"},
    {.name = "mig-config-file",
     .metavar = "FILE",
     .help = "configurations for that label, in the format of mig-parted (default "
             "$MIG_CONFIG_FILE, else those that the GPUs allow)"},
    {.name = "mig-on-demand",
     .kind = FlagKind::Choice,
     .metavar = "true|false",
     .help = "make MIG instances for pods that were placed here with jogak.io/mig-profile",
     .fallback = "false"},
    {.name = "mps-control",
     .kind = FlagKind::Choice,
     .metavar = "own|external|off",
     .help =
         "who runs the MPS control daemons of GPUs that are shared by MPS: this agent, NVIDIA's "
         "DaemonSet (shares are offered while its daemon answers), or off: nobody looks",
     .fallback = "own"},
    {.name = "mps-dir",
     .metavar = "DIR",
     .help = "the folder --mps-root as this process sees it (default /mps if there is one, else "
             "the same)"},
    {.name = "mps-cgroup",
     .metavar = "DIR",
     .help = "the control group of those daemons, so that they outlive the agent's container; "
             "empty: they stay where they are",
     .fallback = "/sys/fs/cgroup/jogak-mps"},
    {.name = "config-dir",
     .metavar = "DIR",
     .help = "of several configuration files; the node's label nvidia.com/device-plugin.config "
             "names one (default $CONFIG_FILE_SRCDIR)"},
    {.name = "sample-interval",
     .kind = FlagKind::Int,
     .metavar = "MS",
     .help = "time between two samples of the GPUs, in milliseconds (default "
             "$DCGM_EXPORTER_INTERVAL, else 1000)",
     .min = 100,
     .max = 60'000},
    {.name = "log-level",
     .metavar = "LEVEL",
     .help = "error, warn, info or debug",
     .fallback = "info"},
};

constexpr std::string_view kExamples[] = {
    "jogak agent run",
    "jogak agent run --nvml sim:a100-40gb-x8 --device-plugin=false --labels off",
    "jogak agent run --mig-strategy mixed --device-list-strategy cdi-cri",
    "CONFIG_FILE=/config/config.yaml jogak agent run --labels file --exporter-address off",
};

constexpr std::string_view kSummary =
    "Runs the node agent: it offers this machine's GPUs and MIG slices to the kubelet, labels the "
    "node, watches the GPUs' health and serves their metrics (docs/agent.md). Flags below the "
    "first group, their environment variables and the configuration file are those of the NVIDIA "
    "device plugin and of GPU feature discovery. It runs until SIGTERM or Ctrl-C. Exits 0 when "
    "asked to stop, 1 when it could not start, 2 for bad flags or configuration.";

std::optional<std::string> environment(std::string_view name) {
  const char* const value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// The flags of the programs that this one replaces are in the help, too; they are taken out of the
// words before.
std::vector<Flag> all_flags() {
  std::vector<Flag> flags(std::begin(kFlags), std::end(kFlags));
  for (const agent::PluginSetting& setting : agent::plugin_settings()) {
    if (setting.flag.empty()) continue;
    flags.push_back({.name = setting.flag,
                     .metavar = setting.is_switch ? "true|false" : "VALUE",
                     .help = setting.help});
  }
  return flags;
}

std::string host_name() {
  std::string name(256, '\0');
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  name.resize(name.find('\0'));
  return name.empty() ? "unknown" : name;
}

Result<void> read_exporter(const ParsedArgs& args, agent::AgentOptions& options) {
  JOGAK_TRY(agent::ExporterEnvironment exporter, agent::read_exporter_environment(environment));
  options.listen = exporter.listen;
  if (args.is_given("exporter-address")) {
    auto address = agent::parse_listen_address(args.text("exporter-address"));
    if (!address) return in_context("--exporter-address", std::move(address).error());
    options.listen = *std::move(address);
  }
  options.render = std::move(exporter.render);
  JOGAK_TRY(options.render.naming, agent::parse_naming(args.text("naming")));
  JOGAK_TRY(options.render.mig_parent, agent::parse_mig_parent(args.text("mig-board")));
  const std::string file =
      args.is_given("collectors") ? args.text("collectors") : exporter.collectors;
  if (file.empty()) {
    options.render.counters = agent::default_counters(options.render.naming);
  } else {
    JOGAK_TRY(const std::string text, read_file(file, agent::kCountersBytesMax));
    JOGAK_TRY(options.render.counters, agent::parse_counters(file, text));
    options.counters_file = file;
  }
  const auto no_hostname = environment("DCGM_EXPORTER_NO_HOSTNAME");
  if (no_hostname != "true" && no_hostname != "1") options.render.hostname = options.node_name;
  options.web_config =
      args.is_given("web-config-file") ? args.text("web-config-file") : exporter.web_config;
  options.job_folder = exporter.job_folder;
  if (!exporter.pod_resources_socket.empty()) {
    options.pod_resources_socket = exporter.pod_resources_socket;
  }
  if (args.is_given("sample-interval")) {
    options.sample_every = args.number("sample-interval") * kMsInUs;
  } else if (exporter.interval > 0) {
    // Slower than once a minute nothing would be seen of what the GPUs do.
    options.sample_every = std::clamp(exporter.interval, kSampleEveryMin, kSampleEveryMax);
  }
  return {};
}

Result<void> read_mig(const ParsedArgs& args, agent::AgentOptions& options) {
  options.mig_journal = args.text("mig-journal");
  options.mig.answers_label = args.text("mig-label") == "true";
  options.mig.cuts_on_demand = args.text("mig-on-demand") == "true";
  options.mig.keeps_layout = args.text("mig-keep") == "true";
  const auto may_reboot = environment("WITH_REBOOT");
  options.mig.may_reboot = may_reboot == "true" || may_reboot == "1";
  const std::string file = args.is_given("mig-config-file")
                               ? args.text("mig-config-file")
                               : environment("MIG_CONFIG_FILE").value_or("");
  if (file.empty()) return {};
  JOGAK_TRY(const std::string text, read_file(file, kMigConfigBytesMax));
  JOGAK_TRY(options.mig.configs, agent::read_mig_configs(file, text));
  return {};
}

// All that is switched off where the labels are written once.
void make_oneshot(agent::AgentOptions& options) {
  options.is_oneshot = true;
  options.device_plugin = false;
  options.pod_resources_socket.clear();
  options.mig_journal.clear();
  options.listen.is_on = false;
  options.reports = false;
  options.taints = agent::TaintRule::Never;
}

bool is_given(const agent::PluginFlags& flags, std::string_view name) {
  for (const auto& [flag, value] : flags) {
    if (flag == name) return true;
  }
  return environment("KUBELET_SOCKET").has_value();
}

Result<agent::AgentOptions> options_of(const ParsedArgs& args, const agent::PluginFlags& flags,
                                       const agent::PluginConfig& config) {
  agent::AgentOptions options;
  options.plugin = config;
  options.node_name =
      args.is_given("node-name") ? args.text("node-name") : environment("NODE_NAME").value_or("");
  if (options.node_name.empty()) options.node_name = host_name();
  options.device_plugin = args.text("device-plugin") == "true";
  const std::string folder = args.text("kubelet-dir");
  options.kubelet_socket = folder + "/device-plugins/kubelet.sock";
  options.pod_resources_socket = folder + "/pod-resources/kubelet.sock";
  if (is_given(flags, "kubelet-socket")) {
    options.registers = !config.kubelet_socket.empty();
    if (options.registers) options.kubelet_socket = config.kubelet_socket;
  }
  options.cdi_folder = args.text("cdi-dir");
  options.system_root = args.text("system-root");
  // GPUs that are simulated have no devices.
  options.makes_device_nodes =
      args.text("device-nodes") == "true" && !args.text("nvml").starts_with("sim:");
  JOGAK_TRY_VOID(read_exporter(args, options));
  JOGAK_TRY(options.labels, agent::parse_label_place(args.text("labels")));
  options.reports = args.text("report") == "true";
  JOGAK_TRY(options.taints, agent::parse_taint_rule(args.text("taints")));
  JOGAK_TRY(options.health, agent::health_options(config));
  JOGAK_TRY_VOID(read_mig(args, options));
  JOGAK_TRY(options.mps.mode, agent::parse_mps_mode(args.text("mps-control")));
  options.mps.folder = args.text("mps-dir");
  options.mps.cgroup = args.text("mps-cgroup");
  options.mps.search_path = environment("PATH").value_or("");
  if (config.gfd.is_oneshot) make_oneshot(options);
  return options;
}

// Nothing where there is no API server to tell anything, which is fine unless one was asked for.
Result<std::optional<kube::Access>> access_of(const ParsedArgs& args,
                                              const agent::AgentOptions& options) {
  const auto process = kube::Environment::of_process();
  const std::string kubeconfig = args.text("kubeconfig");
  if (args.is_given("kubeconfig") && kubeconfig != "off") {
    JOGAK_TRY(
        kube::Access access,
        kube::find_access({.kubeconfig = kubeconfig, .context = args.text("context")}, process));
    return access;
  }
  if (kubeconfig != "off") {
    auto access = kube::in_cluster_access(process);
    if (access) return *std::move(access);
    if (access.error().code != Errc::NotFound) return std::unexpected(std::move(access).error());
  }
  if (options.labels == agent::LabelPlace::Node) {
    return invalid("--labels node: there is no API server to tell; give --kubeconfig FILE");
  }
  if (options.is_oneshot && options.labels != agent::LabelPlace::File) {
    return invalid(
        "--oneshot: there is nobody to tell the labels; give --labels file or --kubeconfig FILE");
  }
  return std::nullopt;
}

// Of the machine's GPUs. A driver that is not there is waited for, unless it is wanted at once.
Result<std::unique_ptr<nvml::GpuSource>> open_source(const std::string& nvml,
                                                     const agent::AgentOptions& options,
                                                     std::function<TimeUs()> now) {
  const std::vector<std::string> roots = {options.plugin.driver_root_in_container,
                                          options.plugin.driver_root};
  const auto open = [nvml, roots, node = options.node_name,
                     now = std::move(now)]() -> Result<std::unique_ptr<nvml::GpuSource>> {
    return nvml::NvmlSource::open(nvml, roots, node, now);
  };
  auto source = open();
  if (source || source.error().code != Errc::Unavailable || options.plugin.fail_on_init_error) {
    return source;
  }
  return std::make_unique<nvml::LateSource>(open, source.error());
}

// How it ended, as an exit code; what is to be said about it has been said.
Result<int> run_on(net::EpollLoop& loop, Log& log, std::unique_ptr<nvml::GpuSource> source,
                   kube::ApiClient* api, agent::AgentOptions options) {
  int exit_code = kExitDone;
  // Before any thread is there.
  agent::keep_few_heaps();
  // What was read to get here and what gRPC reads next need not be there together: that would be
  // the most memory that the agent ever has.
  agent::give_back_memory();
  std::unique_ptr<agent::AgentApp> app;
  bool was_asked = false;
  const auto stop = [&] {
    if (was_asked) std::_Exit(kExitFailed);  // asked twice: at once
    was_asked = true;
    log.info("asked to stop");
    loop.stop();
  };
  const auto read_anew = [&] {
    log.info("asked to read all anew");
    if (app != nullptr) app->read_anew();
  };
  const ops::Signals signals(
      loop, {{SIGTERM, stop}, {SIGINT, stop}, {SIGQUIT, stop}, {SIGHUP, read_anew}});
  app = std::make_unique<agent::AgentApp>(loop, log, std::move(source), api, std::move(options),
                                          [&](const Error& error) {
                                            log.error("cannot go on", {{"error", error.what}});
                                            exit_code = kExitFailed;
                                            loop.stop();
                                          });
  app->on_done = [&] {
    log.info("the labels are written");
    loop.stop();
  };
  if (auto started = app->start(); !started) {
    return in_context("--exporter-address", std::move(started).error());
  }
  loop.run();
  app.reset();
  if (exit_code == kExitDone) log.info("stopped");
  return exit_code;
}

Result<int> run_agent(const ParsedArgs& args, const agent::PluginFlags& flags) {
  JOGAK_TRY(const agent::ConfigPlace place,
            agent::find_config_place(flags, environment, args.text("config-dir")));
  auto config_read = agent::read_config(place, std::nullopt);
  if (!config_read && config_read.error().code == Errc::NotFound && !place.folder.empty()) {
    // The label may name one; without any the agent does not begin (AgentApp::start_node).
    config_read = agent::read_plugin_config({.flags = flags, .env = environment, .file = {}});
  }
  JOGAK_TRY(const agent::ReadConfig config, std::move(config_read));
  JOGAK_TRY(agent::AgentOptions options, options_of(args, flags, config.config));
  if (!place.folder.empty() || !agent::config_file_path(place.flags, place.env).empty()) {
    options.read_config = [place](const std::optional<std::string>& label) {
      return agent::read_config(place, label);
    };
    options.has_config_label = !place.folder.empty();
  }
  JOGAK_TRY(const LogLevel level, parse_level(args.text("log-level")));
  JOGAK_TRY(std::optional<kube::Access> access, access_of(args, options));
  net::EpollLoop loop;
  // By the loop's clock, which nobody sets: what was measured is compared with it. A thread that
  // hangs in the driver keeps the source.
  JOGAK_TRY(auto source, open_source(args.text("nvml"), options, loop.clock()));
  std::signal(SIGPIPE, SIG_IGN);  // a log nobody reads is no reason to end
  const auto sink = fd_sink(STDERR_FILENO, form_for(STDERR_FILENO));
  Log log(loop, *sink, level);
  std::unique_ptr<kube::Connection> connection;
  std::unique_ptr<kube::ApiClient> api;
  const std::string from = access ? access->source : "no API server is told anything";
  if (access) {
    JOGAK_TRY(connection, kube::connect(loop, *std::move(access),
                                        {.user_agent = fmt::format("jogak-agent/{}", JOGAK_VERSION),
                                         .connections_max = 4,
                                         .has_terminal = ::isatty(STDIN_FILENO) == 1}));
    api = std::make_unique<kube::ApiClient>(*connection);
    api->user_agent = fmt::format("jogak-agent/{}", JOGAK_VERSION);
  }
  log.info("starting", {{"version", JOGAK_VERSION},
                        {"node", options.node_name},
                        {"nvml", args.text("nvml")},
                        {"cluster", from}});
  for (const std::string& warning : config.warnings) {
    log.warn("a setting has no effect", {{"setting", warning}});
  }
  if (options.plugin.gfd.use_node_feature_api) {
    log.warn("a setting has no effect",
             {{"setting", "use-node-feature-api: labels go to the node or a file; see --labels"}});
  }
  for (const std::string& warning : options.render.counters.warnings) {
    log.warn("a counter", {{"problem", warning}});
  }
  return run_on(loop, log, std::move(source), api.get(), std::move(options));
}

}  // namespace

int cmd_agent_run(Args words) {
  const std::vector<Flag> flags = all_flags();
  const ArgTable table = {
      .command = "jogak agent run", .summary = kSummary, .flags = flags, .examples = kExamples};
  std::vector<std::string_view> rest;
  const auto taken = agent::take_plugin_flags(words, rest);
  if (!taken) return report_error(table.command, taken.error());
  int exit_code = kExitDone;
  const auto args = parse_or_answer(table, rest, exit_code);
  if (!args) return exit_code;
  const auto code = run_agent(*args, *taken);
  return code ? *code : report_error(table.command, code.error());
}

}  // namespace jogak::cli
