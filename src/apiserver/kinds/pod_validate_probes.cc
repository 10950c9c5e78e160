// SPDX-License-Identifier: Apache-2.0
//
// Probes and lifecycle hooks of containers.
#include <algorithm>
#include <string>
#include <string_view>

#include "apiserver/kinds/pod_validate.h"

namespace jogak::api {

namespace {

void check_port_or_name(const Doc& port, const Spot& at, FieldErrors& errors) {
  if (port.is_string()) {
    check_name(port, check_port_name, at, errors);
  } else {
    add_problems(errors, at, port, check_port(port.as_int()));
  }
}

bool is_header_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

void check_http_get(const Doc& get, const Spot& at, FieldErrors& errors) {
  require_text(get, "path", at, errors);
  check_port_or_name(get["port"], at.child("port"), errors);
  if (!is_any_of(get["scheme"].as_string(), {"HTTP", "HTTPS"})) {
    errors.not_supported(at.child("scheme"), shown(get["scheme"]), {"HTTP", "HTTPS"});
  }
  for (const Doc& header : get["httpHeaders"].items()) {
    const std::string& name = header["name"].as_string();
    if (name.empty() || !std::ranges::all_of(name, is_header_char)) {
      errors.invalid(at.child("httpHeaders"), name,
                     "a valid HTTP header must consist of alphanumeric characters or '-'");
    }
  }
}

void check_sleep(const Doc& sleep, const Doc& grace, const Spot& at, FieldErrors& errors) {
  const std::int64_t seconds = sleep["seconds"].as_int();
  if (grace.is_int() && (seconds < 0 || seconds > grace.as_int())) {
    errors.invalid(at, seconds,
                   "must be non-negative and less than terminationGracePeriodSeconds (" +
                       std::to_string(grace.as_int()) + ")");
  }
}

void check_one_handler(std::string_view kind, const Doc& handler, const Doc& grace, const Spot& at,
                       FieldErrors& errors) {
  if (kind == "exec") {
    if (handler["command"].empty()) {
      errors.required(at.child("command"));
    }
  } else if (kind == "httpGet") {
    check_http_get(handler, at, errors);
  } else if (kind == "sleep") {
    check_sleep(handler, grace, at, errors);
  } else {  // tcpSocket, grpc
    check_port_or_name(handler["port"], at.child("port"), errors);
  }
}

void check_handler(const Doc& holder, const Doc& grace, const Spot& at, FieldErrors& errors) {
  bool has_one = false;
  for (const std::string_view kind : {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}) {
    const Doc* handler = holder.find(kind);
    if (handler == nullptr) {
      continue;
    }
    if (has_one) {
      errors.forbidden(at.child(kind), "may not specify more than 1 handler type");
      continue;
    }
    has_one = true;
    check_one_handler(kind, *handler, grace, at.child(kind), errors);
  }
  if (!has_one) {
    errors.required(at, "must specify a handler type");
  }
}

void check_probe(const Doc& container, std::string_view key, const Doc& grace, const Spot& parent,
                 FieldErrors& errors) {
  const Doc* probe = container.find(key);
  if (probe == nullptr) {
    return;
  }
  const Spot at = parent.child(key);
  check_handler(*probe, grace, at, errors);
  for (const std::string_view number : {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                                        "successThreshold", "failureThreshold"}) {
    check_not_negative((*probe)[number], at.child(number), errors);
  }
  const Doc& own_grace = (*probe)["terminationGracePeriodSeconds"];
  if (!own_grace.is_null() && own_grace.as_int() <= 0) {
    errors.invalid(at.child("terminationGracePeriodSeconds"), own_grace, "must be greater than 0");
  }
  if (key == "readinessProbe") {
    if (!own_grace.is_null()) {
      errors.invalid(at.child("terminationGracePeriodSeconds"), own_grace,
                     "must not be set for readinessProbes");
    }
  } else if ((*probe)["successThreshold"].as_int() != 1) {
    errors.invalid(at.child("successThreshold"), (*probe)["successThreshold"], "must be 1");
  }
}

}  // namespace

void validate_probes_and_lifecycle(const PodSpecView& view, const Doc& container, const Spot& at,
                                   FieldErrors& errors) {
  const Doc& grace = view.spec["terminationGracePeriodSeconds"];
  const Doc& lifecycle = container["lifecycle"];
  const Spot spot = at.child("lifecycle");
  for (const std::string_view hook : {"postStart", "preStop"}) {
    if (lifecycle.has(hook)) {
      check_handler(lifecycle[hook], grace, spot.child(hook), errors);
    }
  }
  check_probe(container, "livenessProbe", grace, at, errors);
  check_probe(container, "readinessProbe", grace, at, errors);
  check_probe(container, "startupProbe", grace, at, errors);
}

}  // namespace jogak::api
