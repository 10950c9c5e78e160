// SPDX-License-Identifier: Apache-2.0
//
// Request bodies to Docs of the right kind, with the complaints a client asked to hear.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/codec/codec.h"
#include "apiserver/object/api_error.h"
#include "apiserver/registry/resource.h"
#include "apiserver/rest/options.h"
#include "net/http.h"

namespace jogak::api {

// What a body must be.
struct Expected {
  std::string group, version, kind;
  const schema::Struct* type = nullptr;  // of built-in kinds
  const Resource* custom = nullptr;      // a custom resource
  const Registry* registry = nullptr;    // to tell kinds that exist from those that do not

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
};

// Reads a body by its Content-Type. Warnings for unknown and duplicate fields are appended under
// FieldValidation::Warn, refused under Strict.
ApiResult<Doc> decode_body(const net::HttpRequest& request, const Expected& expected,
                           FieldValidation validation, std::vector<std::string>& warnings);

// An object that a patch made: as decode_body, but refused with 422 on "patch".
ApiResult<Doc> decode_patched(Doc object, const Expected& expected, FieldValidation validation,
                              const std::vector<std::string>& duplicates,
                              std::vector<std::string>& warnings);

// DeleteOptions from the body; null where there is none.
ApiResult<Doc> decode_delete_options(const net::HttpRequest& request, const Expected& expected);

}  // namespace jogak::api
