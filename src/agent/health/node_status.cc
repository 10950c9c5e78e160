// SPDX-License-Identifier: Apache-2.0
//
// A table of conditions, each with the facts that it takes.
#include "agent/health/node_status.h"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

namespace jogak::agent {

namespace {

using enum HealthKind;

constexpr std::size_t kMessageBytesMax = 1024;

struct ConditionRule {
  std::string_view type;
  std::string_view good_reason;
  std::string_view good_message;
  bool (*takes)(const HealthFact& fact);
};

bool is_any(HealthKind kind, std::initializer_list<HealthKind> kinds) {
  return std::ranges::find(kinds, kind) != kinds.end();
}

constexpr ConditionRule kConditions[] = {
    {"GpuUnusable", "GpusUsable", "every gpu can be used",
     [](const HealthFact& fact) { return fact.stops_use; }},
    {"GpuMemoryErrors", "NoMemoryErrors", "no gpu has memory errors that need attention",
     [](const HealthFact& fact) {
       return is_any(fact.kind, {EccUncorrected, RowRemapPending, RowRemapFailed}) ||
              (fact.kind == XidNoted && xid_info(fact.code).kind == XidClass::Contained);
     }},
    {"GpuThrottled", "FullSpeed", "no gpu is slowed down",
     [](const HealthFact& fact) {
       return is_any(fact.kind, {ThermalHardware, ThermalSoftware, Temperature, PowerBrake});
     }},
    {"GpuLinkErrors", "LinksGood", "no gpu has errors on its links",
     [](const HealthFact& fact) {
       return is_any(fact.kind, {NvlinkErrors, PcieReplays}) ||
              (is_any(fact.kind, {Xid, XidNoted}) && xid_info(fact.code).kind == XidClass::Nvlink);
     }},
};

std::string gpu_text(const GpuHealthView& gpu) {
  return gpu.is_listed ? fmt::format("gpu {} ({})", gpu.index, gpu.uuid)
                       : fmt::format("gpu {}", gpu.uuid);
}

}  // namespace

std::vector<NodeCondition> node_conditions(const NodeHealthView& view) {
  std::vector<NodeCondition> conditions;
  for (const ConditionRule& rule : kConditions) {
    NodeCondition condition = {.type = std::string(rule.type),
                               .is_problem = false,
                               .reason = std::string(rule.good_reason),
                               .message = {}};
    if (rule.type == "GpuUnusable" && !view.driver_problem.empty()) {
      condition.is_problem = true;
      condition.reason = "DriverUnavailable";
      condition.message = view.driver_problem;
    }
    const auto add = [&](HealthKind kind, std::string_view gpu, std::string_view text) {
      if (!condition.is_problem) condition.reason = health_kind_text(kind);
      condition.is_problem = true;
      condition.message +=
          fmt::format("{}{}: {}", condition.message.empty() ? "" : "; ", gpu, text);
    };
    for (const GpuHealthView& gpu : view.gpus) {
      for (const HealthFact& fact : gpu.facts) {
        if (rule.takes(fact)) add(fact.kind, gpu_text(gpu), fact.text);
      }
    }
    if (rule.type == "GpuUnusable") {
      for (const int index : view.nameless) {
        add(Lost, fmt::format("gpu {}", index), "lost before it could be named");
      }
    }
    if (!condition.is_problem) condition.message = rule.good_message;
    if (condition.message.size() > kMessageBytesMax) {
      condition.message.resize(kMessageBytesMax - 3);
      condition.message += "...";
    }
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

Result<TaintRule> parse_taint_rule(std::string_view text) {
  if (text == "never") return TaintRule::Never;
  if (text == "any") return TaintRule::AnyUnusable;
  if (text == "all") return TaintRule::AllUnusable;
  return invalid("taint rule \"{}\": use never, any or all", text);
}

std::vector<Taint> node_taints(const NodeHealthView& view, TaintRule rule,
                               std::string_view effect) {
  const auto is_unusable = [](const GpuHealthView& gpu) { return !gpu.is_usable(); };
  const bool has_driver_problem = !view.driver_problem.empty();
  bool applies = false;
  if (rule == TaintRule::AnyUnusable) {
    applies =
        has_driver_problem || !view.nameless.empty() || std::ranges::any_of(view.gpus, is_unusable);
  } else if (rule == TaintRule::AllUnusable) {
    const bool has_gpus = !view.gpus.empty() || !view.nameless.empty();
    applies = has_driver_problem || (has_gpus && std::ranges::all_of(view.gpus, is_unusable));
  }
  if (!applies) return {};
  return {{.key = std::string(kUnhealthyTaint), .value = "true", .effect = std::string(effect)}};
}

}  // namespace jogak::agent
