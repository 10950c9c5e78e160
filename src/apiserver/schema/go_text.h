// SPDX-License-Identifier: Apache-2.0
//
// Values as Go writes them into text: what the real server's messages and canonical forms are made
// of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/doc.h"

namespace jogak::schema {

// strconv.Quote: in double quotes, with what does not print escaped.
std::string quoted(std::string_view text);

// A finite number as encoding/json writes a float64: no exponent from 1e-6 up to 1e21.
std::string float_text(double value);
// The digits of a JSON number as a float64; nullopt where it does not fit one.
std::optional<double> read_float(std::string_view digits);

// What encoding/json calls the kind of a value in its complaints: "number", "bool", "object".
std::string_view json_type(const Doc& value);

// Appends the code point as UTF-8.
void append_utf8(std::string& out, std::uint32_t code);
// The length of the well-formed UTF-8 character at the start of the text (not empty); 0 when it is
// not one.
std::size_t utf8_length(std::string_view text);

}  // namespace jogak::schema
