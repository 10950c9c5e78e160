// SPDX-License-Identifier: Apache-2.0
//
// What a test asks of the cluster, as calls of its API; what a kubelet would do, as status patches.
#include "test/cluster/cluster.h"

#include <algorithm>

#include <fmt/core.h>

#include "apiserver/codec/codec.h"
#include "apiserver/object/meta.h"
#include "base/check.h"

namespace jogak::test {

namespace {

constexpr std::string_view kLeases = "leases.coordination.k8s.io";

bool is_clusterwide(api::Api& api, std::string_view table) {
  return std::ranges::any_of(api.tables(), [&](const api::Api::Table& one) {
    return one.name == table && !one.is_namespaced;
  });
}

}  // namespace

Doc json(std::string_view text) {
  auto parsed = codec::parse_json(text);
  JOGAK_CHECK(parsed.has_value(), "a test's JSON");
  return std::move(parsed->doc);
}

std::string pod_template(std::string_view app, std::string_view image) {
  return fmt::format(
      R"({{"metadata": {{"labels": {{"a": "{}"}}}},
           "spec": {{"containers": [{{"name": "c", "image": "{}"}}]}}}})",
      app, image);
}

Cluster::Cluster(controllers::ControllerOptions options) {
  auto server = api::Server::make(loop_, {});
  JOGAK_CHECK(server.has_value(), "a server in memory");
  server_ = *std::move(server);
  api_ = server_->api("test");
  pods_api_ = server_->api("pods");
  pods_ = std::make_unique<controllers::PodIndex>(*pods_api_);
  const controllers::ControllerContext context{
      .make_api = [this](std::string manager) { return server_->api(std::move(manager)); },
      .pods = *pods_,
      .options = std::move(options)};
  controllers_ = controllers::workload_controllers(context);
  for (auto& one : controllers::cluster_controllers(context)) {
    controllers_.push_back(std::move(one));
  }
  settle();
}

Doc Cluster::make(std::string_view table, std::string_view object) {
  Doc doc = json(object);
  const bool is_global = is_clusterwide(*api_, table);
  const std::string ns =
      is_global ? "" : (api::namespace_of(doc).empty() ? "default" : api::namespace_of(doc));
  auto made = api_->create(table, ns, std::move(doc));
  JOGAK_CHECK(made.has_value(), "{}", made.error().message);
  settle();
  return *std::move(made);
}

std::string Cluster::try_make(std::string_view table, std::string_view object) {
  const auto made = api_->create(table, "default", json(object));
  settle();
  return made.has_value() ? "" : made.error().reason + ": " + made.error().message;
}

Doc Cluster::get(std::string_view table, std::string_view name, std::string_view ns) const {
  auto object = api_->get(table, is_clusterwide(*api_, table) ? "" : ns, name);
  return object.has_value() ? *std::move(object) : Doc();
}

std::vector<Doc> Cluster::list(std::string_view table, std::string_view ns) const {
  return api_->list(table, is_clusterwide(*api_, table) ? "" : ns);
}

void Cluster::patch(std::string_view table, std::string_view name, std::string_view change,
                    std::string_view subresource, std::string_view ns) {
  const auto patched = api_->patch(table, is_clusterwide(*api_, table) ? "" : ns, name,
                                   api::PatchType::Merge, json(change), subresource);
  JOGAK_CHECK(patched.has_value(), "{}", patched.error().message);
  settle();
}

void Cluster::remove(std::string_view table, std::string_view name, std::string_view propagation,
                     std::string_view ns) {
  const auto removed = api_->remove(table, is_clusterwide(*api_, table) ? "" : ns, name,
                                    Doc::object().set("propagationPolicy", propagation));
  JOGAK_CHECK(removed.has_value(), "{}", removed.error().message);
  settle();
}

std::string Cluster::names(std::string_view table, std::string_view ns) const {
  std::string names;
  for (const Doc& object : list(table, ns)) {
    names += (names.empty() ? "" : " ") + api::name_of(object);
  }
  return names;
}

std::vector<Doc> Cluster::live_pods() const {
  std::vector<Doc> pods = list("pods");
  std::erase_if(pods, [](const Doc& pod) { return api::is_deleting(pod); });
  return pods;
}

void Cluster::run_pod(std::string_view name) {
  const std::string now = api::format_time(loop_.now());
  patch("pods", name,
        fmt::format(R"({{"status": {{"phase": "Running", "podIP": "10.9.9.9",
                  "podIPs": [{{"ip": "10.9.9.9"}}], "startTime": "{0}",
                  "conditions": [{{"type": "Ready", "status": "True",
                                   "lastTransitionTime": "{0}"}}]}}}})",
                    now),
        "status");
}

void Cluster::run_all_pods() {
  for (const Doc& pod : live_pods()) {
    // one that runs may be the end of another
    const Doc now = get("pods", api::name_of(pod));
    if (now.get("status", "phase").as_string() == "Pending") run_pod(api::name_of(pod));
  }
}

void Cluster::end_pod(std::string_view name, std::string_view phase) {
  patch("pods", name,
        fmt::format(R"({{"status": {{"phase": "{}", "conditions": [
                  {{"type": "Ready", "status": "False", "lastTransitionTime": "{}"}}]}}}})",
                    phase, api::format_time(loop_.now())),
        "status");
}

void Cluster::bind_pod(std::string_view name, std::string_view node) {
  Doc binding = Doc::object().set("apiVersion", "v1").set("kind", "Binding");
  binding.at("metadata").set("name", name).set("namespace", "default");
  binding.at("target").set("kind", "Node").set("name", node);
  const auto bound = api_->create("pods", "default", std::move(binding), "binding", name);
  JOGAK_CHECK(bound.has_value(), "a binding that a test makes");
  settle();
}

void Cluster::let_go(std::string_view name) {
  const auto removed =
      api_->remove("pods", "default", name, Doc::object().set("gracePeriodSeconds", 0));
  JOGAK_CHECK(removed.has_value(), "the end of a deletion");
  settle();
}

void Cluster::make_node(std::string_view name, std::string_view labels) {
  make("nodes", fmt::format(R"({{"metadata": {{"name": "{}", "labels": {}}},
      "status": {{"capacity": {{"cpu": "8", "memory": "32Gi", "pods": "110"}}}}}})",
                            name, labels));
  patch("nodes", name,
        fmt::format(R"({{"status": {{"conditions": [{{"type": "Ready", "status": "True",
            "lastHeartbeatTime": "{0}", "lastTransitionTime": "{0}"}}]}}}})",
                    api::format_time(loop_.now())),
        "status");
  if (get("namespaces", "kube-node-lease").is_null()) {
    make("namespaces", R"({"metadata": {"name": "kube-node-lease"}})");
  }
  make(kLeases, fmt::format(R"({{"metadata": {{"name": "{0}", "namespace": "kube-node-lease"}},
      "spec": {{"holderIdentity": "{0}", "leaseDurationSeconds": 40}}}})",
                            name));
}

void Cluster::renew_lease(std::string_view node) {
  patch(kLeases, node,
        fmt::format(R"({{"spec": {{"renewTime": "{}"}}}})", api::format_micro_time(loop_.now())),
        "", "kube-node-lease");
}

std::vector<std::string> Cluster::events_of(std::string_view name, std::string_view ns) const {
  std::vector<std::string> texts;
  for (const Doc& event : list("events", ns)) {
    if (event.get("involvedObject", "name").as_string() != name) continue;
    texts.push_back(event["reason"].as_string() + ": " + event["message"].as_string());
  }
  return texts;
}

}  // namespace jogak::test
