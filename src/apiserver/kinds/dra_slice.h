// SPDX-License-Identifier: Apache-2.0
//
// One device of a resource slice.
#pragma once

#include <cstddef>

#include "apiserver/object/field_errors.h"
#include "base/doc.h"

namespace jogak::api {

// `per_device`: the slice leaves it to each device which nodes may use it.
void validate_device(const Doc& device, bool per_device, const Path& at, FieldErrors& errors);
// {"memory": {"value": "40Gi"}} of a counter set or of what a device takes from one.
void validate_counters(const Doc& counters, std::size_t max, const Path& at, FieldErrors& errors);

}  // namespace jogak::api
