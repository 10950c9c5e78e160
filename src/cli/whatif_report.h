// SPDX-License-Identifier: Apache-2.0
// The answer of `jogak whatif` as text for people and as a document for programs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/doc.h"
#include "sim/whatif.h"

namespace jogak::cli {

struct WhatifView {
  std::size_t rows_max = 20;          // of each section
  std::vector<std::string> left_out;  // of the manifests, for people
};

std::string whatif_text(const sim::WhatifReport& report, const WhatifView& view);
// Everything, however many rows.
Doc whatif_doc(const sim::WhatifReport& report, const WhatifView& view);

}  // namespace jogak::cli
