// SPDX-License-Identifier: Apache-2.0
//
// Writes of a pod's status: what is kept from before, and what may not happen.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "apiserver/kinds/pod_update.h"
#include "apiserver/kinds/pod_validate.h"
#include "apiserver/object/resource_list.h"

namespace jogak::api {

namespace {

constexpr std::int64_t kMaxId = 2147483647;
constexpr std::size_t kMaxHealthMessage = 1024;

struct StatusList {
  std::string_view statuses, containers;
};
constexpr std::array<StatusList, 3> kLists = {{
    {"containerStatuses", "containers"},
    {"initContainerStatuses", "initContainers"},
    {"ephemeralContainerStatuses", "ephemeralContainers"},
}};

// Clients that know nothing of generations would wipe them out.
void keep_generations(Doc& status, const Doc& before) {
  if (status["observedGeneration"].as_int() == 0 && before.has("observedGeneration")) {
    status.set("observedGeneration", before["observedGeneration"]);
  }
  Doc* conditions = status.find("conditions");
  if (conditions == nullptr) {
    return;
  }
  std::set<std::size_t> used;
  for (Doc& condition : conditions->items()) {
    const auto& old_items = before["conditions"].items();
    for (std::size_t i = 0; i < old_items.size(); ++i) {
      if (old_items[i]["type"] == condition["type"] && used.insert(i).second) {
        if (condition["observedGeneration"].as_int() == 0 &&
            old_items[i].has("observedGeneration")) {
          condition.set("observedGeneration", old_items[i]["observedGeneration"]);
        }
        break;
      }
    }
  }
}

void check_conditions(const Doc& conditions, const Spot& at, FieldErrors& errors) {
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const Doc& condition = conditions.items()[i];
    if (condition["observedGeneration"].as_int() < 0) {
      errors.invalid(at.index(i).child("observedGeneration"), condition["observedGeneration"],
                     "must be a non-negative integer");
    }
    const std::string& type = condition["type"].as_string();
    if (!is_any_of(type, {"PodScheduled", "Ready", "Initialized"})) {
      add_problems(errors, at.index(i).child("Type"), shown(condition["type"]),
                   check_qualified_name(type));
    }
  }
}

void check_nomination(const Doc& object, const Doc& old, const Spot& at, FieldErrors& errors) {
  const Doc& now = object["status"]["nominatedNodeName"];
  if (now.as_string().empty() || now == old["status"]["nominatedNodeName"]) {
    return;
  }
  check_name(now, check_dns1123_subdomain, at.child("nominatedNodeName"), errors);
  if (!old["spec"]["nodeName"].as_string().empty()) {
    errors.forbidden(at.child("nominatedNodeName"),
                     "may not be set on pods that are already bound to a node");
  }
}

const Doc* named(const Doc& list, const Doc& name) {
  const auto found = std::ranges::find_if(
      list.items(), [&](const Doc& item) { return item["name"].as_string() == name.as_string(); });
  return found == list.items().end() ? nullptr : &*found;
}

bool restarts_all(const Doc& spec) {
  return std::ranges::any_of(
      std::array<std::string_view, 2>{"initContainers", "containers"}, [&](std::string_view list) {
        return std::ranges::any_of(spec[list].items(), [](const Doc& container) {
          return std::ranges::any_of(container["restartPolicyRules"].items(), [](const Doc& rule) {
            return rule["action"].as_string() == "RestartAllContainers";
          });
        });
      });
}

bool rule_matches(const Doc& rule, std::int64_t code) {
  const Doc& codes = rule["exitCodes"];
  const bool is_listed = std::ranges::any_of(
      codes["values"].items(), [&](const Doc& value) { return value.as_int() == code; });
  return codes["operator"].as_string() == "In" ? is_listed : !is_listed;
}

bool may_restart(const Doc& container, const Doc& spec, std::int64_t code) {
  std::string_view policy = spec["restartPolicy"].as_string();
  if (container.has("restartPolicy")) {
    if (std::ranges::any_of(container["restartPolicyRules"].items(), [&](const Doc& rule) {
          return rule.has("exitCodes") && rule_matches(rule, code);
        })) {
      return true;
    }
    policy = container["restartPolicy"].as_string();
  }
  return policy == "Never" ? false : policy != "OnFailure" || code != 0;
}

// What has ended stays ended unless its policy starts it again.
void check_revivals(const Doc& object, const Doc& old, const Spot& at, FieldErrors& errors) {
  const Doc& spec = old["spec"];
  for (const StatusList& list : kLists) {
    const bool is_ephemeral = list.containers == "ephemeralContainers";
    if (!is_ephemeral && restarts_all(spec)) {
      continue;
    }
    const Spot spot = at.child(list.statuses);
    const auto& before = old["status"][list.statuses].items();
    for (std::size_t i = 0; i < before.size(); ++i) {
      const Doc& ended = before[i]["state"]["terminated"];
      const Doc* now = named(object["status"][list.statuses], before[i]["name"]);
      if (ended.is_null() || now == nullptr || (*now)["state"].has("terminated")) {
        continue;
      }
      const Doc* container = named(spec[list.containers], before[i]["name"]);
      if (is_ephemeral || container == nullptr ||
          !may_restart(*container, spec, ended["exitCode"].as_int())) {
        errors.forbidden(spot.index(i).child("state"),
                         "may not be transitioned to non-terminated state");
      }
    }
  }
}

void check_claim_statuses(const Doc& object, const Spot& at, FieldErrors& errors) {
  const auto& statuses = object["status"]["resourceClaimStatuses"].items();
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const Doc& name = statuses[i]["name"];
    const Spot spot = at.index(i);
    if (named(object["spec"]["resourceClaims"], name) == nullptr) {
      errors.invalid(spot.child("name"), shown(name),
                     "must match the name of an entry in `spec.resourceClaims`");
    }
    const auto until = statuses.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(statuses.begin(), until, [&](const Doc& s) { return s["name"] == name; })) {
      errors.duplicate(spot.child("name"), shown(name));
    }
    if (statuses[i].has("resourceClaimName")) {
      check_name(statuses[i]["resourceClaimName"], check_dns1123_subdomain,
                 spot.child("resourceClaimName"), errors);
    }
  }
}

