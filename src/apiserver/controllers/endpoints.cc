// SPDX-License-Identifier: Apache-2.0
//
// The endpoints and the endpoint slice controllers in one, since both follow the same pods: few
// fields are kept of each pod that a service selects, none of the others.
#include <algorithm>
#include <optional>

#include "apiserver/controllers/endpoint_parts.h"
#include "apiserver/controllers/events.h"
#include "apiserver/controllers/service_controllers.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kSlices = "endpointslices.discovery.k8s.io";
constexpr std::string_view kServiceName = "kubernetes.io/service-name";
constexpr std::string_view kManagedBy = "endpointslice.kubernetes.io/managed-by";
constexpr std::string_view kManager = "endpointslice-controller.k8s.io";
constexpr std::string_view kOverCapacity = "endpoints.kubernetes.io/over-capacity";
constexpr std::string_view kZone = "topology.kubernetes.io/zone";
// Changes of services with very many pods are gathered for a while, longer for every thousand.
constexpr std::size_t kManyPods = 200;
constexpr TimeUs kGatherSpan = 200 * kMsInUs;

bool has_name(const api::ApiError& error, std::string_view cause) {
  return !error.causes.empty() && error.causes[0].reason == cause;
}

class Endpoints : public Controller {
 public:
  explicit Endpoints(const ControllerContext& context)
      : api_(context.make_api("kube-controller-manager")),
        pods_(context.pods),
        queue_(api_->loop(), [this](const std::string& key) { return sync(key); }) {
    services_handle_ =
        api_->follow("services", [this](const api::Api::Change& change) { on_service(change); });
    pods_handle_ = api_->follow("pods", [this](const api::Api::Change& change) { on_pod(change); });
    nodes_handle_ =
        api_->follow("nodes", [this](const api::Api::Change& change) { on_node(change); });
    slices_handle_ =
        api_->follow(kSlices, [this](const api::Api::Change& change) { on_slice(change); });
    endpoints_handle_ = api_->follow("endpoints", [this](const api::Api::Change& change) {
      if (change.type != store::EventType::Added)
        queue_service(*change.object, api::name_of(*change.object));
    });
  }

 private:
  struct Service {
    api::LabelSelector selector;
    bool has_selector = false;
    std::map<std::string, EndpointPod, std::less<>> pods;  // that it selects, by name
    std::map<std::string, TimeUs, std::less<>> pod_times;  // their last changes, as last used
    std::optional<TimeUs> service_time;
    bool is_asked = false;
  };

  void on_service(const api::Api::Change& change) {
    const std::string& ns = api::namespace_of(*change.object);
    const std::string key = key_of(ns, api::name_of(*change.object));
    if (change.type == store::EventType::Deleted) {
      services_.erase(key);
      queue_.add(key);
      return;
    }
    Service& service = services_[key];
    const Doc& spec = (*change.object)["spec"];
    const bool had_selector = service.has_selector;
    const std::string before = service.selector.text();
    service.has_selector =
        !spec["selector"].is_null() && spec["type"].as_string() != "ExternalName";
    service.selector = api::LabelSelector::from_map(spec["selector"]);
    if (service.has_selector && (!had_selector || service.selector.text() != before)) {
      service.pods.clear();
      for (const PodViewPtr& pod : pods_.in_namespace(ns)) {
        if (!service.selector.matches(pod->labels)) continue;
        const auto object = api_->get("pods", ns, pod->name);
        if (object.has_value()) service.pods[pod->name] = endpoint_pod(*object);
      }
    }
    queue_.add(key);
  }

  void on_pod(const api::Api::Change& change) {
    const Doc& pod = *change.object;
    const std::string& name = api::name_of(pod);
    const std::string prefix = api::namespace_of(pod) + "/";
    std::optional<EndpointPod> facts;
    for (auto it = services_.lower_bound(prefix);
         it != services_.end() && it->first.starts_with(prefix); ++it) {
      Service& service = it->second;
      if (!service.has_selector) continue;
      const bool is_in = change.type != store::EventType::Deleted &&
                         service.selector.matches(api::meta(pod)["labels"]);
      const auto known = service.pods.find(name);
      if (is_in) {
        if (!facts.has_value()) facts = endpoint_pod(pod);
        if (known != service.pods.end() && known->second == *facts) continue;
        service.pods[name] = *facts;
      } else if (known == service.pods.end()) {
        continue;
      } else {
        service.pods.erase(known);
      }
      ask(it->first, service);
    }
  }

