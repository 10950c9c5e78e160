// SPDX-License-Identifier: Apache-2.0
//
// A pod spec as a whole, and pod templates.
#include "apiserver/kinds/pod_validate.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "apiserver/kinds/pod_spec.h"

namespace jogak::api {

namespace {

constexpr std::int64_t kMaxInt32 = 2147483647;
constexpr std::int64_t kMaxFileMode = 0777;
constexpr std::size_t kMaxHostname = 64;
constexpr std::size_t kMaxNameservers = 3;
constexpr std::size_t kMaxSearches = 32;
constexpr std::size_t kMaxSearchChars = 2048;

void check_claims(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  const auto& claims = view.spec["resourceClaims"].items();
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Doc& claim = claims[i];
    const Spot spot = at.index(i);
    if (view.is_pod && view.metadata["annotations"].has("kubernetes.io/config.mirror")) {
      errors.forbidden(Path(""), "static pods do not support resource claims");
      continue;
    }
    const std::string& name = claim["name"].as_string();
    const bool is_repeated =
        std::any_of(claims.begin(), claims.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const Doc& other) { return other["name"].as_string() == name; });
    if (name.empty()) {
      errors.required(spot.child("name"));
    } else if (is_repeated) {
      errors.duplicate(spot.child("name"), name);
    } else {
      check_name(claim["name"], check_dns1123_label, spot.child("name"), errors);
    }
    const bool has_name = claim.has("resourceClaimName");
    const bool has_template = claim.has("resourceClaimTemplateName");
    if (has_name && has_template) {
      errors.invalid(spot, claim,
                     "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be "
                     "specified");
    }
    if (!has_name && !has_template) {
      errors.invalid(spot, claim,
                     "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`");
    }
    for (const std::string_view key : {"resourceClaimName", "resourceClaimTemplateName"}) {
      if (claim.has(key)) {
        check_name(claim[key], check_dns1123_subdomain, spot.child(key), errors);
      }
    }
  }
}

// On the host's network, container ports are host ports.
void check_host_network(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  if (!view.spec["hostNetwork"].as_bool()) {
    return;
  }
  const Spot list = at.child("containers");
  const auto& containers = view.spec["containers"].items();
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const Spot container = list.index(i);
    const Spot ports = container.child("ports");
    const auto& items = containers[i]["ports"].items();
    for (std::size_t k = 0; k < items.size(); ++k) {
      const std::int64_t host = items[k]["hostPort"].as_int();
      if ((view.is_pod || host != 0) && host != items[k]["containerPort"].as_int()) {
        errors.invalid(ports.index(k).child("hostPort"), host,
                       "must match `containerPort` when `hostNetwork` is true");
      }
    }
  }
}

void check_search(std::string_view search, const Spot& at, FieldErrors& errors) {
  if (search == ".") {
    return;
  }
  if (search.ends_with('.')) {
    search.remove_suffix(1);
  }
  // Underscores are allowed here, unlike in other names.
  std::string plain(search);
  std::ranges::replace(plain, '_', 'a');
  add_problems(errors, at, Doc(search), check_dns1123_subdomain(plain));
}

void check_dns_config(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  const Doc& config = view.spec["dnsConfig"];
  const Doc& servers = config["nameservers"];
  if (view.spec["dnsPolicy"].as_string() == "None") {
    if (config.is_null()) {
      errors.required(at, "must provide `dnsConfig` when `dnsPolicy` is None");
      return;
    }
    if (servers.empty()) {
      errors.required(at.child("nameservers"),
                      "must provide at least one DNS nameserver when `dnsPolicy` is None");
      return;
    }
  }
  if (config.is_null()) {
    return;
  }
  const Spot servers_spot = at.child("nameservers");
  if (servers.size() > kMaxNameservers) {
    errors.invalid(servers_spot, servers, "must not have more than 3 nameservers");
  }
  for (std::size_t i = 0; i < servers.size(); ++i) {
    check_name(servers.items()[i], check_ip, servers_spot.index(i), errors);
  }
  const Doc& searches = config["searches"];
  const Spot searches_spot = at.child("searches");
  if (searches.size() > kMaxSearches) {
    errors.invalid(searches_spot, searches, "must not have more than 32 search paths");
  }
  std::size_t chars = searches.empty() ? 0 : searches.size() - 1;
  for (const Doc& search : searches.items()) {
    chars += search.as_string().size();
  }
  if (chars > kMaxSearchChars) {
    errors.invalid(searches_spot, searches,
                   "must not have more than 2048 characters (including spaces) in the search list");
  }
  for (std::size_t i = 0; i < searches.size(); ++i) {
    check_search(searches.items()[i].as_string(), searches_spot.index(i), errors);
  }
  const Spot options = at.child("options");
  for (std::size_t i = 0; i < config["options"].size(); ++i) {
    if (config["options"].items()[i]["name"].as_string().empty()) {
      errors.required(options.index(i), "must not be empty");
    }
  }
}