void check_extended_claim(const Doc& object, const Spot& at, FieldErrors& errors) {
  const Doc* status = object["status"].find("extendedResourceClaimStatus");
  if (status == nullptr) {
    return;
  }
  const Spot list = at.child("requestMappings");
  const auto& mappings = (*status)["requestMappings"].items();
  if (mappings.empty()) {
    errors.required(list, "at least one request mapping is required");
  }
  std::set<std::tuple<std::string_view, std::string_view, std::string_view>> seen;
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    const Doc& mapping = mappings[i];
    const Spot spot = list.index(i);
    const Doc* container = named(object["spec"]["containers"], mapping["containerName"]);
    if (container == nullptr) {
      container = named(object["spec"]["initContainers"], mapping["containerName"]);
    }
    if (container == nullptr) {
      errors.invalid(spot.child("containerName"), shown(mapping["containerName"]),
                     "must match the name of an entry in spec.initContainers.name or "
                     "spec.containers.name");
    } else if (!container->get("resources", "requests").has(mapping["resourceName"].as_string())) {
      errors.invalid(spot.child("resourceName"), shown(mapping["resourceName"]),
                     "must match the extended resource name of an entry in "
                     "spec.initContainers.resources.requests or "
                     "spec.containers.resources.requests");
    }
    add_problems(errors, at.child("requestName"), shown(mapping["requestName"]),
                 check_dns1123_label(mapping["requestName"].as_string()));
    if (!seen.emplace(mapping["containerName"].as_string(), mapping["resourceName"].as_string(),
                      mapping["requestName"].as_string())
             .second) {
      for (const std::string_view key : {"containerName", "resourceName", "requestName"}) {
        errors.duplicate(spot.child(key), mapping[key]);
      }
    }
  }
  if ((*status)["resourceClaimName"].as_string().empty()) {
    errors.required(at.child("resourceClaimName"));
  } else {
    check_name((*status)["resourceClaimName"], check_dns1123_subdomain,
               at.child("resourceClaimName"), errors);
  }
}

bool is_ipv6(const Doc& ip) { return ip["ip"].as_string().find(':') != std::string::npos; }

// Addresses kept from before are not looked at again; two must be one of each family.
void check_addresses(const Doc& now, const Doc& before, const Spot& at, FieldErrors& errors) {
  for (std::size_t i = 0; i < now.size(); ++i) {
    const Doc& ip = now.items()[i]["ip"];
    if (std::ranges::none_of(before.items(), [&](const Doc& old) { return old["ip"] == ip; })) {
      add_problems(errors, at.index(i), shown(ip), check_ip(ip.as_string()));
    }
  }
  if (now.size() > 1 && (now.size() > 2 || is_ipv6(now.items()[0]) == is_ipv6(now.items()[1]))) {
    errors.invalid(at, now, "may specify no more than one IP for each IP family");
  }
}

void check_host_addresses(const Doc& object, const Doc& old, const Spot& at, FieldErrors& errors) {
  const Doc& ips = object["status"]["hostIPs"];
  if (ips.empty()) {
    return;
  }
  const Doc& first = ips.items()[0]["ip"];
  if (first.as_string() != object["status"]["hostIP"].as_string()) {
    errors.invalid(at.index(0).child("ip"), shown(first), "must be equal to `hostIP`");
  }
  check_addresses(ips, old["status"]["hostIPs"], at, errors);
}

void check_user(const Doc& object, const Doc& status, const Spot& at, FieldErrors& errors) {
  const Doc* linux_user = status["user"].find("linux");
  if (linux_user == nullptr) {
    return;
  }
  if (object["spec"]["os"]["name"].as_string() == "windows") {
    errors.forbidden(at, "cannot be set for a windows pod");
    return;
  }
  for (const std::string_view key : {"uid", "gid"}) {
    const std::int64_t id = (*linux_user)[key].as_int();
    if (id < 0 || id > kMaxId) {
      errors.invalid(at.child(key), id, "must be between 0 and 2147483647, inclusive");
    }
  }
}

