// SPDX-License-Identifier: Apache-2.0
//
// The rules of a pod's spec, for pods themselves and for every kind that carries a pod template:
// what is filled in, what is refused, what is warned about. Which restart policies a workload
// allows stays with that workload.
#pragma once

#include <string>
#include <vector>

#include "apiserver/object/field_errors.h"
#include "base/doc.h"

namespace jogak::api {

// Fills in what every pod spec gets, templates included. The spec may be null (a template without
// one): then it becomes an object.
void default_pod_spec(Doc& spec);
// `pod_template` is a PodTemplateSpec: {metadata, spec}.
void default_pod_template(Doc& pod_template);
// What a pod gets besides, before default_pod_spec(): requests from limits, service links, host
// ports. Templates keep theirs as written.
void default_pod_only(Doc& spec);

// Drops members of a spec that this server does not serve (the scheduling group of pod groups).
// Workloads call it from prepare_create() and prepare_update() with KindOptions::has_pod_groups.
void drop_gated_pod_fields(Doc& spec, bool has_pod_groups);

// Labels, annotations and spec of a template, after its defaults. `at` is the template's path.
void validate_pod_template(const Doc& pod_template, const Path& at, FieldErrors& errors);
// Adds what a client should hear about an accepted template, or pod (then the path is empty). `old`
// is the one before an update, else a null Doc: a template that stays is not warned about again.
void warn_about_pod_template(const Doc& pod_template, const Doc& old, const Path& at,
                             std::vector<std::string>& warnings);

// "Guaranteed", "Burstable" or "BestEffort".
std::string pod_qos_class(const Doc& spec);

}  // namespace jogak::api
