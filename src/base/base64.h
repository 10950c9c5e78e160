// SPDX-License-Identifier: Apache-2.0
//
// Base64 (RFC 4648), the standard alphabet and that of URLs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace jogak {

// Standard alphabet, padded.
std::string base64_encode(std::string_view bytes);

// Either alphabet, padded or not, line breaks and spaces skipped; nullopt when it is not base64.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace jogak
