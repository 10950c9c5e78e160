// SPDX-License-Identifier: Apache-2.0
//
// Base64 with padding, as JSON carries bytes.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace jogak::schema {

std::string encode_base64(std::string_view bytes);
// Line ends are skipped. The error is the position of the first byte that does not belong there.
std::expected<std::string, std::size_t> decode_base64(std::string_view text);
// Whether the text is what encode_base64() gives for the bytes it stands for.
bool is_canonical_base64(std::string_view text);

}  // namespace jogak::schema
