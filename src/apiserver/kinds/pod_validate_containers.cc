// SPDX-License-Identifier: Apache-2.0
//
// Containers of a pod: ordinary, init and ephemeral ones.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kinds/pod_validate.h"

namespace jogak::api {

namespace {

constexpr std::size_t kMaxRestartRules = 20;
constexpr std::size_t kMaxExitCodes = 255;

void check_ports(const Doc& container, const Spot& at, FieldErrors& errors) {
  std::vector<std::string_view> names;
  const auto& ports = container["ports"].items();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const Doc& port = ports[i];
    const Spot spot = at.index(i);
    if (const std::string& name = port["name"].as_string(); !name.empty()) {
      const Problems problems = check_port_name(name);
      add_problems(errors, spot.child("name"), port["name"], problems);
      if (problems.empty() && std::ranges::find(names, name) != names.end()) {
        errors.duplicate(spot.child("name"), port["name"]);
      } else if (problems.empty()) {
        names.push_back(name);
      }
    }
    if (port["containerPort"].as_int() == 0) {
      errors.required(spot.child("containerPort"));
    } else {
      add_problems(errors, spot.child("containerPort"), port["containerPort"],
                   check_port(port["containerPort"].as_int()));
    }
    if (port["hostPort"].as_int() != 0) {
      add_problems(errors, spot.child("hostPort"), port["hostPort"],
                   check_port(port["hostPort"].as_int()));
    }
    require_one_of(port["protocol"], {"SCTP", "TCP", "UDP"}, spot.child("protocol"), errors);
  }
}

// Host ports that two containers want on one address.
void check_host_ports(const Doc& container, const Spot& at, std::set<std::string>& taken,
                      FieldErrors& errors) {
  const Spot list = at.child("ports");
  const auto& ports = container["ports"].items();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const Doc& port = ports[i];
    if (port["hostPort"].as_int() == 0) {
      continue;
    }
    std::string key = port["protocol"].as_string() + "/" + port["hostIP"].as_string() + "/" +
                      port["hostPort"].number_text();
    if (!taken.insert(key).second) {
      errors.duplicate(list.index(i).child("hostPort"), key);
    }
  }
}

void check_resize_policy(const Doc& container, const std::string& pod_restart_policy,
                         const Spot& at, FieldErrors& errors) {
  std::vector<std::string_view> seen;
  const auto& policies = container["resizePolicy"].items();
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const Doc& resource = policies[i]["resourceName"];
    const Doc& policy = policies[i]["restartPolicy"];
    if (std::ranges::find(seen, resource.as_string()) != seen.end()) {
      errors.duplicate(at.index(i), resource);
    }
    seen.push_back(resource.as_string());
    require_one_of(resource, {"cpu", "memory"}, at, errors);
    require_one_of(policy, {"NotRequired", "RestartContainer"}, at, errors);
    if (pod_restart_policy == "Never" && policy.as_string() != "NotRequired") {
      errors.invalid(at, shown(policy),
                     "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
    }
  }
}

void check_restart_policy(const Doc& container, bool is_init, const Spot& at, FieldErrors& errors) {
  const Doc& policy = container["restartPolicy"];
  const auto& rules = container["restartPolicyRules"].items();
  if (policy.is_null()) {
    if (rules.empty()) {
      return;
    }
    errors.required(at.child("restartPolicy"),
                    "must specify restartPolicy when restart rules are used");
    if (is_init) {
      return;
    }
  } else {
    check_one_of(policy, {"Always", "Never", "OnFailure"}, at.child("restartPolicy"), errors);
  }
  const Spot list = at.child("restartPolicyRules");
  if (rules.size() > kMaxRestartRules) {
    errors.too_many(list, rules.size(), kMaxRestartRules);
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Spot spot = list.index(i);
    if (!is_any_of(rules[i]["action"].as_string(), {"Restart", "RestartAllContainers"})) {
      errors.not_supported(spot.child("action"), shown(rules[i]["action"]),
                           {"Restart", "RestartAllContainers"});
    }
    const Doc& codes = rules[i]["exitCodes"];
    const Spot codes_spot = spot.child("exitCodes");
    if (codes.is_null()) {
      errors.required(codes_spot, "must be specified");
      continue;
    }
    if (!is_any_of(codes["operator"].as_string(), {"In", "NotIn"})) {
      errors.not_supported(codes_spot.child("operator"), shown(codes["operator"]), {"In", "NotIn"});
    }
    if (codes["values"].size() > kMaxExitCodes) {
      errors.too_many(codes_spot.child("values"), codes["values"].size(), kMaxExitCodes);
    }
  }
}

