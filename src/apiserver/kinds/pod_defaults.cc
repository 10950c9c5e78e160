// SPDX-License-Identifier: Apache-2.0
//
// What the server fills into pod specs. Facts: pkg/apis/core/v1/defaults.go of Kubernetes, and the
// aliases that its conversions keep equal.
#include <array>
#include <string>
#include <string_view>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/pod_image.h"
#include "apiserver/kinds/pod_spec.h"
#include "apiserver/kinds/storage_rules.h"
#include "apiserver/object/amount.h"
#include "apiserver/object/resource_list.h"

namespace jogak::api {

namespace {

constexpr std::array<std::string_view, 3> kContainerLists = {"containers", "initContainers",
                                                             "ephemeralContainers"};

void default_string(Doc& object, std::string_view key, std::string_view value) {
  Doc& member = object.at(key);
  if (member.as_string().empty()) {
    member = value;
  }
}

// Of plain numbers, where 0 means "not given".
void default_number(Doc& object, std::string_view key, std::int64_t value) {
  Doc& member = object.at(key);
  if (member.as_int() == 0) {
    member = value;
  }
}

template <class Each>
void for_each(Doc& object, std::string_view key, const Each& each) {
  if (Doc* list = object.find(key); list != nullptr && list->is_array()) {
    for (Doc& item : list->items()) {
      each(item);
    }
  }
}

template <class With>
void with_member(Doc& object, std::string_view key, const With& with) {
  if (Doc* member = object.find(key); member != nullptr && member->is_object()) {
    with(*member);
  }
}

void round_requirements(Doc& holder) {
  with_member(holder, "resources", [](Doc& resources) {
    round_resources(resources, "limits");
    round_resources(resources, "requests");
  });
}

void default_field_ref(Doc& holder) {
  with_member(holder, "fieldRef", [](Doc& ref) { default_string(ref, "apiVersion", "v1"); });
}

void default_http_get(Doc& handler) {
  with_member(handler, "httpGet", [](Doc& get) {
    default_string(get, "path", "/");
    default_string(get, "scheme", "HTTP");
  });
}

void default_probe(Doc& container, std::string_view key) {
  with_member(container, key, [](Doc& probe) {
    default_number(probe, "timeoutSeconds", 1);
    default_number(probe, "periodSeconds", 10);
    default_number(probe, "successThreshold", 1);
    default_number(probe, "failureThreshold", 3);
    default_http_get(probe);
    with_member(probe, "grpc", [](Doc& grpc) { grpc.set_default("service", ""); });
  });
}

void default_pull_policy(Doc& holder, std::string_view key, std::string_view image_key) {
  if (holder[key].as_string().empty()) {
    const bool is_latest = is_latest_image(holder[image_key].as_string());
    holder.set(key, is_latest ? "Always" : "IfNotPresent");
  }
}

void default_container(Doc& container) {
  default_pull_policy(container, "imagePullPolicy", "image");
  default_string(container, "terminationMessagePath", "/dev/termination-log");
  default_string(container, "terminationMessagePolicy", "File");
  for_each(container, "ports", [](Doc& port) { default_string(port, "protocol", "TCP"); });
  for_each(container, "env", [](Doc& variable) {
    with_member(variable, "valueFrom", [](Doc& source) {
      default_field_ref(source);
      with_member(source, "fileKeyRef", [](Doc& ref) { ref.set_default("optional", false); });
    });
  });
  round_requirements(container);
  default_probe(container, "livenessProbe");
  default_probe(container, "readinessProbe");
  default_probe(container, "startupProbe");
  with_member(container, "lifecycle", [](Doc& lifecycle) {
    with_member(lifecycle, "postStart", default_http_get);
    with_member(lifecycle, "preStop", default_http_get);
  });
}

constexpr std::int64_t kFileMode = 0644;
constexpr std::int64_t kTokenSeconds = 3600;

void default_downward_items(Doc& holder) { for_each(holder, "items", default_field_ref); }

void default_projection(Doc& projected) {
  projected.set_default("defaultMode", kFileMode);
  for_each(projected, "sources", [](Doc& source) {
    with_member(source, "downwardAPI", default_downward_items);
    with_member(source, "serviceAccountToken",
                [](Doc& token) { token.set_default("expirationSeconds", kTokenSeconds); });
  });
}

void default_ephemeral(Doc& ephemeral) {
  with_member(ephemeral, "volumeClaimTemplate", [](Doc& claim) {
    Doc& spec = claim.at("spec");
    spec.set_default("volumeMode", "Filesystem");
    round_requirements(spec);
  });
}

void default_volume(Doc& volume) {
  if (volume.size() == (volume.has("name") ? 1U : 0U)) {
    volume.set("emptyDir", Doc::object());
    return;
  }
  with_member(volume, "secret", [](Doc& secret) { secret.set_default("defaultMode", kFileMode); });
  with_member(volume, "configMap", [](Doc& map) { map.set_default("defaultMode", kFileMode); });
  with_member(volume, "downwardAPI", [](Doc& downward) {
    downward.set_default("defaultMode", kFileMode);
    default_downward_items(downward);
  });
  with_member(volume, "projected", default_projection);
  with_member(volume, "ephemeral", default_ephemeral);
  with_member(volume, "image",
              [](Doc& image) { default_pull_policy(image, "pullPolicy", "reference"); });
  default_volume_sources(volume);
}

// serviceAccount is the old name of serviceAccountName; both are shown, with one value.
void equal_service_accounts(Doc& spec) {
  const std::string name = spec["serviceAccountName"].as_string().empty()
                               ? spec["serviceAccount"].as_string()
                               : spec["serviceAccountName"].as_string();
  if (!name.empty()) {
    spec.set("serviceAccountName", name);
    spec.set("serviceAccount", name);
  }
}

void default_requests(Doc& container) {
  Doc* resources = container.find("resources");
  if (resources == nullptr || (*resources)["limits"].empty()) {
    return;
  }
  const Doc limits = (*resources)["limits"];
  Doc& requests = resources->at("requests");
  for (const Doc::Member& limit : limits.members()) {
    requests.set_default(limit.key, limit.value);
  }
}

void set_missing(Doc& resources, std::string_view side, const ResourceList& from) {
  for (const auto& [name, amount] : from) {
    resources.at(side).set_default(name, amount.text());
  }
}

// spec.resources: huge pages get the limit that the containers have together, and requests come
// from the containers, then from the limits.
void default_pod_level(Doc& spec) {
  Doc* resources = spec.find("resources");
  if (resources == nullptr ||
      ((*resources)["limits"].empty() && (*resources)["requests"].empty())) {
    return;
  }
  Doc pod = Doc::object();
  pod.set("spec", spec);
  constexpr PodSumOptions kContainersOnly = {.with_pod_level = false, .with_overhead = false};
  ResourceList limits = pod_limits(pod, kContainersOnly);
  std::erase_if(limits, [&](const auto& entry) {
    return !is_hugepage_resource(entry.first) || (*resources)["requests"].has(entry.first);
  });
  set_missing(*resources, "limits", limits);
  if ((*resources)["limits"].empty()) {
    return;
  }
  ResourceList requests = pod_requests(pod, kContainersOnly);
  std::erase_if(requests, [](const auto& entry) {
    return !is_pod_level_resource(entry.first) || !is_overcommit_allowed(entry.first);
  });
  set_missing(*resources, "requests", requests);
  ResourceList rest = read_resources((*resources)["limits"]);
  std::erase_if(rest, [](const auto& entry) { return !is_pod_level_resource(entry.first); });
  set_missing(*resources, "requests", rest);
}

void default_host_ports(Doc& container) {
  for_each(container, "ports", [](Doc& port) {
    if (port["hostPort"].as_int() == 0 && port["containerPort"].as_int() != 0) {
      port.set("hostPort", port["containerPort"].as_int());
    }
  });
}

}  // namespace

void default_pod_only(Doc& spec) {
  for_each(spec, "containers", default_requests);
  for_each(spec, "initContainers", default_requests);
  default_pod_level(spec);
  spec.set_default("enableServiceLinks", true);
  if (spec["hostNetwork"].as_bool()) {
    for_each(spec, "containers", default_host_ports);
    for_each(spec, "initContainers", default_host_ports);
  }
}

void default_pod_spec(Doc& spec) {
  default_string(spec, "dnsPolicy", "ClusterFirst");
  default_string(spec, "restartPolicy", "Always");
  if (spec["securityContext"].is_null()) {
    spec.set("securityContext", Doc::object());
  }
  spec.set_default("terminationGracePeriodSeconds", 30);
  default_string(spec, "schedulerName", "default-scheduler");
  for_each(spec, "volumes", default_volume);
  for (const std::string_view list : kContainerLists) {
    for_each(spec, list, default_container);
  }
  round_resources(spec, "overhead");
  round_requirements(spec);
  equal_service_accounts(spec);
}

void default_pod_template(Doc& pod_template) { default_pod_spec(pod_template.at("spec")); }

void drop_gated_pod_fields(Doc& spec, bool has_pod_groups) {
  if (!has_pod_groups) {
    spec.erase("schedulingGroup");
  }
  for (const std::string_view list : kContainerLists) {
    for_each(spec, list, [](Doc& container) {
      if (Doc* hooks = container.find("lifecycle");
          hooks != nullptr && hooks->erase("stopSignal")) {
        if (hooks->empty()) {
          container.erase("lifecycle");
        }
      }
    });
  }
  for_each(spec, "volumes", [](Doc& volume) {
    with_member(volume, "projected", [](Doc& projected) {
      for_each(projected, "sources", [](Doc& source) {
        source.erase("clusterTrustBundle");
        source.erase("podCertificate");
      });
    });
  });
}

}  // namespace jogak::api
