// SPDX-License-Identifier: Apache-2.0
//
// Journals of MIG changes, as whatever a broken disk leaves of them. What is accepted prints as the
// same.
#include <cstdint>
#include <string_view>

#include "agent/mig/journal.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jogak::agent;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto journal = read_journal("f", text);
  if (!journal) return 0;
  const auto again = read_journal("g", journal_text(*journal));
  JOGAK_CHECK(again.has_value(), "printed, but not accepted: {}", again.error().what);
  JOGAK_CHECK(*again == *journal, "printed, and read as another");
  return 0;
}
