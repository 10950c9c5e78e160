// SPDX-License-Identifier: Apache-2.0
//
// PUT, and every read-change-write (PATCH, subresources): preconditions, field owners, admission,
// preparation, validation; a change of nothing stores nothing; the last finalizer removes the
// object.
#include "apiserver/object/meta.h"
#include "apiserver/ops/ops_impl.h"
#include "apiserver/patch/managed_fields.h"

namespace jogak::api {

namespace {

ApiResult<void> check_versions(const Resource& resource, const Doc& object, const Doc& old,
                               bool is_put) {
  const std::string& name = name_of(old);
  // a PUT names the object it means; what a patch does to the uid is for validation to refuse
  const std::string& uid = uid_of(object);
  if (is_put && !uid.empty() && uid != uid_of(old)) {
    return conflict(resource.name(), name,
                    "Precondition failed: UID in precondition: " + uid +
                        ", UID in object meta: " + uid_of(old));
  }
  const std::string& version = meta(object)["resourceVersion"].as_string();
  if (!version.empty() && version != meta(old)["resourceVersion"].as_string()) {
    return conflict(resource.name(), name,
                    "the object has been modified; please apply your changes to the latest "
                    "version and try again");
  }
  if (is_put && version.empty() && !resource.strategy->allows_unconditional_update()) {
    FieldErrors errors;
    errors.invalid(Path("metadata.resourceVersion"), 0, "must be specified for an update");
    // the real server names the plural as the kind here
    return invalid_object(resource.plural, resource.group, name, errors);
  }
  return {};
}

FieldErrors check_update(const WriteRequest& request, const Doc& object, const Doc& old,
                         WriteContext& context) {
  const Resource& resource = *request.resource;
  FieldErrors errors;
  validate_meta(object["metadata"], resource.is_namespaced, resource.strategy->name_check(),
                Path("metadata"), errors);
  validate_meta_update(object["metadata"], old["metadata"], Path("metadata"), errors);
  using Checks = Strategy::MetaChecks;
  const Checks checks = resource.strategy->meta_checks_on_update();
  const bool has_kube_rules = resource.type != nullptr && resource.group != "apiextensions.k8s.io";
  if (has_kube_rules && checks != Checks::ByItself) {
    validate_meta_update(object["metadata"], old["metadata"], Path("metadata"), errors);
    validate_known_finalizers(object["metadata"]["finalizers"], Path("metadata.finalizers"),
                              errors);
  }
  if (checks == Checks::ChangesAndWhole) {
    validate_meta(object["metadata"], resource.is_namespaced, resource.strategy->name_check(),
                  Path("metadata"), errors);
  }
  if (request.subresource.empty()) {
    resource.strategy->validate_update(object, old, context, errors);
  } else {
    resource.strategy->validate_subresource_update(request.subresource, object, old, context,
                                                   errors);
  }
  return errors;
}

// Equal but for the version that the store adds.
bool same_object(Doc object, const Doc& old) {
  keep_metadata(object, old, {"resourceVersion"});
  return object == old;
}

bool has_ended(const Resource& resource, const Doc& object, const Doc& old) {
  return is_deleting(old) && meta(object)["finalizers"].empty() &&
         meta(object)["deletionGracePeriodSeconds"].as_int() == 0 &&
         resource.strategy->may_vanish(object);
}

}  // namespace

ApiResult<Ops::Updated> Ops::update(WriteRequest& request, Doc object) {
  const std::string& name = name_of(object);
  if (!name.empty() && name != request.name) {
    return bad_request("the name of the object (" + name +
                       ") does not match the name on the URL (" + request.name + ")");
  }
  JOGAK_TRY_VOID(impl_->check_namespace(request, object));
  object.at("metadata").set("name", request.name);
  const bool may_create = request.resource->strategy->allows_create_on_update();
  return replace(
      request, [&](const Doc&) -> ApiResult<Doc> { return std::move(object); }, may_create, true);
}

ApiResult<Ops::Updated> Ops::change(WriteRequest& request, const Change& change, bool may_create) {
  return replace(request, change, may_create, false);
}

ApiResult<Ops::Updated> Ops::replace(WriteRequest& request, const Change& change, bool may_create,
                                     bool is_put) {
  Impl& impl = *impl_;
  const Resource& resource = *request.resource;
  JOGAK_TRY_VOID(impl.may_write(request));
  const store::ObjectPtr stored = impl.find(request);
  if (stored == nullptr) {
    if (!may_create) return not_found(resource.name(), request.name);
    JOGAK_TRY(Doc made, change({}));
    if (!uid_of(made).empty() || !meta(made)["resourceVersion"].as_string().empty()) {
      return conflict(resource.name(), request.name,
                      "the object has been deleted; remove uid and resourceVersion to create it");
    }
    JOGAK_TRY(Doc created, create(request, std::move(made)));
    return Updated{.object = std::move(created), .is_created = true};
  }
  const Doc old = in_version(parse(*stored), resource);
  JOGAK_TRY(Doc object, change(old));
  JOGAK_TRY_VOID(check_versions(resource, object, old, is_put));
  resource.strategy->set_defaults(object);
  if (uid_of(object).empty()) keep_metadata(object, old, {"uid"});
  keep_metadata(object, old,
                {"name", "namespace", "creationTimestamp", "selfLink", "deletionTimestamp",
                 "deletionGracePeriodSeconds", "generation", "resourceVersion"});
  impl.track(request, old, object);

  Admission admission{.operation = Operation::Update,
                      .resource = resource,
                      .subresource = request.subresource,
                      .ns = request.ns,
                      .name = request.name,
                      .object = &object,
                      .old = &old};
  JOGAK_TRY_VOID(impl.mutate(*this, admission, request));
  WriteContext context = impl.context(*this, request);
  const std::size_t warned = request.warnings.size();
  if (request.subresource.empty()) {
    resource.strategy->prepare_update(object, old, context);
  } else {
    resource.strategy->prepare_subresource_update(request.subresource, object, old, context);
  }
  // What is stored has its zero members, so only the encoded form can be compared with it.
  object = impl.encoded(resource, std::move(object));
  // a status never counts as a wish, whatever else came with it
  if (request.subresource != "status" && resource.strategy->tracks_generation() &&
      resource.strategy->spec_changed(object, old)) {
    object.at("metadata").set("generation", meta(old)["generation"].as_int() + 1);
  }
  FieldErrors errors = check_update(request, object, old, context);
  if (impl.allows_privileged) errors.lift_policy();
  if (!errors.empty()) {
    request.warnings.resize(warned);  // only valid objects are warned about
    return invalid_object(resource.kind, resource.strategy->error_group(resource), request.name,
                          errors);
  }
  JOGAK_TRY_VOID(impl.validate(*this, admission, request));

  if (has_ended(resource, object, old)) {
    if (!request.is_dry_run) impl.erase(resource, old);  // watchers see the last stored state
    return Updated{.object = std::move(object), .is_created = false};
  }
  patch::keep_times_if_same(old, object);
  if (same_object(object, old)) return Updated{.object = old, .is_created = false};
  return Updated{.object = impl.write(request, std::move(object)), .is_created = false};
}

}  // namespace jogak::api
