// SPDX-License-Identifier: Apache-2.0
//
// Bytes to Docs and back: JSON, YAML, and the protobuf of built-in kinds; and which of them a
// client asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/object/api_error.h"
#include "apiserver/schema/schema.h"
#include "base/doc.h"
#include "base/result.h"

namespace jogak::codec {

enum class Form : std::uint8_t { Json, Yaml, Protobuf };

// A text that was read, with the keys that stood twice in one object (the last one counts):
// `duplicate field "spec.containers[0].name"` in the server's words.
struct Parsed {
  Doc doc;
  std::vector<std::string> duplicates;
};

// JSON (RFC 8259), at most 1000 levels deep. Bad UTF-8 becomes U+FFFD, as in Go. The error is the
// server's: "couldn't get version/kind; json parse error: ...".
Result<Parsed> parse_json(std::string_view text);
// One YAML document as the server's converter reads it (YAML 1.1: bare y, yes, on are booleans).
Result<Parsed> parse_yaml(std::string_view text);

// The envelope "k8s\0" + runtime.Unknown. Its apiVersion and kind may be empty; then the caller
// takes those of the URL.
struct Envelope {
  std::string api_version, kind;
  std::string_view raw;  // bytes of the object, inside the input
};
Result<Envelope> open_envelope(std::string_view bytes);
// A message of that type as a Doc (as JSON would have it). Sets kind and apiVersion when not empty.
Result<Doc> decode_protobuf(std::string_view message, const schema::Struct& type,
                            std::string_view api_version, std::string_view kind);
// An object of that type in its envelope. kind and apiVersion come from the object. A list
// ("items" of the element type) is encoded with `element`; see encode_protobuf_list.
std::string encode_protobuf(const Doc& object, const schema::Struct& type);
std::string encode_protobuf_list(const Doc& list, const schema::Struct& element);
// One frame of a watch: 4 bytes of length, then WatchEvent{type, object}.
std::string encode_protobuf_watch_event(std::string_view event_type, const Doc& object,
                                        const schema::Struct& type);

// One alternative of an Accept header or a Content-Type: type and parameters, lower case names.
struct MediaType {
  std::string type;  // "application/json"
  std::vector<std::pair<std::string, std::string>> parameters;
  double q = 1.0;

  std::string_view parameter(std::string_view name) const;
};
// In the order of the header; clauses that are not types are left out.
std::vector<MediaType> parse_media_types(std::string_view header);
// The type of a Content-Type, in lower case; nullopt when the header is malformed.
std::optional<std::string> media_type_of(std::string_view content_type);
// The form of a body by its Content-Type ("" is JSON); nullopt: 415.
std::optional<Form> form_of(std::string_view content_type);

// What to answer with.
struct Negotiated {
  Form form = Form::Json;
  enum class As : std::uint8_t { Object, Table, Partial } as = As::Object;
  bool is_pretty = false;
  std::string content_type;  // "application/json", also of tables, as the real server answers
};
// nullopt: 406. `allow_protobuf` is false for custom resources, `allow_table` where no tables are
// served. There is no watch in YAML: that is 406 too, and the caller's to say. The content type of
// a watch in protobuf has ";stream=watch" behind it.
std::optional<Negotiated> negotiate(std::string_view accept, bool allow_protobuf, bool allow_table);

}  // namespace jogak::codec
