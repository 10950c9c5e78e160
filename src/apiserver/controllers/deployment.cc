// SPDX-License-Identifier: Apache-2.0
//
// The deployment controller (pkg/controller/deployment of Kubernetes is the model): one replica set
// a template, pods moved from the old ones to the new one step by step.
#include <algorithm>

#include <fmt/core.h>

#include "apiserver/controllers/deployment_parts.h"
#include "apiserver/controllers/events.h"
#include "apiserver/controllers/pod_control.h"
#include "apiserver/controllers/template_hash.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/controllers/workloads.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kTable = "deployments.apps";
constexpr std::string_view kSets = "replicasets.apps";
constexpr std::string_view kComponent = "deployment-controller";
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

bool is_own_annotation(std::string_view key) {
  return key == kRevision || key == kRevisionHistory || key == kDesired || key == kMaxReplicas ||
         key == kLastApplied || key == "deprecated.deployment.rollback.to";
}

class Deployments : public Controller {
 public:
  explicit Deployments(const ControllerContext& context)
      : api_(context.make_api("kube-controller-manager")),
        pods_(context.pods),
        queue_(api_->loop(), [this](const std::string& key) { return sync(key); }) {
    deployments_ = api_->follow(
        kTable, [this](const api::Api::Change& change) { queue_.add(key_of(*change.object)); });
    sets_ = api_->follow(kSets, [this](const api::Api::Change& change) {
      const Doc& owner = api::controller_of(*change.object);
      if (owner["kind"].as_string() == "Deployment") {
        queue_.add(key_of(api::namespace_of(*change.object), owner["name"].as_string()));
      }
    });
  }

 private:
  Outcome sync(const std::string& key) {
    const auto [ns, name] = split_key(key);
    auto deployment = api_->get(kTable, ns, name);
    if (!deployment.has_value()) return Outcome::Done;
    std::vector<Doc> all = sets_of(*deployment);
    if (!api::is_deleting(*deployment)) {
      const api::ApiResult<void> moved = move(*deployment, all);
      if (!moved.has_value()) return Outcome::Retry;
    }
    return write_status(key, all);
  }

  // Its replica sets, oldest first.
  std::vector<Doc> sets_of(const Doc& deployment) {
    std::vector<Doc> mine;
    const auto selector = api::LabelSelector::from_object(deployment.get("spec", "selector"));
    for (Doc& set : api_->list(kSets, api::namespace_of(deployment), selector)) {
      const Doc& owner = api::controller_of(set);
      if (owner["uid"].as_string() == api::uid_of(deployment)) {
        mine.push_back(std::move(set));
      } else if (owner.is_null() && !api::is_deleting(deployment) && !api::is_deleting(set)) {
        set.at("metadata", "ownerReferences").push(controller_reference(deployment));
        auto adopted = api_->update(kSets, std::move(set));
        if (adopted.has_value()) mine.push_back(*std::move(adopted));
      }
    }
    std::ranges::sort(mine, {}, [](const Doc& set) {
      return std::pair(api::meta(set)["creationTimestamp"].as_string(), api::name_of(set));
    });
    return mine;
  }

  static Doc* find_current(const Doc& deployment, std::vector<Doc>& all) {
    const auto it = std::ranges::find_if(
        all, [&](const Doc& set) { return is_same_template(deployment, set); });
    return it == all.end() ? nullptr : &*it;
  }

  api::ApiResult<void> move(const Doc& deployment, std::vector<Doc>& all) {
    if (deployment.get("spec", "paused").as_bool()) {
      JOGAK_TRY_VOID(say_paused(deployment, true));
      return follow_scale(deployment, all);  // of what there is; the template waits
    }
    JOGAK_TRY_VOID(say_paused(deployment, false));
    const bool is_recreate = deployment.get("spec", "strategy", "type").as_string() == "Recreate";
    if (is_recreate) return recreate(deployment, all);
    JOGAK_TRY_VOID(have_current(deployment, all));
    if (is_scaling(deployment, all)) return follow_scale(deployment, all);
    return roll(deployment, all);
  }

