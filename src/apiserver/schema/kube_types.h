// SPDX-License-Identifier: Apache-2.0
//
// The text of kube.types as it stands in the binary.
#pragma once

#include <string_view>

namespace jogak::schema {

std::string_view kube_types();

}  // namespace jogak::schema
