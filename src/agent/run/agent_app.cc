// SPDX-License-Identifier: Apache-2.0
//
// What the agent says goes out of doors here, and what it is asked over HTTP is answered.
#include "agent/run/agent_app.h"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "agent/run/host_view.h"
#include "agent/run/spare_memory.h"

namespace jogak::agent {

namespace {

constexpr TimeUs kReadyLook = 5 * kMsInUs;
constexpr TimeUs kReadyLookMax = 5 * kSecondInUs;  // then each second is enough
// How long the start waits for the label that chooses the configuration, and a run that only
// writes labels for the API server.
constexpr TimeUs kLabelWaitMax = 5 * kSecondInUs;
constexpr TimeUs kOneshotMax = 120 * kSecondInUs;
}  // namespace

AgentApp::AgentApp(net::EpollLoop& loop, Log& log, std::unique_ptr<nvml::GpuSource> source,
                   kube::ApiClient* api, AgentOptions options, OnFailure on_failure)
    : loop_(loop),
      log_(log),
      api_(api),
      options_(std::move(options)),
      on_failure_(std::move(on_failure)),
      began_(loop.now()) {
  const bool has_labels =
      options_.labels == LabelPlace::Node || options_.labels == LabelPlace::Auto;
  const bool answers = options_.mig.answers_label && !options_.mig_journal.empty();
  if (api_ != nullptr && (has_labels || options_.reports || answers)) {
    node_writer_ =
        std::make_unique<NodeWriter>(*api_, log_, NodeWriterOptions{.node = options_.node_name});
  }
  if (api_ != nullptr && options_.reports) {
    events_ =
        std::make_unique<NodeEvents>(*api_, log_, NodeEventsOptions{.node = options_.node_name});
    pod_holds_ = std::make_unique<PodHoldsWriter>(
        *api_, log_, PodHoldsWriter::Options{.node = options_.node_name});
  }
  if (!options_.pod_resources_socket.empty()) kubelet_ = std::make_unique<KubeletClient>(loop_);
  HostView host = real_host(options_);
  if (options_.is_oneshot) {
    host.put_labels = [this, put = host.put_labels](const std::string& path, const Labels& labels) {
      auto done = put(path, labels);
      if (done && on_done) on_done();
      return done;
    };
  }
  node_ = std::make_unique<NodeAgent>(loop_, log_, std::move(source), options_, std::move(host),
                                      ports());
  if (options_.listen.is_on) {
    add_series();
    add_mps_series();
  }
}

AgentApp::~AgentApp() {
  *is_alive_ = false;
  for (const TimerId timer : {holdings_timer_, config_timer_, start_timer_}) loop_.cancel(timer);
  cluster_.reset();
  server_.reset();
  web_guard_.reset();
  plugin_.reset();  // its sockets go
  mps_.reset();     // daemons stay
  node_.reset();    // waits for the NVML thread
}

NodePorts AgentApp::ports() {
  NodePorts ports;
  ports.offer = [this](PluginSnapshotPtr offer) { on_offer(std::move(offer)); };
  if (node_writer_ != nullptr) {
    ports.wish = [this](NodeWish wish) { node_writer_->want(std::move(wish)); };
  }
  if (pod_holds_ != nullptr) {
    ports.holds = [this](std::map<PodName, std::string> holds) {
      pod_holds_->want(std::move(holds));
    };
  }
  if (kubelet_ != nullptr) ports.ask_holdings = [this] { ask_holdings_anew(); };
  if (options_.mps.mode != MpsMode::Off && options_.device_plugin) {
    ports.want_mps = [this](std::vector<MpsDaemon> daemons) { want_mps(std::move(daemons)); };
  }
  if (events_ != nullptr) {
    ports.note = [this](NodeNote note) { events_->tell(std::move(note)); };
  }
  ports.failure = on_failure_;
  return ports;
}

Result<void> AgentApp::start() {
  if (options_.listen.is_on) {
    net::HttpServerOptions listen = {
        .address = options_.listen.ip, .port = options_.listen.port, .connections_max = 128};
    if (!options_.web_config.empty()) {
      JOGAK_TRY(web_guard_,
                WebGuard::open(loop_, options_.web_config,
                               [this](const std::string& problem) { on_web_problem(problem); }));
      listen.tls = web_guard_->tls();
    }
    auto server = net::HttpServer::listen(loop_, std::move(listen), handler());
    if (!server) return std::unexpected(std::move(server).error());
    server_ = *std::move(server);
    log_.info("serving metrics", {{"url", server_->url()}});
  }
  if (api_ != nullptr && !options_.is_oneshot) watch_cluster();
  if (options_.is_oneshot) {
    start_timer_ = loop_.after(kOneshotMax, [this] { end_oneshot(); });
    if (node_writer_ != nullptr) {
      node_writer_->on_settled = [this] {
        if (on_done) on_done();
      };
    }
  }
  if (cluster_ != nullptr && options_.read_config && options_.has_config_label) {
    // Half a second with another configuration would offer other resources.
    start_timer_ = loop_.after(kLabelWaitMax, [this] { start_node(); });
  } else {
    start_node();
  }
  look_for_ready();
  return {};
}

void AgentApp::start_node() {
  if (std::exchange(has_started_, true)) return;
  if (options_.read_config && !read_config()) {
    // Other resources than those that were meant would be worse than none.
    return on_failure_({.code = Errc::Invalid, .what = config_problem_});
  }
  node_->start();
  if (kubelet_ != nullptr) ask_holdings();
}

void AgentApp::read_anew() {
  if (!has_started_) return;
  if (options_.read_config) read_config();
  node_->look();
}

std::uint16_t AgentApp::port() const { return server_ == nullptr ? 0 : server_->port(); }

// ---- what the agent says of itself ------------------------------------------------------------

std::string AgentApp::not_ready() const {
  if (std::string problem = mps_problem(); !problem.empty()) return problem;
  if (!node_->has_facts()) {
    return node_->mig().is_recovering()
               ? "a change of MIG layouts that was cut short is not ended yet"
               : "the GPUs are not listed yet";
  }
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
    log_.info("ready", {{"after_ms", ready_after_ / kMsInUs}, {"gpus", node_->gpus()}});
    keep_memory_small(loop_, is_alive_);
    return;
  }
  const TimeUs pause = loop_.now() - began_ < kReadyLookMax ? kReadyLook : kSecondInUs;
  loop_.after(pause, [this, alive = is_alive_] {
    if (*alive) look_for_ready();
  });
}

