// SPDX-License-Identifier: Apache-2.0
//
// Windows are shared with snapshots and copied before they change while one is out (copy on
// write), because events are rare and snapshots are not.
#include "agent/model/node_model.h"

#include <algorithm>
#include <utility>

namespace jogak::agent {

namespace {

constexpr int kClockReasons = 9;

// The window, unshared.
EventWindow& own(std::shared_ptr<EventWindow>& window) {
  if (window.use_count() > 1) window = std::make_shared<EventWindow>(*window);
  return *window;
}

void expire(std::shared_ptr<EventWindow>& window, TimeUs now) {
  if (!window->recent().empty()) own(window).expire(now);
}

// The difference of the two counts, in the unit that DCGM publishes. Zeros where a count is missing
// or began anew.
LinkRate link_rate(const nvml::LinkCounters& before, const nvml::LinkCounters& after, TimeUs span) {
  if (!before.tx_bytes || !before.rx_bytes || !after.tx_bytes || !after.rx_bytes) return {};
  const std::int64_t tx = *after.tx_bytes - *before.tx_bytes;
  const std::int64_t rx = *after.rx_bytes - *before.rx_bytes;
  if (span <= 0 || tx < 0 || rx < 0) return {};
  const auto rate = [&](std::int64_t bytes) {
    const std::int64_t kib = bytes / 1024;
    return static_cast<std::int64_t>(static_cast<double>(kib) * kSecondInUs /
                                     static_cast<double>(span) / 1000);
  };
  return {.tx = rate(tx), .rx = rate(rx), .both = rate(tx + rx)};
}

}  // namespace

const GpuView* NodeSnapshot::find(std::string_view uuid) const {
  const auto at = std::ranges::find(gpus, uuid, &GpuView::uuid);
  return at == gpus.end() ? nullptr : &*at;
}

NodeModel::NodeModel(NodeModelOptions options)
    : options_(std::move(options)),
      health_(options_.health),
      facts_(std::make_shared<nvml::NodeFacts>()),
      holdings_(std::make_shared<std::vector<Holding>>()),
      holders_(std::make_shared<HolderIndex>()),
      owners_(std::make_shared<ProcessOwners>()),
      pods_(std::make_shared<PodTable>()) {}

NodeModel::Gpu* NodeModel::find(std::string_view uuid) {
  const auto at = gpus_.find(uuid);
  return at == gpus_.end() ? nullptr : &at->second;
}

// ---- what comes in ---------------------------------------------------------------------------

void NodeModel::on_facts(nvml::NodeFacts facts, TimeUs now) {
  health_.on_facts(facts, now);
  for (const nvml::GpuFacts& fact : facts.gpus) {
    if (fact.uuid.empty()) continue;
    const auto [at, is_new] = gpus_.try_emplace(fact.uuid);
    if (is_new) {
      at->second.xids = std::make_shared<EventWindow>(options_.xid_window);
      at->second.clock_events = std::make_shared<EventWindow>(options_.clock_event_window);
    }
    if (fact.is_lost) at->second.sample = nullptr;
  }
  // Health decides how long those that are gone are remembered.
  const NodeHealthView view = health_.view();
  std::erase_if(gpus_, [&](const auto& entry) { return view.find(entry.first) == nullptr; });
  for (const GpuHealthView& gpu : view.gpus) {
    if (!gpu.is_listed) gpus_.at(gpu.uuid).sample = nullptr;
  }
  const bool is_same = has_facts_ && *facts_ == facts;
  has_facts_ = true;
  if (is_same) return;
  facts_ = std::make_shared<const nvml::NodeFacts>(std::move(facts));
  ++structure_;
  index_holders();
}

void NodeModel::on_facts_failure(const Error& error, TimeUs now) {
  health_.on_facts_failure(error, now);
  for (auto& [uuid, gpu] : gpus_) gpu.sample = nullptr;
}

void NodeModel::on_sample(nvml::GpuSample sample) {
  Gpu* const gpu = find(sample.uuid);
  if (gpu == nullptr) return;
  health_.on_sample(sample);
  if (sample.is_lost) {
    gpu->sample = nullptr;
    gpu->last_failure = "gpu lost";
    return;
  }
  measure_links(*gpu, sample);
  count_clock_events(*gpu, sample);
  gpu->last_sample = sample.time;
  gpu->last_failure.clear();
  gpu->sample = std::make_shared<const nvml::GpuSample>(std::move(sample));
}

void NodeModel::on_sample_failure(const std::string& uuid, const Error& error, TimeUs now) {
  health_.on_failure(uuid, error, now);
  Gpu* const gpu = find(uuid);
  if (gpu == nullptr) return;
  gpu->last_failure = error.what;
  // A value that is not measured any more must not look like one that is.
  gpu->sample = nullptr;
}

void NodeModel::on_event(const nvml::GpuEvent& event) {
  health_.on_event(event);
  Gpu* const gpu = find(event.uuid);
  if (gpu == nullptr) return;
  if (event.kind == nvml::GpuEventKind::GpuLost) gpu->sample = nullptr;
  if (event.kind != nvml::GpuEventKind::Xid) return;
  gpu->last_xid = event.code;
  gpu->last_xid_time = event.time;
  own(gpu->xids).add(event.code, event.time);
}

void NodeModel::measure_links(Gpu& gpu, const nvml::GpuSample& sample) {
  const nvml::NvlinkSample* const before = gpu.sample == nullptr ? nullptr : &gpu.sample->nvlink;
  const TimeUs span = gpu.sample == nullptr ? 0 : sample.time - gpu.sample->time;
  gpu.nvlink_rate = before == nullptr ? LinkRate{} : link_rate(*before, sample.nvlink, span);
  gpu.link_rates = nullptr;
  if (sample.nvlink.links.empty()) return;
  auto rates = std::make_shared<std::vector<LinkRate>>(sample.nvlink.links.size());
  const std::size_t known = before == nullptr ? 0 : before->links.size();
  for (std::size_t i = 0; i < std::min(known, rates->size()); ++i) {
    (*rates)[i] = link_rate(before->links[i], sample.nvlink.links[i], span);
  }
  gpu.link_rates = std::move(rates);
}

void NodeModel::count_clock_events(Gpu& gpu, const nvml::GpuSample& sample) const {
  expire(gpu.xids, sample.time);
  expire(gpu.clock_events, sample.time);
  if (!sample.throttle_reasons) return;
  const std::uint64_t began = *sample.throttle_reasons & ~gpu.throttle_reasons;
  gpu.throttle_reasons = *sample.throttle_reasons;
  for (int bit = 0; bit < kClockReasons && began != 0; ++bit) {
    if ((began >> bit & 1U) == 0) continue;
    own(gpu.clock_events).add(static_cast<std::uint64_t>(bit), sample.time);
  }
}

void NodeModel::on_holdings(std::vector<Holding> holdings, TimeUs /*now*/) {
  holdings_problem_.clear();
  std::ranges::sort(holdings);
  if (*holdings_ == holdings) return;
  holdings_ = std::make_shared<const std::vector<Holding>>(std::move(holdings));
  ++structure_;
  index_holders();
}

void NodeModel::on_holdings_failure(const Error& error, TimeUs /*now*/) {
  holdings_problem_ = error.what;
}

void NodeModel::index_holders() {
  holders_ = std::make_shared<const HolderIndex>(*facts_, *holdings_);
}

void NodeModel::on_owners(ProcessOwners owners) {
  if (*owners_ == owners) return;
  owners_ = std::make_shared<const ProcessOwners>(std::move(owners));
  ++structure_;
}

void NodeModel::on_pods(PodTable pods) {
  if (*pods_ == pods) return;
  pods_ = std::make_shared<const PodTable>(std::move(pods));
  ++structure_;
}

void NodeModel::on_tick(TimeUs now) {
  health_.on_tick(now);
  for (auto& [uuid, gpu] : gpus_) {
    expire(gpu.xids, now);
    expire(gpu.clock_events, now);
  }
}

bool NodeModel::clear_health(std::string_view uuid, TimeUs now) { return health_.clear(uuid, now); }

// ---- what goes out ---------------------------------------------------------------------------

std::vector<std::int64_t> NodeModel::pids() const {
  std::vector<std::int64_t> pids;
  for (const auto& [uuid, gpu] : gpus_) {
    if (gpu.sample == nullptr || !gpu.sample->processes) continue;
    for (const nvml::ProcessFacts& process : *gpu.sample->processes) pids.push_back(process.pid);
  }
  std::ranges::sort(pids);
  pids.erase(std::ranges::unique(pids).begin(), pids.end());
  return pids;
}

std::shared_ptr<const NodeSnapshot> NodeModel::snapshot(TimeUs now) {
  if (health_view_changes_ != health_.changes()) {
    health_view_changes_ = health_.changes();
    health_view_ = std::make_shared<const NodeHealthView>(health_.view());
  }
  auto snapshot = std::make_shared<NodeSnapshot>();
  snapshot->time = now;
  snapshot->structure = structure_;
  snapshot->facts = facts_;
  snapshot->has_facts = has_facts_;
  snapshot->health = health_view_;
  snapshot->health_changes = *health_view_changes_;
  snapshot->holdings = holdings_;
  snapshot->holders = holders_;
  snapshot->holdings_problem = holdings_problem_;
  snapshot->owners = owners_;
  snapshot->pods = pods_;
  snapshot->gpus.reserve(health_view_->gpus.size());
  const auto add = [&](const std::string& uuid, const nvml::GpuFacts* facts) {
    const auto at = gpus_.find(uuid);
    if (at == gpus_.end()) return;
    const Gpu& gpu = at->second;
    snapshot->gpus.push_back({.uuid = uuid,
                              .facts = facts,
                              .sample = gpu.sample,
                              .last_sample = gpu.last_sample,
                              .last_failure = gpu.last_failure,
                              .last_xid = gpu.last_xid,
                              .last_xid_time = gpu.last_xid_time,
                              .xids = gpu.xids,
                              .clock_events = gpu.clock_events,
                              .nvlink_rate = gpu.nvlink_rate,
                              .link_rates = gpu.link_rates});
  };
  for (const nvml::GpuFacts& facts : facts_->gpus) add(facts.uuid, &facts);
  for (const GpuHealthView& gpu : health_view_->gpus) {
    if (!gpu.is_listed) add(gpu.uuid, nullptr);
  }
  return snapshot;
}

}  // namespace jogak::agent
