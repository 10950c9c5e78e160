// SPDX-License-Identifier: Apache-2.0
//
// A fuzzer that must fail: ctest expects it to, which proves that a crash is seen and reported.
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 2 && data[0] != 'x') std::abort();
  return 0;
}
