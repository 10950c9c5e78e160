// SPDX-License-Identifier: Apache-2.0
//
// POST: from what a client sent to a stored object, in the order of the real server (kube-apiserver
// 1.36): defaults, owners of fields, mutating admission, preparation, validation, validating
// admission, storage.
#include "apiserver/object/meta.h"
#include "apiserver/ops/ops_impl.h"

namespace jogak::api {

namespace {

constexpr int kNameAttempts = 8;               // of generated names that are taken
constexpr std::size_t kGeneratedBaseMax = 58;  // of generateName, so that 5 letters fit into 63

FieldErrors check_create(const Resource& resource, const Doc& object, WriteContext& context) {
  FieldErrors errors;
  validate_meta(object["metadata"], resource.is_namespaced, resource.strategy->name_check(),
                Path("metadata"), errors);
  if (resource.type != nullptr && resource.group != "apiextensions.k8s.io") {
    validate_known_finalizers(object["metadata"]["finalizers"], Path("metadata.finalizers"),
                              errors);
  }
  resource.strategy->validate_create(object, context, errors);
  return errors;
}

// What only the server sets.
void stamp(const Resource& resource, Doc& object, TimeUs now, std::string uid) {
  Doc& metadata = object.at("metadata");
  for (const std::string_view key :
       {"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"}) {
    metadata.erase(key);
  }
  metadata.set("creationTimestamp", format_time(now)).set("uid", std::move(uid));
  if (resource.strategy->tracks_generation()) metadata.set("generation", 1);
}

}  // namespace

ApiResult<Doc> Ops::create(WriteRequest& request, Doc object) {
  Impl& impl = *impl_;
  const Resource& resource = *request.resource;
  JOGAK_TRY_VOID(impl.may_write(request));
  JOGAK_TRY_VOID(impl.check_namespace(request, object));
  const std::string version_sent = meta(object)["resourceVersion"].as_string();
  const std::string generate_name = meta(object)["generateName"].as_string();
  const bool is_generated = name_of(object).empty() && !generate_name.empty();
  resource.strategy->set_defaults(object);
  impl.track(request, {}, object);
  if (is_generated) {
    request.name = generate_name.substr(0, kGeneratedBaseMax) + impl.name_suffix();
    object.at("metadata").set("name", request.name);
  }
  request.name = name_of(object);

  Admission admission{.operation = Operation::Create,
                      .resource = resource,
                      .subresource = request.subresource,
                      .ns = request.ns,
                      .name = request.name,
                      .object = &object,
                      .old = nullptr};
  JOGAK_TRY_VOID(impl.mutate(*this, admission, request));
  stamp(resource, object, impl.loop.now(), impl.new_uid());
  WriteContext context = impl.context(*this, request);
  const std::size_t warned = request.warnings.size();
  resource.strategy->prepare_create(object, context);
  FieldErrors errors = check_create(resource, object, context);
  if (impl.allows_privileged) errors.lift_policy();
  if (!errors.empty()) {
    request.warnings.resize(warned);  // only valid objects are warned about
    return invalid_object(resource.kind, resource.strategy->error_group(resource), name_of(object),
                          errors);
  }
  JOGAK_TRY_VOID(impl.validate(*this, admission, request));
  if (!version_sent.empty() && version_sent != "0") {
    return bare_error(500, "resourceVersion should not be set on objects to be created");
  }
  object.at("metadata").erase("resourceVersion");

  for (int attempt = 1; impl.find(request) != nullptr; ++attempt) {
    if (!is_generated || attempt == kNameAttempts) {
      return already_exists(resource.name(), request.name);
    }
    request.name = generate_name.substr(0, kGeneratedBaseMax) + impl.name_suffix();
    object.at("metadata").set("name", request.name);
  }
  return impl.write(request, std::move(object));
}

}  // namespace jogak::api
