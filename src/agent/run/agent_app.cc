// SPDX-License-Identifier: Apache-2.0
//
// The order of things: facts come first, then the host's files and CDI files that they imply, then
// the offer to the kubelet; nothing is offered that a container could not be given.
#include "agent/run/agent_app.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "agent/run/wishes.h"
#include "base/file.h"

namespace jogak::agent {

namespace {

constexpr TimeUs kReadyLook = 5 * kMsInUs;
constexpr TimeUs kReadyLookMax = 5 * kSecondInUs;  // then each second is enough
constexpr std::int64_t kSmallFileMax = 4096;

std::string first_line(const std::string& path) {
  const auto text = read_file(path, kSmallFileMax);
  return text ? text->substr(0, text->find('\n')) : std::string();
}

// "00000000:07:00.0" as sysfs names it: "0000:07:00.0".
std::string sysfs_name(std::string_view bus_id) {
  std::string name(bus_id.size() > 12 ? bus_id.substr(bus_id.size() - 12) : bus_id);
  for (char& c : name) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

void read_pci_classes(const nvml::NodeFacts& facts, LabelOptions& options) {
  options.pci_class.clear();
  for (const nvml::GpuFacts& gpu : facts.gpus) {
    const std::string text =
        first_line("/sys/bus/pci/devices/" + sysfs_name(gpu.pci_bus_id) + "/class");
    std::uint32_t value = 0;
    if (text.starts_with("0x") && text.size() <= 10) {
      for (const char c : std::string_view(text).substr(2)) {
        const bool is_digit = c >= '0' && c <= '9';
        if (!is_digit && (c < 'a' || c > 'f')) break;
        value = value * 16 + static_cast<std::uint32_t>(is_digit ? c - '0' : c - 'a' + 10);
      }
    }
    if (value != 0) options.pci_class[gpu.pci_bus_id] = value;
  }
}

// Costs 20 ms for each GPU and direction on real drivers, so only where it is wanted.
bool wants_pcie_throughput(const Counters& counters) {
  return std::ranges::any_of(counters.specs, [](const CounterSpec& spec) {
    return spec.field != nullptr && (spec.field->name == "DCGM_FI_DEV_PCIE_TX_THROUGHPUT" ||
                                     spec.field->name == "DCGM_FI_DEV_PCIE_RX_THROUGHPUT");
  });
}

NodeModelOptions model_options(const AgentOptions& options) {
  return {.health = options.health,
          .xid_window = options.render.xid_window,
          .clock_event_window = options.render.clock_event_window};
}

}  // namespace

AgentApp::AgentApp(net::EpollLoop& loop, Log& log, std::unique_ptr<nvml::GpuSource> source,
                   kube::ApiClient* api, AgentOptions options, OnFailure on_failure)
    : loop_(loop),
      log_(log),
      api_(api),
      options_(std::move(options)),
      on_failure_(std::move(on_failure)),
      began_(loop.now()),
      model_(model_options(options_)),
      label_options_(label_options(options_.plugin)),
      watch_(std::make_unique<GpuWatch>(
          loop, log, model_, std::move(source),
          GpuWatchOptions{
              .sample_every = options_.sample_every,
              .event_every = options_.event_every,
              .facts_every = options_.facts_every,
              .wants = {.processes = true,
                        .pcie_throughput = options_.listen.is_on &&
                                           wants_pcie_throughput(options_.render.counters),
                        .gpm = options_.listen.is_on}},
          [this](GpuWatch::News news) { on_news(news); })) {
  label_options_.machine = first_line(options_.plugin.gfd.machine_type_file);
  if (!options_.plugin.gfd.no_timestamp) label_options_.timestamp = began_;
  if (options_.listen.is_on) {
    add_series();
    exporter_ = std::make_unique<Exporter>(ExporterOptions{.render = options_.render}, &registry_,
                                           [this] { return loop_.now(); });
  }
  const bool has_labels =
      options_.labels == LabelPlace::Node || options_.labels == LabelPlace::Auto;
  if (api_ != nullptr && (has_labels || options_.reports)) {
    node_writer_ =
        std::make_unique<NodeWriter>(*api_, log_, NodeWriterOptions{.node = options_.node_name});
  }
  if (api_ != nullptr && options_.reports) {
    pod_holds_ = std::make_unique<PodHoldsWriter>(
        *api_, log_, PodHoldsWriter::Options{.node = options_.node_name});
  }
  if (!options_.pod_resources_socket.empty()) kubelet_ = std::make_unique<KubeletClient>(loop_);
}

AgentApp::~AgentApp() {
  *is_alive_ = false;
  loop_.cancel(holdings_timer_);
  server_.reset();
  plugin_.reset();  // its sockets go
  watch_.reset();   // waits for the NVML thread
}

Result<void> AgentApp::start() {
  if (options_.listen.is_on) {
    auto server = net::HttpServer::listen(
        loop_,
        {.address = options_.listen.ip, .port = options_.listen.port, .connections_max = 128},
        handler());
    if (!server) return std::unexpected(std::move(server).error());
    server_ = *std::move(server);
    log_.info("serving metrics", {{"url", server_->url()}});
  }
  watch_->start();
  if (kubelet_ != nullptr) ask_holdings();
  look_for_ready();
  return {};
}

std::uint16_t AgentApp::port() const { return server_ == nullptr ? 0 : server_->port(); }

// ---- what happens ----------------------------------------------------------------------------

void AgentApp::on_news(GpuWatch::News news) {
  using News = GpuWatch::News;
  if (news == News::NoFacts && options_.plugin.fail_on_init_error && told_facts_ == nullptr) {
    const auto node = model_.snapshot(loop_.now());
    on_failure_({.code = Errc::Unavailable,
                 .what = fmt::format("the GPUs cannot be listed: {}; with "
                                     "--fail-on-init-error=false the agent waits for them",
                                     node->health->driver_problem)});
    return;
  }
  if (news == News::Samples) {
    const std::vector<std::int64_t> pids = model_.pids();
    if (!pids.empty() || had_pids_) model_.on_owners(owners_.find(pids));
    had_pids_ = !pids.empty();
  }
  publish();
}

void AgentApp::publish() {
  const auto node = model_.snapshot(loop_.now());
  if (exporter_ != nullptr) exporter_->publish(*node);
  if (!node->has_facts) return;
  UnhealthyReasons unhealthy = unhealthy_reasons(*node, loop_.now());
  const bool is_new = told_facts_ != node->facts;
  // Facts are read each minute and are mostly what they were.
  const bool has_changed = is_new && (told_facts_ == nullptr || !(*told_facts_ == *node->facts));
  told_facts_ = node->facts;
  if (has_changed) {
    find_host(*node->facts);
    update_cdi(*node->facts);
  }
  if (has_changed || unhealthy != told_unhealthy_) {
    told_unhealthy_ = std::move(unhealthy);
    update_plugin(*node);
  }
  if (node_writer_ != nullptr) update_node(*node);
  if (options_.labels == LabelPlace::File && has_changed) write_features(*node);
}

void AgentApp::find_host(const nvml::NodeFacts& facts) {
  const PluginConfig& config = options_.plugin;
  const std::string& inside = config.driver_root_in_container;
  const bool is_mounted =
      !find_host_files({.driver = inside}, facts.driver_version).libraries.empty();
  HostRoots roots;
  roots.driver = is_mounted ? inside : config.driver_root;
  roots.hook_path = config.cdi_hook_path;
  host_ = find_host_files(roots, facts.driver_version);
  read_pci_classes(facts, label_options_);
}

void AgentApp::update_cdi(const nvml::NodeFacts& facts) {
  if (!options_.device_plugin || !options_.plugin.uses_cdi()) return;
  const auto put =
      CdiFolder(options_.cdi_folder).put(make_cdi_files(facts, options_.plugin, host_));
  const std::string problem = put ? "" : put.error().what;
  if (!problem.empty() && problem != told_cdi_problem_) {
    log_.error("the CDI files could not be written", {{"error", problem}});
  }
  told_cdi_problem_ = problem;
}

void AgentApp::update_plugin(const NodeSnapshot& node) {
  if (!options_.device_plugin) return;
  auto snapshot = make_snapshot(*node.facts, options_.plugin, host_, told_unhealthy_);
  for (const std::string& problem : snapshot->inventory.problems) {
    if (told_problems_.insert(problem).second) {
      log_.warn("a device is not offered", {{"reason", problem}});
    }
  }
  if (plugin_ == nullptr) start_plugin();
  plugin_->update(std::move(snapshot));
}

void AgentApp::update_node(const NodeSnapshot& node) {
  const bool has_labels =
      options_.labels == LabelPlace::Node || options_.labels == LabelPlace::Auto;
  node_writer_->want(node_wish(node, options_, label_options_, has_labels, loop_.now()));
}

void AgentApp::write_features(const NodeSnapshot& node) {
  const FeatureLabels labels = feature_labels(*node.facts, label_options_);
  for (const std::string& warning : labels.warnings) {
    if (told_problems_.insert(warning).second) log_.warn("a label", {{"problem", warning}});
  }
  const auto written = write_features_file(options_.plugin.gfd.output_file, labels.labels);
  if (!written) {
    log_.error("the features file could not be written", {{"error", written.error().what}});
  }
}

// ---- what the agent says of itself ------------------------------------------------------------

std::string AgentApp::not_ready() const {
  if (told_facts_ == nullptr) return "the GPUs are not listed yet";
  if (options_.device_plugin && plugin_ != nullptr && options_.registers && !plugin_->is_ready()) {
    for (const DevicePlugin::ResourceStatus& status : plugin_->status()) {
      if (status.is_registered && status.is_watched) continue;
      return fmt::format("{} is not registered with the kubelet{}{}", status.name,
                         status.problem.empty() ? "" : ": ", status.problem);
    }
  }
  return {};
}

void AgentApp::look_for_ready() {
  if (is_ready_) return;
  if (not_ready().empty()) {
    is_ready_ = true;
    ready_after_ = loop_.now() - began_;
    log_.info("ready", {{"after_ms", ready_after_ / kMsInUs}, {"gpus", told_facts_->gpus.size()}});
    return;
  }
  const TimeUs pause = loop_.now() - began_ < kReadyLookMax ? kReadyLook : kSecondInUs;
  loop_.after(pause, [this, alive = is_alive_] {
    if (*alive) look_for_ready();
  });
}

void AgentApp::add_series() {
  registry_.sampled_gauge("jogak_agent_ready", "1 when the agent is ready.",
                          [this] { return not_ready().empty() ? 1.0 : 0.0; });
  registry_.sampled_gauge("jogak_agent_start_seconds", "From the start until ready; 0 not yet.",
                          [this] { return static_cast<double>(ready_after_) / kSecondInUs; });
  const auto by_resource = [this](auto add) {
    std::vector<Sample> samples;
    if (plugin_ == nullptr) return samples;
    for (const DevicePlugin::ResourceStatus& status : plugin_->status()) add(samples, status);
    return samples;
  };
  registry_.sampled_gauges(
      "jogak_agent_devices", "Devices offered to the kubelet.", {"resource", "health"},
      [by_resource] {
        return by_resource([](auto& samples, const auto& status) {
          const std::size_t unhealthy = status.devices - status.healthy;
          samples.push_back({{status.name, "Healthy"}, static_cast<double>(status.healthy)});
          samples.push_back({{status.name, "Unhealthy"}, static_cast<double>(unhealthy)});
        });
      });
  registry_.sampled_counters(
      "jogak_agent_registrations_total", "Registrations with the kubelet.", {"resource"},
      [by_resource] {
        return by_resource([](auto& samples, const auto& status) {
          samples.push_back({{status.name}, static_cast<double>(status.registrations)});
        });
      });
}

net::HttpHandler AgentApp::handler() {
  return [this, metrics = exporter_->handler()](
             const net::HttpRequest& request, const std::shared_ptr<net::ResponseWriter>& writer) {
    const std::string_view path =
        std::string_view(request.target).substr(0, request.target.find('?'));
    const bool is_read = request.method == "GET" || request.method == "HEAD";
    if (is_read && (path == "/livez" || path == "/readyz")) {
      const std::string problem = path == "/readyz" ? not_ready() : "";
      writer->respond(
          problem.empty() ? 200 : 503,
          {{"Content-Type", "text/plain; charset=utf-8"}, {"X-Content-Type-Options", "nosniff"}},
          problem.empty() ? "ok\n" : problem + "\n");
      return;
    }
    metrics(request, writer);
  };
}

}  // namespace jogak::agent