void AgentApp::add_series() {
  node_->registry().sampled_gauge("jogak_agent_ready", "1 when the agent is ready.",
                                  [this] { return not_ready().empty() ? 1.0 : 0.0; });
  node_->registry().sampled_gauge(
      "jogak_agent_start_seconds", "From the start until ready; 0 not yet.",
      [this] { return static_cast<double>(ready_after_) / kSecondInUs; });
  node_->registry().sampled_gauge(
      "jogak_agent_config_error", "1 while a configuration cannot be read; the one before counts.",
      [this] {
        const Exporter* const exporter = node_->exporter();
        const bool has_counters = exporter == nullptr || exporter->counters_problem().empty();
        return config_problem_.empty() && has_counters ? 0.0 : 1.0;
      });
  node_->registry().sampled_gauge("jogak_agent_mig_changing",
                                  "1 while the layout of a GPU is being changed.",
                                  [this] { return node_->mig().is_changing() ? 1.0 : 0.0; });
  const auto by_resource = [this](auto add) {
    std::vector<Sample> samples;
    if (plugin_ == nullptr) return samples;
    for (const DevicePlugin::ResourceStatus& status : plugin_->status()) add(samples, status);
    return samples;
  };
  node_->registry().sampled_gauges(
      "jogak_agent_devices", "Devices offered to the kubelet.", {"resource", "health"},
      [by_resource] {
        return by_resource([](auto& samples, const auto& status) {
          const std::size_t unhealthy = status.devices - status.healthy;
          samples.push_back({{status.name, "Healthy"}, static_cast<double>(status.healthy)});
          samples.push_back({{status.name, "Unhealthy"}, static_cast<double>(unhealthy)});
        });
      });
  node_->registry().sampled_counters(
      "jogak_agent_registrations_total", "Registrations with the kubelet.", {"resource"},
      [by_resource] {
        return by_resource([](auto& samples, const auto& status) {
          samples.push_back({{status.name}, static_cast<double>(status.registrations)});
        });
      });
}

void AgentApp::on_web_problem(const std::string& problem) {
  if (problem.empty()) {
    log_.info("the web configuration is right again", {{"file", options_.web_config}});
  } else {
    log_.error("the web configuration cannot be read; the one before stays in force",
               {{"error", problem}});
  }
}

// Probes go without a password: they say nothing that a kubelet does not know.
net::HttpHandler AgentApp::handler() {
  net::HttpHandler pages = node_->exporter()->handler();
  if (web_guard_ != nullptr) pages = web_guard_->guard(std::move(pages));
  return [this, metrics = std::move(pages)](const net::HttpRequest& request,
                                            const std::shared_ptr<net::ResponseWriter>& writer) {
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
