// SPDX-License-Identifier: Apache-2.0
//
// Facts: pkg/apis/core/helper and component-helpers/resource of Kubernetes.
#include "apiserver/object/resource_list.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "apiserver/object/names.h"

namespace jogak::api {

namespace {

constexpr std::string_view kHugepages = "hugepages-";
constexpr std::string_view kRequests = "requests.";

// What each standard name may be used for.
enum Use : std::uint8_t { kContainer = 1, kQuota = 2, kCount = 4 };
struct StandardName {
  std::string_view name;
  std::uint8_t uses;
};
constexpr std::array<StandardName, 20> kStandardNames = {{
    {"cpu", kContainer | kQuota},
    {"memory", kContainer | kQuota},
    {"ephemeral-storage", kContainer | kQuota},
    {"requests.cpu", kQuota},
    {"requests.memory", kQuota},
    {"requests.ephemeral-storage", kQuota},
    {"requests.storage", kQuota},
    {"limits.cpu", kQuota},
    {"limits.memory", kQuota},
    {"limits.ephemeral-storage", kQuota},
    {"storage", 0},
    {"pods", kQuota | kCount},
    {"resourcequotas", kQuota | kCount},
    {"services", kQuota | kCount},
    {"replicationcontrollers", kQuota | kCount},
    {"secrets", kQuota | kCount},
    {"configmaps", kQuota | kCount},
    {"persistentvolumeclaims", kQuota | kCount},
    {"services.nodeports", kQuota | kCount},
    {"services.loadbalancers", kQuota | kCount},
}};

const StandardName* find_standard(std::string_view name) {
  const auto* found = std::ranges::find(kStandardNames, name, &StandardName::name);
  return found == kStandardNames.end() ? nullptr : found;
}

bool has_use(std::string_view name, Use use) {
  const StandardName* standard = find_standard(name);
  return standard != nullptr && (standard->uses & use) != 0;
}

bool is_quota_hugepages(std::string_view name) {
  return is_hugepage_resource(name) ||
         (name.starts_with(kRequests) && is_hugepage_resource(name.substr(kRequests.size())));
}

bool is_sidecar(const Doc& container) { return container["restartPolicy"].as_string() == "Always"; }

const Doc& status_named(const Doc& statuses, const std::string& name) {
  static const Doc kNone;
  const auto found = std::ranges::find_if(
      statuses.items(), [&](const Doc& status) { return status["name"].as_string() == name; });
  return found == statuses.items().end() ? kNone : *found;
}

bool is_resize_infeasible(const Doc& pod) {
  for (const Doc& condition : pod["status"]["conditions"].items()) {
    if (condition["type"].as_string() == "PodResizePending") {
      return condition["reason"].as_string() == "Infeasible";
    }
  }
  return false;
}

// One sum over the containers: of "requests" or of "limits".
class Summer {
 public:
  Summer(const Doc& pod, std::string_view side, bool with_status)
      : pod_(pod), side_(side), with_status_(with_status) {}

  ResourceList sum() const {
    ResourceList total;
    for (const Doc& container : pod_["spec"]["containers"].items()) {
      add_resources(total, of_container(container, "containerStatuses"));
    }
    ResourceList sidecars;
    ResourceList peak;
    for (const Doc& container : pod_["spec"]["initContainers"].items()) {
      if (is_sidecar(container)) {
        const ResourceList own = of_container(container, "initContainerStatuses");
        add_resources(total, own);
        add_resources(sidecars, own);
        raise_resources(peak, sidecars);
      } else {
        ResourceList own = read_resources(container["resources"][side_]);
        add_resources(own, sidecars);
        raise_resources(peak, own);
      }
    }
    raise_resources(total, peak);
    return total;
  }

