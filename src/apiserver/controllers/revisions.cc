// SPDX-License-Identifier: Apache-2.0
//
// Facts: pkg/controller/history and pkg/controller/daemon of Kubernetes.
#include "apiserver/controllers/revisions.h"

#include <algorithm>

#include "apiserver/controllers/pod_control.h"
#include "apiserver/controllers/template_hash.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kTable = "controllerrevisions.apps";

std::int64_t number_of(const Doc& revision) { return revision["revision"].as_int(); }

void sort_revisions(std::vector<Doc>& revisions) {
  std::ranges::sort(revisions, {}, [](const Doc& revision) {
    return std::tuple(number_of(revision), api::meta(revision)["creationTimestamp"].as_string(),
                      api::name_of(revision));
  });
}

Doc fresh_revision(const HistoryOf& history, const Doc& owner, std::int64_t number) {
  const Doc& pod_template = owner.get("spec", "template");
  const std::string hash =
      template_hash(pod_template, owner.get("status", "collisionCount").as_int());
  Doc labels = pod_template.get("metadata", "labels");
  labels.set(history.hash_label, hash);
  Doc revision = Doc::object();
  revision.set("kind", "ControllerRevision").set("apiVersion", "apps/v1");
  Doc& metadata = revision.at("metadata");
  metadata.set("name", api::name_of(owner) + "-" + hash)
      .set("namespace", api::namespace_of(owner))
      .set("labels", std::move(labels))
      .set("ownerReferences", Doc::array().push(controller_reference(owner)));
  const Doc& annotations = api::meta(owner)["annotations"];
  if (!annotations.empty()) metadata.set("annotations", annotations);
  revision.set("data", template_patch(owner)).set("revision", number);
  return revision;
}

}  // namespace

Doc template_patch(const Doc& owner) {
  Doc patch = Doc::object();
  patch.at("spec").set("template", owner.get("spec", "template"));
  patch.at("spec", "template").set("$patch", "replace");
  return patch;
}

bool is_current(const Doc& owner, const Doc& revision) {
  return revision["data"] == template_patch(owner);
}

std::vector<Doc> revisions_of(api::Api& api, const Doc& owner) {
  std::vector<Doc> mine;
  const auto selector = api::LabelSelector::from_object(owner.get("spec", "selector"));
  for (Doc& revision : api.list(kTable, api::namespace_of(owner), selector)) {
    const Doc& controller = api::controller_of(revision);
    if (controller["uid"].as_string() == api::uid_of(owner)) {
      mine.push_back(std::move(revision));
    } else if (controller.is_null() && !api::is_deleting(owner) && !api::is_deleting(revision)) {
      revision.at("metadata", "ownerReferences").push(controller_reference(owner));
      auto adopted = api.update(kTable, std::move(revision));
      if (adopted.has_value()) mine.push_back(*std::move(adopted));
    }
  }
  sort_revisions(mine);
  return mine;
}

api::ApiResult<Doc> keep_current_revision(api::Api& api, const HistoryOf& history, const Doc& owner,
                                          std::vector<Doc>& revisions) {
  const auto same = std::ranges::find_if(revisions.rbegin(), revisions.rend(),
                                         [&](const Doc& one) { return is_current(owner, one); });
  const std::int64_t top = revisions.empty() ? 0 : number_of(revisions.back());
  if (same != revisions.rend()) {
    if (same == revisions.rbegin()) return *same;
    Doc moved = *same;  // a roll back: it becomes the newest
    moved.set("revision", top + 1);
    JOGAK_TRY(*same, api.update(kTable, std::move(moved)));
    Doc result = *same;
    sort_revisions(revisions);
    return result;
  }
  Doc fresh = fresh_revision(history, owner, top + 1);
  const std::string name = api::name_of(fresh);
  auto made = api.create(kTable, api::namespace_of(owner), std::move(fresh));
  if (made.has_value()) {
    revisions.push_back(*made);
    return made;
  }
  if (made.error().code != 409) return made;
  JOGAK_TRY(const Doc other, api.get(kTable, api::namespace_of(owner), name));
  if (is_current(owner, other) &&
      api::controller_of(other)["uid"].as_string() == api::uid_of(owner)) {
    return other;
  }
  JOGAK_TRY(Doc changed, api.get(history.table, api::namespace_of(owner), api::name_of(owner)));
  const std::int64_t collisions = changed.get("status", "collisionCount").as_int();
  changed.at("status").set("collisionCount", collisions + 1);
  JOGAK_TRY_VOID(api.update(history.table, std::move(changed), "status"));
  return made;
}

api::ApiResult<void> drop_old_revisions(api::Api& api, const Doc& owner,
                                        std::vector<const Doc*> unused) {
  const std::int64_t limit = owner.get("spec", "revisionHistoryLimit").as_int(10);
  std::ranges::sort(unused, {}, [](const Doc* revision) { return number_of(*revision); });
  const auto surplus = static_cast<std::int64_t>(unused.size()) - limit;
  for (std::int64_t i = 0; i < surplus; ++i) {
    const Doc& revision = *unused[static_cast<std::size_t>(i)];
    const auto removed = api.remove(kTable, api::namespace_of(owner), api::name_of(revision));
    if (!removed.has_value() && removed.error().code != 404) {
      return std::unexpected(removed.error());
    }
  }
  return {};
}

}  // namespace jogak::controllers
