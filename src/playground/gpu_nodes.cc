// SPDX-License-Identifier: Apache-2.0
//
// All nodes share one set of options: MIG instances are resources of their own (strategy mixed),
// nothing listens, nothing is asked unless something happens.
#include "playground/gpu_nodes.h"

#include <algorithm>
#include <utility>

#include "apiserver/controllers/events.h"
#include "apiserver/object/meta.h"
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
               .on_settled = [this](const std::string& node) { on_settled(node); }} {}

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
    it->second->see(node);
    return it->second.get();
  }
  const Doc* const gpus = api::meta(node)["annotations"].find(kSimulatedGpus);
  if (gpus == nullptr) return nullptr;
  const std::string& text = gpus->as_string();
  std::string problem;
  if (!kinds_.contains(text)) {
    if (const auto machine = read_gpus(text, name); !machine) problem = machine.error().what;
  }
  if (problem.empty()) return make_node(node, text);
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
  GpuNode& made =
      *nodes_.emplace(name, std::make_unique<GpuNode>(context_, name, gpus)).first->second;
  Kind& kind = kinds_[gpus];
  const Doc& metadata = api::meta(node);
  const std::string& config = metadata["labels"][agent::kMigConfigLabel].as_string();
  const bool is_plain = config.empty() && metadata["annotations"][kGpuFault].as_string().empty();
  if (!is_plain) {
    // A node that comes with a wish for MIG has its mode on already, as after its first reboot.
    const bool has_mig = !config.empty() && config != "all-disabled";
    made.start(has_mig ? GpuNode::Mig::On : GpuNode::Mig::Off);
  } else if (kind.pattern) {
    tell_later(gpus, name);
  } else if (kind.source.empty()) {
    kind.source = name;
    made.start(GpuNode::Mig::Off);
  } else {
    kind.waiting.push_back(name);
  }
  made.see(node);
  return &made;
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
    return entry.second->is_ready() && entry.second->is_settled();
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
    if (it == nodes_.end() || it->second->is_awake()) continue;
    kind.source = it->first;
    it->second->start(GpuNode::Mig::Off);
  }
}

bool GpuNodes::serve(std::string_view node, int port, net::HttpRequest request,
                     std::shared_ptr<net::ResponseWriter> writer) {
  const auto it = nodes_.find(node);
  if (it == nodes_.end() || port != options_.listen.port) return false;
  it->second->serve(std::move(request), std::move(writer));
  return true;
}

}  // namespace jogak::playground