 private:
  ResourceList of_container(const Doc& container, std::string_view statuses) const {
    ResourceList wanted = read_resources(container["resources"][side_]);
    if (!with_status_) {
      return wanted;
    }
    const Doc& status = status_named(pod_["status"][statuses], container["name"].as_string());
    const Doc& running = status["resources"];
    if (running.is_null()) {
      return wanted;
    }
    if (is_resize_infeasible(pod_)) {
      wanted.clear();
    }
    raise_resources(wanted, read_resources(running[side_]));
    if (side_ == "requests") {
      raise_resources(wanted, read_resources(status["allocatedResources"]));
    }
    return wanted;
  }

  const Doc& pod_;
  std::string_view side_;
  bool with_status_;
};

ResourceList pod_sum(const Doc& pod, std::string_view side, const PodSumOptions& options) {
  ResourceList total = Summer(pod, side, options.with_status).sum();
  if (options.with_pod_level) {
    for (const auto& [name, amount] : read_resources(pod["spec"]["resources"][side])) {
      if (is_pod_level_resource(name)) {
        total[name] = amount;
      }
    }
  }
  return total;
}

}  // namespace

bool is_native_resource(std::string_view name) {
  return name.find('/') == std::string_view::npos ||
         name.find("kubernetes.io/") != std::string_view::npos;
}

bool is_hugepage_resource(std::string_view name) { return name.starts_with(kHugepages); }

bool is_extended_resource(std::string_view name) {
  if (is_native_resource(name) || name.starts_with(kRequests)) {
    return false;
  }
  // It must also be a name once a quota puts its prefix in front.
  return check_qualified_name(std::string(kRequests).append(name)).empty();
}

bool is_overcommit_allowed(std::string_view name) {
  return is_native_resource(name) && !is_hugepage_resource(name);
}

bool is_integer_resource(std::string_view name) {
  return has_use(name, kCount) || is_extended_resource(name);
}

bool is_standard_resource(std::string_view name) {
  return find_standard(name) != nullptr || is_quota_hugepages(name);
}

bool is_standard_container_resource(std::string_view name) {
  return has_use(name, kContainer) || is_hugepage_resource(name);
}

bool is_standard_quota_resource(std::string_view name) {
  return has_use(name, kQuota) || is_quota_hugepages(name);
}

bool is_pod_level_resource(std::string_view name) {
  return name == "cpu" || name == "memory" || is_hugepage_resource(name);
}

ResourceList read_resources(const Doc& list) {
  ResourceList out;
  for (const Doc::Member& member : list.members()) {
    if (const auto amount = Amount::parse(member.value.as_string())) {
      out.emplace(member.key, *amount);
    }
  }
  return out;
}

Doc write_resources(const ResourceList& list) {
  Doc out = Doc::object();
  for (const auto& [name, amount] : list) {
    out.set(name, amount.text());
  }
  return out;
}

void add_resources(ResourceList& sum, const ResourceList& more) {
  for (const auto& [name, amount] : more) {
    const auto [at, is_new] = sum.emplace(name, amount);
    if (!is_new) {
      at->second += amount;
    }
  }
}

void raise_resources(ResourceList& high, const ResourceList& other) {
  for (const auto& [name, amount] : other) {
    const auto [at, is_new] = high.emplace(name, amount);
    if (!is_new && at->second < amount) {
      at->second = amount;
    }
  }
}

ResourceList pod_requests(const Doc& pod, const PodSumOptions& options) {
  ResourceList total = pod_sum(pod, "requests", options);
  if (options.with_overhead) {
    add_resources(total, read_resources(pod["spec"]["overhead"]));
  }
  return total;
}

ResourceList pod_limits(const Doc& pod, const PodSumOptions& options) {
  ResourceList total = pod_sum(pod, "limits", options);
  if (options.with_overhead) {
    // Without a limit there is nothing that overhead could be added to.
    for (const auto& [name, amount] : read_resources(pod["spec"]["overhead"])) {
      const auto found = total.find(name);
      if (found != total.end() && !found->second.is_zero()) {
        found->second += amount;
      }
    }
  }
  return total;
}

}  // namespace jogak::api
