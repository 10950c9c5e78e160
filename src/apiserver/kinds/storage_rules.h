// SPDX-License-Identifier: Apache-2.0
//
// Rules of volumes and claims that more than one kind uses: volume attachments carry a volume's
// spec, stateful sets and ephemeral volumes a claim's.
#pragma once

#include "apiserver/object/field_errors.h"
#include "base/doc.h"

namespace jogak::api {

// Of the sources that pods' volumes and persistent volumes have in common, members of `holder`.
void default_volume_sources(Doc& holder);
void default_volume_spec(Doc& spec);
// `is_inline`: inside an attachment, where only CSI is allowed and the rest follows from that.
void validate_volume_spec(const Doc& spec, bool is_inline, const Path& at, FieldErrors& errors);
// Exactly one source, and what that source needs.
void validate_volume_source(const Doc& spec, const Path& at, FieldErrors& errors);
// The members of a spec that are its source, as one object.
Doc volume_source_of(const Doc& spec);

void default_claim_spec(Doc& spec);
void validate_claim_spec(const Doc& spec, const Path& at, FieldErrors& errors);
// Access modes of volumes and claims alike.
void validate_access_modes(const Doc& modes, const Path& at, FieldErrors& errors);

}  // namespace jogak::api
