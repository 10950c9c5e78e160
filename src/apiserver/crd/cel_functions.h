// SPDX-License-Identifier: Apache-2.0
//
// Functions and arithmetic of CEL on values.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/doc.h"
#include "base/result.h"

namespace jogak::api::cel {

// By name; the target of a method comes first.
Result<Doc> call_function(std::string_view name, const std::vector<const Doc*>& args);
// + - * / %
Result<Doc> arithmetic(char symbol, const Doc& a, const Doc& b);
// Equal values; numbers of both kinds compare by value.
bool same(const Doc& a, const Doc& b);
// Negative, zero or positive; nothing for values that have no order.
std::optional<int> order_of(const Doc& a, const Doc& b);

}  // namespace jogak::api::cel
