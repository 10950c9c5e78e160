// SPDX-License-Identifier: Apache-2.0
//
// The kubelet's list of pod resources, as bytes. What is read is sorted, each holding once, and can
// be made into annotations.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "agent/plugin/annotations.h"
#include "agent/plugin/host.h"
#include "agent/plugin/kubelet_client.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jogak;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // A small parser of the kernel's text rides along.
  for (const auto& [path, minor] : agent::parse_mig_minors(bytes)) {
    JOGAK_CHECK(path.starts_with("gpu") && minor >= 0, "{} {}", path, minor);
  }
  const auto holdings = agent::read_holdings(bytes);
  if (!holdings) return 0;
  JOGAK_CHECK(std::ranges::is_sorted(*holdings));
  JOGAK_CHECK(std::ranges::adjacent_find(*holdings) == holdings->end(), "a holding is there twice");
  nvml::NodeFacts facts;
  facts.gpus.resize(1);
  facts.gpus[0].uuid = "GPU-0";
  for (const auto& [pod, json] : agent::holds_annotations(facts, *holdings)) {
    JOGAK_CHECK(json == R"([{"gpu":0}])", "{}", json);
  }
  return 0;
}
