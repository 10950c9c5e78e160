// SPDX-License-Identifier: Apache-2.0
//
// Requests and limits of containers and of whole pods.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kinds/pod_validate.h"
#include "apiserver/object/resource_list.h"

namespace jogak::api {

namespace {

constexpr std::int64_t kMilli = 1000;

void check_resource_name(std::string_view name, const Spot& at, FieldErrors& errors,
                         bool is_pod_level) {
  const Problems problems = check_qualified_name(name);
  add_problems(errors, at, Doc(name), problems);
  const bool has_domain = name.find('/') != std::string_view::npos;
  bool is_right = problems.empty();
  if (is_right && !has_domain && !is_standard_resource(name)) {
    errors.invalid(at, Doc(name), "must be a standard resource type or fully qualified");
    is_right = false;
  }
  if (is_pod_level) {
    if (is_right && !is_pod_level_resource(name)) {
      errors.not_supported(at, Doc(name), {"cpu", "hugepages-", "memory"});
    }
  } else if (!has_domain) {
    if (!is_standard_container_resource(name)) {
      errors.invalid(at, Doc(name), "must be a standard resource for containers");
    }
  } else if (!is_native_resource(name) && !is_extended_resource(name)) {
    errors.invalid(at, Doc(name), "doesn't follow extended resource name standard");
  }
}

bool is_whole_pages(std::string_view name, const Amount& amount) {
  const auto page = Amount::parse(name.substr(std::string_view("hugepages-").size()));
  return page && *page > Amount::of(0) && page->is_whole() && amount.value() % page->value() == 0;
}

// One pass over limits or requests.
class Side {
 public:
  Side(const Spot& at, bool is_pod_level, FieldErrors& errors)
      : at_(at), is_pod_level_(is_pod_level), errors_(errors) {}

  // False when the quantity cannot be read, which decoding has excluded.
  std::optional<Amount> check(const std::string& name, const Doc& quantity) {
    // The plain ones are the usual ones; their names need no look.
    const bool is_compute = name == "cpu" || name == "memory";
    has_compute = has_compute || is_compute;
    const Spot spot = at_.key(name);
    if (!is_compute) {
      check_resource_name(name, spot, errors_, is_pod_level_);
    }
    validate_resource_amount(name, quantity, spot, errors_);
    return Amount::parse(quantity.as_string());
  }

  void check_pages(const std::string& name, const Doc& quantity, const Amount& amount) {
    if (!is_hugepage_resource(name)) {
      return;
    }
    has_pages = true;
    if (!is_whole_pages(name, amount)) {
      errors_.invalid(at_.key(name), quantity,
                      quantity.as_string() + " is not positive integer multiple of " + name);
    }
  }

  bool has_compute = false;
  bool has_pages = false;