  void on_node(const api::Api::Change& change) {
    const std::string& name = api::name_of(*change.object);
    const std::string& zone = api::meta(*change.object)["labels"][kZone].as_string();
    const auto it = zones_.find(name);
    if (change.type == store::EventType::Deleted) {
      zones_.erase(name);
    } else if (it != zones_.end() && it->second == zone) {
      return;
    } else {
      zones_[name] = zone;
    }
    for (const PodViewPtr& pod : pods_.on_node(name)) {
      const std::string prefix = pod->ns + "/";
      for (auto service = services_.lower_bound(prefix);
           service != services_.end() && service->first.starts_with(prefix); ++service) {
        if (service->second.pods.contains(pod->name)) ask(service->first, service->second);
      }
    }
  }

  // Somebody else's changes to what is written here are put right.
  void on_slice(const api::Api::Change& change) {
    const Doc& labels = api::meta(*change.object)["labels"];
    if (labels[kManagedBy].as_string() != kManager) return;
    const std::string& service = labels[kServiceName].as_string();
    const std::string key = key_of(api::namespace_of(*change.object), service);
    auto& names = slices_[key];
    if (change.type == store::EventType::Deleted) {
      names.erase(api::name_of(*change.object));
      if (names.empty()) slices_.erase(key);
    } else {
      names.insert(api::name_of(*change.object));
    }
    queue_service(*change.object, service);
  }

  void queue_service(const Doc& object, const std::string& service) {
    const std::string key = key_of(api::namespace_of(object), service);
    if (services_.contains(key)) queue_.add(key);
  }

  void ask(const std::string& key, Service& service) {
    if (service.pods.size() <= kManyPods) {
      queue_.add(key);
    } else if (!service.is_asked) {
      service.is_asked = true;
      const auto thousands = static_cast<TimeUs>(service.pods.size() / 1000);
      queue_.add_after(kGatherSpan * (1 + thousands), key);
    }
  }

  Outcome sync(const std::string& key) {
    const auto [ns, name] = split_key(key);
    const auto it = services_.find(key);
    if (it == services_.end()) {
      const auto removed = api_->remove("endpoints", ns, name);
      const bool is_gone = removed.has_value() || removed.error().code == 404;
      return is_gone ? Outcome::Done : Outcome::Retry;  // slices go with their owner
    }
    Service& service = it->second;
    service.is_asked = false;
    if (!service.has_selector) return Outcome::Done;
    const auto object = api_->get("services", ns, name);
    if (!object.has_value()) return Outcome::Done;
    std::vector<EndpointPod> pods;
    pods.reserve(service.pods.size());
    for (const auto& [pod_name, pod] : service.pods) pods.push_back(pod);
    const std::optional<TimeUs> trigger = trigger_time(service, *object);
    const bool are_right = write_endpoints(*object, pods, trigger);
    return write_slices(key, *object, pods, trigger) && are_right ? Outcome::Done : Outcome::Retry;
  }

  // The earliest change that this look answers; for a new service its creation.
  static std::optional<TimeUs> trigger_time(Service& service, const Doc& object) {
    const TimeUs created =
        api::parse_time(api::meta(object)["creationTimestamp"].as_string()).value_or(0);
    std::optional<TimeUs> earliest;
    const auto take = [&](TimeUs time) { earliest = std::min(earliest.value_or(time), time); };
    std::map<std::string, TimeUs, std::less<>> times;
    for (const auto& [name, pod] : service.pods) {
      if (pod.changed == 0) continue;
      times[name] = pod.changed;
      const auto last = service.pod_times.find(name);
      if (last == service.pod_times.end() || pod.changed > last->second) take(pod.changed);
    }
    const bool is_new = !service.service_time.has_value();
    if (!is_new && created > *service.service_time) take(created);
    service.pod_times = std::move(times);
    service.service_time = created;
    return is_new ? created : earliest;
  }

  static void set_trigger(Doc& object, const std::optional<TimeUs>& trigger) {
    Doc& metadata = object.at("metadata");
    if (trigger.has_value()) {
      metadata.at("annotations").set(kTriggerTime, api::format_time(*trigger));
    } else if (Doc* annotations = metadata.find("annotations")) {
      annotations->erase(kTriggerTime);
    }
  }

