// SPDX-License-Identifier: Apache-2.0
// Words and order as in kube-scheduler: tools match them.
#include "core/plan/message.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

namespace jogak::core {

void ReasonCounts::add(const Reasons& reasons) {
  for (const std::string& reason : reasons) add(reason, 1);
}

void ReasonCounts::add(std::string_view reason, std::int64_t nodes) {
  const auto it = counts_.find(reason);
  if (it != counts_.end()) {
    it->second += nodes;
  } else {
    counts_.emplace(reason, nodes);
  }
}

std::string ReasonCounts::text() const {
  std::vector<std::string> parts;
  parts.reserve(counts_.size());
  for (const auto& [reason, nodes] : counts_) parts.push_back(fmt::format("{} {}", nodes, reason));
  std::ranges::sort(parts);
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += ", ";
    text += part;
  }
  return text;
}

std::string unavailable_message(std::size_t nodes, std::string_view why) {
  std::string text = fmt::format("0/{} nodes are available:", nodes);
  if (!why.empty()) text.append(" ").append(why).append(".");
  return text;
}

}  // namespace jogak::core
