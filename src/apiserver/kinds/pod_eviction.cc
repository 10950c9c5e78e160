// SPDX-License-Identifier: Apache-2.0
//
// pods/NAME/eviction: a deletion that asks the pod's disruption budget first.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kinds/pod_strategy.h"
#include "apiserver/object/meta.h"
#include "apiserver/object/selector.h"
#include "apiserver/ops/ops.h"

namespace jogak::api {

namespace {

constexpr std::size_t kMaxDisruptedPods = 2000;
constexpr int kRetrySeconds = 10;
constexpr std::string_view kBudgets = "poddisruptionbudgets.policy";

Refusal too_many_requests(std::string message, int retry_after_s) {
  ApiError error;
  error.code = 429;
  error.reason = "TooManyRequests";
  error.message = "Cannot evict pod as it would violate the pod's disruption budget.";
  error.causes = {{.reason = "DisruptionBudget", .message = std::move(message), .field = ""}};
  error.retry_after_s = retry_after_s;
  return Refusal(std::move(error));
}

bool needs_no_budget(const Doc& pod) {
  const std::string& phase = pod["status"]["phase"].as_string();
  return phase == "Succeeded" || phase == "Failed" || phase == "Pending" || is_deleting(pod);
}

std::vector<Doc> budgets_of(Ops& ops, const Doc& pod) {
  std::vector<Doc> found;
  for (Doc& budget : ops.list(kBudgets, namespace_of(pod))) {
    if (LabelSelector::from_object(budget["spec"]["selector"]).matches(meta(pod)["labels"])) {
      found.push_back(std::move(budget));
    }
  }
  return found;
}

// An unready pod may go without using up the budget when enough others are healthy, or always where
// the budget says so.
bool is_free_to_go(const Doc& pod, const Doc& budget) {
  if (condition_is(pod, "Ready", "True")) {
    return false;
  }
  if (budget["spec"]["unhealthyPodEvictionPolicy"].as_string() == "AlwaysAllow") {
    return true;
  }
  const std::int64_t wanted = budget["status"]["desiredHealthy"].as_int();
  return wanted > 0 && budget["status"]["currentHealthy"].as_int() >= wanted;
}

std::string exhausted_words(const Doc& budget) {
  const std::string& name = name_of(budget);
  const Doc& status = budget["status"];
  const Doc& condition = condition_of(budget, "DisruptionAllowed");
  const std::string& message = condition["message"].as_string();
  const bool speaks = condition["status"].as_string() == "False" && !message.empty();
  if (speaks && condition["reason"].as_string() == "SyncFailed") {
    return "The disruption budget " + name +
           " does not allow evicting pods currently because it failed sync: " + message;
  }
  const std::int64_t healthy = status["currentHealthy"].as_int();
  const std::int64_t wanted = status["desiredHealthy"].as_int();
  if (healthy <= wanted) {
    return "The disruption budget " + name + " needs " + std::to_string(wanted) +
           " healthy pods and has " + std::to_string(healthy) + " currently";
  }
  return "The disruption budget " + name + " does not allow evicting pods currently" +
         (speaks ? " (" + condition["reason"].as_string() + "): " + message : "");
}

// One disruption less, and the pod noted, so that the budget's controller does not count on it.
ApiResult<Doc> take_disruption(Doc budget, const std::string& pod, TimeUs now) {
  constexpr ResourceName kBudget{"poddisruptionbudget", "policy"};
  const std::string& name = name_of(budget);
  const Doc& status = budget["status"];
  if (status["observedGeneration"].as_int() < meta(budget)["generation"].as_int()) {
    return too_many_requests(
        "The disruption budget " + name + " is still being processed by the server.",
        kRetrySeconds);
  }
  const std::int64_t allowed = status["disruptionsAllowed"].as_int();
  if (allowed < 0) {
    return forbidden(kBudget, name, "pdb disruptions allowed is negative");
  }
  if (status["disruptedPods"].size() > kMaxDisruptedPods) {
    return forbidden(kBudget, name,
                     "DisruptedPods map too big - too many evictions not confirmed by PDB "
                     "controller");
  }
  if (allowed == 0) {
    return too_many_requests(exhausted_words(budget), 0);
  }
  const std::int64_t observed = status["observedGeneration"].as_int();
  budget.at("status").set("disruptionsAllowed", allowed - 1);
  if (allowed == 1) {
    set_condition(budget, "DisruptionAllowed", "False", "InsufficientPods", "", now);
    for (Doc& condition : budget.at("status", "conditions").items()) {
      if (condition["type"].as_string() == "DisruptionAllowed") {
        condition.set("observedGeneration", observed);
      }
    }
  }
  budget.at("status", "disruptedPods").set(pod, format_time(now));
  return budget;
}

// One eviction, from its options to the deletion.
class Eviction {
 public:
  Eviction(Ops& ops, const Call& call) : ops_(ops), call_(call) {
    const Doc& options = call.body["deleteOptions"];
    const Doc& grace = options["gracePeriodSeconds"];
    if (grace.is_int()) {
      options_.grace_period_s = grace.as_int();
    }
    options_.preconditions.uid = options["preconditions"]["uid"].as_string();
    options_.preconditions.resource_version =
        options["preconditions"]["resourceVersion"].as_string();
    options_.propagation_policy = options["propagationPolicy"].as_string();
    is_dry_run_ = call.is_dry_run || !options["dryRun"].empty();
  }

