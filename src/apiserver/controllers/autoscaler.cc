// SPDX-License-Identifier: Apache-2.0
//
// The horizontal pod autoscaler (pkg/controller/podautoscaler of Kubernetes is the model) of a
// cluster without metrics APIs: it holds targets within their bounds, and says of every metric that
// it cannot be had.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "apiserver/controllers/events.h"
#include "apiserver/controllers/scale_target.h"
#include "apiserver/controllers/service_controllers.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kTable = "horizontalpodautoscalers.autoscaling";
constexpr std::string_view kComponent = "horizontal-pod-autoscaler";

struct MissingMetric {
  std::string reason, message;
};

// Why a metric of the spec cannot be had, in the words of the real controller.
MissingMetric missing_metric(const Doc& metric) {
  constexpr std::string_view kNoServer = "the server could not find the requested resource";
  const std::string& type = metric["type"].as_string();
  std::string what;
  if (type == "Resource" || type == "ContainerResource") {
    const Doc& source = metric[type == "Resource" ? "resource" : "containerResource"];
    const std::string& name = source["name"].as_string();
    const bool is_share = source["target"]["type"].as_string() == "Utilization";
    what = fmt::format(
        "failed to get {} {}: unable to get metrics for resource {}: unable to fetch "
        "metrics from resource metrics API: {} (get pods.metrics.k8s.io)",
        name, is_share ? "utilization" : "usage", name, kNoServer);
  } else if (type == "External") {
    const std::string& name = metric.get("external", "metric", "name").as_string();
    what = fmt::format("failed to get {} external metric: unable to get external metric {}: {}",
                       name, name, kNoServer);
  } else {
    const Doc& source = metric[type == "Object" ? "object" : "pods"];
    what =
        fmt::format("failed to get metric {}: unable to fetch metrics from custom metrics API: {}",
                    source.get("metric", "name").as_string(), kNoServer);
  }
  return {.reason = fmt::format("FailedGet{}Metric", type),
          .message = "the HPA was unable to compute the replica count: " + what};
}

class Autoscaler : public Controller {
 public:
  explicit Autoscaler(const ControllerContext& context)
      : api_(context.make_api("kube-controller-manager")),
        period_(context.options.hpa_period),
        queue_(api_->loop(), [this](const std::string& key) { return sync(key); }) {
    following_ = api_->follow(kTable, [this](const api::Api::Change& change) {
      const std::string key = key_of(*change.object);
      if (change.type == store::EventType::Deleted) {
        said_.erase(key);
        rounds_.erase(key);
      } else if (!rounds_.contains(key)) {
        queue_.add(key);  // changes of one that is known wait for its next round
      }
    });
  }

 private:
  Outcome sync(const std::string& key) {
    const auto [ns, name] = split_key(key);
    const auto before = api_->get(kTable, ns, name);
    if (!before.has_value()) return Outcome::Done;
    Doc scaler = *before;
    scale(key, scaler);
    next_round(key);
    if (scaler["status"] == (*before)["status"]) return Outcome::Done;
    return api_->update(kTable, std::move(scaler), "status").has_value() ? Outcome::Done
                                                                         : Outcome::Retry;
  }

  // One round is under way for each autoscaler, however often it is looked at in between.
  void next_round(const std::string& key) {
    const TimeUs now = api_->now();
    TimeUs& next = rounds_[key];
    if (next > now) return;
    next = now + period_;
    queue_.add_at(next, key);
  }

  void set(Doc& scaler, std::string_view type, bool is_true, std::string_view reason,
           const std::string& message) {
    api::set_condition(scaler, type, is_true ? "True" : "False", reason, message, api_->now());
  }

  void say(const std::string& key, const Doc& scaler, std::string_view type,
           std::string_view reason, const std::string& message) {
    if (!said_[key].emplace(reason).second) return;  // not again in every round
    write_event(*api_, kComponent, scaler, type, reason, message);
  }

  void fail_scale(const std::string& key, Doc& scaler, std::string_view reason,
                  const std::string& why) {
    set(scaler, "AbleToScale", false, reason,
        "the HPA controller was unable to get the target's current scale: " + why);
    say(key, scaler, "Warning", reason, why);
  }

