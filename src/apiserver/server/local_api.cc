// SPDX-License-Identifier: Apache-2.0
//
// Calls go through the same verbs as a client's, on typed values; followers of one table share one
// watch of the store.
#include "apiserver/server/local_api.h"

#include <algorithm>

#include "apiserver/crd/crd.h"
#include "apiserver/object/meta.h"
#include "apiserver/patch/managed_fields.h"
#include "apiserver/patch/patch.h"
#include "apiserver/schema/normalise.h"
#include "base/check.h"

namespace jogak::api {

namespace {

// Brings an object that code has built into the form that handlers expect.
ApiResult<Doc> decoded(const Resource& resource, Doc object, const schema::Struct* type) {
  schema::Complaints complaints;
  if (type == nullptr) return decode_custom(std::move(object), resource, complaints);
  auto typed = schema::decode(std::move(object), *type, complaints);
  if (!typed.has_value()) return bad_request(std::move(typed.error().what));
  return *std::move(typed);
}

User controller_user(const std::string& manager) {
  return {.name = "system:" + manager, .uid = "", .groups = {"system:masters"}};
}

}  // namespace

FollowHub::~FollowHub() {
  *alive_ = false;
  for (const auto& [table, channel] : channels_) ops_.store().unwatch(channel.watch);
}

std::shared_ptr<void> FollowHub::follow(std::string_view table, Api::Follower follower) {
  auto entry = std::make_shared<Entry>();
  entry->follower = std::move(follower);
  std::string name(table);
  Channel& channel = channels_[name];
  channel.entries.emplace_back(entry);
  if (channel.watch == 0) {
    auto watch = ops_.store().watch(ops_.store().table(table), ops_.store().revision(),
                                    [this, alive = alive_, name](const store::EventPtr& event) {
                                      ops_.loop().post([this, alive, name, event] {
                                        if (*alive) deliver(name, event);
                                      });
                                    });
    JOGAK_CHECK(watch.has_value(), "a watch from the present state is always possible");
    channel.watch = *watch;
  }
  ops_.loop().post([this, alive = alive_, name, weak = std::weak_ptr(entry)] {
    if (*alive) start(name, weak);
  });
  return entry;
}

void FollowHub::start(const std::string& table, const std::weak_ptr<Entry>& weak) {
  const std::shared_ptr<Entry> entry = weak.lock();
  if (entry == nullptr) return;
  const auto page = ops_.store().list(ops_.store().table(table), {});
  entry->since = page.revision;
  entry->has_started = true;
  for (const store::ObjectPtr& object : page.objects) {
    Doc doc = ops_.parse(*object);
    doc.at("metadata").erase("managedFields");
    entry->follower(
        {.type = store::EventType::Added, .object = std::make_shared<const Doc>(std::move(doc))});
  }
}

void FollowHub::deliver(const std::string& table, const store::EventPtr& event) {
  Channel& channel = channels_[table];
  std::erase_if(channel.entries, [](const auto& weak) { return weak.expired(); });
  if (channel.entries.empty()) return;
  Doc doc = ops_.parse(*event->object);
  doc.at("metadata").erase("managedFields");
  const Api::Change change{.type = event->type,
                           .object = std::make_shared<const Doc>(std::move(doc))};
  const std::vector<std::weak_ptr<Entry>> entries = channel.entries;  // followers may follow more
  for (const auto& weak : entries) {
    const std::shared_ptr<Entry> entry = weak.lock();
    if (entry == nullptr || !entry->has_started || event->revision <= entry->since) continue;
    entry->follower(change);
  }
}

ApiResult<const Resource*> LocalApi::find(std::string_view resource) const {
  const Resource* found = ops_.registry().find_storage(resource);
  if (found == nullptr) return no_such_resource();
  return found;
}

WriteRequest LocalApi::request(const Resource& resource, std::string_view ns, std::string_view name,
                               std::string_view subresource) const {
  return {.resource = &resource,
          .ns = std::string(ns),
          .name = std::string(name),
          .subresource = std::string(subresource),
          .manager = manager_,
          .user = controller_user(manager_),
          .is_dry_run = false,
          .is_apply = false,
          .warnings = {}};
}

ApiResult<Doc> LocalApi::get(std::string_view resource, std::string_view ns,
                             std::string_view name) const {
  JOGAK_TRY(const Resource* found, find(resource));
  auto object = ops_.get(resource, ns, name);
  if (!object.has_value()) return not_found(found->name(), name);
  return *std::move(object);
}

std::vector<Doc> LocalApi::list(std::string_view resource, std::string_view ns,
                                const LabelSelector& selector) const {
  const std::function<bool(const store::Object&)> keep = [&](const store::Object& object) {
    return selector.matches(object.labels);
  };
  store::Store::Range range;
  range.ns = ns;
  if (!selector.is_everything()) range.keep = &keep;
  std::vector<Doc> objects;
  for (const auto& object : ops_.store().list(ops_.store().table(resource), range).objects) {
    objects.push_back(ops_.parse(*object));
  }
  return objects;
}

ApiResult<Doc> LocalApi::create(std::string_view resource, std::string_view ns, Doc object,
                                std::string_view subresource, std::string_view name) {
  JOGAK_TRY(const Resource* found, find(resource));
  const Subresource* sub = subresource.empty() ? nullptr : found->subresource(subresource);
  if (!subresource.empty() && (sub == nullptr || !sub->handler)) return no_such_resource();
  JOGAK_TRY(object, decoded(*found, std::move(object), sub == nullptr ? found->type : sub->type));
  if (sub == nullptr) {
    WriteRequest write = request(*found, ns, "", "");
    return ops_.create(write, std::move(object));
  }
  Call call{.resource = found,
            .subresource = std::string(subresource),
            .verb = Verb::Create,
            .ns = std::string(ns),
            .name = std::string(name),
            .body = std::move(object),
            .query = {},
            .user = controller_user(manager_),
            .manager = manager_,
            .is_dry_run = false,
            .warnings = {}};
  JOGAK_TRY(Answer answer, sub->handler(ops_, call));
  return std::move(answer.body);
}

ApiResult<Doc> LocalApi::update(std::string_view resource, Doc object,
                                std::string_view subresource) {
  JOGAK_TRY(const Resource* found, find(resource));
  JOGAK_TRY(object, decoded(*found, std::move(object), found->type));
  WriteRequest write = request(*found, namespace_of(object), name_of(object), subresource);
  JOGAK_TRY(Ops::Updated updated, ops_.update(write, std::move(object)));
  return std::move(updated.object);
}

ApiResult<Doc> LocalApi::patch(std::string_view resource, std::string_view ns,
                               std::string_view name, PatchType type, const Doc& patch,
                               std::string_view subresource) {
  JOGAK_TRY(const Resource* found, find(resource));
  WriteRequest write = request(*found, ns, name, subresource);
  write.is_apply = type == PatchType::Apply;
  const Ops::Change change = [&](const Doc& current) -> ApiResult<Doc> {
    ApiResult<Doc> patched = Doc();
    switch (type) {
      case PatchType::Json:
        patched = patch::json_patch(current, patch);
        break;
      case PatchType::Merge:
        patched = patch::merge_patch(current, patch);
        break;
      case PatchType::Strategic:
        if (found->type == nullptr) return bad_request("custom resources take no strategic merge");
        patched = patch::strategic_merge_patch(current, patch, *found->type);
        break;
      case PatchType::Apply:
        patched = patch::apply(current, patch,
                               {.manager = manager_,
                                .api_version = found->api_version(),
                                .subresource = std::string(subresource),
                                .has_status = found->has_status(),
                                .now = now()},
                               true, {.builtin = found->type, .custom = found->custom_schema});
        break;
    }
    if (!patched.has_value()) return patched;
    return decoded(*found, *std::move(patched), found->type);
  };
  JOGAK_TRY(Ops::Updated updated, ops_.change(write, change, write.is_apply));
  return std::move(updated.object);
}

ApiResult<void> LocalApi::remove(std::string_view resource, std::string_view ns,
                                 std::string_view name, const Doc& options) {
  JOGAK_TRY(const Resource* found, find(resource));
  WriteRequest write = request(*found, ns, name, "");
  DeleteOptions delete_options;
  if (const Doc* grace = options.find("gracePeriodSeconds")) {
    delete_options.grace_period_s = grace->as_int();
  }
  delete_options.preconditions.uid = options.get("preconditions", "uid").as_string();
  delete_options.preconditions.resource_version =
      options.get("preconditions", "resourceVersion").as_string();
  delete_options.propagation_policy = options["propagationPolicy"].as_string();
  JOGAK_TRY_VOID(ops_.remove(write, delete_options));
  return {};
}

std::vector<Api::Table> LocalApi::tables() const {
  std::vector<Table> tables;
  for (const auto& resource : ops_.registry().all()) {
    const bool is_stored = resource->can(Verb::List) && resource->can(Verb::Delete);
    if (!is_stored || !resource->is_storage_version) continue;
    tables.push_back({.name = resource->table,
                      .api_version = resource->api_version(),
                      .kind = resource->kind,
                      .is_namespaced = resource->is_namespaced});
  }
  return tables;
}

std::shared_ptr<void> LocalApi::follow(std::string_view resource, Follower follower) {
  return hub_.follow(resource, std::move(follower));
}

}  // namespace jogak::api
