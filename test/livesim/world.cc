// SPDX-License-Identifier: Apache-2.0
//
// Parts start in the order of their dependence. The provisioner is the one part that the playground
// lacks: it serves claims whose node was chosen, after a while, and sometimes hands them back.
#include "test/livesim/world.h"

#include <utility>

#include <fmt/core.h>

#include "apiserver/kubelet/kubelets.h"
#include "apiserver/object/meta.h"
#include "base/check.h"

namespace jogak::livesim {

namespace {

constexpr std::string_view kGpu = "nvidia.com/gpu";
constexpr std::string_view kClass = "late";
constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";
constexpr std::string_view kToken = "livesim";

Doc storage_class() {
  Doc object = Doc::object();
  object.set("apiVersion", "storage.k8s.io/v1").set("kind", "StorageClass");
  object.at("metadata").set("name", kClass);
  object.set("provisioner", "livesim.example/disk")
      .set("volumeBindingMode", "WaitForFirstConsumer");
  return object;
}

Doc priority_class(std::string_view name, int value) {
  Doc object = Doc::object();
  object.set("apiVersion", "scheduling.k8s.io/v1").set("kind", "PriorityClass");
  object.at("metadata").set("name", name);
  object.set("value", value);
  return object;
}

std::string devices_text(const NodeSpec& spec) {
  Doc devices = Doc::array();
  for (int i = 0; i < spec.gpus; ++i) {
    Doc device = Doc::object();
    device.set("memoryMiB", 40960);
    for (const int sick : spec.sick) {
      if (sick == i) device.set("health", "Unhealthy");
    }
    devices.push(std::move(device));
  }
  std::string text;
  devices.append_json(text);
  return text;
}

Doc claim_object(const PodSpec& pod) {
  Doc object = Doc::object();
  object.set("apiVersion", "v1").set("kind", "PersistentVolumeClaim");
  object.at("metadata").set("name", pod.name + "-data").set("namespace", pod.ns);
  object.at("spec")
      .set("storageClassName", kClass)
      .set("accessModes", Doc::strings({"ReadWriteOnce"}));
  object.at("spec", "resources", "requests").set("storage", "1Gi");
  return object;
}

}  // namespace

Doc node_object(const NodeSpec& spec) {
  Doc node = Doc::object();
  node.set("apiVersion", "v1").set("kind", "Node");
  node.at("metadata").set("name", spec.name);
  node.at("metadata", "labels")
      .set("jogak.io/simulated", "true")
      .set("kubernetes.io/hostname", spec.name)
      .set("zone", spec.zone);
  Doc& capacity = node.at("status", "capacity");
  capacity.set("cpu", std::to_string(spec.cpu))
      .set("memory", "64Gi")
      .set("pods", std::to_string(spec.pods));
  if (spec.gpus > 0) {
    capacity.set(kGpu, std::to_string(spec.gpus));
    node.at("metadata", "labels").set("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB");
  }
  if (spec.has_devices) node.at("metadata", "annotations").set("jogak.io/gpus", devices_text(spec));
  return node;
}

Doc pod_object(const PodSpec& spec) {
  Doc pod = Doc::object();
  pod.set("apiVersion", "v1").set("kind", "Pod");
  pod.at("metadata").set("name", spec.name).set("namespace", spec.ns);
  if (!spec.app.empty()) pod.at("metadata", "labels").set("app", spec.app);
  const auto annotate = [&](std::string_view key, std::string value) {
    pod.at("metadata", "annotations").set(key, std::move(value));
  };
  if (spec.share_milli > 0) annotate("jogak.io/gpu-milli", std::to_string(spec.share_milli));
  if (spec.share_count > 1) annotate("jogak.io/gpu-count", std::to_string(spec.share_count));
  if (spec.runs_for_s > 0) annotate("jogak.io/run-seconds", std::to_string(spec.runs_for_s));
  if (spec.ignores_term) annotate("jogak.io/ignores-term", "true");
  Doc container = Doc::object();
  container.set("name", "main").set("image", "example/main:1");
  container.at("resources", "requests").set("cpu", fmt::format("{}m", spec.cpu_milli));
  if (spec.gpus > 0) {
    container.at("resources", "requests").set(kGpu, std::to_string(spec.gpus));
    container.at("resources", "limits").set(kGpu, std::to_string(spec.gpus));
  }
  Doc& body = pod.at("spec");
  body.set("containers", Doc::array().push(std::move(container)))
      .set("schedulerName", spec.scheduler)
      .set("restartPolicy", spec.runs_for_s > 0 ? "Never" : "Always")
      .set("terminationGracePeriodSeconds", spec.grace_s);
  if (!spec.zone.empty()) body.at("nodeSelector").set("zone", spec.zone);
  if (!spec.priority_class.empty()) body.set("priorityClassName", spec.priority_class);
  if (spec.is_gated) {
    body.set("schedulingGates", Doc::array().push(Doc::object().set("name", "example.com/wait")));
  }
  if (spec.needs_volume) {
    Doc volume = Doc::object();
    volume.set("name", "data");
    volume.at("persistentVolumeClaim").set("claimName", spec.name + "-data");
    body.set("volumes", Doc::array().push(std::move(volume)));
  }
  return pod;
}

World::World(WorldOptions options) : rng_(options.seed, "world") {
  api::ServerOptions server_options;
  server_options.seed = options.seed;
  server_options.tokens[std::string(kToken)] = api::User{};
  auto made = api::Server::make(loop_, std::move(server_options));
  JOGAK_CHECK(made.has_value(), "{}", made.error().what);
  server_ = *std::move(made);
  facts_ = std::make_unique<Facts>(loop_, *server_);
  api_ = server_->api("livesim");
  pods_api_ = server_->api("jogak");
  pods_ = std::make_unique<controllers::PodIndex>(*pods_api_);
  const controllers::ApiFactory make_api = [this](std::string manager) {
    return server_->api(std::move(manager));
  };
  if (options.has_controllers) {
    controllers_ =
        controllers::cluster_controllers({.make_api = make_api, .pods = *pods_, .options = {}});
  }
  if (options.has_kubelets) {
    controllers_.push_back(
        std::make_unique<kubelet::Kubelets>(make_api, *pods_, kubelet::KubeletOptions{}));
  }
  client_ = std::make_unique<playground::LocalClient>(loop_, *server_, std::string(kToken));
  network_ = std::make_unique<Network>(loop_, *client_, options.seed);
  add("storageclasses.storage.k8s.io", "", storage_class());
  add("priorityclasses.scheduling.k8s.io", "", priority_class("low", 10));
  add("priorityclasses.scheduling.k8s.io", "", priority_class("mid", 100));
  add("priorityclasses.scheduling.k8s.io", "", priority_class("high", 1000));
  claims_ = api_->follow("persistentvolumeclaims",
                         [this](const api::Api::Change& change) { on_claim(change); });
}

World::~World() {
  // What is on its way to the server must not outlive it.
  loop_.run_ready();
}

void World::add(std::string_view resource, std::string_view ns, Doc object) {
  const auto made = api_->create(resource, ns, std::move(object));
  JOGAK_CHECK(made.has_value(), "{}: {}", resource, made.error().message);
}

void World::add_node(const NodeSpec& spec) { add("nodes", "", node_object(spec)); }

void World::add_pod(const PodSpec& spec) {
  if (spec.needs_volume &&
      !api_->get("persistentvolumeclaims", spec.ns, spec.name + "-data").has_value()) {
    add("persistentvolumeclaims", spec.ns, claim_object(spec));
  }
  add("pods", spec.ns, pod_object(spec));
}

bool World::remove(std::string_view resource, std::string_view ns, std::string_view name,
                   int grace_s) {
  Doc options;
  if (grace_s >= 0) options = Doc::object().set("gracePeriodSeconds", grace_s);
  return api_->remove(resource, ns, name, options).has_value();
}

bool World::patch(std::string_view resource, std::string_view ns, std::string_view name,
                  const Doc& merge) {
  return api_->patch(resource, ns, name, api::PatchType::Merge, merge).has_value();
}

bool World::bind_foreign(const PodFacts& pod, std::string_view node) {
  Doc binding = Doc::object();
  binding.set("apiVersion", "v1").set("kind", "Binding");
  binding.at("metadata").set("name", pod.name).set("namespace", pod.ns).set("uid", pod.uid);
  binding.at("target").set("apiVersion", "v1").set("kind", "Node").set("name", node);
  const std::string ns = pod.ns;
  const std::string name = pod.name;
  facts_->is_outside = true;
  const bool is_bound = api_->create("pods", ns, std::move(binding), "binding", name).has_value();
  facts_->is_outside = false;
  return is_bound;
}

void World::cordon(std::string_view node, bool is_on) {
  patch("nodes", "", node,
        Doc::object().set("spec", Doc::object().set("unschedulable", is_on ? Doc(true) : Doc())));
}

void World::set_devices(std::string_view node, const NodeSpec& spec) {
  Doc merge = Doc::object();
  merge.at("metadata", "annotations").set("jogak.io/gpus", devices_text(spec));
  patch("nodes", "", node, merge);
}

void World::on_claim(const api::Api::Change& change) {
  if (change.type == store::EventType::Deleted) return;
  const Doc& claim = *change.object;
  if (claim.get("spec", "storageClassName").as_string() != kClass) return;
  if (!claim.get("spec", "volumeName").as_string().empty()) return;
  if (!claim.get("metadata", "annotations").has(kSelectedNode)) return;
  const auto delay = static_cast<TimeUs>(rng_.below(5 * kSecondInUs));
  loop_.after(delay, [this, ns = api::namespace_of(claim), name = api::name_of(claim)] {
    provision(ns, name);
  });
}

void World::provision(const std::string& ns, const std::string& name) {
  const auto claim = api_->get("persistentvolumeclaims", ns, name);
  if (!claim.has_value() || !claim->get("spec", "volumeName").as_string().empty()) return;
  const std::string node = claim->get("metadata", "annotations")[kSelectedNode].as_string();
  if (node.empty()) return;
  const std::string volume_name = "pvc-" + api::uid_of(*claim);
  if (api_->get("persistentvolumes", "", volume_name).has_value()) return;
  const auto node_object = api_->get("nodes", "", node);
  if (!node_object.has_value() || rng_.chance(1, 6)) {  // no space there: choose again
    Doc merge = Doc::object();
    merge.at("metadata", "annotations").set(kSelectedNode, Doc());
    patch("persistentvolumeclaims", ns, name, merge);
    return;
  }
  Doc volume = Doc::object();
  volume.set("apiVersion", "v1").set("kind", "PersistentVolume");
  volume.at("metadata").set("name", volume_name);
  volume.at("metadata", "annotations")
      .set("pv.kubernetes.io/provisioned-by", "livesim.example/disk");
  Doc& spec = volume.at("spec");
  spec.at("capacity").set("storage", "1Gi");
  spec.set("accessModes", Doc::strings({"ReadWriteOnce"}))
      .set("storageClassName", kClass)
      .set("persistentVolumeReclaimPolicy", "Retain");
  spec.at("hostPath").set("path", "/data");
  spec.at("claimRef")
      .set("apiVersion", "v1")
      .set("kind", "PersistentVolumeClaim")
      .set("namespace", ns)
      .set("name", name)
      .set("uid", api::uid_of(*claim));
  Doc expression = Doc::object();
  expression.set("key", "zone").set("operator", "In");
  expression.set("values",
                 Doc::strings({node_object->get("metadata", "labels", "zone").as_string()}));
  Doc term = Doc::object();
  term.set("matchExpressions", Doc::array().push(std::move(expression)));
  spec.at("nodeAffinity", "required").set("nodeSelectorTerms", Doc::array().push(std::move(term)));
  add("persistentvolumes", "", std::move(volume));
}

}  // namespace jogak::livesim
