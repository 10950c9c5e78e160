// SPDX-License-Identifier: Apache-2.0
//
// Horizontal pod autoscalers in both versions. They share a table; v2 is what is stored.
#pragma once

#include <memory>

#include "apiserver/registry/resource.h"

namespace jogak::api {

std::shared_ptr<const Strategy> autoscaler_strategy();     // autoscaling/v2
std::shared_ptr<const Strategy> autoscaler_v1_strategy();  // autoscaling/v1
void add_autoscaling_kinds(Registry& registry);

// v2.
void default_autoscaler(Doc& object);
// `old_spec` is null on create.
void validate_autoscaler_spec(const Doc& spec, const Doc& old_spec, FieldErrors& errors);

// What v1 has no members for travels in annotations: other metrics, their states, conditions,
// behavior.
Doc autoscaler_to_v2(Doc v1);
Doc autoscaler_to_v1(Doc v2);
// Takes those annotations away; v2 never shows them.
void drop_autoscaler_annotations(Doc& object);
// In v1: the annotations that belong to the spec, or to the status, become those of `old`.
void keep_spec_annotations(Doc& object, const Doc& old);
void keep_status_annotations(Doc& object, const Doc& old);
// Whether a v1 object has metrics besides its CPU target.
bool has_annotated_metrics(const Doc& v1);

// One metric, or the state of one, between the forms: {type, resource: {name, target: {...}}} and
// {type, resource: {name, targetAverageUtilization, ...}}.
Doc metric_spec_to_v1(const Doc& metric);
Doc metric_spec_to_v2(const Doc& metric);
Doc metric_status_to_v1(const Doc& metric);
Doc metric_status_to_v2(const Doc& metric);

}  // namespace jogak::api
