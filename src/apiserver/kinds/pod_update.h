// SPDX-License-Identifier: Apache-2.0
//
// Which changes of a stored pod are allowed, through each of its doors. `object` and `old` are
// whole pods; metadata rules that every kind shares are checked elsewhere.
#pragma once

#include "apiserver/object/field_errors.h"
#include "base/doc.h"
#include "base/loop.h"

namespace jogak::api {

// Whether two specs mean the same: zero values and absent members are one.
bool is_same_pod_spec(const Doc& a, const Doc& b);

void validate_pod_update(const Doc& object, const Doc& old, FieldErrors& errors);
void validate_pod_annotation_update(const Doc& object, const Doc& old, FieldErrors& errors);

// /status
void prepare_pod_status(Doc& object, const Doc& old);
void validate_pod_status(const Doc& object, const Doc& old, FieldErrors& errors);
// podIP is the first of podIPs.
void equal_pod_ips(Doc& status);

// /ephemeralcontainers
void prepare_ephemeral_containers(Doc& object, const Doc& old);
void validate_ephemeral_containers(const Doc& object, const Doc& old, FieldErrors& errors);

// /resize
void prepare_pod_resize(Doc& object, const Doc& old);
void validate_pod_resize(const Doc& object, const Doc& old, FieldErrors& errors);

}  // namespace jogak::api
