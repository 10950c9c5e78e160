// SPDX-License-Identifier: Apache-2.0
//
// Whether a schema is structural: every value has one known place and type, and combinations (anyOf
// and the like) only narrow what is specified outside of them.
#pragma once

#include "apiserver/object/field_errors.h"
#include "base/doc.h"

namespace jogak::api {

// Sorted by text, as the real server gives them.
FieldErrors check_structural(const Doc& schema, const Path& at);

// Defaults must be valid by the schema they stand in and hold nothing unknown.
void check_defaults(const Doc& schema, const Path& at, FieldErrors& errors);

}  // namespace jogak::api
