// SPDX-License-Identifier: Apache-2.0
//
// What lies in the folder of MPS and what nvidia-cuda-mps-control answers. A record that is
// accepted is written back the same, and names nothing outside of the folder.
#include <cstdint>
#include <string_view>

#include "agent/mps/plan.h"
#include "agent/mps/record.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jogak::agent;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto percent = mps_percent(text)) JOGAK_CHECK(*percent >= 0 && *percent <= 100);
  const auto record = parse_mps_record(text);
  if (!record) {
    JOGAK_CHECK(record.error().what.starts_with("line "), "{}", record.error().what);
    return 0;
  }
  JOGAK_CHECK(parse_mps_record(mps_record_text(*record)) == *record);
  for (const std::string& daemon : record->daemons) {
    JOGAK_CHECK(is_mps_resource(daemon) && !daemon.starts_with('/'), "{}", daemon);
    JOGAK_CHECK(daemon.find("..") != 0 && daemon.find("/..") == std::string::npos, "{}", daemon);
  }
  for (const auto& [uuid, mode] : record->modes) JOGAK_CHECK(mode >= 0 && mode <= 3, "{}", uuid);
  return 0;
}
