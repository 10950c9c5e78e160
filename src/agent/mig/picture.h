// SPDX-License-Identifier: Apache-2.0
//
// The slices of a GPU drawn in a line of text, for terminals:
//
//   slice   0     1     2     3     4     5     6     7
//   before  [3g.20gb             ]  [1g.5gb]    .     .
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/mig/journal.h"

namespace jogak::agent {

// One line per (title, shape), all to the same scale, each ending in a newline and beginning with
// `indent` spaces. A GPU with MIG off is one bar.
std::string slice_picture(const std::vector<std::pair<std::string, MigShape>>& shapes, int slices,
                          std::size_t indent);

// In a few words: "MIG off", "no instances", "2 x 3g.20gb, 1 x 1g.5gb".
std::string shape_words(const MigShape& shape);

}  // namespace jogak::agent
