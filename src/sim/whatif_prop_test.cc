// SPDX-License-Identifier: Apache-2.0
//
// Random clusters and random changes: whatever the answer is, it keeps the rules of placement, no
// pod is lost, nobody waits who would fit, and the same question has the same answer.
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "core/plan/evaluation.h"
#include "core/plan/validate.h"
#include "core/policy/policy.h"
#include "core/testing/random_world.h"
#include "sim/node_copy.h"
#include "sim/whatif.h"

namespace jogak::sim {
namespace {

using core::Cluster;
using core::NodeId;
using core::PodId;
using core::PodState;
using core::testing::Event;
using core::testing::RandomWorld;
using core::testing::Trial;

struct Question {
  Cluster cluster;
  WhatifChanges changes;
};

void make_question(std::uint64_t seed, Question& question) {
  RandomWorld world(seed, {.exact_holds = true});
  Cluster& cluster = question.cluster;
  for (const Event& event : world.start()) apply(cluster, event);
  for (std::int32_t i = 0; i < world.options().pods; ++i) {
    Event event{.kind = Event::Kind::Pod,
                .node = {},
                .pod = world.pod(i),
                .node_name = {},
                .name_space = {}};
    if (world.rng().chance(2, 3)) event.pod.owner_kind = "ReplicaSet";
    if (world.rng().chance(1, 8)) event.pod.owner_kind = "DaemonSet";
    apply(cluster, event);
    const auto pod = cluster.find_pod(event.pod.ns, event.pod.name);
    if (world.rng().chance(1, 4)) {
      question.changes.new_pods.push_back(*pod);
      continue;
    }
    // As a scheduler would have bound it.
    const core::Evaluation evaluation = core::evaluate(cluster, *pod);
    if (evaluation.feasible.empty() || world.rng().chance(1, 8)) continue;
    const NodeId node = evaluation.feasible[world.rng().below(evaluation.feasible.size())];
    std::vector<core::GpuHold> holds;
    const auto policy = core::make_policy("kube", 1);
    (*policy)->choose(cluster, cluster.shape_of(*pod), cluster.node(node), holds);
    cluster.place(*pod, node, holds);
    if (world.rng().chance(1, 10)) cluster.set_terminating(*pod);
  }
  WhatifChanges& changes = question.changes;
  for (const NodeId node : cluster.node_order()) {
    const std::string name(cluster.text(cluster.node(node).name));
    const std::uint64_t draw = world.rng().below(8);
    if (draw == 0) changes.remove_nodes.push_back(name);
    if (draw == 1) changes.drain_nodes.push_back(name);
    if (draw == 2) changes.copy_nodes.push_back({name, world.rng().between(1, 2)});
  }
  const auto& policies = core::policies();
  changes.policy = policies[world.rng().below(policies.size())].name;
}

std::string text_of(const WhatifReport& report) {
  std::string text;
  for (const WhatifPod& pod : report.pods) {
    text += fmt::format("{} {} {} {} {} {}\n", pod.name, pod.was_on, pod.preempted_by, pod.node,
                        pod.holds.size(), pod.message);
  }
  return text;
}

// What is wrong with the answer; the cluster is as it left it.
std::string fault_of(Cluster& cluster, const WhatifReport& report) {
  if (std::string why = cluster.recount(); !why.empty()) return "recount: " + why;
  if (std::string why = core::validate_cluster(cluster); !why.empty()) return why;
  std::map<std::string, const WhatifPod*> by_name;
  for (const WhatifPod& pod : report.pods) {
    if (!by_name.emplace(pod.name, &pod).second) return pod.name + ": mentioned twice";
    if (cluster.pod_full_name(pod.id) != pod.name) return pod.name + ": is another pod";
    if (pod.starts() != pod.message.empty()) return pod.name + ": starts and waits, or neither";
    const bool is_placed = cluster.pod(pod.id).state == PodState::Placed;
    if (pod.starts() != is_placed) return pod.name + ": is not where the report says";
    if (!is_placed) continue;
    if (cluster.text(cluster.node(cluster.pod(pod.id).node).name) != pod.node) {
      return pod.name + ": is on another node";
    }
  }
  bool has_marked = false;
  for (const WhatifPod& pod : report.pods) has_marked = has_marked || pod.has_no_owner;
  for (std::uint32_t i = 0; i < cluster.pods().size(); ++i) {
    if (cluster.pods()[i].state != PodState::Pending) continue;
    const std::string name = cluster.pod_full_name(PodId{i});
    if (!by_name.contains(name)) return name + ": waits and is not mentioned";
    // Those made anew by hand come last and may help others in.
    if (has_marked || by_name[name]->message.starts_with("the scheduler's plan")) continue;
    if (core::evaluate(cluster, PodId{i}).outcome == core::Outcome::Scheduled) {
      return name + ": waits and would fit";
    }
  }
  const std::int64_t all_before = report.before.running + report.before.waiting;
  const std::int64_t all_after = report.after.running + report.after.waiting;
  std::int64_t is_new = 0;
  for (const WhatifPod& pod : report.pods) is_new += pod.is_new ? 1 : 0;
  const auto ended = static_cast<std::int64_t>(report.ended.size());
  if (all_after < all_before + is_new - ended - report.being_deleted) return "a pod is lost";
  return {};
}

TEST(WhatifProp, EveryAnswerKeepsTheRules) {
  const Trial trial = Trial::from_env(600);
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    std::string texts[2];
    for (std::string& text : texts) {
      Question question;
      make_question(trial.seed_of(round), question);
      const auto report = whatif(question.cluster, question.changes);
      ASSERT_TRUE(report.has_value()) << report.error().what << trial.repeat(round);
      ASSERT_EQ(fault_of(question.cluster, *report), "") << trial.repeat(round);
      text = text_of(*report);
    }
    ASSERT_EQ(texts[0], texts[1]) << trial.repeat(round);
  }
}

TEST(WhatifProp, ASpecOfANodeChangesNothing) {
  const Trial trial = Trial::from_env(300);
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    Question question;
    make_question(trial.seed_of(round), question);
    Cluster& cluster = question.cluster;
    const std::uint64_t digest = cluster.digest();
    const std::vector<NodeId> nodes(cluster.node_order().begin(), cluster.node_order().end());
    for (const NodeId node : nodes) {
      ASSERT_TRUE(cluster.upsert_node(spec_of(cluster, node)).has_value()) << trial.repeat(round);
    }
    ASSERT_EQ(cluster.digest(), digest) << trial.repeat(round);
  }
}

}  // namespace
}  // namespace jogak::sim
