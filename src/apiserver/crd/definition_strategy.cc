// SPDX-License-Identifier: Apache-2.0
//
// The kind CustomResourceDefinition (pkg/registry/customresourcedefinition of Kubernetes): what is
// filled in, what only the server writes, and that a deletion waits for the objects to go.
#include <algorithm>
#include <memory>
#include <utility>

#include "apiserver/crd/crd.h"
#include "apiserver/crd/definition.h"
#include "apiserver/object/meta.h"
#include "apiserver/schema/schema.h"

namespace jogak::api {
namespace {

constexpr std::int64_t kWebhookPort = 443;

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

void add_stored_version(Doc& crd) {
  const std::string& version = storage_version_of(crd);
  if (version.empty()) return;
  const auto& stored = crd.get("status", "storedVersions").items();
  if (std::find(stored.begin(), stored.end(), Doc(version)) != stored.end()) return;
  crd.at("status", "storedVersions").push(version);
}

class DefinitionStrategy : public Strategy {
 public:
  void set_defaults(Doc& object) const override {
    Doc& spec = object.at("spec");
    if (spec.is_null()) spec = Doc::object();
    Doc& names = spec.at("names");
    if (names.is_null()) names = Doc::object();
    const std::string kind = names["kind"].as_string();
    if (names["singular"].as_string().empty() && !kind.empty()) {
      names.set("singular", lower(kind));
    }
    if (names["listKind"].as_string().empty() && !kind.empty()) {
      names.set("listKind", kind + "List");
    }
    Doc& conversion = spec.at("conversion");
    if (!conversion.is_object()) conversion.set("strategy", "None");
    Doc* webhook = conversion.find("webhook");
    Doc* client = webhook == nullptr ? nullptr : webhook->find("clientConfig");
    Doc* service = client == nullptr ? nullptr : client->find("service");
    if (service != nullptr && service->is_object()) service->set_default("port", kWebhookPort);
    if (object.get("status", "storedVersions").empty()) add_stored_version(object);
  }

  void prepare_create(Doc& object, WriteContext& /*context*/) const override {
    object.set("status", Doc::object());
    add_stored_version(object);
  }

  void validate_create(const Doc& object, WriteContext& context,
                       FieldErrors& errors) const override {
    check_definition(object, nullptr, errors);
    if (errors.empty()) warn(unknown_formats(object), {}, context);
  }

  void prepare_update(Doc& object, const Doc& old, WriteContext& /*context*/) const override {
    object.set("status", old["status"]);
    add_stored_version(object);
  }

  void validate_update(const Doc& object, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    check_definition(object, &old, errors);
    if (errors.empty()) warn(unknown_formats(object), unknown_formats(old), context);
  }

  // Writes of the status may change metadata too: that is how the last finalizer goes.
  void prepare_subresource_update(std::string_view /*subresource*/, Doc& object, const Doc& old,
                                  WriteContext& /*context*/) const override {
    object.set("spec", old["spec"]);
  }

  void validate_subresource_update(std::string_view /*subresource*/, const Doc& object,
                                   const Doc& /*old*/, WriteContext& /*context*/,
                                   FieldErrors& errors) const override {
    check_definition_names(object.get("status", "acceptedNames"), Path("status.acceptedNames"),
                           errors);
  }

  bool allows_unconditional_update() const override { return false; }

  std::optional<ApiResult<Doc>> delete_instead(const Doc& object,
                                               WriteContext& context) const override {
    if (is_deleting(object)) return std::nullopt;
    Doc marked = object;
    marked.at("metadata").set("deletionTimestamp", format_time(context.now));
    if (!has_finalizer(marked, kCleanupFinalizer)) {
      marked.at("metadata", "finalizers").push(kCleanupFinalizer);
    }
    set_condition(marked, "Terminating", "True", "InstanceDeletionPending",
                  "CustomResourceDefinition marked for deletion; CustomResource deletion will "
                  "begin soon",
                  context.now);
    return ApiResult<Doc>(std::move(marked));
  }

 private:
  static void warn(const std::vector<std::string>& formats, const std::vector<std::string>& known,
                   WriteContext& context) {
    for (const std::string& format : formats) {
      if (std::find(known.begin(), known.end(), format) != known.end()) continue;
      context.warnings.push_back("unrecognized format " + quoted(format));
    }
  }
};

}  // namespace

void add_crd_kind(Registry& registry) {
  Resource resource;
  resource.group = "apiextensions.k8s.io";
  resource.version = "v1";
  resource.plural = "customresourcedefinitions";
  resource.singular = "customresourcedefinition";
  resource.kind = "CustomResourceDefinition";
  resource.list_kind = "CustomResourceDefinitionList";
  resource.is_namespaced = false;
  resource.short_names = {"crd", "crds"};
  resource.categories = {"api-extensions"};
  resource.type = &schema::get("apiextensions.v1.CustomResourceDefinition");
  resource.strategy = std::make_shared<DefinitionStrategy>();
  resource.table = kCrdTable;
  resource.subresources.push_back(whole_subresource("status", resource));
  registry.add(std::move(resource));
}

}  // namespace jogak::api
