// SPDX-License-Identifier: Apache-2.0
//
// GPUs by uuid: an index is only a place, and moves when one is lost.
#include "agent/health/node_health.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace jogak::agent {

namespace {

bool has(const nvml::NodeFacts& facts, std::string nvml::GpuFacts::* field,
         const std::string& value) {
  return std::ranges::find(facts.gpus, value, field) != facts.gpus.end();
}

}  // namespace

const HealthFact* GpuHealthView::why_not(int gi_id) const {
  for (const HealthFact& fact : facts) {
    if (fact.stops_use && (fact.gi_id < 0 || fact.gi_id == gi_id)) return &fact;
  }
  return nullptr;
}

const GpuHealthView* NodeHealthView::find(std::string_view uuid) const {
  const auto at = std::ranges::find(gpus, uuid, &GpuHealthView::uuid);
  return at == gpus.end() ? nullptr : &*at;
}

void NodeHealth::on_facts(const nvml::NodeFacts& facts, TimeUs now) {
  if (!driver_problem_.empty()) {
    driver_problem_.clear();
    driver_problem_since_ = now;
    ++changes_;
  }
  const bool driver_reloaded = generation_ && *generation_ != facts.generation;
  generation_ = facts.generation;
  for (auto& [uuid, gpu] : gpus_) {
    if (has(facts, &nvml::GpuFacts::uuid, uuid)) continue;
    if (gpu.is_listed) {
      gpu.is_listed = false;
      gpu.unlisted_at = now;
      ++changes_;
    }
    gpu.health.on_unlisted(now);
  }
  std::vector<int> nameless;
  for (const nvml::GpuFacts& fact : facts.gpus) {
    if (fact.uuid.empty()) {  // nobody can be given it
      nameless.push_back(fact.index);
      continue;
    }
    const auto [at, is_new] = gpus_.try_emplace(fact.uuid, GpuHealth(options_));
    Gpu& gpu = at->second;
    if (is_new || !gpu.is_listed || gpu.index != fact.index || gpu.pci_bus_id != fact.pci_bus_id) {
      ++changes_;
    }
    gpu.is_listed = true;
    gpu.index = fact.index;
    gpu.pci_bus_id = fact.pci_bus_id;
    gpu.health.on_facts(fact, driver_reloaded, now);
  }
  if (nameless != nameless_) {
    nameless_ = std::move(nameless);
    ++changes_;
  }
  drop_replaced(facts);
}

// A board that was exchanged leaves its place to another; the rest is bounded by age.
void NodeHealth::drop_replaced(const nvml::NodeFacts& facts) {
  const auto drop = [&](auto at) {
    changes_ += at->second.health.changes() + 1;  // the sum in changes() must not fall
    return gpus_.erase(at);
  };
  std::size_t unlisted = 0;
  for (auto at = gpus_.begin(); at != gpus_.end();) {
    const Gpu& gpu = at->second;
    const bool is_replaced =
        !gpu.is_listed && has(facts, &nvml::GpuFacts::pci_bus_id, gpu.pci_bus_id);
    unlisted += gpu.is_listed || is_replaced ? 0U : 1U;
    at = is_replaced ? drop(at) : std::next(at);
  }
  for (; unlisted > kUnlistedMax; --unlisted) {
    auto oldest = gpus_.end();
    for (auto at = gpus_.begin(); at != gpus_.end(); ++at) {
      if (at->second.is_listed) continue;
      if (oldest == gpus_.end() || at->second.unlisted_at < oldest->second.unlisted_at) {
        oldest = at;
      }
    }
    drop(oldest);
  }
}

void NodeHealth::on_facts_failure(const Error& error, TimeUs now) {
  if (driver_problem_ == error.what) return;
  if (driver_problem_.empty()) driver_problem_since_ = now;
  driver_problem_ = error.what;
  ++changes_;
}

void NodeHealth::on_sample(const nvml::GpuSample& sample) {
  const auto at = gpus_.find(sample.uuid);
  if (at != gpus_.end()) at->second.health.on_sample(sample);
}

void NodeHealth::on_failure(const std::string& uuid, const Error& error, TimeUs now) {
  const auto at = gpus_.find(uuid);
  if (at != gpus_.end()) at->second.health.on_failure(error, now);
}

void NodeHealth::on_event(const nvml::GpuEvent& event) {
  const bool is_of_one =
      event.kind == nvml::GpuEventKind::GpuLost || event.kind == nvml::GpuEventKind::GpuRecovered;
  if (event.uuid.empty() && is_of_one) return;
  for (auto& [uuid, gpu] : gpus_) {
    if (event.uuid.empty() || event.uuid == uuid) gpu.health.on_event(event);
  }
}

void NodeHealth::on_tick(TimeUs now) {
  for (auto& [uuid, gpu] : gpus_) gpu.health.on_tick(now);
}

bool NodeHealth::clear(std::string_view uuid, TimeUs now) {
  bool is_found = uuid.empty();
  for (auto& [name, gpu] : gpus_) {
    if (!uuid.empty() && name != uuid) continue;
    gpu.health.clear(now);
    is_found = true;
  }
  return is_found;
}

std::uint64_t NodeHealth::changes() const {
  std::uint64_t sum = changes_;
  for (const auto& [uuid, gpu] : gpus_) sum += gpu.health.changes();
  return sum;
}

NodeHealthView NodeHealth::view() const {
  NodeHealthView view = {.driver_problem = driver_problem_,
                         .driver_problem_since = driver_problem_since_,
                         .gpus = {},
                         .nameless = nameless_};
  view.gpus.reserve(gpus_.size());
  for (const auto& [uuid, gpu] : gpus_) {
    view.gpus.push_back({.uuid = uuid,
                         .index = gpu.index,
                         .pci_bus_id = gpu.pci_bus_id,
                         .is_listed = gpu.is_listed,
                         .facts = gpu.health.facts()});
  }
  std::ranges::sort(view.gpus, {}, [](const GpuHealthView& gpu) {
    return std::tuple(!gpu.is_listed, gpu.index, std::string_view(gpu.uuid));
  });
  return view;
}

}  // namespace jogak::agent
