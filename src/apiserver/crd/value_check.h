// SPDX-License-Identifier: Apache-2.0
//
// A value against its schema: types, bounds, patterns, formats, enums, required members, anyOf and
// the like, with the field errors of the real server (kube-openapi validate as apiextensions uses
// it).
#pragma once

#include <string_view>

#include "apiserver/object/field_errors.h"
#include "base/doc.h"

namespace jogak::api {

// `prefix` stands in front of every path ("status" where only the status is checked). With `old`,
// what did not change since is not complained about.
void check_value(const Doc& value, const Doc* old, const Doc& schema, std::string_view prefix,
                 FieldErrors& errors);

// A number as Go's %v shows a float64: "1.5", "1e+21".
std::string go_float(double value);
// Any number as a double.
double number_of(const Doc& value);

}  // namespace jogak::api
