// SPDX-License-Identifier: Apache-2.0
// An explanation as text and as a document. Thousands of nodes become groups by reason with a few
// names as examples; what a program reads has the same groups with their counts.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text_table.h"
#include "cli/explain.h"

namespace jogak::cli {

namespace {

constexpr std::size_t kExamples = 3;

std::string node_name(const core::Cluster& cluster, core::NodeId node) {
  return std::string(cluster.text(cluster.node(node).name));
}

std::string_view outcome_name(core::Outcome outcome) {
  switch (outcome) {
    case core::Outcome::Scheduled:
      return "Scheduled";
    case core::Outcome::Unschedulable:
      return "Unschedulable";
    case core::Outcome::Gated:
      return "Gated";
    case core::Outcome::SkippedDeleting:
      return "Deleting";
    case core::Outcome::Error:
      return "Error";
  }
  return "";
}

std::string_view code_name(core::Code code) {
  switch (code) {
    case core::Code::Fits:
      return "Fits";
    case core::Code::Unschedulable:
      return "Unschedulable";
    case core::Code::Unresolvable:
      return "UnschedulableAndUnresolvable";
    case core::Code::Error:
      return "Error";
  }
  return "";
}

std::string plugin_text(core::Verdict verdict) {
  // Nodes that a PreFilter left out show no plugin in kube-scheduler either.
  return verdict.plugin == core::Plugin::None ? "(node list)"
                                              : std::string(core::plugin_name(verdict.plugin));
}

// Indices of the feasible nodes, best first, equal scores in node order.
std::vector<std::size_t> by_score(const Explanation& explanation) {
  std::vector<std::size_t> order(explanation.scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::size_t i) { return explanation.scores[i]; });
  return order;
}

std::size_t ties(const Explanation& explanation) {
  if (explanation.scores.empty()) return 0;
  const std::int64_t best = *std::ranges::max_element(explanation.scores);
  return static_cast<std::size_t>(std::ranges::count(explanation.scores, best));
}

std::string verdict_line(const core::Cluster& cluster, const Explanation& explanation) {
  const core::Evaluation& e = explanation.evaluation;
  switch (e.outcome) {
    case core::Outcome::Scheduled: {
      std::string line = fmt::format("would be placed on {} (policy {}",
                                     node_name(cluster, *explanation.node), explanation.policy);
      if (e.nominated_shortcut) return line + ", the node it is nominated to)";
      if (e.feasible.size() == 1) return line + ", the only node that fits)";
      line += fmt::format(", score {} of {} nodes that fit",
                          *std::ranges::max_element(explanation.scores), e.feasible.size());
      const std::size_t equal = ties(explanation);
      return line + (equal > 1 ? fmt::format(", {} with this score)", equal) : ")");
    }
    case core::Outcome::Unschedulable:
      return "would stay pending";
    case core::Outcome::Gated:
      return "waits behind its scheduling gates";
    case core::Outcome::SkippedDeleting:
      return "is being deleted and will not be scheduled";
    case core::Outcome::Error:
      return "cannot be scheduled: an object it needs is broken";
  }
  return {};
}

std::string examples(const core::Cluster& cluster, const std::vector<core::NodeId>& nodes) {
  std::vector<std::string> names;
  for (const core::NodeId node : nodes) {
    if (names.size() == kExamples) break;
    names.push_back(node_name(cluster, node));
  }
  return fmt::format("{}{}", fmt::join(names, ", "), nodes.size() > kExamples ? ", ..." : "");
}

std::string asked_section(const core::Cluster& cluster, const Explanation& explanation) {
  if (explanation.asked.empty()) return {};
  TextTable table({{"ASKS FOR"}, {"", Align::Right}, {"MOST FREE", Align::Right}, {"ON"}});
  for (const AskedResource& asked : explanation.asked) {
    table.add(asked.name, amount_text(asked.name, asked.asked),
              amount_text(asked.name, asked.most_free),
              asked.node ? node_name(cluster, *asked.node) : "no node");
  }
  return "\n" + table.text();
}

std::string refused_section(const core::Cluster& cluster, const Explanation& explanation) {
  if (explanation.refused.empty()) return {};
  TextTable table(
      {{"NODES", Align::Right}, {"REFUSED BY"}, {"REASON"}, {"EVICTING HELPS"}, {"E.G."}});
  for (const RefusedGroup& group : explanation.refused) {
    table.add(group.nodes.size(), plugin_text(group.verdict),
              fmt::format("{}", fmt::join(group.reasons, ", ")),
              group.verdict.code == core::Code::Unschedulable ? "maybe" : "no",
              examples(cluster, group.nodes));
  }
  return "\n" + table.text();
}

std::string all_nodes_section(const core::Cluster& cluster, const Explanation& explanation) {
  TextTable table({{"NODE"}, {"VERDICT"}, {"BY"}, {"REASON"}});
  for (const core::NodeVerdict& node : explanation.evaluation.nodes) {
    table.add(node_name(cluster, node.node), code_name(node.verdict.code),
              node.verdict.fits() ? std::string() : plugin_text(node.verdict),
              fmt::format("{}", fmt::join(node.reasons, ", ")));
  }
  return table.rows() == 0 ? std::string() : "\n" + table.text();
}

std::string scores_section(const core::Cluster& cluster, const Explanation& explanation,
                           const ExplainView& view) {
  const core::Evaluation& e = explanation.evaluation;
  if (e.feasible.size() < 2) return {};
  const bool kube = explanation.policy == "kube";
  std::vector<TextTable::Column> columns = {{"NODE"}, {"SCORE", Align::Right}};
  if (kube) {
    for (const core::PluginScores& plugin : e.scores) {
      columns.push_back({core::plugin_name(plugin.plugin), Align::Right});
    }
  }
  TextTable table(columns);
  const std::vector<std::size_t> order = by_score(explanation);
  const std::size_t shown = view.all_nodes ? order.size() : std::min(order.size(), view.top);
  for (const std::size_t i : std::span(order).first(shown)) {
    std::vector<std::string> cells = {node_name(cluster, e.feasible[i]),
                                      fmt::to_string(explanation.scores[i])};
    for (const core::PluginScores& plugin : e.scores) {
      if (kube) cells.push_back(fmt::to_string(plugin.values[i]));
    }
    table.row(std::move(cells));
  }
  std::string text = "\n" + table.text();
  if (shown < order.size()) text += fmt::format("... and {} more\n", order.size() - shown);
  return text;
}

std::string preemption_section(const core::Cluster& cluster, const Explanation& explanation,
                               const ExplainView& view) {
  const auto& p = explanation.evaluation.preemption;
  if (!p || !explanation.evaluation.preemption_attempted) return {};
  if (!p->eligible) return fmt::format("\npreemption: {}\n", p->not_eligible);
  if (p->candidates.empty()) return "\npreemption: no pods whose eviction would make room\n";
  std::string text =
      fmt::format("\npreemption: evicting pods of lower priority would make room on {} node{}\n",
                  p->candidates.size(), p->candidates.size() == 1 ? "" : "s");
  TextTable table({{"NODE"}, {"VICTIMS"}, {"BUDGETS BROKEN", Align::Right}});
  std::size_t shown = 0;
  const auto add = [&](const core::PreemptionCandidate& candidate) {
    std::vector<std::string> victims;
    for (const core::PodId victim : candidate.victims) {
      victims.push_back(cluster.pod_full_name(victim));
    }
    table.add(node_name(cluster, candidate.node), fmt::format("{}", fmt::join(victims, ", ")),
              candidate.pdb_violations);
    ++shown;
  };
  for (const std::size_t i : p->best) {
    if (view.all_nodes || shown < view.top) add(p->candidates[i]);
  }
  return text + "the best of them:\n" + table.text();
}

Doc names_doc(const core::Cluster& cluster, const std::vector<core::NodeId>& nodes,
              std::size_t most) {
  Doc list = Doc::array();
  for (std::size_t i = 0; i < std::min(nodes.size(), most); ++i) {
    list.push(node_name(cluster, nodes[i]));
  }
  return list;
}

Doc reasons_doc(const core::Reasons& reasons) {
  Doc list = Doc::array();
  for (const std::string& reason : reasons) list.push(reason);
  return list;
}

Doc pods_doc(const core::Cluster& cluster, const std::vector<core::PodId>& pods) {
  Doc list = Doc::array();
  for (const core::PodId pod : pods) list.push(cluster.pod_full_name(pod));
  return list;
}

Doc nodes_doc(const core::Cluster& cluster, const Explanation& explanation,
              const ExplainView& view) {
  Doc refused = Doc::array();
  for (const RefusedGroup& group : explanation.refused) {
    Doc item = Doc::object();
    item.set("count", group.nodes.size())
        .set("plugin", core::plugin_name(group.verdict.plugin))
        .set("code", code_name(group.verdict.code))
        .set("reasons", reasons_doc(group.reasons))
        .set(view.all_nodes ? "nodes" : "examples",
             names_doc(cluster, group.nodes, view.all_nodes ? group.nodes.size() : kExamples));
    refused.push(std::move(item));
  }
  Doc result = Doc::object();
  result.set("total", cluster.node_count());
  result.set("feasible", explanation.evaluation.feasible.size());
  result.set("refused", std::move(refused));
  return result;
}

Doc scores_doc(const core::Cluster& cluster, const Explanation& explanation,
               const ExplainView& view) {
  const core::Evaluation& e = explanation.evaluation;
  Doc list = Doc::array();
  const std::vector<std::size_t> order = by_score(explanation);
  const std::size_t shown = view.all_nodes ? order.size() : std::min(order.size(), view.top);
  for (const std::size_t i : std::span(order).first(shown)) {
    Doc item = Doc::object();
    item.set("node", node_name(cluster, e.feasible[i])).set("score", explanation.scores[i]);
    if (explanation.policy == "kube" && !e.scores.empty()) {
      Doc plugins = Doc::object();
      for (const core::PluginScores& plugin : e.scores) {
        plugins.set(core::plugin_name(plugin.plugin), plugin.values[i]);
      }
      item.set("plugins", std::move(plugins));
    }
    list.push(std::move(item));
  }
  return list;
}

Doc preemption_doc(const core::Cluster& cluster, const core::PreemptionResult& p) {
  Doc candidates = Doc::array();
  for (std::size_t i = 0; i < p.candidates.size(); ++i) {
    const core::PreemptionCandidate& candidate = p.candidates[i];
    Doc item = Doc::object();
    item.set("node", node_name(cluster, candidate.node))
        .set("best", std::ranges::find(p.best, i) != p.best.end())
        .set("victims", pods_doc(cluster, candidate.victims))
        .set("budgetsBroken", candidate.pdb_violations);
    candidates.push(std::move(item));
  }
  Doc result = Doc::object();
  result.set("eligible", p.eligible);
  if (!p.eligible) result.set("why", p.not_eligible);
  result.set("candidates", std::move(candidates));
  return result;
}

}  // namespace