void check_common(const PodSpecView& view, const Doc& container, const PodVolumes& volumes,
                  const Spot& at, FieldErrors& errors) {
  if (container["name"].as_string().empty()) {
    errors.required(at.child("name"));
  } else {
    check_name(container["name"], check_dns1123_label, at.child("name"), errors);
  }
  require_text(container, "image", at, errors);
  require_one_of(container["terminationMessagePolicy"], {"File", "FallbackToLogsOnError"},
                 at.child("terminationMessagePolicy"), errors);
  check_ports(container, at.child("ports"), errors);
  validate_env(container, at.child("env"), errors);
  validate_env_from(container, at.child("envFrom"), errors);
  validate_volume_mounts(container, volumes, at.child("volumeMounts"), errors);
  validate_volume_devices(container, volumes, at.child("volumeDevices"), errors);
  check_pull_policy(container["imagePullPolicy"], at.child("imagePullPolicy"), errors);
  validate_container_resources(view, container["resources"], at.child("resources"), errors);
  check_resize_policy(container, view.spec["restartPolicy"].as_string(), at.child("resizePolicy"),
                      errors);
  validate_container_security(view, container["securityContext"], at.child("securityContext"),
                              errors);
}

class Names {
 public:
  // False when it was there.
  bool add(std::string_view name) {
    if (has(name)) {
      return false;
    }
    list_.push_back(name);
    return true;
  }
  bool has(std::string_view name) const { return std::ranges::find(list_, name) != list_.end(); }

 private:
  std::vector<std::string_view> list_;
};

void check_ordinary(const PodSpecView& view, const PodVolumes& volumes, const Spot& at,
                    FieldErrors& errors) {
  const auto& containers = view.spec["containers"].items();
  if (containers.empty()) {
    errors.required(at);
    return;
  }
  Names names;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const Doc& container = containers[i];
    const Spot spot = at.index(i);
    check_common(view, container, volumes, spot, errors);
    if (!names.add(container["name"].as_string())) {
      errors.duplicate(spot.child("name"), shown(container["name"]));
    }
    validate_probes_and_lifecycle(view, container, spot, errors);
    check_restart_policy(container, false, spot, errors);
  }
  std::set<std::string> taken;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    check_host_ports(containers[i], at.index(i), taken, errors);
  }
}

void check_init_only(const PodSpecView& view, const Doc& container, const Spot& at,
                     FieldErrors& errors) {
  if (container["restartPolicy"].as_string() == "Always") {
    validate_probes_and_lifecycle(view, container, at, errors);
    return;
  }
  for (const std::string_view key :
       {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}) {
    if (container.has(key)) {
      errors.forbidden(at.child(key),
                       "may not be set for init containers without restartPolicy=Always");
    }
  }
  const Spot policies = at.child("resizePolicy");
  for (std::size_t i = 0; i < container["resizePolicy"].size(); ++i) {
    const Doc& policy = container["resizePolicy"].items()[i]["restartPolicy"];
    if (policy.as_string() == "RestartContainer") {
      errors.invalid(policies.index(i).child("restartPolicy"), policy,
                     "must not be set to 'RestartContainer' for non-sidecar initContainers");
    }
  }
}

