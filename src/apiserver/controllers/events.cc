// SPDX-License-Identifier: Apache-2.0
//
// Every event is a new object: nothing is summed up, and one with a taken name gets the next name.
#include "apiserver/controllers/events.h"

#include <fmt/core.h>

#include "apiserver/object/meta.h"

namespace jogak::controllers {

void write_event(api::Api& api, std::string_view component, const Doc& object,
                 std::string_view type, std::string_view reason, std::string_view message,
                 std::string_view field_path, std::string_view host) {
  const std::string& object_ns = api::namespace_of(object);
  const std::string ns = object_ns.empty() ? "default" : object_ns;
  const std::string now = api::format_time(api.now());
  Doc subject = Doc::object();
  subject.set("kind", object["kind"])
      .set("namespace", object_ns)
      .set("name", api::name_of(object))
      .set("uid", api::uid_of(object))
      .set("apiVersion", object["apiVersion"])
      .set("resourceVersion", api::meta(object)["resourceVersion"]);
  if (!field_path.empty()) subject.set("fieldPath", field_path);
  Doc source = Doc::object().set("component", component);
  if (!host.empty()) source.set("host", host);
  Doc event = Doc::object();
  // The name that client-go's recorder gives: the object and the time in hexadecimal. The clock
  // here counts microseconds and, under virtual time, stands still; what happened makes the rest.
  std::uint32_t mark = 0;
  for (const char c : message) mark = mark * 31 + static_cast<unsigned char>(c);
  const auto name = [&](std::int64_t i) {
    return fmt::format("{}.{:x}", api::name_of(object), api.now() * 1000 + (mark + i) % 1000);
  };
  event.at("metadata").set("name", name(0)).set("namespace", ns);
  event.set("involvedObject", std::move(subject))
      .set("reason", reason)
      .set("message", message)
      .set("source", std::move(source))
      .set("firstTimestamp", now)
      .set("lastTimestamp", now)
      .set("count", 1)
      .set("type", type)
      .set("reportingComponent", component);
  if (!host.empty()) event.set("reportingInstance", host);
  auto made = api.create("events", ns, event);
  for (int i = 1; !made.has_value() && made.error().code == 409 && i < 16; ++i) {
    event.at("metadata")
        .set("name", fmt::format("{}.{:x}", api::name_of(object), api.now() * 1000 + i));
    made = api.create("events", ns, event);
  }
}

}  // namespace jogak::controllers
