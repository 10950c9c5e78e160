// SPDX-License-Identifier: Apache-2.0
//
// DELETE: preconditions, grace, finalizers for dependents, and what remains until they are done
// (registry/rest/delete.go and registry/generic of Kubernetes are the model of the order).
#include <algorithm>

#include "apiserver/object/meta.h"
#include "apiserver/ops/ops_impl.h"

namespace jogak::api {

namespace {

constexpr std::string_view kOrphan = "orphan";
constexpr std::string_view kForeground = "foregroundDeletion";

ApiResult<void> check_preconditions(const Resource& resource, const Doc& object,
                                    const Preconditions& wanted) {
  const ResourceName kind{resource.kind, resource.group};  // the real server names the kind here
  const std::string& version = meta(object)["resourceVersion"].as_string();
  if (!wanted.uid.empty() && wanted.uid != uid_of(object)) {
    return conflict(kind, name_of(object),
                    "the UID in the precondition (" + wanted.uid +
                        ") does not match the UID in record (" + uid_of(object) +
                        "). The object might have been deleted and then recreated");
  }
  if (!wanted.resource_version.empty() && wanted.resource_version != version) {
    return conflict(kind, name_of(object),
                    "the ResourceVersion in the precondition (" + wanted.resource_version +
                        ") does not match the ResourceVersion in record (" + version +
                        "). The object might have been modified");
  }
  return {};
}

// Sets or clears the garbage collector's finalizers. True when the list changed.
bool apply_propagation(const Resource& resource, Doc& object, std::string_view policy) {
  const bool had_orphan = has_finalizer(object, kOrphan);
  const bool had_foreground = has_finalizer(object, kForeground);
  bool orphan = policy == "Orphan";
  bool foreground = policy == "Foreground";
  if (policy.empty()) {
    orphan = had_orphan || (!had_foreground && resource.strategy->orphans_by_default());
    foreground = had_foreground;
  }
  if (orphan == had_orphan && foreground == had_foreground) return false;
  Doc kept = Doc::array();
  for (const Doc& item : meta(object)["finalizers"].items()) {
    if (item.as_string() != kOrphan && item.as_string() != kForeground) kept.push(item);
  }
  if (orphan) kept.push(kOrphan);
  if (foreground) kept.push(kForeground);
  object.at("metadata").set("finalizers", std::move(kept));
  return true;
}

void raise_generation(Doc& object) {
  const std::int64_t generation = meta(object)["generation"].as_int();
  if (generation > 0) object.at("metadata").set("generation", generation + 1);
}

enum class Grace : std::uint8_t {
  None,     // this kind has no grace
  Started,  // deletionTimestamp set or brought forward
  Pending   // already waiting, nothing to change
};

Grace apply_grace(const Strategy& strategy, Doc& object, std::optional<std::int64_t> asked,
                  TimeUs now) {
  const std::optional<std::int64_t> grace = strategy.deletion_grace(object, asked);
  if (!grace.has_value()) return Grace::None;
  if (is_deleting(object)) {
    const Doc* left_field = meta(object).find("deletionGracePeriodSeconds");
    if (left_field == nullptr) return Grace::None;
    const std::int64_t left = left_field->as_int();
    if (!asked.has_value() || *grace >= left) return Grace::Pending;  // only ever shorter
    const auto end = parse_time(meta(object)["deletionTimestamp"].as_string()).value_or(now);
    object.at("metadata")
        .set("deletionTimestamp", format_time(end + (*grace - left) * kSecondInUs))
        .set("deletionGracePeriodSeconds", *grace);
    return Grace::Started;
  }
  object.at("metadata")
      .set("deletionTimestamp", format_time(now + *grace * kSecondInUs))
      .set("deletionGracePeriodSeconds", *grace);
  raise_generation(object);
  return Grace::Started;
}

}  // namespace

ApiResult<Ops::Removed> Ops::remove(WriteRequest& request, const DeleteOptions& options) {
  Impl& impl = *impl_;
  const Resource& resource = *request.resource;
  const Strategy& strategy = *resource.strategy;
  JOGAK_TRY_VOID(impl.may_write(request));
  const store::ObjectPtr stored = impl.find(request);
  if (stored == nullptr) return not_found(resource.name(), request.name);
  const Doc old = in_version(parse(*stored), resource);
  JOGAK_TRY_VOID(check_preconditions(resource, old, options.preconditions));
  const Admission admission{.operation = Operation::Delete,
                            .resource = resource,
                            .subresource = "",
                            .ns = request.ns,
                            .name = request.name,
                            .object = nullptr,
                            .old = &old};
  JOGAK_TRY_VOID(impl.validate(*this, admission, request));

  WriteContext context = impl.context(*this, request);
  Doc object = old;
  const auto store_if_changed = [&](Doc changed) {
    return changed == old ? old : impl.write(request, std::move(changed));
  };
  if (auto instead = strategy.delete_instead(object, context)) {
    JOGAK_TRY(Doc changed, *std::move(instead));
    apply_propagation(resource, changed, options.propagation_policy);
    return Removed{.object = store_if_changed(std::move(changed)), .is_gone = false};
  }
  const Grace grace = apply_grace(strategy, object, options.grace_period_s, context.now);
  if (grace == Grace::Pending) return Removed{.object = old, .is_gone = false};
  apply_propagation(resource, object, options.propagation_policy);
  const bool has_finalizers = !meta(object)["finalizers"].empty();
  if (grace == Grace::None && has_finalizers && !is_deleting(object)) {
    object.at("metadata")
        .set("deletionTimestamp", format_time(context.now))
        .set("deletionGracePeriodSeconds", 0);
    raise_generation(object);
  }
  const bool waits = has_finalizers || meta(object)["deletionGracePeriodSeconds"].as_int() > 0;
  if (waits) return Removed{.object = store_if_changed(std::move(object)), .is_gone = false};
  // watchers of a graceful kind see the end announced, then the end
  if (grace == Grace::Started) object = store_if_changed(std::move(object));
  if (!request.is_dry_run) {
    // the answer, like the event, carries the version of the deletion
    object.at("metadata").set("resourceVersion", std::to_string(impl.store.next_revision()));
    impl.erase(resource, object);
  }
  return Removed{.object = std::move(object), .is_gone = true};
}

}  // namespace jogak::api