  ApiResult<void> run() {
    const auto pod = ops_.get("pods", call_.ns, call_.name);
    if (!pod) {
      return not_found({"pods", ""}, call_.name);
    }
    if (!needs_no_budget(*pod)) {
      JOGAK_TRY_VOID(charge(*pod));
    }
    if (!is_dry_run_) {
      JOGAK_TRY_VOID(mark());
    }
    WriteRequest request = write_request("pods", call_.name, "");
    JOGAK_TRY_VOID(ops_.remove(request, options_));
    return {};
  }

 private:
  WriteRequest write_request(std::string_view resource, const std::string& name,
                             std::string subresource) const {
    return {.resource = ops_.registry().find_storage(resource),
            .ns = call_.ns,
            .name = name,
            .subresource = std::move(subresource),
            .manager = "kube-apiserver",
            .user = call_.user,
            .is_dry_run = is_dry_run_,
            .is_apply = false,
            .warnings = {}};
  }

  ApiResult<void> charge(const Doc& pod) {
    const std::vector<Doc> budgets = budgets_of(ops_, pod);
    if (budgets.size() > 1) {
      return bare_error(500,
                        "This pod has more than one PodDisruptionBudget, which the eviction "
                        "subresource does not support.");
    }
    if (budgets.empty() || is_free_to_go(pod, budgets.front())) {
      return {};
    }
    WriteRequest request = write_request(kBudgets, name_of(budgets.front()), "status");
    JOGAK_TRY_VOID(ops_.change(request, [&](const Doc& budget) {
      return take_disruption(budget, call_.name, ops_.loop().now());
    }));
    return {};
  }

  // Says on the pod why it goes, if it is still the pod that was meant.
  ApiResult<void> mark() {
    WriteRequest request = write_request("pods", call_.name, "status");
    request.is_apply = true;  // written by the server itself: nobody owns the condition
    Preconditions& wanted = options_.preconditions;
    const auto change = [&](const Doc& pod) -> ApiResult<Doc> {
      const std::string& version = meta(pod)["resourceVersion"].as_string();
      constexpr ResourceName kPod{"Pod", ""};
      if (!wanted.uid.empty() && wanted.uid != uid_of(pod)) {
        return conflict(kPod, call_.name,
                        "the UID in the precondition (" + wanted.uid +
                            ") does not match the UID in record (" + uid_of(pod) +
                            "). The object might have been deleted and then recreated");
      }
      if (!wanted.resource_version.empty() && wanted.resource_version != version) {
        return conflict(kPod, call_.name,
                        "the ResourceVersion in the precondition (" + wanted.resource_version +
                            ") does not match the ResourceVersion in record (" + version +
                            "). The object might have been modified");
      }
      Doc marked = pod;
      set_condition(marked, "DisruptionTarget", "True", "EvictionByEvictionAPI",
                    "Eviction API: evicting", ops_.loop().now());
      return marked;
    };
    JOGAK_TRY(const Ops::Updated updated, ops_.change(request, change));
    if (!wanted.resource_version.empty()) {
      wanted.resource_version = meta(updated.object)["resourceVersion"].as_string();
    }
    return {};
  }

  Ops& ops_;
  const Call& call_;
  DeleteOptions options_;
  bool is_dry_run_ = false;
};

}  // namespace

ApiResult<Answer> evict_pod(Ops& ops, Call& call) {
  if (call.name != name_of(call.body)) {
    return bad_request("name in URL does not match name in Eviction object");
  }
  JOGAK_TRY_VOID(Eviction(ops, call).run());
  return Answer{.code = 201, .body = bare_success_status(201), .is_text = false, .text = {}};
}

}  // namespace jogak::api
