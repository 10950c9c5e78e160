// SPDX-License-Identifier: Apache-2.0
//
// Any text as the Node that the API server sends: refused, or patches that are JSON, and that leave
// nothing to do once they are carried out.
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "agent/labels/node_patch.h"
#include "base/check.h"

namespace {

jogak::agent::NodeWish wish() {
  return {.labels = {{"nvidia.com/gpu.count", "8"}, {"nvidia.com/gpu.product", "A100"}},
          .annotations = {{"jogak.io/gpus", "[]"}},
          .conditions = {{.type = "GpuUnusable",
                          .is_problem = true,
                          .reason = "Xid",
                          .message = "gpu 0: xid 79"}},
          .taints = std::vector<jogak::agent::Taint>{
              {.key = "jogak.io/gpu-unhealthy", .value = "true", .effect = "NoSchedule"}}};
}

// The four lists that a patch touches have the types that the API server gives them.
bool is_well_formed(const nlohmann::json& node) {
  const auto is = [&](std::string_view outer, std::string_view inner, bool is_list) {
    if (!node.contains(outer)) return true;
    if (!node[outer].is_object()) return false;
    if (!node[outer].contains(inner)) return true;
    return is_list ? node[outer][inner].is_array() : node[outer][inner].is_object();
  };
  return is("metadata", "labels", false) && is("metadata", "annotations", false) &&
         is("spec", "taints", true) && is("status", "conditions", true);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr jogak::TimeUs kNow = 1'700'000'000 * jogak::kSecondInUs;
  const auto patches = jogak::agent::node_patches(text, wish(), kNow);
  nlohmann::json node = nlohmann::json::parse(text, nullptr, false);
  if (!patches || !is_well_formed(node)) return 0;
  if (!patches->node.empty()) node.merge_patch(nlohmann::json::parse(patches->node));
  if (!patches->status.empty()) {
    const nlohmann::json status = nlohmann::json::parse(patches->status);
    for (const auto& condition : status["status"]["conditions"]) {
      node["status"]["conditions"].push_back(condition);
    }
  }
  const std::string changed = node.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const auto again = jogak::agent::node_patches(changed, wish(), kNow);
  JOGAK_CHECK(again.has_value());
  JOGAK_CHECK(again->node.empty(), "{}", again->node);
  JOGAK_CHECK(again->status.empty(), "{}", again->status);
  return 0;
}
