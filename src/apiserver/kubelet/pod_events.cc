// SPDX-License-Identifier: Apache-2.0
//
// The words of a kubelet of 1.36; each event names its container by the path in the pod.
#include "apiserver/kubelet/pod_events.h"

#include <string>

#include <fmt/core.h>

#include "apiserver/controllers/events.h"
#include "apiserver/object/meta.h"

namespace jogak::kubelet {

namespace {

struct Told {
  std::string_view type, reason;
  std::string message;
};

// One event about one container.
void tell(api::Api& api, const Doc& pod, std::string_view node, const Doc& container,
          const Told& told) {
  const std::string path = fmt::format("spec.containers{{{}}}", container["name"].as_string());
  controllers::write_event(api, "kubelet", pod, told.type, told.reason, told.message, path, node);
}

}  // namespace

void tell_started(api::Api& api, const Doc& pod, std::string_view node) {
  for (const Doc& container : pod.get("spec", "containers").items()) {
    tell(api, pod, node, container,
         {"Normal", "Pulled",
          fmt::format("Container image \"{}\" already present on machine and can be accessed by "
                      "the pod",
                      container["image"].as_string())});
    tell(api, pod, node, container, {"Normal", "Created", "Container created"});
    tell(api, pod, node, container, {"Normal", "Started", "Container started"});
  }
}

void tell_killing(api::Api& api, const Doc& pod, std::string_view node) {
  for (const Doc& container : pod.get("spec", "containers").items()) {
    tell(api, pod, node, container,
         {"Normal", "Killing", "Stopping container " + container["name"].as_string()});
  }
}

void tell_backoff(api::Api& api, const Doc& pod, std::string_view node) {
  for (const Doc& container : pod.get("spec", "containers").items()) {
    tell(api, pod, node, container,
         {"Warning", "BackOff",
          fmt::format("Back-off restarting failed container {} in pod {}_{}({})",
                      container["name"].as_string(), api::name_of(pod), api::namespace_of(pod),
                      api::uid_of(pod))});
  }
}

}  // namespace jogak::kubelet
