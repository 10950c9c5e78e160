// SPDX-License-Identifier: Apache-2.0
//
// What has to change on a Node object so that it says what the agent wants, and nothing else. Pure:
// the node as the API server sent it, a wish, and out come the bodies of at most two patches.
//
// Labels and annotations that the agent wrote are listed in an annotation of their own, so that
// stale ones go even after a crash, and nobody else's is ever removed. Labels, their list and the
// taints change in one patch, under the resourceVersion that was read.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/health/node_status.h"
#include "agent/labels/feature_labels.h"
#include "base/loop.h"
#include "base/result.h"

namespace jogak::agent {

// Keys of labels and annotations that this agent wrote, sorted, with commas.
inline constexpr std::string_view kOwnedLabels = "jogak.io/agent-labels";
inline constexpr std::string_view kOwnedAnnotations = "jogak.io/agent-annotations";

struct NodeWish {
  Labels labels;                                   // all that are ours
  std::map<std::string, std::string> annotations;  // the same
  // Written as well, and left as they are once nobody wishes them: answers to somebody's label.
  Labels lasting_labels = {};
  std::map<std::string, std::string> lasting_annotations = {};
  std::vector<NodeCondition> conditions;  // types that are not named stay as they are
  // None: taints are not our affair. Else ours are exactly these; ours are those named
  // jogak.io/gpu-.
  std::optional<std::vector<Taint>> taints;
  friend bool operator==(const NodeWish&, const NodeWish&) = default;
};

struct NodePatches {
  // application/merge-patch+json of the node; "" nothing to change.
  std::string node;
  // application/strategic-merge-patch+json of its status; "" nothing to change.
  std::string status;
  std::vector<std::string> removed_labels;  // stale ones of ours, for the log
};

// Invalid when `node_json` is no Node.
Result<NodePatches> node_patches(std::string_view node_json, const NodeWish& wish, TimeUs now);

}  // namespace jogak::agent