bool asks_for(const Doc& container, const std::string& name) {
  if (!name.starts_with("claim:")) {
    return container.get("resources", "requests").has(name);
  }
  return std::ranges::any_of(container["resources"]["claims"].items(), [&](const Doc& claim) {
    const std::string& request = claim["request"].as_string();
    return name == "claim:" + claim["name"].as_string() + (request.empty() ? "" : "/" + request);
  });
}

void check_health(const Doc& container, const Doc& entry, const Spot& at, FieldErrors& errors) {
  const std::string& name = entry["name"].as_string();
  if (!container.is_null() && !asks_for(container, name)) {
    errors.invalid(at.child("name"), name,
                   name.starts_with("claim:")
                       ? "must match one of the container's resource claims in a format "
                         "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
                       : "must match one of the container's resource requests");
  }
  std::set<std::string_view> seen;
  const Spot list = at.child("resources");
  for (std::size_t i = 0; i < entry["resources"].size(); ++i) {
    const Doc& device = entry["resources"].items()[i];
    const Spot spot = list.index(i);
    if (!is_any_of(device["health"].as_string(), {"Healthy", "Unhealthy", "Unknown"})) {
      errors.not_supported(spot.child("health"), shown(device["health"]),
                           {"Healthy", "Unhealthy", "Unknown"});
    }
    if (const Doc& message = device["message"]; !message.is_null()) {
      if (message.as_string().empty()) {
        errors.required(spot.child("message"), "must be non-empty if specified");
      } else if (message.as_string().size() > kMaxHealthMessage) {
        errors.too_long(spot.child("message"), kMaxHealthMessage);
      }
    }
    if (!seen.insert(device["resourceID"].as_string()).second) {
      errors.duplicate(spot.child("resourceID"), device["resourceID"]);
    }
  }
}

void check_container_statuses(const Doc& object, const Spot& at, FieldErrors& errors) {
  static const Doc kNone;
  for (const StatusList& list : kLists) {
    const Spot spot = at.child(list.statuses);
    const auto& statuses = object["status"][list.statuses].items();
    for (std::size_t i = 0; i < statuses.size(); ++i) {
      const Spot one = spot.index(i);
      check_user(object, statuses[i], one.child("user.linux"), errors);
      const Doc& health = statuses[i]["allocatedResourcesStatus"];
      if (health.empty()) {
        continue;
      }
      const Spot entries = one.child("allocatedResourcesStatus");
      if (list.containers == "ephemeralContainers") {
        errors.forbidden(entries, "must not be specified in container status");
        continue;
      }
      const Doc* container = named(object["spec"][list.containers], statuses[i]["name"]);
      for (std::size_t k = 0; k < health.size(); ++k) {
        check_health(container == nullptr ? kNone : *container, health.items()[k], entries.index(k),
                     errors);
      }
    }
  }
}

}  // namespace

void equal_pod_ips(Doc& status) {
  const std::string& single = status["podIP"].as_string();
  const Doc& list = status["podIPs"];
  const bool is_first = !list.empty() && list.items().front()["ip"].as_string() == single;
  if (!single.empty() && !is_first) {
    Doc ips = Doc::array();
    ips.push(Doc::object().set("ip", single));
    status.set("podIPs", std::move(ips));
  } else if (single.empty() && !list.empty()) {
    status.set("podIP", Doc(list.items().front()["ip"]));
  }
}

void prepare_pod_status(Doc& object, const Doc& old) {
  object.set("spec", old["spec"]);
  Doc& status = object.at("status");
  if (status.is_null()) {
    status = Doc::object();
  }
  if (status["qosClass"].as_string().empty() && old["status"].has("qosClass")) {
    status.set("qosClass", old["status"]["qosClass"]);
  }
  keep_generations(status, old["status"]);
}

void validate_pod_status(const Doc& object, const Doc& old, FieldErrors& errors) {
  const Path root("status");
  const Spot at(root);
  const Doc& status = object["status"];
  check_conditions(status["conditions"], at.child("conditions"), errors);
  check_nomination(object, old, at, errors);
  if (status["observedGeneration"].as_int() < 0) {
    errors.invalid(at.child("observedGeneration"), status["observedGeneration"],
                   "must be a non-negative integer");
  }
  if (status["qosClass"].as_string() != old["status"]["qosClass"].as_string()) {
    errors.invalid(at.child("qosClass"), shown(status["qosClass"]), "field is immutable");
  }
  check_revivals(object, old, at, errors);
  check_claim_statuses(object, at.child("resourceClaimStatuses"), errors);
  check_extended_claim(object, at.child("extendedResourceClaimStatus"), errors);
  check_addresses(status["podIPs"], old["status"]["podIPs"], at.child("podIPs"), errors);
  check_host_addresses(object, old, at.child("hostIPs"), errors);
  check_container_statuses(object, at, errors);
}

}  // namespace jogak::api