  bool write_endpoints(const Doc& service, const std::vector<EndpointPod>& pods,
                       const std::optional<TimeUs>& trigger) {
    const std::string& ns = api::namespace_of(service);
    bool is_cut = false;
    Doc subsets = endpoint_subsets(service, pods, is_cut);
    Doc labels = endpoints_labels(service);
    auto object = api_->get("endpoints", ns, api::name_of(service));
    const bool is_new = !object.has_value();
    if (is_new) {
      object = Doc::object();
      object->set("kind", "Endpoints").set("apiVersion", "v1");
      object->at("metadata").set("name", api::name_of(service)).set("namespace", ns);
    } else {
      const Doc& metadata = api::meta(*object);
      const bool is_same = (*object)["subsets"].items() == subsets.items() &&
                           metadata["labels"] == labels &&
                           metadata["annotations"].has(kOverCapacity) == is_cut;
      if (is_same) return true;
    }
    object->at("metadata").set("labels", std::move(labels));
    set_trigger(*object, trigger);
    if (is_cut) {
      object->at("metadata", "annotations").set(kOverCapacity, "truncated");
    } else if (Doc* annotations = object->at("metadata").find("annotations")) {
      annotations->erase(kOverCapacity);
    }
    object->set("subsets", std::move(subsets));
    const auto written = is_new ? api_->create("endpoints", ns, *std::move(object))
                                : api_->update("endpoints", *std::move(object));
    if (written.has_value() || has_name(written.error(), "NamespaceTerminating")) return true;
    write_event(*api_, "endpoint-controller", service, "Warning",
                is_new ? "FailedToCreateEndpoint" : "FailedToUpdateEndpoint",
                "Failed to write endpoints of service " + ns + "/" + api::name_of(service) + ": " +
                    written.error().message);
    return false;
  }

  bool write_slices(const std::string& key, const Doc& service,
                    const std::vector<EndpointPod>& pods, const std::optional<TimeUs>& trigger) {
    const std::string& ns = api::namespace_of(service);
    std::map<std::string, std::vector<Doc>, std::less<>> by_type;
    if (const auto it = slices_.find(key); it != slices_.end()) {
      for (const std::string& name : it->second) {
        auto slice = api_->get(kSlices, ns, name);
        if (!slice.has_value() || api::is_deleting(*slice)) continue;
        std::string type = (*slice)["addressType"].as_string();
        by_type[std::move(type)].push_back(*std::move(slice));
      }
    }
    bool are_right = true;
    for (const std::string& type : address_types(service)) {
      std::vector<Doc> slices = std::move(by_type[type]);
      by_type.erase(type);
      SlicePlan plan =
          plan_slices(service, type, std::move(slices), port_groups(service, pods, zones_, type));
      are_right = carry_out(key, service, std::move(plan), trigger) && are_right;
    }
    SlicePlan rest;  // of address types that the service has no more
    for (auto& [type, slices] : by_type) {
      for (Doc& slice : slices) rest.removed.push_back(std::move(slice));
    }
    return carry_out(key, service, std::move(rest), trigger) && are_right;
  }

  bool carry_out(const std::string& key, const Doc& service, SlicePlan plan,
                 const std::optional<TimeUs>& trigger) {
    const std::string& ns = api::namespace_of(service);
    bool are_right = true;
    for (Doc& slice : plan.created) {
      if (api::is_deleting(service)) break;
      set_trigger(slice, trigger);
      const auto made = api_->create(kSlices, ns, std::move(slice));
      if (made.has_value()) {
        slices_[key].insert(api::name_of(*made));
      } else {
        are_right = are_right && has_name(made.error(), "NamespaceTerminating");
      }
    }
    for (Doc& slice : plan.updated) {
      set_trigger(slice, trigger);
      are_right = api_->update(kSlices, std::move(slice)).has_value() && are_right;
    }
    for (const Doc& slice : plan.removed) {
      const auto removed = api_->remove(kSlices, ns, api::name_of(slice));
      are_right = (removed.has_value() || removed.error().code == 404) && are_right;
    }
    return are_right;
  }

  std::unique_ptr<api::Api> api_;
  PodIndex& pods_;
  WorkQueue queue_;
  std::map<std::string, Service, std::less<>> services_;                           // by ns/name
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> slices_;  // by service
  Zones zones_;  // of each node; "" for none
  std::shared_ptr<void> services_handle_, pods_handle_, nodes_handle_, slices_handle_,
      endpoints_handle_;
};

}  // namespace

std::unique_ptr<Controller> endpoints_controller(const ControllerContext& context) {
  return std::make_unique<Endpoints>(context);
}

}  // namespace jogak::controllers
