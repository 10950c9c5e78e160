// SPDX-License-Identifier: Apache-2.0
// Recorded results come in with gaps and free orders, computed ones with ids; both leave equal.
#include "test/golden/canonical.h"

#include <algorithm>

#include <fmt/format.h>

namespace jogak::golden {

namespace {

using nlohmann::json;

json sorted(json list) {
  std::sort(list.begin(), list.end());
  return list;
}

json canonical_verdict(const json& recorded) {
  json result = {{"feasible", recorded.value("feasible", false)}};
  if (result["feasible"]) return result;
  result["plugin"] = recorded.value("plugin", "");
  result["code"] = recorded.value("code", "");
  result["reasons"] = sorted(recorded.value("reasons", json::array()));
  return result;
}

json canonical_verdicts(const json& recorded) {
  json result = json::object();
  for (const auto& [node, verdict] : recorded.items()) result[node] = canonical_verdict(verdict);
  return result;
}

json canonical_preemption(const json& recorded) {
  json result = {{"attempted", recorded.value("attempted", false)}};
  if (!result["attempted"]) return result;
  result["eligible"] = recorded.value("eligible", false);
  result["notEligible"] = recorded.value("notEligible", "");
  result["nomination"] = recorded.value("nomination", "keep");
  result["message"] = recorded.value("message", "");
  result["best"] = sorted(recorded.value("best", json::array()));
  result["rejected"] = canonical_verdicts(recorded.value("rejected", json::object()));
  result["candidates"] = json::object();
  const json candidates = recorded.value("candidates", json::object());
  for (const auto& [node, candidate] : candidates.items()) {
    result["candidates"][node] = {
        {"victims", candidate.at("victims")},
        {"pdbViolations", candidate.value("pdbViolations", 0)},
        {"alreadyTerminating", sorted(candidate.value("alreadyTerminating", json::array()))}};
  }
  result["losesNomination"] = json::object();
  const json loses = recorded.value("losesNomination", json::object());
  for (const auto& [node, pods] : loses.items()) {
    if (!pods.empty()) result["losesNomination"][node] = sorted(pods);
  }
  return result;
}

std::string_view outcome_name(core::Outcome outcome) {
  switch (outcome) {
    case core::Outcome::Scheduled:
      return "scheduled";
    case core::Outcome::Unschedulable:
      return "unschedulable";
    case core::Outcome::Gated:
      return "gated";
    case core::Outcome::SkippedDeleting:
      return "skippedDeleting";
    case core::Outcome::Error:
      return "error";
  }
  return "";
}

std::string_view code_name(core::Code code) {
  switch (code) {
    case core::Code::Fits:
      return "";
    case core::Code::Unschedulable:
      return "Unschedulable";
    case core::Code::Unresolvable:
      return "UnschedulableAndUnresolvable";
    case core::Code::Error:
      return "Error";
  }
  return "";
}

json to_json(core::Verdict verdict, const core::Reasons& reasons) {
  return {{"feasible", verdict.fits()},
          {"plugin", std::string(core::plugin_name(verdict.plugin))},
          {"code", std::string(code_name(verdict.code))},
          {"reasons", reasons}};
}

std::string node_name(const core::Cluster& cluster, core::NodeId node) {
  return std::string(cluster.text(cluster.node(node).name));
}

json pod_names(const core::Cluster& cluster, const std::vector<core::PodId>& pods) {
  json result = json::array();
  for (const core::PodId pod : pods) result.push_back(cluster.pod_full_name(pod));
  return result;
}

json to_json(const core::Cluster& cluster, const core::PreemptionResult& from) {
  json result = {{"attempted", true},
                 {"eligible", from.eligible},
                 {"notEligible", from.not_eligible},
                 {"message", from.message},
                 {"candidates", json::object()},
                 {"rejected", json::object()},
                 {"losesNomination", json::object()}};
  switch (from.nomination) {
    case core::NominationChange::Keep:
      result["nomination"] = "keep";
      break;
    case core::NominationChange::Set:
      result["nomination"] = "set";
      break;
    case core::NominationChange::Clear:
      result["nomination"] = "clear";
      break;
  }
  for (const core::PreemptionCandidate& candidate : from.candidates) {
    result["candidates"][node_name(cluster, candidate.node)] = {
        {"victims", pod_names(cluster, candidate.victims)},
        {"pdbViolations", candidate.pdb_violations},
        {"alreadyTerminating", pod_names(cluster, candidate.already_terminating)}};
  }
  for (const core::NodeVerdict& verdict : from.rejected) {
    result["rejected"][node_name(cluster, verdict.node)] =
        to_json(verdict.verdict, verdict.reasons);
  }
  json best = json::array();
  for (std::size_t i = 0; i < from.best.size(); ++i) {
    const std::string node = node_name(cluster, from.candidates[from.best[i]].node);
    best.push_back(node);
    if (i < from.loses_nomination.size()) {
      result["losesNomination"][node] = pod_names(cluster, from.loses_nomination[i]);
    }
  }
  result["best"] = best;
  return result;
}

void add_scores(const core::Cluster& cluster, const core::Evaluation& from, json& result) {
  if (from.feasible.size() < 2) return;
  for (std::size_t i = 0; i < from.feasible.size(); ++i) {
    const std::string node = node_name(cluster, from.feasible[i]);
    result["totals"][node] = from.totals[i];
    for (const core::PluginScores& plugin : from.scores) {
      result["scores"][node][std::string(core::plugin_name(plugin.plugin))] = plugin.values[i];
    }
  }
}

std::string short_text(const json& value) {
  if (value.is_null()) return "nothing";
  std::string text = value.dump();
  constexpr std::size_t kMax = 400;
  if (text.size() > kMax) text = text.substr(0, kMax) + "...";
  return text;
}

void compare_into(const json& got, const json& want, const std::string& path,
                  std::vector<std::string>& out) {
  if (got == want) return;
  if (!got.is_object() || !want.is_object()) {
    out.push_back(fmt::format("{}: got {}, want {}", path, short_text(got), short_text(want)));
    return;
  }
  const auto step = [&path](const std::string& key) {
    return path.empty() ? key : fmt::format("{}.{}", path, key);
  };
  for (const auto& [key, value] : want.items()) {
    const json mine = got.contains(key) ? got[key] : json();
    compare_into(mine, value, step(key), out);
  }
  for (const auto& [key, value] : got.items()) {
    if (!want.contains(key)) compare_into(value, json(), step(key), out);
  }
}

}  // namespace

json canonical(const json& recorded) {
  json result;
  const std::string outcome = recorded.at("outcome");
  result["outcome"] = outcome;
  result["message"] = recorded.value("message", "");
  result["conditionReason"] = recorded.value("conditionReason", "");
  if (recorded.contains("preEnqueue")) {
    result["preEnqueue"] = canonical_verdict(recorded["preEnqueue"]);
  }
  if (recorded.contains("preFilter")) {
    result["preFilter"] = canonical_verdict(recorded["preFilter"]);
  }
  result["nodes"] = canonical_verdicts(recorded.value("nodes", json::object()));
  result["nominatedShortcut"] = recorded.value("nominatedShortcut", false);
  if (recorded.contains("scores")) result["scores"] = recorded["scores"];
  if (recorded.contains("totals")) result["totals"] = recorded["totals"];
  result["chosen"] = sorted(recorded.value("chosen", json::array()));
  result["preemption"] = canonical_preemption(recorded.value("preemption", json::object()));
  return result;
}

json canonical(const core::Cluster& cluster, const core::Evaluation& from) {
  json result = {{"outcome", std::string(outcome_name(from.outcome))}, {"message", from.message}};
  if (from.outcome == core::Outcome::Unschedulable) result["conditionReason"] = "Unschedulable";
  if (from.outcome == core::Outcome::Error) result["conditionReason"] = "SchedulerError";
  if (!from.prefilter.verdict.fits()) {
    const bool gated = from.outcome == core::Outcome::Gated;
    result[gated ? "preEnqueue" : "preFilter"] =
        to_json(from.prefilter.verdict, from.prefilter.reasons);
  }
  for (const core::NodeVerdict& verdict : from.nodes) {
    result["nodes"][node_name(cluster, verdict.node)] = to_json(verdict.verdict, verdict.reasons);
  }
  result["nominatedShortcut"] = from.nominated_shortcut;
  add_scores(cluster, from, result);
  for (const core::NodeId node : from.top) {
    result["chosen"].push_back(node_name(cluster, node));
  }
  if (from.preemption_attempted && from.preemption) {
    result["preemption"] = to_json(cluster, *from.preemption);
  }
  return canonical(result);
}

std::vector<std::string> compare(const json& got, const json& want) {
  std::vector<std::string> result;
  compare_into(got, want, "", result);
  return result;
}

}  // namespace jogak::golden