void check_hostname_override(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  const Doc& name = view.spec["hostnameOverride"];
  if (name.is_null()) {
    return;
  }
  const Spot spot = at.child("hostnameOverride");
  if (view.spec["setHostnameAsFQDN"].as_bool()) {
    errors.forbidden(spot, "may not be specified when setHostnameAsFQDN is true");
  }
  if (view.spec["hostNetwork"].as_bool()) {
    errors.forbidden(spot, "may not be specified when hostNetwork is true");
  }
  if (name.as_string().size() > kMaxHostname) {
    errors.too_long(spot, kMaxHostname);
  }
  check_name(name, check_dns1123_subdomain, spot, errors);
}

void check_host_aliases(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  const auto& aliases = view.spec["hostAliases"].items();
  for (std::size_t i = 0; i < aliases.size(); ++i) {
    const Spot spot = at.index(i);
    add_problems(errors, spot.child("ip"), shown(aliases[i]["ip"]),
                 check_ip(aliases[i]["ip"].as_string()));
    const Spot names = spot.child("hostnames");
    for (std::size_t k = 0; k < aliases[i]["hostnames"].size(); ++k) {
      check_name(aliases[i]["hostnames"].items()[k], check_dns1123_subdomain, names.index(k),
                 errors);
    }
  }
}

void check_group(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  const Doc* group = view.spec.find("schedulingGroup");
  if (group == nullptr) {
    return;
  }
  const Doc& name = (*group)["podGroupName"];
  if (name.is_null()) {
    errors.invalid(at.child("schedulingGroup.podGroupName"), name,
                   "must specify one of: `podGroupName`");
  } else {
    check_name(name, check_dns1123_subdomain, at.child("schedulingGroup.podGroupName"), errors);
  }
}

// Files that variables are read from must lie in an emptyDir of the pod.
void check_env_files(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  visit_containers(view.spec, at, [&](const Doc& container, const Spot& spot) {
    const Spot env = spot.child("env");
    const auto& variables = container["env"].items();
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const Doc* ref = variables[i]["valueFrom"].find("fileKeyRef");
      if (ref == nullptr) {
        continue;
      }
      const Doc& name = (*ref)["volumeName"];
      const auto& volumes = view.spec["volumes"].items();
      const auto found = std::ranges::find_if(volumes, [&](const Doc& volume) {
        return volume["name"].as_string() == name.as_string();
      });
      const Spot variable = env.index(i);
      if (found == volumes.end()) {
        errors.not_found(variable.child("valueFrom.fileKeyRef.volumeName"), shown(name));
      } else if (!found->has("emptyDir")) {
        errors.invalid(variable.child("valueFrom.fileKeyRef.volumeName"), name,
                       "referenced volume must be of type emptyDir");
      }
    }
  });
}

// Names that are checked when they are given, in the server's order.
struct NameRule {
  std::string_view key;
  NameCheck check;
};
void check_names(const PodSpecView& view, std::initializer_list<NameRule> rules, const Spot& at,
                 FieldErrors& errors) {
  for (const NameRule& rule : rules) {
    if (!view.spec[rule.key].as_string().empty()) {
      check_name(view.spec[rule.key], rule.check, at.child(rule.key), errors);
    }
  }
}

void check_overhead(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  const Doc* overhead = view.spec.find("overhead");
  if (overhead == nullptr) {
    return;
  }
  Doc resources = Doc::object();
  resources.set("limits", *overhead);
  validate_container_resources(view, resources, at.child("overhead"), errors);
}

void check_placement(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  const Doc& spec = view.spec;
  if (spec.has("nodeSelector")) {
    validate_labels(spec["nodeSelector"], at.child("nodeSelector"), errors);
  }
  validate_pod_security(view, at.child("securityContext"), errors);
  validate_affinity(spec["affinity"], at.child("affinity"), errors);
  check_dns_config(view, at.child("dnsConfig"), errors);
  const Spot gates = at.child("readinessGates");
  for (std::size_t i = 0; i < spec["readinessGates"].size(); ++i) {
    const Doc& type = spec["readinessGates"].items()[i]["conditionType"];
    add_problems(errors, gates.index(i).child("conditionType"), shown(type),
                 check_qualified_name(type.as_string()));
  }
  validate_scheduling_gates(spec["schedulingGates"], at.child("schedulingGates"), errors);
  validate_spread_constraints(spec["topologySpreadConstraints"],
                              at.child("topologySpreadConstraints"), errors);
}

