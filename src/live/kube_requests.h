// SPDX-License-Identifier: Apache-2.0
//
// The writes of a scheduler as requests of the Kubernetes API, and what the answers mean. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/loop.h"
#include "base/result.h"
#include "kube/api_client.h"
#include "live/cluster_api.h"

namespace jogak::live {

std::string pod_target(const PodRef& pod);

kube::ApiRequest binding_request(const Binding& binding);
// `now` dates a condition that was not there before.
kube::ApiRequest refusal_request(const ClusterApi::Refusal& refusal, TimeUs now);
kube::ApiRequest disruption_request(const PodRef& victim, std::string_view message, TimeUs now);
// With the pod's own grace, and only this very pod.
kube::ApiRequest deletion_request(const PodRef& victim);
kube::ApiRequest selected_node_request(const ClaimPlan& plan);
// Claims the volume as `volume_json` shows it. Conflict: it is claimed by another; Invalid: that is
// no volume.
Result<kube::ApiRequest> claim_request(const ClaimPlan& plan, std::string_view volume_json);

// Body of an Event of events.k8s.io/v1; a long message is cut as kube-scheduler cuts it.
std::string event_json(const PodNote& note, std::string_view ns, std::string_view name,
                       std::string_view host, TimeUs now);

// Unavailable: it did not happen. Timeout: nobody knows (5xx too: the server may have stored it
// before it failed). NotFound, Conflict; Invalid with the server's words: it will never work.
Result<void> outcome_of_write(const Result<kube::ApiAnswer>& answer);
// A read that failed leaves nothing open: 429 and 5xx are Unavailable.
Result<void> outcome_of_read(const Result<kube::ApiAnswer>& answer);

}  // namespace jogak::live