  api::ApiResult<void> say_paused(const Doc& deployment, bool is_paused) {
    const std::string& reason = api::condition_of(deployment, "Progressing")["reason"].as_string();
    const bool was_paused = reason == "DeploymentPaused";
    if (is_paused == was_paused || !deployment["spec"].has("progressDeadlineSeconds")) return {};
    Doc changed = deployment;
    set_deployment_condition(
        changed, "Progressing", "Unknown", is_paused ? "DeploymentPaused" : "DeploymentResumed",
        is_paused ? "Deployment is paused" : "Deployment is resumed", api_->now());
    JOGAK_TRY_VOID(api_->update(kTable, std::move(changed), "status"));
    return {};
  }

  // The replica set of the present template, made when it is missing; the revisions of both.
  api::ApiResult<void> have_current(const Doc& deployment, std::vector<Doc>& all) {
    std::int64_t highest = 0;
    const Doc* same = find_current(deployment, all);
    for (const Doc& set : all) {
      if (&set != same) highest = std::max(highest, revision_of(set));
    }
    if (Doc* current = find_current(deployment, all)) {
      JOGAK_TRY_VOID(keep_annotations(deployment, *current, highest + 1));
      JOGAK_TRY_VOID(keep_revision(deployment, revision_of(*current), *current, false));
      return {};
    }
    JOGAK_TRY(Doc made, make_set(deployment, all, highest + 1));
    const std::int64_t replicas = replicas_of(made);
    if (replicas > 0) say_scaled(deployment, made, 0, replicas);
    all.push_back(std::move(made));
    return keep_revision(deployment, highest + 1, all.back(), true);
  }

  Doc set_annotations(const Doc& deployment, const Doc& set, std::int64_t revision) const {
    Doc annotations = api::meta(set)["annotations"];
    if (!annotations.is_object()) annotations = Doc::object();
    for (const auto& [key, value] : api::meta(deployment)["annotations"].members()) {
      if (!is_own_annotation(key)) annotations.set(key, value);
    }
    const std::int64_t old_revision = revision_of(set);
    if (old_revision < revision) {
      if (old_revision > 0) {
        std::string history = annotations[kRevisionHistory].as_string();
        history += (history.empty() ? "" : ",") + std::to_string(old_revision);
        annotations.set(kRevisionHistory, history);
      }
      annotations.set(kRevision, std::to_string(revision));
    }
    const std::int64_t wanted = replicas_of(deployment);
    annotations.set(kDesired, std::to_string(wanted));
    annotations.set(kMaxReplicas, std::to_string(wanted + limits_of(deployment).surge));
    return annotations;
  }

  api::ApiResult<void> keep_annotations(const Doc& deployment, Doc& set, std::int64_t revision) {
    Doc annotations = set_annotations(deployment, set, revision);
    // what the scale was is known by these two until the scale has been followed
    for (const std::string_view key : {kDesired, kMaxReplicas}) {
      const Doc& old = api::meta(set)["annotations"][key];
      if (!old.is_null()) annotations.set(key, old);
    }
    const Doc& min_ready = deployment.get("spec", "minReadySeconds");
    if (annotations == api::meta(set)["annotations"] &&
        min_ready.as_int() == set.get("spec", "minReadySeconds").as_int()) {
      return {};
    }
    Doc changed = set;
    changed.at("metadata").set("annotations", std::move(annotations));
    changed.at("spec").set("minReadySeconds", min_ready.as_int());
    JOGAK_TRY(set, api_->update(kSets, std::move(changed)));
    return {};
  }

  api::ApiResult<void> keep_revision(const Doc& deployment, std::int64_t revision,
                                     const Doc& current, bool is_new) {
    const std::string text = std::to_string(revision);
    if (api::meta(deployment)["annotations"][kRevision].as_string() != text) {
      // through status, so that the generation stays: nothing was asked for
      JOGAK_TRY(Doc marked,
                api_->get(kTable, api::namespace_of(deployment), api::name_of(deployment)));
      marked.at("metadata", "annotations").set(kRevision, text);
      JOGAK_TRY_VOID(api_->update(kTable, std::move(marked), "status"));
    }
    const bool has_progress = !api::condition_of(deployment, "Progressing").is_null();
    if (!deployment["spec"].has("progressDeadlineSeconds") || (!is_new && has_progress)) return {};
    JOGAK_TRY(Doc fresh,
              api_->get(kTable, api::namespace_of(deployment), api::name_of(deployment)));
    set_deployment_condition(fresh, "Progressing", "True",
                             is_new ? "NewReplicaSetCreated" : "FoundNewReplicaSet",
                             fmt::format("{} new replica set \"{}\"", is_new ? "Created" : "Found",
                                         api::name_of(current)),
                             api_->now());
    JOGAK_TRY_VOID(api_->update(kTable, std::move(fresh), "status"));
    return {};
  }

