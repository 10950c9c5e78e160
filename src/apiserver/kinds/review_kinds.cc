// SPDX-License-Identifier: Apache-2.0
//
// Reviews: questions that are answered and not stored. This server allows everything to everybody
// it knows, so that access reviews only check how they were asked.
#include <string>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/kinds.h"
#include "apiserver/object/meta.h"
#include "apiserver/ops/ops.h"
#include "apiserver/schema/schema.h"

namespace jogak::api {

namespace {

constexpr std::string_view kAudience = "https://kubernetes.default.svc";
constexpr std::string_view kAuthorization = "authorization.k8s.io";
constexpr std::string_view kAuthentication = "authentication.k8s.io";

void validate_selector(const Doc& selector, const Path& at, FieldErrors& errors) {
  if (selector.is_null()) return;
  const std::string& raw = selector["rawSelector"].as_string();
  const bool has_list = !selector["requirements"].empty();
  if (!raw.empty() && has_list) {
    errors.invalid(at.child("rawSelector"), raw,
                   "may not specified at the same time as requirements");
  }
  if (raw.empty() && !has_list) {
    errors.required(at.child("requirements"), "when " + at.text() +
                                                  " is specified, requirements or rawSelector is "
                                                  "required");
  }
}

// The resource or the path that is asked about; exactly one of them.
void validate_attributes(const Doc& spec, bool names_user, FieldErrors& errors) {
  const Path at("spec");
  const bool is_resource = spec.has("resourceAttributes");
  const bool is_path = spec.has("nonResourceAttributes");
  if (is_resource && is_path) {
    errors.invalid(at.child("nonResourceAttributes"), spec["nonResourceAttributes"],
                   "cannot be specified in combination with resourceAttributes");
  }
  if (!is_resource && !is_path) {
    errors.invalid(at.child("resourceAttributes"), {},
                   "exactly one of nonResourceAttributes or resourceAttributes must be specified");
  }
  if (names_user && spec["user"].as_string().empty() && spec["groups"].empty()) {
    errors.invalid(at.child("user"), "", "at least one of user or group must be specified");
  }
  const Doc& resource = spec["resourceAttributes"];
  for (const std::string_view member : {"fieldSelector", "labelSelector"}) {
    validate_selector(resource[member], at.child("resourceAttributes", member), errors);
  }
}

bool has_metadata(const Doc& review, bool may_name_namespace) {
  for (const auto& [key, value] : meta(review).members()) {
    if (key == "managedFields" || (may_name_namespace && key == "namespace")) continue;
    if (!same(value, {})) return true;
  }
  return false;
}

void validate_local(const Doc& review, FieldErrors& errors) {
  const Doc& spec = review["spec"];
  if (has_metadata(review, true)) {
    errors.invalid(Path("metadata"), review["metadata"], "must be empty except for namespace");
  }
  const Doc& ns = spec.get("resourceAttributes", "namespace");
  if (spec.has("resourceAttributes") && ns.as_string() != namespace_of(review)) {
    errors.invalid(Path("spec.resourceAttributes.namespace"), ns.as_string(),
                   "must match metadata.namespace");
  }
  if (spec.has("nonResourceAttributes")) {
    errors.invalid(Path("spec.nonResourceAttributes"), spec["nonResourceAttributes"],
                   "disallowed on this kind of request");
  }
}

// Whose rights a review asks about: the caller's, anybody's, anybody's in one namespace.
enum class Scope : std::uint8_t { Self, Any, Local };

ApiResult<Answer> answer_access(const Call& call, Scope scope) {
  FieldErrors errors;
  validate_attributes(call.body["spec"], scope != Scope::Self, errors);
  if (scope == Scope::Local) {
    validate_local(call.body, errors);
  } else if (has_metadata(call.body, false)) {
    errors.invalid(Path("metadata"), call.body["metadata"], "must be empty");
  }
  // the real server loses the kind's name here
  if (!errors.empty()) return invalid_object("", kAuthorization, "", errors);
  if (scope == Scope::Local && namespace_of(call.body) != call.ns) {
    return bad_request("spec.resourceAttributes.namespace must match namespace: " + call.ns);
  }
  Doc review = call.body;
  review.set("kind", call.resource->kind).set("apiVersion", call.resource->api_version());
  review.set("status", Doc::object().set("allowed", true));
  return created(std::move(review), call.resource->type->name);
}

ApiResult<Answer> answer_rules(const Call& call) {
  if (call.body.get("spec", "namespace").as_string().empty()) {
    return bad_request("no namespace on request");
  }
  const Doc all = Doc::array({"*"});
  Doc review = Doc::object();
  review.set("kind", call.resource->kind).set("apiVersion", call.resource->api_version());
  Doc& status = review.at("status");
  status.at("resourceRules")
      .push(Doc::object().set("verbs", all).set("apiGroups", all).set("resources", all));
  status.at("nonResourceRules").push(Doc::object().set("verbs", all).set("nonResourceURLs", all));
  status.set("incomplete", false);
  return created(std::move(review), call.resource->type->name);
}

Doc user_info(const User& user) {
  Doc info = Doc::object();
  info.set("username", user.name);
  if (!user.uid.empty()) info.set("uid", user.uid);
  info.set("groups", Doc::strings(user.groups));
  return info;
}

ApiResult<Answer> answer_self(const Ops& ops, const Call& call) {
  Doc review = Doc::object();
  review.set("kind", call.resource->kind).set("apiVersion", call.resource->api_version());
  review.at("metadata").set("creationTimestamp", format_time(ops.loop().now()));
  review.at("status").set("userInfo", user_info(call.user));
  return created(std::move(review), call.resource->type->name);
}

ApiResult<Answer> answer_token_review(const KindOptions& options, const Call& call) {
  const std::string& token = call.body.get("spec", "token").as_string();
  if (token.empty()) return bad_request("token is required for TokenReview in authentication");
  Doc review = call.body;
  review.set("kind", call.resource->kind).set("apiVersion", call.resource->api_version());
  const auto user = options.authenticate ? options.authenticate(token) : std::nullopt;
  Doc status = Doc::object();
  if (user.has_value()) {
    Doc audiences = call.body.get("spec", "audiences");
    if (audiences.empty()) audiences = Doc::array({kAudience});
    status.set("authenticated", true)
        .set("user", user_info(*user))
        .set("audiences", std::move(audiences));
  } else {
    status.set("user", Doc::object()).set("error", "invalid bearer token");
  }
  review.set("status", std::move(status));
  return created(std::move(review), call.resource->type->name);
}

struct ReviewKind {
  std::string_view group, plural, kind, type;
  bool is_namespaced = false;
};

void add_review(Registry& registry, const ReviewKind& review, CallHandler handler) {
  Resource resource;
  resource.group = review.group;
  resource.version = "v1";
  resource.plural = review.plural;
  resource.singular = review.plural.substr(0, review.plural.size() - 1);
  resource.kind = review.kind;
  resource.list_kind = std::string(review.kind) + "List";
  resource.is_namespaced = review.is_namespaced;
  resource.verbs = verbs_of({Verb::Create});
  resource.type = &schema::get(review.type);
  resource.strategy = std::make_shared<PlainStrategy>();
  resource.create_handler = std::move(handler);
  resource.table = std::string(review.plural) + "." + std::string(review.group);
  registry.add(std::move(resource));
}

}  // namespace

void add_review_kinds(Registry& registry, const KindOptions& options) {
  const auto access = [](Scope scope) -> CallHandler {
    return [scope](Ops&, Call& call) { return answer_access(call, scope); };
  };
  add_review(registry,
             {kAuthorization, "localsubjectaccessreviews", "LocalSubjectAccessReview",
              "authorization.v1.LocalSubjectAccessReview", true},
             access(Scope::Local));
  add_review(registry,
             {kAuthorization, "selfsubjectaccessreviews", "SelfSubjectAccessReview",
              "authorization.v1.SelfSubjectAccessReview"},
             access(Scope::Self));
  add_review(registry,
             {kAuthorization, "selfsubjectrulesreviews", "SelfSubjectRulesReview",
              "authorization.v1.SelfSubjectRulesReview"},
             [](Ops&, Call& call) { return answer_rules(call); });
  add_review(registry,
             {kAuthorization, "subjectaccessreviews", "SubjectAccessReview",
              "authorization.v1.SubjectAccessReview"},
             access(Scope::Any));
  add_review(registry,
             {kAuthentication, "selfsubjectreviews", "SelfSubjectReview",
              "authentication.v1.SelfSubjectReview"},
             [](Ops& ops, Call& call) { return answer_self(ops, call); });
  add_review(registry,
             {kAuthentication, "tokenreviews", "TokenReview", "authentication.v1.TokenReview"},
             [options](Ops&, Call& call) { return answer_token_review(options, call); });
}

}  // namespace jogak::api
