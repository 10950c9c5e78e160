// SPDX-License-Identifier: Apache-2.0
//
// Controller revisions: a snapshot that never changes.
#include "apiserver/kinds/apps.h"
#include "apiserver/kinds/scale.h"
#include "apiserver/kinds/workload_checks.h"
#include "apiserver/kinds/workload_template.h"

namespace jogak::api {

namespace {

class ControllerRevisionStrategy : public Strategy {
 public:
  void prepare_create(Doc& /*object*/, WriteContext& /*context*/) const override {}
  void prepare_update(Doc& /*object*/, const Doc& /*old*/,
                      WriteContext& /*context*/) const override {}

  void validate_create(const Doc& object, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    check_not_negative(object, "revision", Path(), errors);
    if (object["data"].is_null()) {
      errors.required(Path("data"), "data is mandatory");
    } else if (!object["data"].is_object()) {
      errors.required(Path("data"), "data must be a valid JSON object");
    }
  }

  void validate_update(const Doc& object, const Doc& old, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    check_not_negative(object, "revision", Path(), errors);
    check_immutable(object, old, "data", Path(), errors);
  }

  bool tracks_generation() const override { return false; }
};

}  // namespace

std::shared_ptr<const Strategy> controller_revision_strategy() {
  return std::make_shared<ControllerRevisionStrategy>();
}

void add_apps_kinds(Registry& registry, const KindOptions& options) {
  registry.add(make_resource({.group = "apps",
                              .version = "v1",
                              .plural = "controllerrevisions",
                              .singular = "controllerrevision",
                              .kind = "ControllerRevision",
                              .in_all = false,
                              .has_status = false},
                             controller_revision_strategy()));
  registry.add(make_resource({.group = "apps",
                              .version = "v1",
                              .plural = "daemonsets",
                              .singular = "daemonset",
                              .kind = "DaemonSet",
                              .short_names = {"ds"}},
                             daemon_set_strategy(options)));
  const auto add_scalable = [&](const ResourceNames& names,
                                std::shared_ptr<const Strategy> strategy) {
    Resource resource = make_resource(names, std::move(strategy));
    add_scale(resource);
    registry.add(std::move(resource));
  };
  add_scalable({.group = "apps",
                .version = "v1",
                .plural = "deployments",
                .singular = "deployment",
                .kind = "Deployment",
                .short_names = {"deploy"}},
               deployment_strategy(options));
  add_scalable({.group = "apps",
                .version = "v1",
                .plural = "replicasets",
                .singular = "replicaset",
                .kind = "ReplicaSet",
                .short_names = {"rs"}},
               replica_set_strategy(options));
  add_scalable({.group = "apps",
                .version = "v1",
                .plural = "statefulsets",
                .singular = "statefulset",
                .kind = "StatefulSet",
                .short_names = {"sts"}},
               stateful_set_strategy(options));
}

}  // namespace jogak::api
