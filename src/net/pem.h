// SPDX-License-Identifier: Apache-2.0
//
// Whether PEM text is what it should be, asked once and early: libcurl would say so only when it
// connects, in fewer words.
#pragma once

#include <string_view>

#include "base/loop.h"
#include "base/result.h"

namespace jogak::net {

// How many certificates; Invalid when there is none or one cannot be read.
Result<int> count_certificates(std::string_view pem);

// When the first certificate there ends to be valid.
Result<TimeUs> certificate_expiry(std::string_view pem);

}  // namespace jogak::net
