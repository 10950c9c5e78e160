// SPDX-License-Identifier: Apache-2.0
//
// What decoding does to a custom object by its schema: unknown members go, nulls go where none may
// be, defaults come, metadata of embedded resources becomes proper metadata.
#pragma once

#include <string>
#include <vector>

#include "base/doc.h"
#include "base/result.h"

namespace jogak::api {

// Removes what the schema does not know; null: no schema, so all but the type members goes. The
// object is a whole resource when `is_root`. Returns the paths of what went, sorted.
std::vector<std::string> prune(Doc& object, const Doc* schema, bool is_root);

// Removes null members that are neither nullable nor have a default to become.
void drop_nulls(Doc& value, const Doc* schema);

// Fills in defaults, also for nulls that may not be.
void apply_defaults(Doc& value, const Doc& schema);

// Members "metadata" of embedded resources (and of the object itself when `is_root`) as ObjectMeta:
// types are checked, unknown members go and their paths are appended. The error is the server's.
Result<void> coerce_embedded(Doc& value, const Doc* schema, bool is_root,
                             std::vector<std::string>& unknown);

}  // namespace jogak::api