  api::ApiResult<Doc> make_set(const Doc& deployment, const std::vector<Doc>& all,
                               std::int64_t revision) {
    const std::int64_t collisions = deployment.get("status", "collisionCount").as_int();
    const Doc& pod_template = deployment.get("spec", "template");
    const std::string hash = template_hash(pod_template, collisions);
    Doc set = Doc::object();
    set.set("kind", "ReplicaSet").set("apiVersion", "apps/v1");
    Doc labels = pod_template.get("metadata", "labels");
    labels.set(kHashLabel, hash);
    set.at("metadata")
        .set("name", api::name_of(deployment) + "-" + hash)
        .set("namespace", api::namespace_of(deployment))
        .set("labels", labels)
        .set("annotations", set_annotations(deployment, Doc::object(), revision))
        .set("ownerReferences", Doc::array().push(controller_reference(deployment)));
    Doc& spec = set.at("spec");
    spec.set("replicas", new_set_replicas(deployment, all, Doc()))
        .set("minReadySeconds", deployment.get("spec", "minReadySeconds").as_int())
        .set("selector", deployment.get("spec", "selector"))
        .set("template", pod_template);
    spec.at("selector").at("matchLabels").set(kHashLabel, hash);
    spec.at("template").at("metadata").at("labels").set(kHashLabel, hash);
    auto made = api_->create(kSets, api::namespace_of(deployment), std::move(set));
    if (made.has_value() || made.error().code != 409) return made;
    // The name is taken: by another template, so that the next try needs another name.
    JOGAK_TRY(Doc fresh,
              api_->get(kTable, api::namespace_of(deployment), api::name_of(deployment)));
    fresh.at("status").set("collisionCount", collisions + 1);
    JOGAK_TRY_VOID(api_->update(kTable, std::move(fresh), "status"));
    return made;
  }

  void say_scaled(const Doc& deployment, const Doc& set, std::int64_t from, std::int64_t to) {
    write_event(*api_, kComponent, deployment, "Normal", "ScalingReplicaSet",
                fmt::format("Scaled {} replica set {} from {} to {}", to > from ? "up" : "down",
                            api::name_of(set), from, to));
  }

  api::ApiResult<void> scale(const Doc& deployment, Doc& set, std::int64_t replicas) {
    const std::int64_t before = replicas_of(set);
    const std::int64_t wanted = replicas_of(deployment);
    const std::string desired = std::to_string(wanted);
    const std::string most = std::to_string(wanted + limits_of(deployment).surge);
    const Doc& annotations = api::meta(set)["annotations"];
    const bool is_annotated = annotations[kDesired].as_string() == desired &&
                              annotations[kMaxReplicas].as_string() == most;
    if (before == replicas && is_annotated) return {};
    Doc changed = set;
    changed.at("spec").set("replicas", replicas);
    changed.at("metadata", "annotations").set(kDesired, desired).set(kMaxReplicas, most);
    JOGAK_TRY(set, api_->update(kSets, std::move(changed)));
    if (before != replicas) say_scaled(deployment, set, before, replicas);
    return {};
  }

  // Whether spec.replicas changed since its active sets were last scaled.
  static bool is_scaling(const Doc& deployment, const std::vector<Doc>& all) {
    const std::string desired = std::to_string(replicas_of(deployment));
    return std::ranges::any_of(all, [&](const Doc& set) {
      const Doc& known = api::meta(set)["annotations"][kDesired];
      return replicas_of(set) > 0 && !known.is_null() && known.as_string() != desired;
    });
  }

