// SPDX-License-Identifier: Apache-2.0
//
// What ties pods and nodes that are not ready: a new node is tainted until its controller says
// otherwise, and pods bear with a node that falls ill for five minutes.
#include <algorithm>
#include <array>
#include <string_view>

#include "apiserver/admission/plugins.h"

namespace jogak::api {

namespace {

constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";
constexpr std::string_view kUnreachable = "node.kubernetes.io/unreachable";
constexpr std::int64_t kTolerationSeconds = 300;

class TaintNodesByCondition : public AdmissionPlugin {
 public:
  ApiResult<void> mutate(Admission& admission, WriteContext& /*context*/) const override {
    if (!is_main(admission, "", "nodes") || admission.operation != Operation::Create) {
      return {};
    }
    Doc& taints = admission.object->at("spec").at("taints");
    const bool has_taint = std::ranges::any_of(std::as_const(taints).items(), [](const Doc& taint) {
      return taint["key"].as_string() == kNotReady && taint["effect"].as_string() == "NoSchedule";
    });
    if (!has_taint) {
      taints.push(Doc::object().set("key", kNotReady).set("effect", "NoSchedule"));
    }
    return {};
  }
};

bool tolerates(const Doc& tolerations, std::string_view taint) {
  return std::ranges::any_of(tolerations.items(), [&](const Doc& toleration) {
    const std::string& key = toleration["key"].as_string();
    const std::string& effect = toleration["effect"].as_string();
    return (key.empty() || key == taint) && (effect.empty() || effect == "NoExecute");
  });
}

class DefaultTolerationSeconds : public AdmissionPlugin {
 public:
  ApiResult<void> mutate(Admission& admission, WriteContext& /*context*/) const override {
    if (!is_main(admission, "", "pods") || admission.object == nullptr) {
      return {};
    }
    Doc& spec = admission.object->at("spec");
    const bool bears_not_ready = tolerates(spec["tolerations"], kNotReady);
    const bool bears_unreachable = tolerates(spec["tolerations"], kUnreachable);
    if (!bears_not_ready) {
      spec.at("tolerations").push(toleration(kNotReady));
    }
    if (!bears_unreachable) {
      spec.at("tolerations").push(toleration(kUnreachable));
    }
    return {};
  }

 private:
  static Doc toleration(std::string_view key) {
    return Doc::object()
        .set("key", key)
        .set("operator", "Exists")
        .set("effect", "NoExecute")
        .set("tolerationSeconds", kTolerationSeconds);
  }
};

// Zone and region of the node stand on its pods.
class PodTopologyLabels : public AdmissionPlugin {
 public:
  ApiResult<void> mutate(Admission& admission, WriteContext& context) const override {
    // Bound pods get theirs from the binding; what is left are pods that name their node.
    if (!is_main(admission, "", "pods") || admission.operation != Operation::Create) {
      return {};
    }
    const std::string& name = (*admission.object)["spec"]["nodeName"].as_string();
    const auto node = name.empty() ? std::nullopt : context.lookup.get("nodes", "", name);
    if (!node) {
      return {};
    }
    for (const std::string_view key : kLabels) {
      if (const Doc* value = (*node)["metadata"]["labels"].find(key)) {
        admission.object->at("metadata", "labels").set(key, *value);
      }
    }
    return {};
  }

 private:
  static constexpr std::array<std::string_view, 2> kLabels = {"topology.kubernetes.io/zone",
                                                              "topology.kubernetes.io/region"};
};

}  // namespace

std::unique_ptr<AdmissionPlugin> taint_nodes_by_condition() {
  return std::make_unique<TaintNodesByCondition>();
}

std::unique_ptr<AdmissionPlugin> default_toleration_seconds() {
  return std::make_unique<DefaultTolerationSeconds>();
}

std::unique_ptr<AdmissionPlugin> pod_topology_labels() {
  return std::make_unique<PodTopologyLabels>();
}

}  // namespace jogak::api
