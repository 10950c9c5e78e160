// SPDX-License-Identifier: Apache-2.0
//
// The refusal in the words that kubectl shows to people.
#include "apiserver/patch/conflicts.h"

#include <map>
#include <utility>

#include <fmt/core.h>

namespace jogak::patch {
namespace {

std::string message_of(const std::vector<Conflict>& conflicts) {
  if (conflicts.size() == 1) {
    return fmt::format("Apply failed with 1 conflict: conflict with {}: {}",
                       conflicts.front().manager, path_text(conflicts.front().path));
  }
  std::map<std::string, std::string> lines;
  for (const Conflict& conflict : conflicts) {
    lines[conflict.manager] += fmt::format("\n- {}", path_text(conflict.path));
  }
  std::string message = fmt::format("Apply failed with {} conflicts: ", conflicts.size());
  const char* separator = "";
  for (const auto& [manager, paths] : lines) {
    message += fmt::format("{}conflicts with {}:{}", separator, manager, paths);
    separator = "\n";
  }
  return message;
}

}  // namespace

api::Refusal conflict_error(const std::vector<Conflict>& conflicts) {
  api::ApiError error;
  error.code = 409;
  error.reason = "Conflict";
  error.message = message_of(conflicts);
  for (const Conflict& conflict : conflicts) {
    error.causes.push_back({.reason = "FieldManagerConflict",
                            .message = "conflict with " + conflict.manager,
                            .field = path_text(conflict.path)});
  }
  return api::Refusal(std::move(error));
}

}  // namespace jogak::patch