  // A change of scale: to the one active set, or in proportion to all of them.
  api::ApiResult<void> follow_scale(const Doc& deployment, std::vector<Doc>& all) {
    const std::int64_t wanted = replicas_of(deployment);
    std::vector<Doc*> active;
    for (Doc& set : all) {
      if (replicas_of(set) > 0) active.push_back(&set);
    }
    Doc* current = find_current(deployment, all);
    if (active.size() <= 1) {
      Doc* latest = current != nullptr || all.empty() ? current : &all.back();
      Doc* only = active.empty() ? latest : active.front();
      return only == nullptr ? api::ApiResult<void>() : scale(deployment, *only, wanted);
    }
    const bool is_done = current != nullptr && replicas_of(*current) == wanted &&
                         status_of_set(*current, "availableReplicas") == wanted;
    if (is_done) {
      for (Doc* set : active) {
        if (set != current) JOGAK_TRY_VOID(scale(deployment, *set, 0));
      }
      return {};
    }
    return share_out(deployment, active, total_replicas(all));
  }

  // Adds to or takes from each set by its part of the whole, largest first; the rest goes to the
  // first.
  api::ApiResult<void> share_out(const Doc& deployment, std::vector<Doc*> active,
                                 std::int64_t total) {
    const std::int64_t wanted = replicas_of(deployment);
    const std::int64_t allowed = wanted == 0 ? 0 : wanted + limits_of(deployment).surge;
    const std::int64_t change = allowed - total;
    std::ranges::stable_sort(active, std::ranges::greater(),
                             [](const Doc* set) { return replicas_of(*set); });
    std::int64_t left = change;
    std::vector<std::int64_t> sizes;
    for (const Doc* set : active) {
      const std::int64_t size = replicas_of(*set);
      std::int64_t part = total == 0 ? 0 : size * change / total;
      part = change > 0 ? std::min(part, left) : std::max({part, left, -size});
      sizes.push_back(size + part);
      left -= part;
    }
    if (!sizes.empty()) sizes.front() = std::max<std::int64_t>(sizes.front() + left, 0);
    for (std::size_t i = 0; i < active.size(); ++i) {
      JOGAK_TRY_VOID(scale(deployment, *active[i], sizes[i]));
    }
    return {};
  }

  api::ApiResult<void> roll(const Doc& deployment, std::vector<Doc>& all) {
    Doc* current = find_current(deployment, all);
    if (current == nullptr) return {};
    const std::int64_t wanted = replicas_of(deployment);
    if (replicas_of(*current) > wanted) {
      JOGAK_TRY_VOID(scale(deployment, *current, wanted));
    } else {
      const std::int64_t next = new_set_replicas(deployment, all, *current);
      const bool grows = next > replicas_of(*current);
      JOGAK_TRY_VOID(scale(deployment, *current, next));
      if (grows) return {};  // old ones go in the next step
    }
    JOGAK_TRY_VOID(shrink_old(deployment, all, *current));
    return drop_history(deployment, all, current);
  }

  api::ApiResult<void> shrink_old(const Doc& deployment, std::vector<Doc>& all,
                                  const Doc& current) {
    const std::int64_t least = replicas_of(deployment) - limits_of(deployment).unavailable;
    const std::int64_t new_unavailable =
        replicas_of(current) - status_of_set(current, "availableReplicas");
    std::int64_t most = total_replicas(all) - least - new_unavailable;
    const auto is_old = [&](const Doc& set) { return &set != &current; };
    for (Doc& set : all) {  // first those that do not work anyway
      const std::int64_t broken = replicas_of(set) - status_of_set(set, "availableReplicas");
      if (!is_old(set) || most <= 0 || broken <= 0) continue;
      const std::int64_t down = std::min(most, broken);
      most -= down;
      JOGAK_TRY_VOID(scale(deployment, set, replicas_of(set) - down));
    }
    std::int64_t available = 0;
    for (const Doc& set : all) available += status_of_set(set, "availableReplicas");
    std::int64_t spare = available - least;
    for (Doc& set : all) {
      if (!is_old(set) || spare <= 0 || replicas_of(set) == 0) continue;
      const std::int64_t down = std::min(spare, replicas_of(set));
      spare -= down;
      JOGAK_TRY_VOID(scale(deployment, set, replicas_of(set) - down));
    }
    return {};
  }

