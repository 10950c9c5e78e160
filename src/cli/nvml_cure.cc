// SPDX-License-Identifier: Apache-2.0
//
// See nvml_cure.h.
#include "cli/nvml_cure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nvml/sim/shipped.h"

namespace jogak::cli {

Error with_simulations(Error error, std::string_view nvml) {
  if (error.code == Errc::Unavailable && nvml == "auto") {
    error.what = fmt::format(
        "{}; without an NVIDIA driver on this machine, simulate one: --nvml sim:NAME with {}, or "
        "sim:FILE.yaml",
        error.what, fmt::join(nvml::sim::shipped_names(), ", "));
  }
  return error;
}

}  // namespace jogak::cli
