// SPDX-License-Identifier: Apache-2.0
//
// The parts start in the order of their dependence and stop in reverse. Objects of a file are
// loaded owners first, since they get new uids.
#include "playground/playground.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/core.h>

#include "apiserver/object/meta.h"
#include "playground/gpu_machine.h"
#include "playground/gpu_nodes.h"
#include "playground/local_cluster.h"

namespace jogak::playground {

namespace {

// What others refer to comes first; pods come last.
constexpr std::array<std::string_view, 10> kFirst = {"CustomResourceDefinition",
                                                     "Namespace",
                                                     "PriorityClass",
                                                     "StorageClass",
                                                     "RuntimeClass",
                                                     "Node",
                                                     "CSINode",
                                                     "ResourceQuota",
                                                     "PersistentVolume",
                                                     "LimitRange"};
constexpr std::array<std::string_view, 3> kLast = {"ReplicaSet", "PodDisruptionBudget", "Pod"};

int rank_of(const Doc& object) {
  const std::string& kind = object["kind"].as_string();
  const auto* first = std::ranges::find(kFirst, kind);
  if (first != kFirst.end()) return static_cast<int>(first - kFirst.begin());
  const auto* last = std::ranges::find(kLast, kind);
  const int middle = static_cast<int>(kFirst.size());
  return last == kLast.end() ? middle : middle + 1 + static_cast<int>(last - kLast.begin());
}

std::pair<std::string, std::string> group_version(const std::string& api_version) {
  const std::size_t slash = api_version.find('/');
  if (slash == std::string::npos) return {"", api_version};
  return {api_version.substr(0, slash), api_version.substr(slash + 1)};
}

// What a server made up for the object and would make up again; a copy may not claim it.
void drop_generated(Doc& object, const std::map<std::string, std::string>& uids) {
  static constexpr std::array<std::string_view, 2> kUidLabels = {
      "batch.kubernetes.io/controller-uid", "controller-uid"};
  const std::string& kind = object["kind"].as_string();
  Doc& metadata = object.at("metadata");
  for (const std::string_view key :
       {"uid", "resourceVersion", "managedFields", "selfLink", "creationTimestamp", "generation"}) {
    metadata.erase(key);
  }
  if (kind == "Job" && !object.get("spec", "manualSelector").as_bool()) {
    object.at("spec").erase("selector");
    for (Doc* labels : {metadata.find("labels"),
                        object.at("spec").at("template").at("metadata").find("labels")}) {
      if (labels == nullptr) continue;
      for (const std::string_view key : kUidLabels) labels->erase(key);
    }
  }
  if (kind == "Pod" && metadata.has("labels")) {  // the job's new uid
    for (const std::string_view key : kUidLabels) {
      Doc* label = metadata.at("labels").find(key);
      const auto it = label == nullptr ? uids.end() : uids.find(label->as_string());
      if (it != uids.end()) *label = it->second;
    }
  }
  if (kind == "Service" && object.get("spec", "clusterIP").as_string() != "None") {
    for (const std::string_view key : {"clusterIP", "clusterIPs"}) object.at("spec").erase(key);
  }
}

}  // namespace

struct Playground::Impl {
  PlaygroundOptions options;
  std::unique_ptr<api::Server> server;
  std::unique_ptr<api::Api> api, pods_api, scheduler_api;
  std::unique_ptr<controllers::PodIndex> pods;
  std::unique_ptr<GpuNodes> gpus;
  std::vector<std::unique_ptr<controllers::Controller>> controllers;
  std::unique_ptr<LocalCluster> cluster;
  std::unique_ptr<live::SchedulerDriver> scheduler;

