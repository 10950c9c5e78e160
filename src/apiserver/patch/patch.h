// SPDX-License-Identifier: Apache-2.0
//
// The three patch formats that carry changes; server-side apply, which carries an intent, is in
// managed_fields.h. Refusals are the server's: code and reason as kube-apiserver 1.36 answers.
#pragma once

#include "apiserver/object/api_error.h"
#include "apiserver/schema/schema.h"
#include "base/doc.h"

namespace jogak::patch {

// RFC 6902. `patch` must be a list of operations (at most 10,000).
api::ApiResult<Doc> json_patch(Doc object, const Doc& patch);

// RFC 7386.
api::ApiResult<Doc> merge_patch(Doc object, const Doc& patch);

// Strategic merge with its directives ($patch, $retainKeys, $deleteFromPrimitiveList,
// $setElementOrder), lists merged as the type says.
api::ApiResult<Doc> strategic_merge_patch(Doc object, const Doc& patch, const schema::Struct& type);

}  // namespace jogak::patch
