// SPDX-License-Identifier: Apache-2.0
//
// Values for tests from JSON, with ' in place of " so that they read well in C++.
#pragma once

#include <string>
#include <string_view>

#include "base/doc.h"

namespace jogak::patch {

// CHECKs that it is JSON.
Doc json(std::string_view text);
// Compact, with ' in place of ".
std::string text(const Doc& doc);

}  // namespace jogak::patch
