// SPDX-License-Identifier: Apache-2.0
//
// The refusals that many handlers give, in the words and with the details of the API machinery.
#include "apiserver/object/api_error.h"

#include <utility>

#include <fmt/core.h>

namespace jogak::api {
namespace {

Refusal about(int code, std::string_view reason, ResourceName resource, std::string_view name,
              std::string message) {
  ApiError error;
  error.code = code;
  error.reason = reason;
  error.message = std::move(message);
  error.name = name;
  error.group = resource.group;
  error.kind = resource.plural;
  return Refusal(std::move(error));
}

Refusal plain(int code, std::string_view reason, std::string message) {
  return about(code, reason, {}, "", std::move(message));
}

void set_text(Doc& object, std::string_view key, const std::string& text) {
  if (!text.empty()) object.set(key, text);
}

Doc details_of(const ApiError& error) {
  Doc details = Doc::object();
  set_text(details, "name", error.name);
  set_text(details, "group", error.group);
  set_text(details, "kind", error.kind);
  set_text(details, "uid", error.uid);
  if (!error.causes.empty()) {
    Doc causes = Doc::array();
    for (const Cause& cause : error.causes) {
      Doc one = Doc::object();
      set_text(one, "reason", cause.reason);
      set_text(one, "message", cause.message);
      set_text(one, "field", cause.field);
      causes.push(std::move(one));
    }
    details.set("causes", std::move(causes));
  }
  if (error.retry_after_s != 0) details.set("retryAfterSeconds", error.retry_after_s);
  return details;
}

Refusal generic(int code, std::string_view reason, std::string message) {
  Refusal refusal = plain(code, reason, std::move(message));
  refusal.error().has_details = true;
  return refusal;
}

Doc status_head() {
  Doc status = Doc::object();
  status.set("kind", "Status").set("apiVersion", "v1").set("metadata", Doc::object());
  return status;
}

}  // namespace

std::string ResourceName::qualified() const {
  return group.empty() ? std::string(plural) : fmt::format("{}.{}", plural, group);
}

Refusal bad_request(std::string message) { return plain(400, "BadRequest", std::move(message)); }

Refusal not_found(ResourceName resource, std::string_view name) {
  return about(404, "NotFound", resource, name,
               fmt::format("{} {} not found", resource.qualified(), quoted(name)));
}

Refusal already_exists(ResourceName resource, std::string_view name) {
  return about(409, "AlreadyExists", resource, name,
               fmt::format("{} {} already exists", resource.qualified(), quoted(name)));
}

Refusal conflict(ResourceName resource, std::string_view name, std::string_view why) {
  return about(409, "Conflict", resource, name,
               fmt::format("Operation cannot be fulfilled on {} {}: {}", resource.qualified(),
                           quoted(name), why));
}

Refusal forbidden(ResourceName resource, std::string_view name, std::string_view why) {
  std::string subject;
  if (!resource.plural.empty()) {
    subject =
        resource.qualified() + (name.empty() ? " " : fmt::format(" {} ", quoted(name))) + "is ";
  }
  return about(403, "Forbidden", resource, name, fmt::format("{}forbidden: {}", subject, why));
}

Refusal invalid_object(std::string_view kind, std::string_view group, std::string_view name,
                       const FieldErrors& errors) {
  std::string message = ResourceName{kind, group}.qualified() + " " + quoted(name) + " is invalid";
  if (!errors.empty()) message += ": " + errors.text();
  Refusal refusal = about(422, "Invalid", {kind, group}, name, std::move(message));
  for (const FieldError& error : errors.list()) {
    refusal.error().causes.push_back({.reason = std::string(reason_of(error.type)),
                                      .message = error.message,
                                      .field = error.field});
  }
  return refusal;
}

Refusal method_not_supported(ResourceName resource, std::string_view verb) {
  return about(
      405, "MethodNotAllowed", resource, "",
      fmt::format("{} is not supported on resources of kind \"{}\"", verb, resource.qualified()));
}

Refusal internal_error(std::string message) {
  Refusal refusal =
      plain(500, "InternalError", fmt::format("Internal error occurred: {}", message));
  refusal.error().causes.push_back({.reason = "", .message = std::move(message), .field = ""});
  return refusal;
}

Refusal bare_error(int code, std::string message) { return plain(code, "", std::move(message)); }

Refusal expired(std::string message) { return plain(410, "Expired", std::move(message)); }

Refusal too_large_version(std::uint64_t asked, std::uint64_t current) {
  Refusal refusal =
      plain(504, "Timeout",
            fmt::format("Timeout: Too large resource version: {}, current: {}", asked, current));
  refusal.error().causes.push_back(
      {.reason = "ResourceVersionTooLarge", .message = "Too large resource version", .field = ""});
  refusal.error().retry_after_s = 1;
  return refusal;
}

Refusal unauthorized() { return plain(401, "Unauthorized", "Unauthorized"); }

Refusal no_such_resource() {
  return generic(404, "NotFound", "the server could not find the requested resource");
}

Refusal method_not_allowed() {
  return generic(405, "MethodNotAllowed",
                 "the server does not allow this method on the requested resource");
}

Refusal unprocessable() {
  return generic(422, "Invalid", "the server rejected our request due to an error in our request");
}

Doc status_of(const ApiError& error) {
  Doc status = status_head();
  if (!error.continue_token.empty()) status.at("metadata").set("continue", error.continue_token);
  status.set("status", "Failure");
  set_text(status, "message", error.message);
  set_text(status, "reason", error.reason);
  if (Doc details = details_of(error); error.has_details || !details.empty()) {
    status.set("details", std::move(details));
  }
  status.set("code", error.code);
  return status;
}

Doc success_status(ResourceName resource, std::string_view name, std::string_view uid) {
  ApiError subject;
  subject.name = name;
  subject.group = resource.group;
  subject.kind = resource.plural;
  subject.uid = uid;
  Doc status = status_head();
  status.set("status", "Success").set("details", details_of(subject));
  return status;
}

Doc bare_success_status(int code) {
  Doc status = status_head();
  status.set("status", "Success").set("code", code);
  return status;
}

}  // namespace jogak::api
