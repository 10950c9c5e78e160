// SPDX-License-Identifier: Apache-2.0
//
// A refusal as the wire carries it: metav1.Status with code, reason, details and causes.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/object/field_errors.h"
#include "base/doc.h"

namespace jogak::api {

struct Cause {
  std::string reason, message, field;
};

struct [[nodiscard]] ApiError {
  int code = 500;
  std::string reason;  // "NotFound"; may be empty, as some real answers are
  std::string message;
  // details; left out when all of it is empty
  std::string name, group, kind, uid;
  std::vector<Cause> causes;
  int retry_after_s = 0;
  bool has_details = false;  // "details": {} even when all of it is empty
  // The answer is this text instead of a Status ("404 page not found").
  bool is_plain_text = false;
  std::string continue_token;  // metadata.continue of a 410
};

template <class T>
using ApiResult = std::expected<T, ApiError>;
using Refusal = std::unexpected<ApiError>;

// A resource by name and group, for messages: {"pods", ""}, {"deployments", "apps"}.
struct ResourceName {
  std::string_view plural, group;
  // "deployments.apps", "pods"
  std::string qualified() const;
};

Refusal bad_request(std::string message);
Refusal not_found(ResourceName resource, std::string_view name);
Refusal already_exists(ResourceName resource, std::string_view name);
Refusal conflict(ResourceName resource, std::string_view name, std::string_view why);
// `pods "x" is forbidden: why`
Refusal forbidden(ResourceName resource, std::string_view name, std::string_view why);
// 422 with a cause per error. `kind` "Pod", `group` "".
Refusal invalid_object(std::string_view kind, std::string_view group, std::string_view name,
                       const FieldErrors& errors);
Refusal method_not_supported(ResourceName resource, std::string_view verb);
Refusal internal_error(std::string message);        // reason InternalError
Refusal bare_error(int code, std::string message);  // empty reason, as a panic or a Go error gives
Refusal expired(std::string message);               // 410
Refusal too_large_version(std::uint64_t asked, std::uint64_t current);  // 504 with its cause
Refusal unauthorized();
// What the generic layers answer when no handler can: these carry empty details.
Refusal no_such_resource();    // 404 the server could not find the requested resource
Refusal method_not_allowed();  // 405
Refusal unprocessable();       // 422 without a field

// The Status object.
Doc status_of(const ApiError& error);
// {"kind":"Status",...,"status":"Success","details":{...}}
Doc success_status(ResourceName resource, std::string_view name, std::string_view uid);
// The same without details and with a code: the answer to a binding or an eviction (201).
Doc bare_success_status(int code);

}  // namespace jogak::api
