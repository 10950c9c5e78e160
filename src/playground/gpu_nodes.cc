// SPDX-License-Identifier: Apache-2.0
//
// All nodes share one set of options: MIG instances are resources of their own (strategy mixed),
// nothing listens, nothing is asked unless something happens.
#include "playground/gpu_nodes.h"

#include <algorithm>
#include <utility>

#include "apiserver/controllers/events.h"
#include "apiserver/kubelet/kubelets.h"
#include "apiserver/object/meta.h"
#include "playground/gpu_config.h"
#include "playground/gpu_machine.h"

namespace jogak::playground {

namespace {

constexpr TimeUs kMigSettle = kMsInUs;  // kubelets here hear at once

agent::AgentOptions simulated_options() {
  agent::AgentOptions options;
  options.plugin.mig_strategy = agent::MigStrategy::Mixed;
  options.plugin.kubelet_socket.clear();
  options.kubelet_socket.clear();
  options.pod_resources_socket.clear();
  options.cdi_folder.clear();
  options.mig_journal.clear();  // it is in memory
  options.mig.may_reboot = true;
  options.mig.cuts_on_demand = true;
  options.mig.settle = kMigSettle;
  options.reads_gpm = true;
  options.registers = false;
  options.listen.is_on = false;
  options.labels = agent::LabelPlace::Node;
  options.sample_every = options.event_every = options.facts_every = 0;
  options.worker.has_thread = false;
  return options;
}

}  // namespace

GpuNodes::GpuNodes(std::unique_ptr<api::Api> api, std::uint64_t seed)
    : api_(std::move(api)),
      log_(api_->loop(), sink_, LogLevel::Error),
      options_(simulated_options()),
      clock_([this] { return turn_time(); }),
      context_{.api = *api_,
               .log = log_,
               .options = options_,
               .turn_time = clock_,
               .seed = seed,
               .on_change =
                   [this](const std::string& node) {
                     if (on_change) on_change(node);
                   },
               .on_settled = [this](const std::string& node) { on_settled(node); }},
      following_(api_->follow("pods", [this](const api::Api::Change& change) { on_pod(change); })) {
}

GpuNodes::~GpuNodes() = default;

TimeUs GpuNodes::turn_time() {
  if (turn_time_ == 0) {
    turn_time_ = api_->now();
    api_->loop().post([this, alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) turn_time_ = 0;
    });
  }
  return turn_time_;
}

kubelet::NodeDevices* GpuNodes::see_node(const Doc& node) {
  const std::string& name = api::name_of(node);
  const auto it = nodes_.find(name);
  if (it != nodes_.end()) {
    see_again(*it->second, node);
    return it->second.get();
  }
  const Doc* const gpus = api::meta(node)["annotations"].find(kSimulatedGpus);
  if (gpus == nullptr) return nullptr;
  const std::string& text = gpus->as_string();
  std::string problem;
  if (!good_gpus_.contains(text)) {
    if (const auto machine = read_gpus(text, name); !machine) problem = machine.error().what;
  }
  if (problem.empty()) {
    good_gpus_.insert(text);
    return make_node(node, text);
  }
  // Said once for each text; writing from within a change is not possible.
  if (refused_[name] == text) return nullptr;
  refused_[name] = text;
  api_->loop().post([this, alive = std::weak_ptr(alive_), node, problem] {
    if (alive.expired()) return;
    controllers::write_event(*api_, "jogak-agent", node, "Warning", "InvalidSimulatedGpus",
                             problem);
  });
  return nullptr;
}

GpuNode* GpuNodes::make_node(const Doc& node, const std::string& gpus) {
  const std::string& name = api::name_of(node);
  refused_.erase(name);
  const Doc& metadata = api::meta(node);
  const Doc& annotations = metadata["annotations"];
  const std::string& config_text = annotations[kPluginConfig].as_string();
  auto config = read_gpu_config(config_text);
  const bool is_plain = config.has_value() &&
                        metadata["labels"][agent::kMigConfigLabel].as_string().empty() &&
                        annotations[kGpuFault].as_string().empty();
  if (!config) config = read_gpu_config("");  // said when the node is seen
  auto made = std::make_unique<GpuNode>(context_, name, gpus, *std::move(config));
  GpuNode& own = *nodes_.emplace(name, std::move(made)).first->second;
  const std::string key = gpus + "\n" + config_text;
  Kind& kind = kinds_[key];
  if (annotations[kubelet::kFault].as_string() == "down") {
    // Nobody is there; it starts when it is back.
  } else if (!is_plain) {
    own.start(GpuNode::first_mig(node));
  } else if (kind.pattern) {
    tell_later(key, name);
  } else if (kind.source.empty()) {
    kind.source = name;
    own.start(GpuNode::Mig::Off);
  } else {
    kind.waiting.push_back(name);
  }
  own.see(node);
  if (asks_.contains(name)) tell_asks(name);
  return &own;
}

