// SPDX-License-Identifier: Apache-2.0
//
// One order of members: the same event has the same bytes.
#include "kube/event.h"

#include "base/json_writer.h"
#include "base/utc_time.h"

namespace jogak::kube {

namespace {

constexpr std::size_t kNoteBytesMax = 1024;

void write(JsonWriter& json, std::string_view key, const EventObject& object) {
  json.key(key).begin_object().field("apiVersion", "v1").field("kind", object.kind);
  if (!object.ns.empty()) json.field("namespace", object.ns);
  json.field("name", object.name).field("uid", object.uid).end_object();
}

}  // namespace

std::string event_json(const EventBody& event, TimeUs time) {
  JsonWriter json;
  json.begin_object().field("apiVersion", "events.k8s.io/v1").field("kind", "Event");
  json.key("metadata").begin_object();
  json.field("name", event.name).field("namespace", event.ns).end_object();
  json.field("eventTime", utc_micros(time))
      .field("reportingController", event.reporter)
      .field("reportingInstance", event.instance)
      .field("action", event.action)
      .field("reason", event.reason)
      .field("type", event.type)
      .field("note", cut_text(event.note, kNoteBytesMax, " ..."));
  write(json, "regarding", event.regarding);
  if (!event.related.uid.empty()) write(json, "related", event.related);
  json.end_object();
  return json.take();
}

std::string event_series_json(int count, TimeUs last) {
  JsonWriter json;
  json.begin_object().key("series").begin_object();
  json.field("count", count).field("lastObservedTime", utc_micros(last));
  json.end_object().end_object();
  return json.take();
}

std::string cut_text(std::string_view text, std::size_t max, std::string_view rest) {
  if (text.size() <= max) return std::string(text);
  std::size_t end = max - rest.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)).append(rest);
}

}  // namespace jogak::kube