void check_rest(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  const Doc& spec = view.spec;
  check_names(
      view,
      {{"serviceAccountName", check_dns1123_subdomain}, {"nodeName", check_dns1123_subdomain}}, at,
      errors);
  if (const Doc& deadline = spec["activeDeadlineSeconds"];
      !deadline.is_null() && (deadline.as_int() < 1 || deadline.as_int() > kMaxInt32)) {
    errors.invalid(at.child("activeDeadlineSeconds"), deadline,
                   "must be between 1 and 2147483647, inclusive");
  }
  check_names(view, {{"hostname", check_dns1123_label}, {"subdomain", check_dns1123_label}}, at,
              errors);
  validate_tolerations(spec["tolerations"], at.child("tolerations"), errors);
  check_host_aliases(view, at.child("hostAliases"), errors);
  check_names(view, {{"priorityClassName", check_dns1123_subdomain}}, at, errors);
  if (const Doc& runtime = spec["runtimeClassName"]; !runtime.is_null()) {
    check_name(runtime, check_dns1123_subdomain, at.child("runtimeClassName"), errors);
  }
  if (spec.has("preemptionPolicy")) {
    require_one_of(spec["preemptionPolicy"], {"PreemptLowerPriority", "Never"},
                   at.child("preemptionPolicy"), errors);
  }
  check_overhead(view, at, errors);
  validate_os(view, at, errors);
  check_group(view, at, errors);
  check_env_files(view, at, errors);
}

}  // namespace

void check_no_backsteps(const Doc& path, const Spot& at, FieldErrors& errors) {
  std::string_view rest = path.as_string();
  while (!rest.empty()) {
    const std::size_t slash = rest.find('/');
    if (rest.substr(0, slash) == "..") {
      errors.invalid(at, path, "must not contain '..'");
      return;
    }
    rest = slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1);
  }
}

void check_descending_path(const Doc& path, const Spot& at, FieldErrors& errors) {
  if (path.as_string().starts_with('/')) {
    errors.invalid(at, path, "must be a relative path");
  }
  check_no_backsteps(path, at, errors);
}

void check_local_path(const Doc& path, const Spot& at, FieldErrors& errors) {
  check_descending_path(path, at, errors);
  const std::string& text = path.as_string();
  if (text.starts_with("..") && !text.starts_with("../")) {
    errors.invalid(at, path, "must not start with '..'");
  }
}

void check_file_mode(const Doc& mode, const Spot& at, FieldErrors& errors) {
  if (!mode.is_null() && (mode.as_int() < 0 || mode.as_int() > kMaxFileMode)) {
    errors.invalid(at, mode, "must be a number between 0 and 0777 (octal), both inclusive");
  }
}

void check_not_negative(const Doc& number, const Spot& at, FieldErrors& errors) {
  if (number.as_int() < 0) {
    errors.invalid(at, number, "must be greater than or equal to 0");
  }
}

void validate_pod_spec(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  const Doc& spec = view.spec;
  if (!spec.has("terminationGracePeriodSeconds")) {
    errors.required(at.child("terminationGracePeriodSeconds"));
  }
  const PodVolumes volumes = validate_volumes(view, at.child("volumes"), errors);
  check_claims(view, at.child("resourceClaims"), errors);
  validate_containers(view, volumes, at, errors);
  validate_pod_level_resources(view, at.child("resources"), errors);
  check_host_network(view, at, errors);
  require_one_of(spec["restartPolicy"], {"Always", "OnFailure", "Never"}, at.child("restartPolicy"),
                 errors);
  require_one_of(spec["dnsPolicy"], {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"},
                 at.child("dnsPolicy"), errors);
  check_placement(view, at, errors);
  validate_host_processes(view, at, errors);
  validate_host_users(view, at, errors);
  check_hostname_override(view, at, errors);
  check_rest(view, at, errors);
}

void validate_pod_template(const Doc& pod_template, const Path& at, FieldErrors& errors) {
  const Spot root(at);
  const Doc& metadata = pod_template["metadata"];
  const PodSpecView view = {.spec = pod_template["spec"], .metadata = metadata, .is_pod = false};
  if (metadata.has("labels")) {
    validate_labels(metadata["labels"], at.child("labels"), errors);
  }
  if (metadata.has("annotations")) {
    validate_annotations(metadata["annotations"], at.child("annotations"), errors);
    validate_pod_annotations(view, root.child("annotations"), errors);
  }
  const Spot spec = root.child("spec");
  validate_pod_spec(view, spec, errors);
  validate_profiles_match(view, spec, errors);
  if (!view.spec["ephemeralContainers"].empty()) {
    errors.forbidden(spec.child("ephemeralContainers"),
                     "ephemeral containers not allowed in pod template");
  }
}

}  // namespace jogak::api