  api::ApiResult<void> recreate(const Doc& deployment, std::vector<Doc>& all) {
    bool has_old_pods = false;
    const Doc* same = find_current(deployment, all);
    for (Doc& set : all) {
      if (&set == same) continue;
      if (replicas_of(set) > 0) JOGAK_TRY_VOID(scale(deployment, set, 0));
      has_old_pods = has_old_pods || !pods_.owned_by(api::uid_of(set)).empty();
    }
    if (has_old_pods) return {};
    JOGAK_TRY_VOID(have_current(deployment, all));
    Doc* current = find_current(deployment, all);
    if (current == nullptr) return {};
    JOGAK_TRY_VOID(scale(deployment, *current, replicas_of(deployment)));
    return drop_history(deployment, all, current);
  }

  api::ApiResult<void> drop_history(const Doc& deployment, std::vector<Doc>& all,
                                    const Doc* current) {
    const std::int64_t limit = deployment.get("spec", "revisionHistoryLimit").as_int(10);
    std::vector<const Doc*> old;
    for (const Doc& set : all) {
      const bool is_empty =
          replicas_of(set) == 0 && status_of_set(set, "replicas") == 0 && !api::is_deleting(set);
      if (&set != current && is_empty) old.push_back(&set);
    }
    std::ranges::sort(old, {}, [](const Doc* set) { return revision_of(*set); });
    const auto surplus = static_cast<std::int64_t>(old.size()) - limit;
    for (std::int64_t i = 0; i < surplus; ++i) {
      const Doc& set = *old[static_cast<std::size_t>(i)];
      JOGAK_TRY_VOID(api_->remove(kSets, api::namespace_of(set), api::name_of(set)));
    }
    return {};
  }

  Outcome write_status(const std::string& key, std::vector<Doc>& all) {
    const auto [ns, name] = split_key(key);
    auto deployment = api_->get(kTable, ns, name);
    if (!deployment.has_value()) return Outcome::Done;
    Doc* current = find_current(*deployment, all);
    Doc status =
        deployment_status(*deployment, all, current == nullptr ? Doc() : *current, api_->now());
    copy_failure(status, all);
    // a deadline passes without anything else happening
    const Doc* deadline = (*deployment)["spec"].find("progressDeadlineSeconds");
    const bool is_under_way = api::condition_of(*deployment, "Progressing")["reason"].as_string() !=
                              "NewReplicaSetAvailable";
    if (deadline != nullptr && is_under_way && deadline->as_int() < 1'000'000'000) {
      queue_.add_after((deadline->as_int() + 1) * kSecondInUs, key);
    }
    if (status == (*deployment)["status"]) return Outcome::Done;
    deployment->set("status", std::move(status));
    const auto written = api_->update(kTable, *std::move(deployment), "status");
    return written.has_value() ? Outcome::Done : Outcome::Retry;
  }

  // A replica set that cannot make pods speaks through its deployment.
  static void copy_failure(Doc& status, const std::vector<Doc>& all) {
    Doc holder = Doc::object().set("status", status);
    Doc failure;
    for (const Doc& set : all) {
      const Doc& condition = api::condition_of(set, "ReplicaFailure");
      if (!condition.is_null()) failure = condition;
    }
    const Doc before = api::condition_of(holder, "ReplicaFailure");
    if (failure.is_null() && before.is_null()) return;
    if (!failure.is_null() && before["message"] == failure["message"]) return;
    Doc kept = Doc::array();
    for (const Doc& condition : status["conditions"].items()) {
      if (condition["type"].as_string() != "ReplicaFailure") kept.push(condition);
    }
    if (!failure.is_null()) {
      failure.set("lastUpdateTime", failure["lastTransitionTime"]);
      kept.push(std::move(failure));
    }
    status.set("conditions", std::move(kept));
  }

  std::unique_ptr<api::Api> api_;
  PodIndex& pods_;
  WorkQueue queue_;
  std::shared_ptr<void> deployments_, sets_;
};

}  // namespace

std::unique_ptr<Controller> deployment_controller(const ControllerContext& context) {
  return std::make_unique<Deployments>(context);
}

}  // namespace jogak::controllers