std::string hold_text(const core::GpuHold& hold, core::GpuAsk ask) {
  switch (ask) {
    case core::GpuAsk::ShareMilli:
      return fmt::format("gpu {} ({}/1000)", hold.gpu, hold.amount);
    case core::GpuAsk::ShareMib:
      return fmt::format("gpu {} ({} MiB)", hold.gpu, hold.amount);
    case core::GpuAsk::Mig:
      return fmt::format("gpu {} slice {}", hold.gpu, hold.mig_start);
    case core::GpuAsk::Whole:
    case core::GpuAsk::None:
      break;
  }
  return fmt::format("gpu {}", hold.gpu);
}

Doc devices_doc(const std::vector<core::GpuHold>& holds, core::GpuAsk ask) {
  Doc list = Doc::array();
  for (const core::GpuHold& hold : holds) {
    Doc item = Doc::object();
    item.set("gpu", hold.gpu);
    if (ask == core::GpuAsk::ShareMilli) item.set("milli", hold.amount);
    if (ask == core::GpuAsk::ShareMib) item.set("mib", hold.amount);
    if (ask == core::GpuAsk::Mig) item.set("migStart", hold.mig_start);
    list.push(std::move(item));
  }
  return list;
}

std::string amount_text(std::string_view resource, std::int64_t amount) {
  if (resource == "cpu") {
    return amount % 1000 == 0 ? fmt::to_string(amount / 1000) : fmt::format("{}m", amount);
  }
  const bool is_bytes =
      resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-");
  if (!is_bytes) return fmt::to_string(amount);
  constexpr std::pair<std::int64_t, std::string_view> kUnits[] = {{std::int64_t{1} << 40, "Ti"},
                                                                  {std::int64_t{1} << 30, "Gi"},
                                                                  {std::int64_t{1} << 20, "Mi"},
                                                                  {std::int64_t{1} << 10, "Ki"}};
  for (const auto& [size, unit] : kUnits) {
    if (amount < size) continue;
    const std::int64_t tenths = amount / size * 10 + amount % size * 10 / size;
    if (tenths % 10 == 0) return fmt::format("{}{}", tenths / 10, unit);
    return fmt::format("{}.{}{}", tenths / 10, tenths % 10, unit);
  }
  return fmt::to_string(amount);
}

