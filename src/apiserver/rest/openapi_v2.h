// SPDX-License-Identifier: Apache-2.0
//
// Swagger 2.0 for old clients: the v3 documents of all group versions turned into one, and its form
// in protobuf (gnostic's openapi.v2.Document).
#pragma once

#include <string>

#include "base/doc.h"

namespace jogak::api {

// {"swagger": "2.0", "info": ..., "paths": {}, "definitions": {}} without content.
Doc empty_swagger();
// Adds the paths and components of a v3 document.
void add_to_swagger(Doc& swagger, const Doc& v3);

std::string encode_swagger(const Doc& swagger);

}  // namespace jogak::api
