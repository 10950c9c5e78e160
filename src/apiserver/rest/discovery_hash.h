// SPDX-License-Identifier: Apache-2.0
//
// SHA-256, for entity tags of documents and for the storage hashes that clients compare between
// servers: those must be the real ones.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace jogak::api {

using Sha256 = std::array<std::uint8_t, 32>;
Sha256 sha256(std::string_view bytes);

// Of a document, in upper-case hex digits.
std::string content_hash(std::string_view document);
// storageVersionHash: of the version that objects are stored in.
std::string storage_hash(std::string_view group, std::string_view version, std::string_view kind);

}  // namespace jogak::api
