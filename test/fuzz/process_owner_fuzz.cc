// SPDX-License-Identifier: Apache-2.0
//
// Any text as a control group file and as names of log files: what is found has the form it
// promises.
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/model/holders.h"
#include "agent/model/process_owners.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto owner = jogak::agent::parse_cgroup(text);
  constexpr std::string_view kHex = "0123456789abcdef";
  JOGAK_CHECK(owner.container_id.empty() || owner.container_id.size() == 64);
  JOGAK_CHECK(owner.container_id.find_first_not_of(kHex) == std::string::npos);
  JOGAK_CHECK(owner.pod_uid.empty() || owner.pod_uid.size() == 36 || owner.pod_uid.size() == 32);
  JOGAK_CHECK(owner.pod_uid.find_first_not_of("0123456789abcdef-") == std::string::npos);
  if (const auto pod = jogak::agent::parse_pod_log_folder(text)) {
    JOGAK_CHECK(pod->pod_namespace + "_" + pod->pod + "_" + pod->pod_uid == text);
  }
  if (const auto container = jogak::agent::parse_container_log(text)) {
    const auto& holder = container->second;
    JOGAK_CHECK(holder.pod + "_" + holder.pod_namespace + "_" + holder.container + "-" +
                    container->first + ".log" ==
                text);
  }
  const auto key = jogak::agent::parse_device_id(text);
  JOGAK_CHECK(key.uuid.empty() || key.gpu_index < 0);
  JOGAK_CHECK(key.gi_id < 10'000 && key.replica < 10'000);
  return 0;
}
