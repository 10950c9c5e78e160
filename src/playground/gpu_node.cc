// SPDX-License-Identifier: Apache-2.0
//
// The agent looks when something happens, and for a while after. Of a node at which nothing ever
// happened there is only what its agent would say.
#include "playground/gpu_node.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "agent/mig/config_label.h"
#include "agent/mig/journal.h"
#include "agent/plugin/allocate.h"
#include "agent/plugin/preferred.h"
#include "agent/run/pod_holds.h"
#include "apiserver/codec/codec.h"
#include "apiserver/controllers/events.h"
#include "apiserver/kubelet/kubelets.h"
#include "apiserver/object/meta.h"
#include "base/check.h"
#include "base/parse_number.h"
#include "base/rng.h"
#include "nvml/nvml_source.h"
#include "nvml/sim/identity.h"
#include "playground/gpu_config.h"
#include "playground/gpu_machine.h"

namespace jogak::playground {

namespace {

using kubelet::DevicePod;
using kubelet::HostResource;

constexpr TimeUs kLookEvery = 2 * kSecondInUs;   // while something is wrong
constexpr TimeUs kLookAfter = 30 * kSecondInUs;  // a lost GPU counts as back after 10 s
constexpr TimeUs kRebootAfter = 2 * kSecondInUs;
constexpr std::string_view kMachineName = "Jogak-Playground";
constexpr std::uint32_t kPciClass3d = 0x030200;  // a 3D controller: nobody is shown anything
constexpr int kSway = 6;                         // percent points

// A patch in the agent's words, as the API takes it.
Result<Doc> doc_of(const std::string& patch) {
  auto parsed = codec::parse_json(patch);
  if (!parsed.has_value()) return std::unexpected(std::move(parsed).error());
  return std::move(parsed->doc);
}

}  // namespace

template <class Fn>
auto GpuNode::guarded(Fn fn) {
  return [alive = alive_, fn = std::move(fn)](auto&&... arguments) mutable {
    if (*alive) fn(std::forward<decltype(arguments)>(arguments)...);
  };
}

GpuNode::GpuNode(const GpuNodeContext& context, std::string name, std::string gpus,
                 agent::PluginConfig config)
    : context_(context),
      name_(std::move(name)),
      gpus_(std::move(gpus)),
      config_(std::move(config)) {}

GpuNode::~GpuNode() {
  *alive_ = false;
  context_.api.loop().cancel(look_timer_);
  context_.api.loop().cancel(reboot_timer_);
}

// ---- awake and asleep ------------------------------------------------------------------------

void GpuNode::start(Mig mig) {
  auto spec = read_gpus(gpus_, name_);
  JOGAK_CHECK(spec.has_value(), "{}", spec.error().what);  // whoever made the node read it, too
  if (mig == Mig::On) turn_mig_on(*spec);
  auto machine = nvml::sim::Machine::create(*std::move(spec), {.now = context_.turn_time});
  JOGAK_CHECK(machine.has_value(), "{}", machine.error().what);
  machine_ = *std::move(machine);
  is_uncut_ = true;
  mig_journal_ = std::make_shared<agent::MemoryJournal>();
  start_agent();
}

GpuNode::Mig GpuNode::first_mig(const Doc& node) {
  const std::string& config = api::meta(node)["labels"][agent::kMigConfigLabel].as_string();
  return config.empty() || config == "all-disabled" ? Mig::Off : Mig::On;
}

bool GpuNode::wake() {
  if (is_down_) return false;
  if (!is_awake()) start(Mig::Off);
  return is_ready();
}

bool GpuNode::is_as_new() const {
  return pods_.empty() && faults_.empty() && mig_labels_ == agent::MigLabels{} && asks_.empty() &&
         !is_other_config_ && exporter_ == nullptr && look_timer_ == 0;
}

void GpuNode::sleep() {
  JOGAK_CHECK(is_as_new());
  agent_.reset();
  machine_.reset();
  offer_.reset();
  mig_journal_.reset();
  wish_ = {};
}

GpuPattern GpuNode::pattern() const {
  GpuPattern pattern{.uuids = {}, .wish = wish_, .patches = {}, .resources = resources_};
  auto patches = agent::node_patches(R"({"metadata":{"name":"any"}})", wish_, context_.api.now());
  JOGAK_CHECK(patches.has_value());
  pattern.patches = *std::move(patches);
  for (const nvml::sim::GpuSpec& gpu : machine_->spec().gpus) pattern.uuids.push_back(gpu.uuid);
  return pattern;
}

void GpuNode::adopt(const GpuPattern& pattern) {
  if (is_awake() || is_down_ || has_settled_) return;
  std::vector<std::string> uuids;
  for (std::size_t i = 0; i < pattern.uuids.size(); ++i) {
    uuids.push_back(nvml::sim::gpu_uuid(name_, static_cast<int>(i)));
  }
  const auto rename = [&](std::string& text) {
    for (std::size_t i = 0; i < uuids.size(); ++i) {
      for (std::size_t at = text.find(pattern.uuids[i]); at != std::string::npos;
           at = text.find(pattern.uuids[i], at + uuids[i].size())) {
        text.replace(at, pattern.uuids[i].size(), uuids[i]);
      }
    }
  };
  resources_ = pattern.resources;
  for (HostResource& resource : resources_) {
    for (kubelet::HostDevice& device : resource.devices) rename(device.id);
  }
  has_settled_ = true;
  if (was_written_) {
    agent::NodeWish wish = pattern.wish;
    for (auto& [key, text] : wish.annotations) rename(text);
    write(wish);
  } else {
    agent::NodePatches patches = pattern.patches;
    rename(patches.node);
    write(patches);
  }
  context_.on_change(name_);
}

void GpuNode::start_agent() {
  Loop& loop = context_.api.loop();
  agent::AgentOptions options = context_.options;
  options.node_name = name_;
  options.plugin = config_;
  options.render.hostname = name_;
  agent::HostView host;
  host.mig_journal = mig_journal_;
  host.machine = kMachineName;
  host.pci_classes = [](const nvml::NodeFacts& facts) {
    std::map<std::string, std::uint32_t> classes;
    for (const nvml::GpuFacts& gpu : facts.gpus) classes[gpu.pci_bus_id] = kPciClass3d;
    return classes;
  };
  host.owners = [this](const std::vector<std::int64_t>& pids) { return owners(pids); };
  agent::NodePorts ports;
  ports.offer = [this](agent::PluginSnapshotPtr offer) { on_offer(std::move(offer)); };
  ports.wish = [this](const agent::NodeWish& wish) { on_wish(wish); };
  ports.holds = [this](const std::map<agent::PodName, std::string>& holds) { on_holds(holds); };
  ports.note = [this](const agent::NodeNote& note) {
    context_.api.loop().post(guarded([this, note] { tell(note); }));
  };
  agent_ = std::make_unique<agent::NodeAgent>(
      loop, context_.log, nvml::NvmlSource::of_machine(machine_, [&loop] { return loop.now(); }),
      std::move(options), std::move(host), std::move(ports));
  agent_->start();
  if (!asks_.empty()) agent_->on_asks(asks_);
}

// ---- the Node object -------------------------------------------------------------------------

void GpuNode::see(const Doc& node) {
  was_written_ = api::meta(node)["annotations"].has(agent::kOwnedLabels);
  const bool is_down = api::meta(node)["annotations"][kubelet::kFault].as_string() == "down";
  if (is_down != is_down_) {
    is_down_ = is_down;
    is_down ? fall_silent() : come_back(node);
  }
  if (is_down_) return;  // what changes meanwhile is seen when it is back
  look_at_config(node);
  look_at_mig(node);
  const std::string& faults = api::meta(node)["annotations"][kGpuFault].as_string();
  if (faults == faults_) return;
  faults_ = faults;
  if (!is_awake()) start(Mig::Off);
  // First a look at what is well: a count that begins anew is seen by what it was before.
  agent_->look(guarded([this] { apply_faults(); }));
}

void GpuNode::fall_silent() {
  Loop& loop = context_.api.loop();
  loop.cancel(std::exchange(look_timer_, 0));
  loop.cancel(std::exchange(reboot_timer_, 0));
  exporter_.reset();
  agent_.reset();
}

void GpuNode::come_back(const Doc& node) {
  if (machine_ != nullptr) {
    if (mig_labels_.state == agent::kMigRebooting) return reboot();
    restart_agent();
    if (has_faults_) agent_->look(guarded([this] { keep_looking(); }));
  } else if (!has_settled_) {
    start(first_mig(node));
  }
}

// A configuration that is wrong changes nothing: what was offered stays.
void GpuNode::look_at_config(const Doc& node) {
  const std::string& text = api::meta(node)["annotations"][kPluginConfig].as_string();
  if (text == config_text_) return;
  config_text_ = text;
  auto config = read_gpu_config(text);
  if (!config) return warn_soon("InvalidPluginConfig", config.error().what);
  if (*config == config_) return;
  config_ = *std::move(config);
  is_other_config_ = true;
  if (!is_awake()) return start(Mig::Off);
  agent_->set_config(config_);
}

void GpuNode::look_at_mig(const Doc& node) {
  const Doc& labels = api::meta(node)["labels"];
  const Doc& annotations = api::meta(node)["annotations"];
  agent::MigLabels now{.config = labels[agent::kMigConfigLabel].as_string(),
                       .state = labels[agent::kMigConfigStateLabel].as_string(),
                       .state_of = annotations[agent::kMigConfigStateOf].as_string()};
  if (now == mig_labels_) return;
  mig_labels_ = std::move(now);
  if (!is_awake()) start(Mig::Off);
  tell_labels();
  settle_soon();
  Loop& loop = context_.api.loop();
  loop.cancel(std::exchange(reboot_timer_, 0));
  if (mig_labels_.state != agent::kMigRebooting) return;
  reboot_timer_ = loop.after(kRebootAfter, guarded([this] { reboot(); }));
}

void GpuNode::tell_labels() {
  const auto some = [](std::initializer_list<std::pair<std::string_view, std::string>> list) {
    std::map<std::string, std::string> texts;
    for (const auto& [key, value] : list) {
      if (!value.empty()) texts.emplace(key, value);
    }
    return texts;
  };
  // A node that is older than this process says what became of a machine that is no more.
  if (std::exchange(is_uncut_, false)) {
    return agent_->on_node(some({{agent::kMigConfigLabel, mig_labels_.config}}), {});
  }
  agent_->on_node(some({{agent::kMigConfigLabel, mig_labels_.config},
                        {agent::kMigConfigStateLabel, mig_labels_.state}}),
                  some({{agent::kMigConfigStateOf, mig_labels_.state_of}}));
}

// Boards that change their MIG mode at a reset have it then, and a young agent finds it. What runs
// on other GPUs is spared, which a real reboot would not do.
void GpuNode::reboot() {
  reboot_timer_ = 0;
  for (const nvml::sim::GpuState& gpu : machine_->gpus()) {
    if (gpu.mig_enabled != gpu.mig_pending) machine_->reset_gpu(gpu.index);
  }
  restart_agent();
}

// On the machine as it is.
void GpuNode::restart_agent() {
  exporter_.reset();
  start_agent();
  tell_labels();
  tell_holdings_soon();
}

void GpuNode::apply_faults() {
  const auto faults =
      nvml::sim::parse_standing_faults(faults_, static_cast<int>(machine_->spec().gpus.size()));
  if (!faults) {
    warn("InvalidGpuFault", fmt::format("{}: {}", kGpuFault, faults.error().what));
    return;
  }
  machine_->stand(*faults);
  has_faults_ = !faults->empty();
  looks_until_ = context_.api.now() + kLookAfter;
  agent_->look(guarded([this] { keep_looking(); }));
}

// While something is wrong, and a while after: facts of health come and go with time.
void GpuNode::keep_looking() {
  const auto snapshot = agent_->snapshot();
  const bool is_well = std::ranges::all_of(
      snapshot->health->gpus, [](const agent::GpuHealthView& gpu) { return gpu.facts.empty(); });
  context_.api.loop().cancel(std::exchange(look_timer_, 0));
  if (!has_faults_ && is_well && context_.api.now() >= looks_until_) return;
  look_timer_ = context_.api.loop().after(
      kLookEvery, guarded([this] { agent_->look(guarded([this] { keep_looking(); })); }));
}

void GpuNode::on_wish(const agent::NodeWish& wish) {
  if (!has_settled_) wish_ = wish;
  write(wish);
}

void GpuNode::write(const agent::NodeWish& wish) {
  const auto node = context_.api.get("nodes", "", name_);
  if (!node.has_value()) return;  // it has just gone
  std::string json;
  node->append_json(json);
  const auto patches = agent::node_patches(json, wish, context_.api.now());
  if (!patches) return warn("AgentFailed", patches.error().what);
  write(*patches);
}

void GpuNode::write(const agent::NodePatches& patches) {
  const auto put = [&](const std::string& body, api::PatchType type, std::string_view part) {
    if (body.empty()) return;
    const auto patch = doc_of(body);
    if (!patch) return warn("AgentFailed", patch.error().what);
    const auto written = context_.api.patch("nodes", "", name_, type, *patch, part);
    if (!written.has_value()) warn("AgentFailed", written.error().message);
  };
  put(patches.node, api::PatchType::Merge, "");
  put(patches.status, api::PatchType::Strategic, "status");
}

// From within a change nothing can be written.
void GpuNode::warn_soon(std::string_view reason, const std::string& message) {
  context_.api.loop().post(
      guarded([this, reason = std::string(reason), message] { warn(reason, message); }));
}

void GpuNode::set_asks(std::vector<agent::MigAsk> asks) {
  if (asks == asks_) return;
  asks_ = std::move(asks);
  if (is_down_) return;
  if (!is_awake()) return start(Mig::Off);
  agent_->on_asks(asks_);
}

void GpuNode::warn(std::string_view reason, std::string_view message) {
  tell({.is_warning = true, .reason = std::string(reason), .text = std::string(message)});
}

void GpuNode::tell(const agent::NodeNote& note) {
  const auto node = context_.api.get("nodes", "", name_);
  if (!node.has_value()) return;
  controllers::write_event(context_.api, "jogak-agent", *node,
                           note.is_warning ? "Warning" : "Normal", note.reason, note.text);
}

// ---- the kubelet's questions -----------------------------------------------------------------

void GpuNode::on_offer(agent::PluginSnapshotPtr offer) {
  offer_ = std::move(offer);
  resources_.clear();
  for (const agent::PluginResource& resource : offer_->inventory.resources) {
    HostResource& made =
        resources_.emplace_back(HostResource{.name = resource.name, .devices = {}});
    for (const agent::PluginDevice& device : resource.devices) {
      made.devices.push_back({.id = device.id, .is_healthy = device.is_healthy});
    }
  }
  if (has_settled_) return context_.on_change(name_);
  settle_soon();
}

// Looked at when the agent has done what it is at: it offers what there is before it cuts.
void GpuNode::settle_soon() {
  context_.api.loop().post(guarded([this] {
    if (has_settled_ || !is_settled()) return;
    has_settled_ = true;
    context_.on_change(name_);
    context_.on_settled(name_);
  }));
}

bool GpuNode::is_settled() const {
  if (is_down_) return true;
  if (!is_awake()) return has_settled_;
  const bool waits_for_mig = !mig_labels_.config.empty() &&
                             mig_labels_.state != agent::kMigSuccess &&
                             mig_labels_.state != agent::kMigFailed;
  return offer_ != nullptr && !waits_for_mig && agent_->mig().is_resting();
}

bool GpuNode::manages(std::string_view resource) const {
  return resource.starts_with("nvidia.com/");
}

std::vector<std::string> GpuNode::prefer(const std::string& resource,
                                         const std::vector<std::string>& available,
                                         const std::vector<std::string>& must_include, int size) {
  const agent::PluginResource* const found =
      offer_ == nullptr ? nullptr : offer_->inventory.find(resource);
  if (found == nullptr) return {};
  return agent::prefer(*found, offer_->gpus, offer_->config.shared_policy,
                       {.available = available, .must_include = must_include, .size = size});
}

Result<std::map<std::string, std::string>> GpuNode::allocate(const std::string& resource,
                                                             const std::vector<std::string>& ids) {
  if (offer_ == nullptr) return fail(Errc::Unavailable, "the GPUs are not listed yet");
  JOGAK_TRY(agent::ContainerAnswer answer, agent::allocate(*offer_, resource, ids));
  return std::move(answer.env);
}

void GpuNode::set_pod(const DevicePod& pod) {
  JOGAK_CHECK(is_awake(), "a pod holds devices of a node that nobody asked");
  Pod& mine = pods_[pod.uid];
  if (mine.pod.uid.empty()) {
    const auto holds = pod.annotations.find(agent::kHoldsAnnotation);
    if (holds != pod.annotations.end()) mine.told_holds = holds->second;
  }
  const bool was_running = mine.pod.is_running;
  mine.pod = pod;
  if (pod.is_running && !was_running) start_processes(mine);
  if (!pod.is_running && was_running) end_processes(mine);
  tell_holdings_soon();
}

void GpuNode::forget_pod(const std::string& uid) {
  const auto it = pods_.find(uid);
  if (it == pods_.end()) return;
  end_processes(it->second);
  pods_.erase(it);
  tell_holdings_soon();
}

// ---- who holds what --------------------------------------------------------------------------

// Once for all pods that come and go in one turn.
void GpuNode::tell_holdings_soon() {
  if (std::exchange(tells_holdings_, true)) return;
  context_.api.loop().post(guarded([this] { tell_holdings(); }));
}

// What ended is seen to have ended before its devices are said to be free: nobody samples here once
// a second, and what an old sample shows would stand in the way of another layout for ever.
void GpuNode::tell_holdings() {
  tells_holdings_ = false;
  if (!is_awake()) return;  // the agent is told when it is back
  if (!std::exchange(has_ended_some_, false)) return tell_holdings_now();
  agent_->look(guarded([this] { tell_holdings_now(); }));
}

void GpuNode::tell_holdings_now() {
  std::vector<agent::Holding> holdings;
  for (const auto& [uid, pod] : pods_) {
    for (const kubelet::HeldDevices& held : pod.pod.held) {
      for (const std::string& id : held.ids) {
        holdings.push_back({.resource = held.resource,
                            .device_id = id,
                            .holder = {.pod_namespace = pod.pod.ns,
                                       .pod = pod.pod.name,
                                       .container = held.container,
                                       .pod_uid = uid}});
      }
    }
  }
  agent_->on_holdings(std::move(holdings));
}

void GpuNode::on_holds(const std::map<agent::PodName, std::string>& holds) {
  for (auto& [uid, pod] : pods_) {
    const auto it = holds.find({.ns = pod.pod.ns, .name = pod.pod.name});
    if (it == holds.end() || it->second == pod.told_holds) continue;
    pod.told_holds = it->second;
    const auto patch = doc_of(agent::pod_holds_patch(name_, it->second));
    if (!patch) continue;
    // Refused when the pod has gone meanwhile: then nobody asks.
    const auto written =
        context_.api.patch("pods", pod.pod.ns, pod.pod.name, api::PatchType::Merge, *patch);
    static_cast<void>(written);
  }
}

agent::ProcessOwners GpuNode::owners(const std::vector<std::int64_t>& pids) const {
  agent::ProcessOwners owners;
  for (const std::int64_t pid : pids) {
    const auto it = holders_.find(pid);
    if (it != holders_.end()) owners.emplace(pid, it->second);
  }
  return owners;
}

// ---- what runs -------------------------------------------------------------------------------

// One process a device: how busy is the pod's own affair, or drawn from its uid; memory follows.
void GpuNode::start_processes(Pod& pod) {
  Rng rng(context_.seed, "playground/gpu-use/" + pod.pod.uid);
  std::int64_t busy = 55 + static_cast<std::int64_t>(rng.below(40));
  const auto wanted = pod.pod.annotations.find(kGpuUtil);
  if (wanted != pod.pod.annotations.end()) {
    std::string_view text = wanted->second;
    if (text.ends_with('%')) text.remove_suffix(1);
    if (const auto value = parse_int(text, 0, 100)) busy = *value;
  }
  const std::int64_t memory_percent = 50 + static_cast<std::int64_t>(rng.below(40));
  for (const kubelet::HeldDevices& held : pod.pod.held) {
    const agent::PluginResource* const resource = offer_->inventory.find(held.resource);
    if (resource == nullptr) continue;
    for (const std::string& id : held.ids) {
      const agent::PluginDevice* const device = resource->find(id);
      if (device == nullptr) continue;
      const nvml::GpuFacts& gpu = offer_->gpus[static_cast<std::size_t>(device->gpu)];
      std::int64_t memory_mib = gpu.memory_mib;
      for (const nvml::MigInstanceFacts& instance : gpu.mig_instances) {
        if (device->is_mig() && instance.gi_id == device->gi_id) memory_mib = instance.memory_mib;
      }
      const std::int64_t pid = next_pid_++;
      nvml::sim::ProcessSpec process;
      process.pid = pid;
      process.name = "python3";
      process.memory_mib = memory_mib * memory_percent / 100 / resource->replicas;
      process.sm_percent = static_cast<int>(busy / resource->replicas);
      process.memory_percent = static_cast<int>(busy / resource->replicas * 6 / 10);
      process.sway_percent = busy == 0 || busy == 100 ? 0 : kSway;
      process.from = machine_->now();
      machine_->start_process(gpu.index, std::move(process), device->gi_id, device->ci_id);
      pod.pids.push_back(pid);
      holders_[pid] = {.pod_namespace = pod.pod.ns,
                       .pod = pod.pod.name,
                       .container = held.container,
                       .pod_uid = pod.pod.uid};
    }
  }
}

void GpuNode::end_processes(Pod& pod) {
  for (const std::int64_t pid : pod.pids) {
    machine_->end_process(pid);
    holders_.erase(pid);
    has_ended_some_ = true;
  }
  pod.pids.clear();
}

// ---- metrics ---------------------------------------------------------------------------------

void GpuNode::serve(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) {
  if (!is_awake()) start(Mig::Off);
  agent_->look(guarded([this, request = std::move(request), writer = std::move(writer)]() mutable {
    if (exporter_ == nullptr) {
      exporter_ = std::make_unique<agent::Exporter>(
          agent::ExporterOptions{.render = agent_->options().render}, &agent_->registry(),
          [this] { return context_.api.now(); });
    }
    exporter_->publish(*agent_->snapshot());
    exporter_->handler()(std::move(request), std::move(writer));
  }));
}

}  // namespace jogak::playground
