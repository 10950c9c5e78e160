// SPDX-License-Identifier: Apache-2.0
//
// A live cluster read once: every object that scheduling depends on, as the lists that the API
// server gives. Nothing is watched and nothing is written.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/api_client.h"

namespace jogak::kube {

// A resource that a snapshot reads.
struct SnapshotResource {
  std::string_view path;      // "/apis/policy/v1/poddisruptionbudgets"
  std::string_view resource;  // as RBAC and kubectl name it: "poddisruptionbudgets.policy"
  std::string_view kind;      // of its objects
};
// Pods come first, so that the nodes that they are on have been there since.
std::span<const SnapshotResource> snapshot_resources();

// One page of a list: {"kind":"PodList",...,"items":[...]}; the items name no kind themselves.
struct SnapshotPage {
  std::string_view kind;  // of the items
  std::string json;
};

class Snapshot {
 public:
  // All pages, in the order of snapshot_resources(). Errors are one line and name the resource:
  // Invalid for credentials or permissions that are missing, with the cure; a resource of an API
  // group that the server does not have counts as empty.
  using Done = std::function<void(Result<std::vector<SnapshotPage>>)>;
  // Begins at once; `done` is called once, on the loop, never before the constructor returns, and
  // may destroy the snapshot. `api` outlives it.
  Snapshot(ApiClient& api, Done done, std::size_t page_size = 500);
  // Nothing follows.
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace jogak::kube
