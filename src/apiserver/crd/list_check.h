// SPDX-License-Identifier: Apache-2.0
//
// Lists of type "set" and "map" hold nothing twice.
#pragma once

#include "apiserver/object/field_errors.h"
#include "base/doc.h"

namespace jogak::api {

void check_lists(const Doc& object, const Doc& schema, FieldErrors& errors);

// metadata, kind and apiVersion of embedded resources below `schema`.
void check_embedded(const Doc& value, const Doc& schema, const Path& at, FieldErrors& errors);

}  // namespace jogak::api