void check_init(const PodSpecView& view, const PodVolumes& volumes, const Spot& at,
                FieldErrors& errors) {
  const auto& containers = view.spec["initContainers"].items();
  if (containers.empty()) {
    return;
  }
  Names names;
  for (const Doc& container : view.spec["containers"].items()) {
    names.add(container["name"].as_string());
  }
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const Doc& container = containers[i];
    const Spot spot = at.index(i);
    check_common(view, container, volumes, spot, errors);
    check_restart_policy(container, true, spot, errors);
    if (names.has(container["name"].as_string())) {
      errors.duplicate(spot.child("name"), shown(container["name"]));
    } else if (!container["name"].as_string().empty()) {
      names.add(container["name"].as_string());
    }
    // Init containers run one after the other, so each is looked at alone; the server counts this
    // lonely list from 0.
    std::set<std::string> taken;
    check_host_ports(container, at.index(0), taken, errors);
    check_init_only(view, container, spot, errors);
  }
}

// What makes no sense for a container that comes for a visit.
constexpr std::array<std::string_view, 9> kNotForEphemeral = {
    "ports",         "resources",      "resizePolicy", "restartPolicy", "restartPolicyRules",
    "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"};

void check_ephemeral_members(const Doc& container, const Spot& at, FieldErrors& errors) {
  for (const std::string_view key : kNotForEphemeral) {
    const bool is_empty_struct = key == "resources" && container[key].empty();
    if (container.has(key) && !is_empty_struct) {
      errors.forbidden(at.child(key), "cannot be set for an Ephemeral Container");
    }
  }
  const Spot list = at.child("volumeMounts");
  const auto& mounts = container["volumeMounts"].items();
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    for (const std::string_view key : {"subPath", "subPathExpr"}) {
      if (!mounts[i][key].as_string().empty()) {
        errors.forbidden(list.index(i).child(key), "cannot be set for an Ephemeral Container");
      }
    }
  }
}

bool has_outer_space(const std::string& text) {
  constexpr std::string_view kSpaces = " \t\n\v\f\r";
  return !text.empty() && (kSpaces.find(text.front()) != std::string_view::npos ||
                           kSpaces.find(text.back()) != std::string_view::npos);
}

void check_image_spaces(const Doc& container, const Spot& at, FieldErrors& errors) {
  if (has_outer_space(container["image"].as_string())) {
    errors.invalid(at.child("image"), container["image"],
                   "must not have leading or trailing whitespace");
  }
}

void check_ephemeral(const PodSpecView& view, const PodVolumes& volumes, const Spot& at,
                     FieldErrors& errors) {
  const auto& containers = view.spec["ephemeralContainers"].items();
  if (containers.empty()) {
    return;
  }
  Names others;
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const Doc& container : view.spec[list].items()) {
      others.add(container["name"].as_string());
    }
  }
  Names names = others;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const Doc& container = containers[i];
    const Spot spot = at.index(i);
    check_common(view, container, volumes, spot, errors);
    check_image_spaces(container, spot, errors);
    if (!names.add(container["name"].as_string())) {
      errors.duplicate(spot.child("name"), shown(container["name"]));
    }
    const Doc& target = container["targetContainerName"];
    if (!target.as_string().empty() && !others.has(target.as_string())) {
      errors.not_found(spot.child("targetContainerName"), target);
    }
    check_ephemeral_members(container, spot, errors);
  }
}

}  // namespace

void check_pull_policy(const Doc& policy, const Spot& at, FieldErrors& errors) {
  require_one_of(policy, {"Always", "IfNotPresent", "Never"}, at, errors);
}

void validate_containers(const PodSpecView& view, const PodVolumes& volumes, const Spot& at,
                         FieldErrors& errors) {
  check_ordinary(view, volumes, at.child("containers"), errors);
  check_init(view, volumes, at.child("initContainers"), errors);
  check_ephemeral(view, volumes, at.child("ephemeralContainers"), errors);
}

void validate_images_of_pod(const Doc& spec, const Spot& at, FieldErrors& errors) {
  for (const std::string_view key : {"containers", "initContainers"}) {
    const Spot list = at.child(key);
    const auto& containers = spec[key].items();
    for (std::size_t i = 0; i < containers.size(); ++i) {
      check_image_spaces(containers[i], list.index(i), errors);
    }
  }
}

}  // namespace jogak::api
