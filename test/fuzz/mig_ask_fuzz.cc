// SPDX-License-Identifier: Apache-2.0
//
// What a pod wants of MIG devices (agent/run/mig_ask.h): three annotations, one a line.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "agent/mig/profile_name.h"
#include "agent/run/mig_ask.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = [text](int number) {
    std::string_view rest = text;
    for (; number > 0; --number) {
      const std::size_t end = rest.find('\n');
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
    return rest.substr(0, rest.find('\n'));
  };
  const auto ask = jogak::agent::read_mig_ask({"ns", "pod"}, [&](std::string_view name) {
    if (name == "jogak.io/mig-profile") return line(0);
    return line(name == "jogak.io/gpu-count" ? 1 : 2);
  });
  if (!ask) {
    JOGAK_CHECK(!ask.error().what.empty());
    JOGAK_CHECK(ask.error().what.find('\n') == std::string_view::npos);
    return 0;
  }
  if (!*ask) return 0;
  JOGAK_CHECK((*ask)->count >= 1 && (*ask)->count <= 32);
  JOGAK_CHECK((*ask)->places.empty() ||
              (*ask)->places.size() == static_cast<std::size_t>((*ask)->count));
  JOGAK_CHECK(jogak::agent::parse_mig_name((*ask)->profile).has_value());
  return 0;
}
