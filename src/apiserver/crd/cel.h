// SPDX-License-Identifier: Apache-2.0
//
// The part of CEL that rules of custom resources mostly need: literals, members, indexes, has(),
// arithmetic, comparisons, logic, ?:, in, lists and maps, the macros all, exists, exists_one,
// filter and map, size(), and functions on strings and lists. No static types: what the real
// compiler refuses may be an error only when it is evaluated, or none. Expressions that use
// anything else (timestamps, quantities, optional values, IP addresses, bindings) parse, but cannot
// be evaluated: see Expression::is_supported(). There are no cost limits.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/doc.h"
#include "base/result.h"

namespace jogak::api::cel {

struct Node;

class Expression {
 public:
  static Result<Expression> parse(std::string_view text);

  // Whether all that it uses is known here.
  bool is_supported() const { return is_supported_; }
  bool uses(std::string_view variable) const;

  struct Variable {
    std::string_view name;
    const Doc* value;
  };
  // The error is the server's: "no such key: x", "division by zero".
  Result<Doc> evaluate(const std::vector<Variable>& variables) const;

 private:
  std::shared_ptr<const Node> root_;
  std::vector<std::string> names_;  // of variables
  bool is_supported_ = true;
};

// What is wrong with the text; "" where it is an expression.
std::string syntax_error(std::string_view text);

}  // namespace jogak::api::cel
