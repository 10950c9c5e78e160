// SPDX-License-Identifier: Apache-2.0
//
// The system's time zone database: one compiled file (RFC 8536) a zone.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace jogak::schema {

// "Area/City": what may be looked up as a file name, and leads nowhere else.
bool is_zone_form(std::string_view name);

// The bytes of the zone's file, which begin as such a file does; nullopt when the system does not
// know the zone. Reads the disk.
std::optional<std::string> read_zone_file(std::string_view name);

// Whether this machine has the database at all.
bool has_zone_files();

}  // namespace jogak::schema
