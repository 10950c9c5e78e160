// SPDX-License-Identifier: Apache-2.0
//
// What the members of a stateful set are called, look like and keep. No writes here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/controllers/pod_index.h"
#include "base/doc.h"

namespace jogak::controllers {

inline constexpr std::string_view kRevisionLabel = "controller-revision-hash";

// The ordinal in a member's name ("web-3"); nullopt for a name that is not the set's.
std::optional<std::int64_t> ordinal_of(std::string_view set_name, std::string_view pod_name);
std::int64_t first_ordinal(const Doc& set);

// The member of that ordinal from the template in `revision` (a ControllerRevision).
Doc member_pod(const Doc& set, const Doc& revision, std::int64_t ordinal);
std::string claim_name(const Doc& set, const Doc& claim_template, std::int64_t ordinal);
// Its claims, as they are created.
std::vector<Doc> member_claims(const Doc& set, std::int64_t ordinal);

// Who owns a claim by the set's persistentVolumeClaimRetentionPolicy: the owner references as they
// should be, or nullopt when they are right, or belong to somebody else. `is_condemned`: the member
// is beyond the wanted replicas.
std::optional<Doc> claim_owners(const Doc& claim, const Doc& set, const PodView& pod,
                                bool is_condemned);
// Whether the claim waits to go with an earlier pod of the same name.
bool is_stale_claim(const Doc& claim, std::string_view pod_name);

}  // namespace jogak::controllers