std::string explain_text(const core::Cluster& cluster, const Explanation& explanation,
                         const ExplainView& view) {
  const core::Evaluation& e = explanation.evaluation;
  std::string text = fmt::format("pod      {}\n", explanation.pod);
  if (!explanation.bound_node.empty()) {
    text += fmt::format("runs on  {} (below: what would happen were it pending)\n",
                        explanation.bound_node);
  }
  text += fmt::format("verdict  {}\n", verdict_line(cluster, explanation));
  if (!explanation.holds.empty()) {
    std::vector<std::string> devices;
    for (const core::GpuHold& hold : explanation.holds) {
      devices.push_back(hold_text(hold, explanation.ask));
    }
    text += fmt::format("devices  {}\n", fmt::join(devices, ", "));
  }
  if (!e.message.empty()) text += fmt::format("message  {}\n", e.message);
  if (e.outcome == core::Outcome::Gated) {
    text += fmt::format("reason   {}\n", fmt::join(e.prefilter.reasons, ", "));
    return text;
  }
  text += asked_section(cluster, explanation);
  text += view.all_nodes ? all_nodes_section(cluster, explanation)
                         : refused_section(cluster, explanation);
  text += scores_section(cluster, explanation, view);
  text += preemption_section(cluster, explanation, view);
  return text;
}

