// SPDX-License-Identifier: Apache-2.0
//
// See cluster_watch.h. Failures are told once, when they begin; the reflectors go on by themselves.
#include "agent/run/cluster_watch.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "kube/decode.h"

namespace jogak::agent {

struct ClusterWatch::Impl {
  Impl(kube::ApiClient& api, Log& to, const Options& options, Events of)
      : log(to), events(std::move(of)) {
    node.emplace(api,
                 kube::ReflectorOptions{.path = "/api/v1/nodes",
                                        .field_selector = "metadata.name=" + options.node},
                 kube::Reflector::Events{
                     .on_change = [this](const kube::ObjectChange& change) { on_node(change); },
                     .on_synced = nullptr,
                     .on_error = [this](const Error& error) { on_error("its node", error); }});
    has_asks = options.has_pods;
    has_labels = options.has_pod_labels;
    if (!has_asks && !has_labels) return;
    pods.emplace(api,
                 kube::ReflectorOptions{.path = "/api/v1/pods",
                                        .field_selector = "spec.nodeName=" + options.node},
                 kube::Reflector::Events{
                     .on_change = [this](const kube::ObjectChange& change) { on_pod(change); },
                     .on_synced =
                         [this] {
                           is_synced = true;
                           tell_asks();
                           tell_pods();
                         },
                     .on_error = [this](const Error& error) { on_error("its pods", error); }});
  }

  void on_node(const kube::ObjectChange& change) {
    if (change.is_deleted) return;  // the labels that it will have when it is back count
    auto object = decoder.decode({.kind = "Node", .json = change.json});
    const auto* const found = object ? std::get_if<kube::Node>(&*object) : nullptr;
    if (found == nullptr) {
      log.warn("the node cannot be read",
               {{"error", object ? "it is of another kind" : object.error().what}});
      return;
    }
    problems.erase("its node");
    const Labels labels(found->meta.labels.begin(), found->meta.labels.end());
    const std::map<std::string, std::string> annotations(found->meta.annotations.begin(),
                                                         found->meta.annotations.end());
    // The kubelet writes the node's status every few seconds; that is nothing to us.
    auto now = std::pair(labels, annotations);
    if (last == now) return;
    last = std::move(now);
    if (events.on_node) events.on_node(labels, annotations);
  }

  void on_pod(const kube::ObjectChange& change) {
    const PodName name = {std::string(change.ns), std::string(change.name)};
    std::optional<kube::Object> object;
    if (!change.is_deleted) {
      if (auto decoded = decoder.decode({.kind = "Pod", .json = change.json})) {
        object = *std::move(decoded);
      }
    }
    const auto* const found = object ? std::get_if<kube::Pod>(&*object) : nullptr;
    const auto* const pod = found == nullptr || found->finished ? nullptr : found;
    if (has_labels) note_labels(name, pod);
    if (has_asks) note_ask(name, pod);
  }

  void note_labels(const PodName& name, const kube::Pod* pod) {
    const std::pair key(name.ns, name.name);
    if (pod == nullptr) {
      if (table.erase(key) > 0) tell_pods();
      return;
    }
    PodFacts facts;
    facts.uid = pod->meta.uid;
    for (const auto& [label, value] : pod->meta.labels) facts.labels.emplace_back(label, value);
    const auto at = table.find(key);
    if (at != table.end() && at->second == facts) return;
    table.insert_or_assign(key, std::move(facts));
    tell_pods();
  }

  void note_ask(const PodName& name, const kube::Pod* pod) {
    const std::optional<MigAsk> ask = pod == nullptr ? std::nullopt : ask_of(name, *pod);
    const auto at = asks.find(name);
    if (!ask) {
      if (at == asks.end()) return;
      asks.erase(at);
    } else {
      if (at != asks.end() && at->second == *ask) return;
      asks.insert_or_assign(name, *ask);
    }
    tell_asks();
  }

  std::optional<MigAsk> ask_of(const PodName& name, const kube::Pod& pod) {
    auto ask = read_mig_ask(name, [&pod](std::string_view annotation) -> std::string_view {
      const auto found = std::ranges::find(pod.meta.annotations, annotation,
                                           [](const auto& entry) { return entry.first; });
      return found == pod.meta.annotations.end() ? std::string_view() : found->second;
    });
    if (!ask) {
      log.warn("a pod's wish for a MIG instance cannot be read",
               {{"pod", name.ns + "/" + name.name}, {"error", ask.error().what}});
      return std::nullopt;
    }
    return *std::move(ask);
  }

  void tell_pods() const {
    if (is_synced && has_labels && events.on_pods) events.on_pods(table);
  }

  void tell_asks() const {
    if (!is_synced || !has_asks || !events.on_asks) return;
    std::vector<MigAsk> all;
    for (const auto& [name, ask] : asks) all.push_back(ask);
    events.on_asks(std::move(all));
  }

  void on_error(std::string_view what, const Error& error) {
    std::string& told = problems[std::string(what)];
    if (std::exchange(told, error.what) == error.what) return;
    log.warn("the api server cannot be watched; trying again",
             {{"what", what}, {"error", error.what}});
  }

  Log& log;
  Events events;
  kube::Decoder decoder;
  std::optional<std::pair<Labels, std::map<std::string, std::string>>> last;
  bool has_asks = false, has_labels = false;
  std::map<PodName, MigAsk> asks;
  PodTable table;
  bool is_synced = false;
  std::map<std::string, std::string> problems;
  std::optional<kube::Reflector> node, pods;  // last: they tell the members above
};

ClusterWatch::ClusterWatch(kube::ApiClient& api, Log& log, const Options& options, Events events)
    : impl_(std::make_unique<Impl>(api, log, options, std::move(events))) {}

ClusterWatch::~ClusterWatch() = default;

}  // namespace jogak::agent