  void scale(const std::string& key, Doc& scaler) {
    const Doc target = scaler.get("spec", "scaleTargetRef");
    const std::string& name = target["name"].as_string();
    const std::string table =
        table_of(*api_, target["apiVersion"].as_string(), target["kind"].as_string());
    if (table.empty()) {
      fail_scale(key, scaler, "FailedGetScale",
                 fmt::format("unable to determine resource for scale target reference: no matches "
                             "for kind \"{}\" in version \"{}\"",
                             target["kind"].as_string(), target["apiVersion"].as_string()));
      return;
    }
    const auto object = api_->get(table, api::namespace_of(scaler), name);
    if (!object.has_value()) {
      fail_scale(key, scaler, "FailedGetScale", object.error().message);
      return;
    }
    const auto path = replicas_path(*api_, table);
    if (!path.has_value()) {
      fail_scale(key, scaler, "FailedGetScale", "the server could not find the requested resource");
      return;
    }
    said_[key].erase("FailedGetScale");
    set(scaler, "AbleToScale", true, "SucceededGetScale",
        "the HPA controller was able to get the target's current scale");
    decide(key, scaler, table, *path, at_path(*object, *path).as_int(1));
  }

  void decide(const std::string& key, Doc& scaler, const std::string& table,
              const std::string& path, std::int64_t current) {
    const std::int64_t least = scaler.get("spec", "minReplicas").as_int(1);
    const std::int64_t most = scaler.get("spec", "maxReplicas").as_int();
    if (current == 0 && least != 0) {
      set(scaler, "ScalingActive", false, "ScalingDisabled",
          "scaling is disabled since the replica count of the target is zero");
      write_numbers(scaler, current, 0);
    } else if (current > most) {
      rescale(key, scaler, table, path, current, most,
              "Current number of replicas above Spec.MaxReplicas");
    } else if (current < least) {
      rescale(key, scaler, table, path, current, least,
              "Current number of replicas below Spec.MinReplicas");
    } else {
      report_missing(key, scaler, current);
    }
  }

  static void write_numbers(Doc& scaler, std::int64_t current, std::int64_t desired) {
    Doc& status = scaler.at("status");
    if (current == 0) {
      status.erase("currentReplicas");
    } else {
      status.set("currentReplicas", current);
    }
    status.set("desiredReplicas", desired).set("currentMetrics", Doc());
  }

  void report_missing(const std::string& key, Doc& scaler, std::int64_t current) {
    const std::int64_t desired = scaler.get("status", "desiredReplicas").as_int();
    write_numbers(scaler, current, desired);
    const Doc metrics = scaler.get("spec", "metrics");
    if (metrics.empty()) return;
    Doc shown = Doc::array();  // one without contents for each that cannot be had
    for (std::size_t i = 0; i < metrics.size(); ++i) shown.push(Doc::object().set("type", ""));
    scaler.at("status").set("currentMetrics", std::move(shown));
    const MissingMetric missing = missing_metric(metrics.items()[0]);
    set(scaler, "ScalingActive", false, missing.reason, missing.message);
    say(key, scaler, "Warning", missing.reason, missing.message);
    say(key, scaler, "Warning", "FailedComputeMetricsReplicas",
        fmt::format("invalid metrics ({} invalid out of {}), first error is: {}", metrics.size(),
                    metrics.size(), missing.message));
  }

  void rescale(const std::string& key, Doc& scaler, const std::string& table,
               const std::string& path, std::int64_t current, std::int64_t wanted,
               std::string_view why) {
    const Doc target = scaler.get("spec", "scaleTargetRef");
    const auto written = api_->patch(table, api::namespace_of(scaler), target["name"].as_string(),
                                     api::PatchType::Merge, patch_at_path(path, wanted));
    if (!written.has_value()) {
      set(scaler, "AbleToScale", false, "FailedUpdateScale",
          "the HPA controller was unable to update the target scale: " + written.error().message);
      say(key, scaler, "Warning", "FailedRescale",
          fmt::format("New size: {}; reason: {}; error: {}", wanted, why, written.error().message));
      write_numbers(scaler, current, scaler.get("status", "desiredReplicas").as_int());
      return;
    }
    set(scaler, "AbleToScale", true, "SucceededRescale",
        fmt::format("the HPA controller was able to update the target scale to {}", wanted));
    write_event(*api_, kComponent, scaler, "Normal", "SuccessfulRescale",
                fmt::format("New size: {}; reason: {}", wanted, why));
    write_numbers(scaler, current, wanted);
    scaler.at("status").set("lastScaleTime", api::format_time(api_->now()));
  }

  std::unique_ptr<api::Api> api_;
  TimeUs period_;
  WorkQueue queue_;
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> said_;  // event reasons
  std::map<std::string, TimeUs, std::less<>> rounds_;  // the next one of each
  std::shared_ptr<void> following_;
};

}  // namespace

std::unique_ptr<Controller> autoscaler_controller(const ControllerContext& context) {
  return std::make_unique<Autoscaler>(context);
}

}  // namespace jogak::controllers
