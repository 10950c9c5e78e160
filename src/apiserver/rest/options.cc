// SPDX-License-Identifier: Apache-2.0
//
// The checks are in the real server's order, since a refusal lists its causes in order.
#include "apiserver/rest/options.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

namespace jogak::api {

namespace {

constexpr std::string_view kMetaGroup = "meta.k8s.io";
constexpr std::size_t kManagerMax = 128;

ApiResult<void> refuse(std::string_view kind, const FieldErrors& errors) {
  if (errors.empty()) return {};
  return invalid_object(kind, kMetaGroup, "", errors);
}

// Go's conversion of query parameters: absent false; "0" and "false" in any case are false; every
// other word, the empty one too, is true.
bool is_true(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return lower != "0" && lower != "false";
}

FieldErrors check_list(const ListOptions& options, bool is_watch) {
  FieldErrors errors;
  const Path match("resourceVersionMatch");
  const Path initial("sendInitialEvents");
  if (is_watch) {
    if (options.send_initial_events.has_value()) {
      if (options.version_match.empty()) {
        errors.forbidden(match,
                         "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
      } else if (options.version_match != "NotOlderThan") {
        errors.forbidden(match,
                         "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        errors.not_supported(match, options.version_match, {"NotOlderThan"});
      }
      if (!options.continue_token.empty()) {
        errors.forbidden(match, "resourceVersionMatch is forbidden when continue is provided");
      }
    } else if (!options.version_match.empty()) {
      errors.forbidden(
          match,
          "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    } else if (!options.continue_token.empty()) {
      errors.forbidden(match, "resourceVersionMatch is forbidden when continue is provided");
    }
    return errors;
  }
  if (options.send_initial_events.has_value()) {
    errors.forbidden(initial, "sendInitialEvents is forbidden for list");
  }
  if (options.version_match.empty()) return errors;
  if (options.version.empty()) {
    errors.forbidden(match, "resourceVersionMatch is forbidden unless resourceVersion is provided");
  }
  if (!options.continue_token.empty()) {
    errors.forbidden(match, "resourceVersionMatch is forbidden when continue is provided");
  }
  if (options.version_match != "Exact" && options.version_match != "NotOlderThan") {
    errors.not_supported(match, options.version_match, {"Exact", "NotOlderThan", ""});
  }
  if (options.version_match == "Exact" && options.version == "0") {
    errors.forbidden(match,
                     "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
  }
  return errors;
}

ApiResult<void> check_field_selector(const FieldSelector& fields, const Resource& resource) {
  const std::vector<std::string_view> known = resource.strategy->selectable_fields();
  for (const FieldSelector::Term& term : fields.terms) {
    if (term.path == "metadata.name") continue;
    if (term.path == "metadata.namespace" && resource.is_namespaced) continue;
    if (std::ranges::find(known, term.path) != known.end()) continue;
    return bad_request("field label not supported: " + term.path);
  }
  return {};
}

void check_manager(std::string_view manager, FieldErrors& errors) {
  const Path at("fieldManager");
  if (manager.size() > kManagerMax) errors.too_long(at, kManagerMax);
  for (std::size_t i = 0; i < manager.size(); ++i) {
    const auto c = static_cast<unsigned char>(manager[i]);
    if (c >= 0x20 && c != 0x7f) continue;
    errors.invalid(at, Doc(manager),
                   fmt::format("invalid character U+{:04X} (at position {})", c, i));
  }
}

void check_dry_run(const std::vector<std::string>& values, FieldErrors& errors) {
  if (std::ranges::all_of(values, [](const std::string& value) { return value == "All"; })) return;
  errors.not_supported(Path("dryRun"), Doc::strings(values), {"All"});
}

}  // namespace

ApiResult<std::int64_t> parse_int_parameter(std::string_view text) {
  std::int64_t number = 0;
  const char* first = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [end, error] = std::from_chars(first, text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return bad_request(fmt::format(
      "strconv.ParseInt: parsing \"{}\": {}", text,
      error == std::errc::result_out_of_range ? "value out of range" : "invalid syntax"));
}

ApiResult<ListOptions> read_list_options(const RequestInfo& info, const Resource& resource,
                                         bool is_watch) {
  ListOptions options;
  const auto read_int = [&](std::string_view key, std::int64_t& into) -> ApiResult<void> {
    const std::string_view text = info.parameter(key);
    if (text.empty()) return {};
    JOGAK_TRY(into, parse_int_parameter(text));
    return {};
  };
  JOGAK_TRY_VOID(read_int("limit", options.limit));
  JOGAK_TRY_VOID(read_int("timeoutSeconds", options.timeout_s));
  options.limit = std::max<std::int64_t>(options.limit, 0);
  options.continue_token = info.parameter("continue");
  options.version = info.parameter("resourceVersion");
  options.version_match = info.parameter("resourceVersionMatch");
  options.allow_bookmarks =
      info.has("allowWatchBookmarks") && is_true(info.parameter("allowWatchBookmarks"));
  if (info.has("sendInitialEvents")) {
    options.send_initial_events = is_true(info.parameter("sendInitialEvents"));
  }
  auto labels = LabelSelector::parse(info.parameter("labelSelector"));
  if (!labels.has_value()) return bad_request(std::move(labels.error().what));
  options.labels = *std::move(labels);
  auto fields = FieldSelector::parse(info.parameter("fieldSelector"));
  if (!fields.has_value()) return bad_request(std::move(fields.error().what));
  options.fields = *std::move(fields);
  JOGAK_TRY_VOID(check_field_selector(options.fields, resource));
  for (FieldSelector::Term& term : options.fields.terms) {
    term.path = resource.strategy->stored_field(term.path);
  }
  JOGAK_TRY_VOID(refuse("ListOptions", check_list(options, is_watch)));
  return options;
}

ApiResult<WriteOptions> read_write_options(const RequestInfo& info, std::string_view kind,
                                           bool is_apply) {
  WriteOptions options;
  FieldErrors errors;
  options.manager = info.parameter("fieldManager");
  options.is_forced = info.has("force") && is_true(info.parameter("force"));
  if (kind == "PatchOptions") {
    if (!is_apply && info.has("force")) {
      errors.forbidden(Path("force"), "may not be specified for non-apply patch");
    }
    if (is_apply && options.manager.empty()) {
      errors.required(Path("fieldManager"), "is required for apply patch");
    }
  }
  check_manager(options.manager, errors);
  const std::vector<std::string> dry_run = info.values("dryRun");
  check_dry_run(dry_run, errors);
  options.is_dry_run = !dry_run.empty();
  const std::string_view validation = info.parameter("fieldValidation");
  if (validation == "Ignore") {
    options.validation = FieldValidation::Ignore;
  } else if (validation == "Strict") {
    options.validation = FieldValidation::Strict;
  } else if (!validation.empty() && validation != "Warn") {
    errors.not_supported(Path("fieldValidation"), Doc(validation),
                         {"", "Ignore", "Strict", "Warn"});
  }
  JOGAK_TRY_VOID(refuse(kind, errors));
  return options;
}

ApiResult<DeleteRequest> read_delete_options(const RequestInfo& info, const Doc& body) {
  DeleteRequest request;
  std::vector<std::string> dry_run;
  if (body.is_object()) {
    if (const Doc* grace = body.find("gracePeriodSeconds")) {
      request.options.grace_period_s = grace->as_int();
    }
    request.options.preconditions.uid = body.get("preconditions", "uid").as_string();
    request.options.preconditions.resource_version =
        body.get("preconditions", "resourceVersion").as_string();
    request.options.propagation_policy = body["propagationPolicy"].as_string();
    if (const Doc* orphan = body.find("orphanDependents")) {
      request.orphan_dependents = orphan->as_bool();
    }
    for (const Doc& value : body["dryRun"].items()) dry_run.push_back(value.as_string());
  } else {
    if (const std::string_view grace = info.parameter("gracePeriodSeconds"); !grace.empty()) {
      JOGAK_TRY(request.options.grace_period_s, parse_int_parameter(grace));
    }
    request.options.propagation_policy = info.parameter("propagationPolicy");
    if (info.has("orphanDependents")) {
      request.orphan_dependents = is_true(info.parameter("orphanDependents"));
    }
    dry_run = info.values("dryRun");
  }
  FieldErrors errors;
  std::string& policy = request.options.propagation_policy;
  if (request.orphan_dependents.has_value() && !policy.empty()) {
    errors.invalid(Path("propagationPolicy"), policy,
                   "orphanDependents and deletionPropagation cannot be both set");
  }
  if (!policy.empty() && policy != "Foreground" && policy != "Background" && policy != "Orphan") {
    errors.not_supported(Path("propagationPolicy"), policy,
                         {"Foreground", "Background", "Orphan", "nil"});
  }
  check_dry_run(dry_run, errors);
  JOGAK_TRY_VOID(refuse("DeleteOptions", errors));
  request.is_dry_run = !dry_run.empty();
  if (request.orphan_dependents.has_value()) {
    policy = *request.orphan_dependents ? "Orphan" : "Background";
  }
  return request;
}

}  // namespace jogak::api
