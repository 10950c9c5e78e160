// SPDX-License-Identifier: Apache-2.0
//
// Kubernetes quantities ("100m", "1.5Gi", "2e3", "12E") to int64_t, exactly, in one place. The
// grammar is the documented one of resource.Quantity:
//
//   [+-] digits [. digits] [ n u m k M G T P E | Ki Mi Gi Ti Pi Ei | e[+-]digits | E[+-]digits ]
//
// where "5." and ".5" are numbers too. What the result type cannot hold is an error; upstream cuts
// some of it at the largest value. Upstream also reads "k", "." and "+" as zero; here they are
// errors. Negative quantities are read; whether one makes sense is for the caller.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace jogak {

// Which way a quantity that falls between two results goes. Toward safety: what is asked for goes
// up, what exists goes down.
enum class Rounding : std::uint8_t {
  Up,    // away from zero, as Value() and MilliValue() of upstream do
  Down,  // toward zero
};

// In whole units: bytes, devices. "1.5" is 2 with Rounding::Up.
Result<std::int64_t> parse_quantity(std::string_view text, Rounding rounding = Rounding::Up);

// In thousandths: "1.5" is 1500, "100m" is 100.
Result<std::int64_t> parse_quantity_milli(std::string_view text, Rounding rounding = Rounding::Up);

}  // namespace jogak
