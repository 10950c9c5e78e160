// SPDX-License-Identifier: Apache-2.0
//
// The replica leads from the start, so that specs need not wait for a lease.
#include "test/livesim/scene.h"

#include <fmt/core.h>

#include "apiserver/codec/codec.h"
#include "base/check.h"

namespace jogak::livesim {

Scene::Scene() : world_({.seed = 1}), checkers_(world_.facts(), {.has_lease = false}) {
  world_.network().observer = &checkers_;
  replica_ = std::make_unique<Replica>(world_, checkers_, ReplicaOptions{.has_lease = false});
  restart();
}

Scene::~Scene() {
  replica_.reset();
  world_.loop().run_ready();
  world_.network().observer = nullptr;
}

void Scene::restart() {
  replica_->kill();
  replica_->start({.process = ++processes_});
}

void Scene::pod_json(std::string_view json) {
  auto parsed = codec::parse_json(json);
  JOGAK_CHECK(parsed.has_value(), "{}", json);
  world_.add("pods", "default", std::move(parsed->doc));
}

const PodFacts* Scene::find(std::string_view name) const {
  return world_.facts().find_pod("default", name);
}

std::string Scene::node_of(std::string_view name) const {
  const PodFacts* pod = find(name);
  return pod == nullptr ? "gone" : pod->node;
}

std::size_t Scene::bound(std::string_view prefix) const {
  std::size_t count = 0;
  for (const auto& [uid, pod] : world_.facts().pods()) {
    if (pod.name.starts_with(prefix) && pod.takes_room()) ++count;
  }
  return count;
}

std::string Scene::said(std::string_view name) {
  const auto pod = world_.api().get("pods", "default", name);
  if (!pod.has_value()) return "";
  for (const Doc& condition : pod->get("status", "conditions").items()) {
    if (condition["type"].as_string() != "PodScheduled") continue;
    if (condition["status"].as_string() != "False") continue;
    return condition["reason"].as_string() + ": " + condition["message"].as_string();
  }
  return "";
}

std::string Scene::broken() {
  checkers_.check_rest();
  std::string text;
  for (const Violation& violation : checkers_.violations()) {
    text += fmt::format("{}: {}\n", violation.rule, violation.what);
  }
  return text + replica_->fault();
}

}  // namespace jogak::livesim
