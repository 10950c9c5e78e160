// SPDX-License-Identifier: Apache-2.0
//
// The tree of an expression, between cel_parse.cc and cel_evaluate.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/doc.h"

namespace jogak::api::cel {

struct Node;
using NodePtr = std::shared_ptr<const Node>;

struct Node {
  enum class Kind : std::uint8_t {
    Literal,   // literal
    Name,      // text
    Select,    // args[0].text
    Has,       // has(args[0].text)
    Index,     // args[0][args[1]]
    Operator,  // text on args: "!", "-", "+", "&&", "?:", "in"
    Call,      // text(args...)
    Method,    // args[0].text(args[1]...)
    Macro,     // args[0].text(variable, args[1]...)
    List,      // args
    Map        // keys and values in turn
  };

  Kind kind = Kind::Literal;
  std::string text, variable;
  Doc literal;
  std::vector<NodePtr> args;
};

// The name of a member as it stands in objects: "__dash__" is "-" in identifiers.
std::string unescaped_member(std::string_view name);

bool is_known_function(std::string_view name, bool is_method, std::size_t arguments);

}  // namespace jogak::api::cel
