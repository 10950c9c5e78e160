// SPDX-License-Identifier: Apache-2.0
//
// The part of the agent that listens to the API server: labels of its node, pods that want MIG
// instances, and which configuration is this node's.
#include <map>
#include <string>
#include <utility>

#include "agent/run/agent_app.h"

namespace jogak::agent {

void AgentApp::watch_cluster() {
  const bool has_pods = options_.mig.cuts_on_demand && !options_.mig_journal.empty();
  cluster_ = std::make_unique<ClusterWatch>(
      *api_, log_,
      ClusterWatch::Options{.node = options_.node_name,
                            .has_pods = has_pods,
                            .has_pod_labels = options_.render.pod_k8s_labels},
      ClusterWatch::Events{
          .on_node =
              [this](const Labels& labels, const std::map<std::string, std::string>& annotations) {
                on_node(labels, annotations);
              },
          .on_asks = [this](std::vector<MigAsk> asks) { node_->on_asks(std::move(asks)); },
          .on_pods = [this](PodTable pods) { node_->on_pods(std::move(pods)); }});
}

void AgentApp::on_node(const Labels& labels,
                       const std::map<std::string, std::string>& annotations) {
  if (node_writer_ != nullptr) node_writer_->see(labels, annotations);
  const auto at = labels.find(std::string(kConfigLabel));
  const auto label = at == labels.end() ? std::nullopt : std::optional(at->second);
  const bool is_other = std::exchange(config_label_, label) != label;
  if (has_started_ && is_other && options_.read_config) {
    read_config();
  } else {
    start_node();
  }
  node_->on_node(labels, annotations);
}

// A file that is wrong changes nothing: what was offered stays. False: it is.
bool AgentApp::read_config() {
  loop_.cancel(config_timer_);
  // Files change, too: those of a mounted ConfigMap, a minute or so after it did.
  config_timer_ = loop_.after(options_.config_every, [this] { read_config(); });
  auto config = options_.read_config(config_label_);
  const std::string problem = config ? "" : config.error().what;
  if (!problem.empty() && problem != config_problem_) {
    log_.error("the configuration cannot be read; the one before stays in force",
               {{"label", config_label_.value_or("")}, {"error", problem}});
  }
  if (events_ != nullptr && problem != config_problem_) {
    events_->tell(
        {.is_warning = !problem.empty(),
         .reason = problem.empty() ? "DevicePluginConfigRead" : "DevicePluginConfigFailed",
         .text = problem.empty() ? "the configuration can be read again"
                                 : problem + "; the one before stays in force"});
  }
  config_problem_ = problem;
  if (!config) return false;
  if (config->config == node_->options().plugin) return true;
  log_.info("another configuration", {{"label", config_label_.value_or("")}});
  for (const std::string& warning : config->warnings) {
    log_.warn("a setting has no effect", {{"setting", warning}});
  }
  node_->set_config(std::move(config->config));
  return true;
}

void AgentApp::end_oneshot() {
  on_failure_({.code = Errc::Timeout,
               .what = "the labels could not be written" +
                       (node_writer_ == nullptr || node_writer_->problem().empty()
                            ? ""
                            : ": " + node_writer_->problem())});
}

}  // namespace jogak::agent
