// SPDX-License-Identifier: Apache-2.0
//
// The query parameters of lists, watches and writes, checked as the real server does
// (apimachinery/pkg/apis/meta/v1/validation and internalversion/validation).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/object/api_error.h"
#include "apiserver/object/selector.h"
#include "apiserver/ops/ops.h"
#include "apiserver/registry/resource.h"
#include "apiserver/rest/request.h"

namespace jogak::api {

struct ListOptions {
  LabelSelector labels;
  FieldSelector fields;
  std::int64_t limit = 0;  // 0 for all
  std::string continue_token;
  std::string version;        // resourceVersion as sent
  std::string version_match;  // "", Exact, NotOlderThan
  std::optional<bool> send_initial_events;
  bool allow_bookmarks = false;
  std::int64_t timeout_s = 0;  // 0 for the server's choice

  bool has_selector() const { return !labels.is_everything() || !fields.terms.empty(); }
};

// `resource` says which field selectors exist.
ApiResult<ListOptions> read_list_options(const RequestInfo& info, const Resource& resource,
                                         bool is_watch);

enum class FieldValidation : std::uint8_t { Ignore, Warn, Strict };

struct WriteOptions {
  bool is_dry_run = false;
  std::string manager;  // fieldManager, "" when not sent
  FieldValidation validation = FieldValidation::Warn;
  bool is_forced = false;  // of apply
};

// `kind` is CreateOptions, UpdateOptions or PatchOptions; `is_apply` only for PATCH.
ApiResult<WriteOptions> read_write_options(const RequestInfo& info, std::string_view kind,
                                           bool is_apply);

// The body's DeleteOptions when there is a body (already decoded), else the query's.
struct DeleteRequest {
  DeleteOptions options;
  bool is_dry_run = false;
  std::optional<bool> orphan_dependents;
};
ApiResult<DeleteRequest> read_delete_options(const RequestInfo& info, const Doc& body);

// A whole number as Go's strconv.ParseInt reads it; the error names the text.
ApiResult<std::int64_t> parse_int_parameter(std::string_view text);

}  // namespace jogak::api
