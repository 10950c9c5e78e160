// SPDX-License-Identifier: Apache-2.0
//
// Configuration files of the scheduler. What is accepted is valid, and printed it reads back the
// same.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "live/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jogak::live;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = read_config("f", text);
  if (!config) return 0;
  JOGAK_CHECK(check_config(*config).has_value(), "accepted, but not valid");
  const auto again = read_config("g", config_doc(*config).yaml());
  JOGAK_CHECK(again.has_value(), "printed, but not accepted: {}", again.error().what);
  JOGAK_CHECK(*again == *config, "printed, and read as another");
  return 0;
}
