// SPDX-License-Identifier: Apache-2.0
//
// The history of a pod template as ControllerRevisions: what stateful and daemon sets update from
// and roll back to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/registry/api.h"

namespace jogak::controllers {

// How a kind of owner keeps its history.
struct HistoryOf {
  std::string_view table;       // of the owners, "statefulsets.apps"
  std::string_view hash_label;  // on each revision
};

// {"spec": {"template": ...}} as a patch that brings the template back.
Doc template_patch(const Doc& owner);
// Whether the revision holds the owner's present template.
bool is_current(const Doc& owner, const Doc& revision);

// Its revisions, oldest first; those of nobody that its selector matches become its own.
std::vector<Doc> revisions_of(api::Api& api, const Doc& owner);

// The revision of the present template, made or moved to the top where it is not there already;
// `revisions` follows. When the name is taken by other contents, the owner's collisionCount grows
// and the caller tries again.
api::ApiResult<Doc> keep_current_revision(api::Api& api, const HistoryOf& history, const Doc& owner,
                                          std::vector<Doc>& revisions);

// Deletes the oldest of those that are not in use until the owner's limit holds.
api::ApiResult<void> drop_old_revisions(api::Api& api, const Doc& owner,
                                        std::vector<const Doc*> unused);

}  // namespace jogak::controllers