Doc explain_doc(const core::Cluster& cluster, const Explanation& explanation,
                const ExplainView& view) {
  const core::Evaluation& e = explanation.evaluation;
  Doc doc = Doc::object();
  doc.set("pod", explanation.pod);
  if (!explanation.bound_node.empty()) doc.set("boundTo", explanation.bound_node);
  doc.set("outcome", outcome_name(e.outcome)).set("policy", explanation.policy);
  if (explanation.placed()) {
    doc.set("node", node_name(cluster, *explanation.node));
    doc.set("devices", devices_doc(explanation.holds, explanation.ask));
  }
  if (e.nominated_shortcut) doc.set("nominated", true);
  if (!e.message.empty()) doc.set("message", e.message);
  if (!e.prefilter.verdict.fits()) {
    Doc item = Doc::object();
    item.set("plugin", core::plugin_name(e.prefilter.verdict.plugin))
        .set("code", code_name(e.prefilter.verdict.code))
        .set("reasons", reasons_doc(e.prefilter.reasons));
    doc.set("refusedAsAWhole", std::move(item));
  }
  Doc asked = Doc::array();
  for (const AskedResource& resource : explanation.asked) {
    Doc item = Doc::object();
    item.set("resource", resource.name)
        .set("asked", resource.asked)
        .set("mostFree", resource.most_free);
    if (resource.node) item.set("onNode", node_name(cluster, *resource.node));
    asked.push(std::move(item));
  }
  doc.set("asksFor", std::move(asked));
  doc.set("nodes", nodes_doc(cluster, explanation, view));
  doc.set("scores", scores_doc(cluster, explanation, view));
  if (e.preemption && e.preemption_attempted) {
    doc.set("preemption", preemption_doc(cluster, *e.preemption));
  }
  return doc;
}

}  // namespace jogak::cli