 private:
  const Spot& at_;
  bool is_pod_level_;
  FieldErrors& errors_;
};

void check_against_limit(const std::string& name, const Doc& quantity, const Amount& amount,
                         const Doc& limit, const Spot& at, FieldErrors& errors) {
  const bool may_overcommit = is_overcommit_allowed(name);
  if (limit.is_null()) {
    if (!may_overcommit) {
      errors.required(at.child("limits"), "Limit must be set for non overcommitable resources");
    }
    return;
  }
  const auto most = Amount::parse(limit.as_string());
  if (!most) {
    return;
  }
  if (!may_overcommit && amount != *most) {
    errors.invalid(at.child("requests"), quantity,
                   "must be equal to " + name + " limit of " + limit.as_string());
  } else if (amount > *most) {
    errors.invalid(at.child("requests"), quantity,
                   "must be less than or equal to " + name + " limit of " + limit.as_string());
  }
}

bool names_claim(const PodSpecView& view, const std::string& name) {
  return std::ranges::any_of(view.spec["resourceClaims"].items(),
                             [&](const Doc& claim) { return claim["name"].as_string() == name; });
}

// A claim is named once as a whole, or any number of times by different requests of it.
bool clashes(const std::vector<std::string>& seen, const std::string& name,
             const std::string& request) {
  const auto has = [&](const std::string& key) {
    return std::ranges::find(seen, key) != seen.end();
  };
  if (has(name)) {
    return true;
  }
  if (!request.empty()) {
    return has(name + "/" + request);
  }
  return std::ranges::any_of(seen,
                             [&](const std::string& key) { return key.starts_with(name + "/"); });
}

void check_claims(const PodSpecView& view, const Doc& claims, const Spot& at, FieldErrors& errors) {
  std::vector<std::string> seen;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Doc& claim = claims.items()[i];
    const Spot spot = at.index(i);
    const std::string& name = claim["name"].as_string();
    const std::string& request = claim["request"].as_string();
    if (name.empty()) {
      errors.required(spot);
      continue;
    }
    if (!request.empty()) {
      check_name(claim["request"], check_dns1123_label, spot.child("request"), errors);
    }
    if (clashes(seen, name, request)) {
      errors.duplicate(spot, request.empty() ? name : name + "/" + request);
    }
    seen.push_back(request.empty() ? name : name + "/" + request);
    if (!names_claim(view, name)) {
      errors.not_found(spot, name);
    }
  }
}

void check_requirements(const PodSpecView& view, const Doc& resources, bool is_pod_level,
                        const Spot& at, FieldErrors& errors) {
  if (resources.empty()) {
    return;
  }
  const Doc& limits = resources["limits"];
  const Spot limits_spot = at.child("limits");
  Side limit_side(limits_spot, is_pod_level, errors);
  for (const Doc::Member& member : limits.members()) {
    if (const auto amount = limit_side.check(member.key, member.value)) {
      limit_side.check_pages(member.key, member.value, *amount);
    }
  }
  const Spot requests_spot = at.child("requests");
  Side request_side(requests_spot, is_pod_level, errors);
  for (const Doc::Member& member : resources["requests"].members()) {
    const auto amount = request_side.check(member.key, member.value);
    if (amount) {
      check_against_limit(member.key, member.value, *amount, limits[member.key], at, errors);
      request_side.check_pages(member.key, member.value, *amount);
    }
  }
  if ((limit_side.has_pages || request_side.has_pages) && !limit_side.has_compute &&
      !request_side.has_compute) {
    errors.forbidden(at, "HugePages require cpu or memory");
  }
  check_claims(view, resources["claims"], at.child("claims"), errors);
}

// What the containers ask for must fit into what the pod asks for.
void check_consistency(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  const Doc& resources = view.spec["resources"];
  Doc pod = Doc::object();
  pod.set("spec", view.spec);
  constexpr PodSumOptions kContainersOnly = {.with_pod_level = false, .with_overhead = false};
  const Spot requests = at.child("requests");
  const Spot limits = at.child("limits");
  for (const auto& [name, amount] : pod_requests(pod, kContainersOnly)) {
    const Doc& own = resources["requests"][name];
    const auto most = Amount::parse(own.as_string());
    if (most && amount > *most) {
      errors.invalid(
          requests.key(name), own,
          "must be greater than or equal to aggregate container requests of " + amount.text());
    }
  }
  for (const auto& [name, amount] : pod_limits(pod, kContainersOnly)) {
    const Doc& own = resources["limits"][name];
    const auto most = Amount::parse(own.as_string());
    if (is_hugepage_resource(name) && most && amount > *most) {
      errors.invalid(
          limits.key(name), own,
          "must be greater than or equal to aggregate container limits of " + amount.text());
    }
  }
  const Spot containers = at.child("containers");
  for (std::size_t i = 0; i < view.spec["containers"].size(); ++i) {
    const Spot spot = containers.index(i);
    const Doc& container = view.spec["containers"].items()[i];
    for (const Doc::Member& limit : container["resources"]["limits"].members()) {
      const Doc& own = resources["limits"][limit.key];
      const auto most = Amount::parse(own.as_string());
      const auto amount = Amount::parse(limit.value.as_string());
      if (most && amount && *amount > *most) {
        errors.invalid(spot.key(limit.key).child("limits"), limit.value,
                       "must be less than or equal to pod limits of " + own.as_string());
      }
    }
  }
}

}  // namespace

void validate_resource_amount(std::string_view name, const Doc& quantity, const Spot& at,
                              FieldErrors& errors) {
  const auto amount = Amount::parse(quantity.as_string());
  if (!amount) {
    return;
  }
  if (amount->is_negative()) {
    errors.invalid(at, quantity, "must be greater than or equal to 0");
  }
  // The server counts in thousandths, which overflow before the quantity itself does.
  if (is_integer_resource(name) && amount->milli_value() % kMilli != 0) {
    errors.invalid(at, quantity, "must be an integer");
  }
}

void validate_container_resources(const PodSpecView& view, const Doc& resources, const Spot& at,
                                  FieldErrors& errors) {
  check_requirements(view, resources, false, at, errors);
}

void validate_pod_level_resources(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  const Doc& resources = view.spec["resources"];
  if (resources.is_null()) {
    return;
  }
  if (view.is_windows()) {
    errors.forbidden(at, "may not be set for a windows pod");
    return;
  }
  if (!resources["claims"].empty()) {
    errors.forbidden(at.child("claims"), "claims may not be set for Resources at pod-level");
  }
  check_requirements(view, resources, true, at, errors);
  check_consistency(view, at, errors);
}

}  // namespace jogak::api