void GpuNodes::see_again(GpuNode& known, const Doc& node) {
  known.see(node);
  if (!known.is_down()) return;
  for (auto& [text, kind] : kinds_) {  // nobody is to wait for it
    if (kind.source == api::name_of(node) && !kind.pattern) choose_source(kind);
  }
}

void GpuNodes::on_pod(const api::Api::Change& change) {
  const Doc& pod = *change.object;
  const Doc& annotations = api::meta(pod)["annotations"];
  const std::string& node = pod["spec"]["nodeName"].as_string();
  const std::string& phase = pod["status"]["phase"].as_string();
  const bool is_over = change.type == store::EventType::Deleted || phase == "Succeeded" ||
                       phase == "Failed" || node.empty();
  const agent::PodName name = {.ns = api::namespace_of(pod), .name = api::name_of(pod)};
  std::optional<agent::MigAsk> ask;
  if (!is_over && annotations.is_object()) {
    const auto read = agent::read_mig_ask(name, [&annotations](std::string_view key) {
      return std::string_view(annotations[key].as_string());
    });
    if (read) ask = *read;  // one that cannot be read was refused by the scheduler
  }
  const auto before = asking_.find(name);
  if (before == asking_.end() && !ask) return;
  if (before != asking_.end() && (!ask || before->second != node)) {
    const std::string old = before->second;
    asking_.erase(before);
    asks_[old].erase(name);
    tell_asks(old);
  }
  if (!ask) return;
  agent::MigAsk& known = asks_[node][name];
  asking_[name] = node;
  if (known == *ask) return;
  known = *std::move(ask);
  tell_asks(node);
}

void GpuNodes::tell_asks(const std::string& node) {
  const auto it = nodes_.find(node);
  const auto at = asks_.find(node);
  if (at == asks_.end()) return;
  std::vector<agent::MigAsk> all;
  for (const auto& [name, ask] : at->second) all.push_back(ask);
  if (all.empty()) asks_.erase(at);
  if (it != nodes_.end()) it->second->set_asks(std::move(all));
}

// Each in its own turn of the loop, so that thousands of them hold up nobody.
void GpuNodes::tell_later(const std::string& kind, const std::string& node) {
  api_->loop().post([this, alive = std::weak_ptr(alive_), kind, node] {
    if (alive.expired()) return;
    const auto it = nodes_.find(node);
    const Kind& known = kinds_[kind];
    if (it != nodes_.end() && known.pattern) it->second->adopt(*known.pattern);
  });
}

void GpuNodes::on_settled(const std::string& node) {
  for (auto& [text, kind] : kinds_) {
    if (kind.source != node || kind.pattern) continue;
    GpuNode& source = *nodes_.at(node);
    if (!source.is_as_new()) {  // what it says is not what the others would
      choose_source(kind);
      continue;
    }
    kind.pattern = source.pattern();
    source.sleep();
    for (const std::string& name : std::exchange(kind.waiting, {})) tell_later(text, name);
  }
}

bool GpuNodes::is_settled() const {
  return std::ranges::all_of(nodes_, [](const auto& entry) {
    const GpuNode& node = *entry.second;
    return node.is_down() || (node.is_ready() && node.is_settled());
  });
}

void GpuNodes::forget_node(const std::string& name) {
  nodes_.erase(name);
  refused_.erase(name);
  for (auto& [text, kind] : kinds_) {
    std::erase(kind.waiting, name);
    if (kind.source != name || kind.pattern) continue;
    choose_source(kind);
  }
}

// Another is looked at instead.
void GpuNodes::choose_source(Kind& kind) {
  kind.source.clear();
  while (!kind.waiting.empty() && kind.source.empty()) {
    const auto it = nodes_.find(kind.waiting.back());
    kind.waiting.pop_back();
    if (it == nodes_.end() || it->second->is_awake() || it->second->is_down()) continue;
    kind.source = it->first;
    it->second->start(GpuNode::Mig::Off);
  }
}

bool GpuNodes::serve(std::string_view node, int port, net::HttpRequest request,
                     std::shared_ptr<net::ResponseWriter> writer) {
  const auto it = nodes_.find(node);
  if (it == nodes_.end() || it->second->is_down() || port != options_.listen.port) return false;
  it->second->serve(std::move(request), std::move(writer));
  return true;
}

}  // namespace jogak::playground
