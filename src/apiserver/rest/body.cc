// SPDX-License-Identifier: Apache-2.0
//
// Form by content type, then the type's decoder or the custom kind's schema; the order of the
// checks is the order of the complaints.
#include "apiserver/rest/body.h"

#include <fmt/format.h>

#include "apiserver/crd/crd.h"
#include "apiserver/schema/normalise.h"

namespace jogak::api {

namespace {

constexpr std::string_view kAccepted =
    "application/json, application/yaml, application/vnd.kubernetes.protobuf";

Refusal unsupported_type() {
  ApiError error;
  error.code = 415;
  error.reason = "UnsupportedMediaType";
  error.message = fmt::format(
      "the body of the request was in an unknown format - accepted media types include: {}",
      kAccepted);
  return std::unexpected(std::move(error));
}

Refusal cannot_be_handled(const Expected& expected, std::string_view kind, std::string_view version,
                          std::string_view why) {
  return bad_request(fmt::format("{} in version \"{}\" cannot be handled as a {}: {}", kind,
                                 version, expected.kind, why));
}

// Kind and apiVersion of the body against those of the URL.
ApiResult<void> check_kind(const Doc& object, const Expected& expected) {
  const std::string& kind = object["kind"].as_string();
  const std::string& api_version = object["apiVersion"].as_string();
  if (object.has("kind") && !object["kind"].is_string()) {
    return bad_request("couldn't get version/kind; json parse error: kind must be a string");
  }
  const bool same_kind = kind.empty() || kind == expected.kind;
  const bool same_version = api_version.empty() || api_version == expected.api_version();
  if (same_kind && same_version) return {};
  const std::size_t slash = api_version.find('/');
  const std::string group = slash == std::string::npos ? "" : api_version.substr(0, slash);
  const std::string version =
      api_version.empty()
          ? expected.version
          : (slash == std::string::npos ? api_version : api_version.substr(slash + 1));
  const std::string_view shown = kind.empty() ? std::string_view(expected.kind) : kind;
  const bool is_known = expected.registry != nullptr &&
                        expected.registry->find_kind(group, version, shown) != nullptr;
  if (is_known) {
    return cannot_be_handled(expected, shown, version, "converting: unknown conversion");
  }
  return cannot_be_handled(expected, shown, version,
                           fmt::format("no kind \"{}\" is registered for version \"{}\"", shown,
                                       api_version.empty() ? expected.api_version() : api_version));
}

ApiResult<void> complain(const schema::Complaints& complaints, FieldValidation validation,
                         std::vector<std::string>& warnings, const Expected& expected,
                         bool is_patch) {
  if (validation == FieldValidation::Ignore) return {};
  // what decode() did not place comes last
  std::vector<std::string> all = complaints.unknown;
  all.insert(all.end(), complaints.duplicates.begin(), complaints.duplicates.end());
  if (all.empty()) return {};
  if (validation == FieldValidation::Warn) {
    warnings.insert(warnings.end(), all.begin(), all.end());
    return {};
  }
  const std::string text = fmt::format("strict decoding error: {}", fmt::join(all, ", "));
  if (!is_patch) return cannot_be_handled(expected, expected.kind, expected.version, text);
  FieldErrors errors;
  errors.invalid(Path("patch"), Doc(), text);
  return invalid_object("", "", "", errors);
}

Result<Doc> decode_typed(Doc object, const Expected& expected, schema::Complaints& complaints) {
  return schema::decode(std::move(object), *expected.type, complaints);
}

void set_kind(Doc& object, const Expected& expected) {
  object.set("kind", expected.kind).set("apiVersion", expected.api_version());
}

ApiResult<Doc> decode_protobuf_body(std::string_view body, const Expected& expected) {
  const auto unrecognised = [&](const std::string& why) {
    return bad_request(fmt::format("the object provided is unrecognized (must be of type {}): {}",
                                   expected.kind, why));
  };
  auto envelope = codec::open_envelope(body);
  if (!envelope.has_value()) return unrecognised(envelope.error().what);
  Doc claimed = Doc::object();
  if (!envelope->kind.empty()) claimed.set("kind", envelope->kind);
  if (!envelope->api_version.empty()) claimed.set("apiVersion", envelope->api_version);
  JOGAK_TRY_VOID(check_kind(claimed, expected));
  auto object =
      codec::decode_protobuf(envelope->raw, *expected.type, expected.api_version(), expected.kind);
  if (!object.has_value()) return unrecognised(object.error().what);
  schema::Complaints complaints;  // a message has no unknown names
  auto typed = schema::decode(*std::move(object), *expected.type, complaints);
  if (!typed.has_value()) {
    return cannot_be_handled(expected, expected.kind, expected.version, typed.error().what);
  }
  set_kind(*typed, expected);
  return *std::move(typed);
}

}  // namespace

ApiResult<Doc> decode_body(const net::HttpRequest& request, const Expected& expected,
                           FieldValidation validation, std::vector<std::string>& warnings) {
  const auto form = codec::form_of(net::header(request.headers, "content-type"));
  if (!form.has_value() || (*form == codec::Form::Protobuf &&
                            (expected.custom != nullptr || expected.type == nullptr))) {
    return unsupported_type();
  }
  if (*form == codec::Form::Protobuf) return decode_protobuf_body(request.body, expected);
  auto parsed = *form == codec::Form::Yaml ? codec::parse_yaml(request.body)
                                           : codec::parse_json(request.body);
  if (!parsed.has_value()) {
    return bad_request(fmt::format("the object provided is unrecognized (must be of type {}): {}",
                                   expected.kind, parsed.error().what));
  }
  Doc object = std::move(parsed->doc);
  if (object.is_null()) object = Doc::object();
  if (!object.is_object()) {
    return bad_request(
        fmt::format("the object provided is unrecognized (must be of type {}): "
                    "couldn't get version/kind; json parse error: json: cannot "
                    "unmarshal a value that is not an object",
                    expected.kind));
  }
  schema::Complaints complaints;
  complaints.duplicates = std::move(parsed->duplicates);
  if (expected.custom != nullptr) {
    auto custom = decode_custom(std::move(object), *expected.custom, complaints);
    if (!custom.has_value()) {  // unknown fields are told even so
      const auto told = complain(complaints, FieldValidation::Warn, warnings, expected, false);
      static_cast<void>(told);
      return custom;
    }
    object = *std::move(custom);
  } else {
    JOGAK_TRY_VOID(check_kind(object, expected));
    auto typed = decode_typed(std::move(object), expected, complaints);
    if (!typed.has_value()) {
      return cannot_be_handled(expected, expected.kind, expected.version, typed.error().what);
    }
    object = *std::move(typed);
  }
  JOGAK_TRY_VOID(complain(complaints, validation, warnings, expected, false));
  set_kind(object, expected);
  return object;
}

ApiResult<Doc> decode_patched(Doc object, const Expected& expected, FieldValidation validation,
                              const std::vector<std::string>& duplicates,
                              std::vector<std::string>& warnings) {
  if (!object.is_object()) return bad_request("the patch does not leave an object");
  if (expected.custom == nullptr) JOGAK_TRY_VOID(check_kind(object, expected));
  schema::Complaints complaints;
  complaints.duplicates = duplicates;
  if (expected.custom != nullptr) {
    JOGAK_TRY(object, decode_custom(std::move(object), *expected.custom, complaints));
  } else {
    auto typed = decode_typed(std::move(object), expected, complaints);
    if (!typed.has_value()) {
      FieldErrors errors;
      errors.invalid(Path("patch"), Doc(), typed.error().what);
      return invalid_object("", "", "", errors);
    }
    object = *std::move(typed);
  }
  JOGAK_TRY_VOID(complain(complaints, validation, warnings, expected, true));
  set_kind(object, expected);
  return object;
}

ApiResult<Doc> decode_delete_options(const net::HttpRequest& request, const Expected& expected) {
  if (request.body.empty()) return Doc();
  const auto form = codec::form_of(net::header(request.headers, "content-type"));
  if (!form.has_value()) return unsupported_type();
  const schema::Struct& type = schema::get("meta.v1.DeleteOptions");
  Doc body;
  if (*form == codec::Form::Protobuf) {
    auto envelope = codec::open_envelope(request.body);
    if (!envelope.has_value()) return bad_request(envelope.error().what);
    auto decoded = codec::decode_protobuf(envelope->raw, type, "", "");
    if (!decoded.has_value()) return bad_request(decoded.error().what);
    body = *std::move(decoded);
  } else {
    auto parsed = *form == codec::Form::Yaml ? codec::parse_yaml(request.body)
                                             : codec::parse_json(request.body);
    if (!parsed.has_value()) return bad_request(parsed.error().what);
    body = std::move(parsed->doc);
    if (!body.is_object()) return bad_request("DeleteOptions must be an object");
    const std::string& kind = body["kind"].as_string();
    if (!kind.empty() && kind != "DeleteOptions") {
      return bad_request(fmt::format("no kind \"{}\" is registered for version \"{}\"", kind,
                                     expected.api_version()));
    }
  }
  schema::Complaints complaints;
  auto typed = schema::decode(std::move(body), type, complaints);
  if (!typed.has_value()) return bad_request(typed.error().what);
  // An empty object is options too: the query counts only where there is no body.
  if (!typed->is_object()) *typed = Doc::object();
  return *std::move(typed);
}

}  // namespace jogak::api