  Result<void> start(Loop& loop);
  Result<bool> load_one(Doc object, std::map<std::string, std::string>& uids);
};

Result<void> Playground::Impl::start(Loop& loop) {
  const std::uint64_t seed = options.server.seed;
  options.server.node_proxy = [this](std::string_view node, int port, net::HttpRequest request,
                                     std::shared_ptr<net::ResponseWriter> writer) {
    return gpus != nullptr && gpus->serve(node, port, std::move(request), std::move(writer));
  };
  JOGAK_TRY(server, api::Server::make(loop, std::move(options.server)));
  api = server->api("jogak");
  pods_api = server->api("jogak");
  pods = std::make_unique<controllers::PodIndex>(*pods_api);
  const controllers::ApiFactory make_api = [this](std::string manager) {
    return server->api(std::move(manager));
  };
  if (options.has_controllers) {
    const controllers::ControllerContext context{
        .make_api = make_api, .pods = *pods, .options = options.controllers};
    controllers = controllers::workload_controllers(context);
    for (auto& controller : controllers::cluster_controllers(context)) {
      controllers.push_back(std::move(controller));
    }
  }
  if (options.has_kubelets) {
    if (options.has_agents) gpus = std::make_unique<GpuNodes>(server->api("jogak-agent"), seed);
    controllers.push_back(
        std::make_unique<kubelet::Kubelets>(make_api, *pods, options.kubelets, gpus.get()));
  }
  if (options.has_scheduler) {
    scheduler_api = server->api("kube-scheduler");
    cluster = std::make_unique<LocalCluster>(*scheduler_api);
    JOGAK_TRY(scheduler, live::SchedulerDriver::make(*cluster, options.scheduler));
  }
  return {};
}

Playground::Playground(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Playground::~Playground() = default;

Result<std::unique_ptr<Playground>> Playground::make(Loop& loop, PlaygroundOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  JOGAK_TRY_VOID(impl->start(loop));
  return std::unique_ptr<Playground>(new Playground(std::move(impl)));
}

api::Server& Playground::server() { return *impl_->server; }
api::Api& Playground::api() { return *impl_->api; }
bool Playground::is_settled() const { return impl_->gpus == nullptr || impl_->gpus->is_settled(); }
const live::SchedulerDriver* Playground::scheduler() const { return impl_->scheduler.get(); }

// True when it was made, false when it was there.
Result<bool> Playground::Impl::load_one(Doc object, std::map<std::string, std::string>& uids) {
  const std::string kind = object["kind"].as_string();
  const auto [group, version] = group_version(object["apiVersion"].as_string());
  const std::string label =
      fmt::format("{} {}/{}", kind, api::namespace_of(object), api::name_of(object));
  const api::Resource* resource = server->registry().find_kind(group, version, kind);
  if (resource == nullptr) {
    return invalid("{}: {} is not a kind that this server knows", label,
                   object["apiVersion"].as_string());
  }
  Doc& metadata = object.at("metadata");
  const std::string old_uid = metadata["uid"].as_string();
  drop_generated(object, uids);
  Doc owners = Doc::array();
  for (Doc owner : metadata["ownerReferences"].items()) {
    const auto it = uids.find(owner["uid"].as_string());
    if (it != uids.end()) owners.push(owner.set("uid", it->second));
  }
  metadata.erase("ownerReferences");
  if (!owners.empty()) metadata.set("ownerReferences", std::move(owners));
  std::string ns = metadata["namespace"].as_string();
  if (resource->is_namespaced && ns.empty()) ns = "default";
  const Doc status = object["status"];
  auto made = api->create(resource->table, ns, std::move(object));
  if (!made.has_value() && made.error().code == 409) return false;
  if (!made.has_value()) return invalid("{}: {}", label, made.error().message);
  if (!old_uid.empty()) uids[old_uid] = api::uid_of(*made);
  if (status.is_object() && resource->has_status() && kind != "Node") {
    made->set("status", status);
    const auto updated = api->update(resource->table, *std::move(made), "status");
    if (!updated.has_value()) return invalid("{}: status: {}", label, updated.error().message);
  }
  return true;
}

Result<std::size_t> Playground::load(std::vector<Doc> objects) {
  std::ranges::stable_sort(objects, {}, rank_of);
  std::map<std::string, std::string> uids;  // of the file -> of this server
  std::size_t count = 0;
  for (Doc& object : objects) {
    if (impl_->gpus != nullptr && object["kind"].as_string() == "Node") leave_to_agent(object);
    JOGAK_TRY(const bool is_made, impl_->load_one(std::move(object), uids));
    if (is_made) ++count;
  }
  return count;
}

}  // namespace jogak::playground
