// SPDX-License-Identifier: Apache-2.0
//
// The formats that schemas of custom resources may name (kube-openapi strfmt).
#pragma once

#include <string>
#include <string_view>

#include "base/doc.h"

namespace jogak::api {

// "date-time" for strings, "int32" for integers and so on; false for what the server ignores, with
// a warning. `type` is the schema's, "" where it has none.
bool is_known_format(std::string_view type, std::string_view format);

// Whether the text has the format. True for formats that are not known.
bool has_format(std::string_view format, std::string_view text);

}  // namespace jogak::api
