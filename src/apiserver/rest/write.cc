// SPDX-License-Identifier: Apache-2.0
//
// POST, PUT, PATCH and DELETE, on objects and on their subresources.
#include <algorithm>

#include <fmt/format.h>

#include "apiserver/object/meta.h"
#include "apiserver/patch/managed_fields.h"
#include "apiserver/patch/patch.h"
#include "apiserver/rest/body.h"
#include "apiserver/rest/handler.h"

namespace jogak::api {

namespace {

constexpr std::size_t kManagerMax = 128;

// Without fieldManager it is the program's name from the User-Agent.
std::string default_manager(const net::HttpRequest& request) {
  const std::string_view agent = net::header(request.headers, "user-agent");
  const std::string_view program = agent.substr(0, std::min(agent.find('/'), agent.size()));
  return program.empty() ? "unknown" : std::string(program.substr(0, kManagerMax));
}

Expected expected_of(const Resource& resource, const Subresource* subresource,
                     const Registry& registry) {
  Expected expected{.group = resource.group,
                    .version = resource.version,
                    .kind = resource.kind,
                    .type = resource.type,
                    .custom = resource.type == nullptr ? &resource : nullptr,
                    .registry = &registry};
  if (subresource != nullptr && subresource->type != nullptr &&
      (subresource->handler || subresource->projection != nullptr)) {
    expected.group = subresource->group;
    expected.version = subresource->version;
    expected.kind = subresource->kind;
    expected.type = subresource->type;
    expected.custom = nullptr;
  }
  return expected;
}

enum class PatchForm : std::uint8_t { Json, Merge, Strategic, Apply };

std::optional<PatchForm> patch_form(std::string_view content_type) {
  const auto types = codec::parse_media_types(content_type);
  if (types.empty()) return std::nullopt;
  const std::string& type = types[0].type;
  if (type == "application/json-patch+json") return PatchForm::Json;
  if (type == "application/merge-patch+json") return PatchForm::Merge;
  if (type == "application/strategic-merge-patch+json") return PatchForm::Strategic;
  if (type == "application/apply-patch+yaml") return PatchForm::Apply;
  return std::nullopt;
}

Refusal unsupported_patch() {
  ApiError error;
  error.code = 415;
  error.reason = "UnsupportedMediaType";
  error.has_details = true;
  error.message = "415: Unsupported Media Type";
  return std::unexpected(std::move(error));
}

// A patch, read.
struct Patch {
  PatchForm form = PatchForm::Merge;
  Doc body;
  std::vector<std::string> duplicates;
  ApiResult<void> verdict;  // why the body is no patch; said only when the object exists
};

// What a value is called where it is not what was wanted.
std::string_view json_word(const Doc& value) {
  if (value.is_object()) return "object";
  if (value.is_array()) return "array";
  if (value.is_string()) return "string";
  return value.is_bool() ? "bool" : "number";
}

Patch read_patch(const net::HttpRequest& request, PatchForm form) {
  Patch patch;
  patch.form = form;
  auto parsed =
      form == PatchForm::Apply ? codec::parse_yaml(request.body) : codec::parse_json(request.body);
  if (!parsed.has_value()) {
    patch.verdict = bad_request(form == PatchForm::Json || form == PatchForm::Apply
                                    ? "error decoding patch: " + parsed.error().what
                                    : parsed.error().what);
    return patch;
  }
  patch.body = std::move(parsed->doc);
  patch.duplicates = std::move(parsed->duplicates);
  if (form == PatchForm::Json ? !patch.body.is_array() : !patch.body.is_object()) {
    patch.verdict = bad_request(
        form == PatchForm::Json
            ? fmt::format("error decoding patch: json: cannot unmarshal {} into Go value of type "
                          "[]handlers.jsonPatchOp",
                          json_word(patch.body))
            : fmt::format(
                  "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                  json_word(patch.body)));
  }
  return patch;
}

ApiResult<Doc> apply_patch(const Patch& patch, Doc object, const schema::Struct* type) {
  JOGAK_TRY_VOID(patch.verdict);
  switch (patch.form) {
    case PatchForm::Json:
      return patch::json_patch(std::move(object), patch.body);
    case PatchForm::Merge:
      return patch::merge_patch(std::move(object), patch.body);
    case PatchForm::Strategic:
      if (type == nullptr) return unsupported_patch();
      return patch::strategic_merge_patch(std::move(object), patch.body, *type);
    case PatchForm::Apply:
      break;
  }
  return unsupported_patch();
}

ApiResult<void> check_patched_name(const Doc& object, const WriteRequest& write) {
  if (name_of(object).empty()) {
    return bad_request(fmt::format(
        "the name of the object ({} based on URL) was undeterminable: name must be provided",
        write.name));
  }
  if (name_of(object) != write.name) {
    return bad_request(
        fmt::format("the name of the object ({}) does not match the name on the URL ({})",
                    name_of(object), write.name));
  }
  if (!write.ns.empty() && !namespace_of(object).empty() && namespace_of(object) != write.ns) {
    return bad_request(
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  return {};
}

// kind, apiVersion, name and namespace of an intent against the URL.
ApiResult<void> check_intent(const Doc& intent, const Expected& expected,
                             const WriteRequest& write) {
  if (!meta(intent)["managedFields"].empty()) {
    return bad_request("metadata.managedFields must be nil");
  }
  if (intent["kind"].as_string().empty()) {
    return bad_request("error decoding YAML: Object 'Kind' is missing");
  }
  if (intent["kind"].as_string() != expected.kind ||
      intent["apiVersion"].as_string() != expected.api_version()) {
    return bad_request(fmt::format("invalid object type: {}, Kind={}",
                                   intent["apiVersion"].as_string(), intent["kind"].as_string()));
  }
  if (name_of(intent).empty()) return {};
  return check_patched_name(intent, write);
}

}  // namespace

WriteRequest RestHandler::write_request(const Exchange& exchange, const Resource& resource,
                                        const WriteOptions& options) const {
  return {.resource = &resource,
          .ns = exchange.info.ns,
          .name = exchange.info.name,
          .subresource = exchange.info.subresource,
          .manager = options.manager.empty() ? default_manager(exchange.request) : options.manager,
          .user = exchange.user,
          .is_dry_run = options.is_dry_run,
          .is_apply = false,
          .warnings = {}};
}

ApiResult<void> RestHandler::answer_updated(const ExchangePtr& exchange, const WriteRequest& write,
                                            ApiResult<Ops::Updated> updated,
                                            const Expected& expected,
                                            const Projection* projection) {
  exchange->warnings.insert(exchange->warnings.end(), write.warnings.begin(), write.warnings.end());
  if (!updated.has_value()) return std::unexpected(std::move(updated).error());
  Doc object = std::move(updated->object);
  if (projection != nullptr) {
    JOGAK_TRY(object, projection->read(object));
  }
  exchange->answer(updated->is_created ? 201 : 200, std::move(object), expected.type,
                   projection == nullptr ? write.resource : nullptr, ops_.loop().now());
  return {};
}

ApiResult<void> RestHandler::create(const ExchangePtr& exchange, const Resource& resource) {
  JOGAK_TRY(const WriteOptions options, read_write_options(exchange->info, "CreateOptions", false));
  JOGAK_TRY(Doc object,
            decode_body(exchange->request, expected_of(resource, nullptr, ops_.registry()),
                        options.validation, exchange->warnings));
  WriteRequest write = write_request(*exchange, resource, options);
  auto created = ops_.create(write, std::move(object));
  exchange->warnings.insert(exchange->warnings.end(), write.warnings.begin(), write.warnings.end());
  if (!created.has_value()) return std::unexpected(std::move(created).error());
  exchange->answer(201, *std::move(created), resource.type, &resource, ops_.loop().now());
  return {};
}

ApiResult<void> RestHandler::update(const ExchangePtr& exchange, const Resource& resource,
                                    const Subresource* subresource) {
  JOGAK_TRY(const WriteOptions options, read_write_options(exchange->info, "UpdateOptions", false));
  const Expected expected = expected_of(resource, subresource, ops_.registry());
  JOGAK_TRY(Doc body,
            decode_body(exchange->request, expected, options.validation, exchange->warnings));
  WriteRequest write = write_request(*exchange, resource, options);
  ApiResult<Ops::Updated> updated;
  const Projection* projection = subresource == nullptr ? nullptr : subresource->projection.get();
  if (projection != nullptr) {
    JOGAK_TRY_VOID(check_patched_name(body, write));
    updated = ops_.change(write, [&](const Doc& current) -> ApiResult<Doc> {
      JOGAK_TRY(Doc changed, projection->write(current, body));
      const std::string& version = meta(body)["resourceVersion"].as_string();
      if (!version.empty()) changed.at("metadata").set("resourceVersion", version);
      return changed;
    });
  } else {
    updated = ops_.update(write, std::move(body));
  }
  return answer_updated(exchange, write, std::move(updated), expected, projection);
}

ApiResult<void> RestHandler::patch(const ExchangePtr& exchange, const Resource& resource,
                                   const Subresource* subresource) {
  const auto form = patch_form(net::header(exchange->request.headers, "content-type"));
  if (!form.has_value()) return unsupported_patch();
  const bool is_custom = resource.type == nullptr;
  if (is_custom && *form == PatchForm::Strategic) {
    ApiError error = unsupported_patch().error();
    error.has_details = false;
    error.message =
        "the body of the request was in an unknown format - accepted media types "
        "include: application/json-patch+json, application/merge-patch+json, "
        "application/apply-patch+yaml";
    return std::unexpected(std::move(error));
  }
  JOGAK_TRY(const WriteOptions options,
            read_write_options(exchange->info, "PatchOptions", *form == PatchForm::Apply));
  const Expected expected = expected_of(resource, subresource, ops_.registry());
  const Patch patch = read_patch(exchange->request, *form);
  WriteRequest write = write_request(*exchange, resource, options);
  write.is_apply = *form == PatchForm::Apply;
  const Projection* projection = subresource == nullptr ? nullptr : subresource->projection.get();

  const Ops::Change change = [&](const Doc& current) -> ApiResult<Doc> {
    if (*form == PatchForm::Apply && projection == nullptr) {
      JOGAK_TRY_VOID(patch.verdict);
      JOGAK_TRY_VOID(check_intent(patch.body, expected, write));
      JOGAK_TRY(Doc merged,
                patch::apply(current, patch.body,
                             {.manager = write.manager,
                              .api_version = resource.api_version(),
                              .subresource = write.subresource,
                              .has_status = resource.has_status(),
                              .now = ops_.loop().now()},
                             options.is_forced,
                             {.builtin = resource.type, .custom = resource.custom_schema}));
      if (name_of(merged).empty()) merged.at("metadata").set("name", write.name);
      return decode_patched(std::move(merged), expected, FieldValidation::Ignore, {},
                            exchange->warnings);
    }
    Doc shown = current;
    if (projection != nullptr) {
      JOGAK_TRY(shown, projection->read(current));
    }
    JOGAK_TRY(Doc patched, apply_patch(patch, std::move(shown), expected.type));
    JOGAK_TRY_VOID(check_patched_name(patched, write));
    JOGAK_TRY(patched, decode_patched(std::move(patched), expected, options.validation,
                                      patch.duplicates, exchange->warnings));
    if (projection == nullptr) return patched;
    return projection->write(current, patched);
  };
  auto updated = ops_.change(write, change, write.is_apply && subresource == nullptr);
  return answer_updated(exchange, write, std::move(updated), expected, projection);
}

namespace {

void warn_about_deletion(Exchange& exchange, const Resource& resource,
                         const DeleteRequest& request) {
  const std::string_view warning = resource.strategy->deletion_warning();
  if (warning.empty() || request.orphan_dependents.has_value() ||
      !request.options.propagation_policy.empty()) {
    return;
  }
  exchange.warnings.emplace_back(warning);
}

}  // namespace

ApiResult<void> RestHandler::remove(const ExchangePtr& exchange, const Resource& resource) {
  JOGAK_TRY(const Doc body, decode_delete_options(exchange->request,
                                                  expected_of(resource, nullptr, ops_.registry())));
  JOGAK_TRY(const DeleteRequest request, read_delete_options(exchange->info, body));
  warn_about_deletion(*exchange, resource, request);
  WriteRequest write = write_request(*exchange, resource,
                                     {.is_dry_run = request.is_dry_run,
                                      .manager = {},
                                      .validation = FieldValidation::Warn,
                                      .is_forced = false});
  auto removed = ops_.remove(write, request.options);
  exchange->warnings.insert(exchange->warnings.end(), write.warnings.begin(), write.warnings.end());
  if (!removed.has_value()) return std::unexpected(std::move(removed).error());
  const bool shows_object = !removed->is_gone || resource.strategy->returns_deleted_object();
  if (shows_object) {
    // a client that asked not to orphan is told that the work goes on
    const bool goes_on = !removed->is_gone && request.orphan_dependents == false;
    exchange->answer(goes_on ? 202 : 200, std::move(removed->object), resource.type, &resource,
                     ops_.loop().now());
    return {};
  }
  exchange->answer(200,
                   success_status(resource.name(), exchange->info.name, uid_of(removed->object)),
                   &schema::get("meta.v1.Status"), nullptr, ops_.loop().now());
  return {};
}

ApiResult<void> RestHandler::remove_collection(const ExchangePtr& exchange,
                                               const Resource& resource) {
  JOGAK_TRY(const Doc body, decode_delete_options(exchange->request,
                                                  expected_of(resource, nullptr, ops_.registry())));
  JOGAK_TRY(const DeleteRequest request, read_delete_options(exchange->info, body));
  warn_about_deletion(*exchange, resource, request);
  JOGAK_TRY(const ListOptions options, read_list_options(exchange->info, resource, false));
  JOGAK_TRY(Found found, find_objects(ops_, resource, options, exchange->info.ns));
  std::vector<Doc> items;
  for (const store::ObjectPtr& object : found.objects) {
    WriteRequest write = write_request(*exchange, resource,
                                       {.is_dry_run = request.is_dry_run,
                                        .manager = {},
                                        .validation = FieldValidation::Warn,
                                        .is_forced = false});
    write.ns = object->ns;
    write.name = object->name;
    items.push_back(ops_.in_version(ops_.parse(*object), resource));
    auto removed = ops_.remove(write, request.options);
    if (!removed.has_value() && removed.error().code != 404) {
      return std::unexpected(std::move(removed).error());
    }
  }
  exchange->answer_list(resource, std::move(found.metadata), std::move(items), ops_.loop().now());
  return {};
}

ApiResult<void> RestHandler::call(const ExchangePtr& exchange, const Resource& resource,
                                  const Subresource* subresource, Verb verb,
                                  const CallHandler& handler) {
  Expected expected = expected_of(resource, subresource, ops_.registry());
  Call call{.resource = &resource,
            .subresource = exchange->info.subresource,
            .verb = verb,
            .ns = exchange->info.ns,
            .name = exchange->info.name,
            .body = {},
            .query = exchange->info.query,
            .user = exchange->user,
            .manager = {},
            .is_dry_run = false,
            .warnings = {}};
  // exec and the like take their options from the query; their body, if any, is a stream.
  const bool takes_object = subresource == nullptr || subresource->type != nullptr;
  if (verb == Verb::Create && takes_object &&
      (expected.type != nullptr || expected.custom != nullptr)) {
    JOGAK_TRY(const WriteOptions options,
              read_write_options(exchange->info, "CreateOptions", false));
    JOGAK_TRY(call.body,
              decode_body(exchange->request, expected, options.validation, exchange->warnings));
    call.is_dry_run = options.is_dry_run;
    call.manager = options.manager.empty() ? default_manager(exchange->request) : options.manager;
  }
  auto answer = handler(ops_, call);
  exchange->warnings.insert(exchange->warnings.end(), call.warnings.begin(), call.warnings.end());
  if (!answer.has_value()) return std::unexpected(std::move(answer).error());
  if (answer->is_text) {
    exchange->answer_text(answer->code, std::move(answer->text));
    return {};
  }
  const bool is_status = answer->body["kind"].as_string() == "Status";
  exchange->answer(answer->code, std::move(answer->body),
                   is_status ? &schema::get("meta.v1.Status") : expected.type, nullptr,
                   ops_.loop().now());
  return {};
}

ApiResult<void> RestHandler::show_projection(const ExchangePtr& exchange, const Resource& resource,
                                             const Subresource& subresource) {
  const store::ObjectPtr object =
      ops_.store().get(ops_.store().table(resource.table), exchange->info.ns, exchange->info.name);
  if (object == nullptr) return not_found(resource.name(), exchange->info.name);
  JOGAK_TRY(Doc shown,
            subresource.projection->read(ops_.in_version(ops_.parse(*object), resource)));
  // A table is that of the kind shown, not of the one that it is a view of.
  Resource view;
  view.group = subresource.group;
  view.version = subresource.version;
  view.kind = subresource.kind;
  view.type = subresource.type;
  exchange->answer(200, std::move(shown), subresource.type, &view, ops_.loop().now());
  return {};
}

}  // namespace jogak::api
