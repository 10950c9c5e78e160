// SPDX-License-Identifier: Apache-2.0
//
// What stands around a protobuf message: the envelope "k8s\0" + runtime.Unknown, lists, and the
// frames of a watch.
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/codec/codec.h"
#include "apiserver/codec/proto_write.h"
#include "apiserver/codec/wire.h"

namespace jogak::codec {
namespace {

constexpr std::string_view kMagic("k8s\0", 4);

// runtime.TypeMeta
Result<void> read_type_meta(std::string_view bytes, Envelope& envelope) {
  WireReader in(bytes);
  while (!in.is_done()) {
    JOGAK_TRY(const WireReader::Tag tag, in.tag());
    if (tag.number > 2) {
      JOGAK_TRY_VOID(in.skip(tag.wire));
      continue;
    }
    if (tag.wire != Wire::Bytes) {
      return wrong_wire(tag.wire, tag.number == 1 ? "APIVersion" : "Kind");
    }
    JOGAK_TRY(const std::string_view text, in.bytes());
    (tag.number == 1 ? envelope.api_version : envelope.kind) = text;
  }
  return {};
}

// `body` writes the message.
template <class Body>
std::string in_envelope(const Doc& object, Body body) {
  WireWriter out;
  out.message_field(1, [&] {
    out.bytes_field(1, object["apiVersion"].as_string());
    out.bytes_field(2, object["kind"].as_string());
  });
  out.message_field(2, [&] { body(out); });
  out.bytes_field(3, "");  // content encoding
  out.bytes_field(4, "");  // content type
  return std::string(kMagic) + out.take();
}

// meta.v1.ListMeta
void write_list_meta(WireWriter& out, const Doc& meta) {
  out.message_field(1, [&] {
    out.bytes_field(1, meta["selfLink"].as_string());
    out.bytes_field(2, meta["resourceVersion"].as_string());
    out.bytes_field(3, meta["continue"].as_string());
    if (const Doc* count = meta.find("remainingItemCount"); count != nullptr && count->is_int()) {
      out.varint_field(4, static_cast<std::uint64_t>(count->as_int()));
    }
  });
}

}  // namespace

Result<Envelope> open_envelope(std::string_view bytes) {
  if (bytes.empty()) return invalid("empty data");
  if (!bytes.starts_with(kMagic)) {
    return invalid(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
  }
  if (bytes.size() == kMagic.size()) return invalid("empty body");
  Envelope envelope;
  WireReader in(bytes.substr(kMagic.size()));
  while (!in.is_done()) {
    JOGAK_TRY(const WireReader::Tag tag, in.tag());
    if (tag.number > 2) {
      JOGAK_TRY_VOID(in.skip(tag.wire));
      continue;
    }
    if (tag.wire != Wire::Bytes) return wrong_wire(tag.wire, tag.number == 1 ? "TypeMeta" : "Raw");
    JOGAK_TRY(const std::string_view part, in.bytes());
    if (tag.number == 2) {
      envelope.raw = part;
    } else {
      JOGAK_TRY_VOID(read_type_meta(part, envelope));
    }
  }
  return envelope;
}

std::string encode_protobuf(const Doc& object, const schema::Struct& type) {
  return in_envelope(object, [&](WireWriter& out) { write_message(out, object, type); });
}

std::string encode_protobuf_list(const Doc& list, const schema::Struct& element) {
  return in_envelope(list, [&](WireWriter& out) {
    write_list_meta(out, list["metadata"]);
    for (const Doc& item : list["items"].items()) {
      out.message_field(2, [&] { write_message(out, item, element); });
    }
  });
}

std::string encode_protobuf_watch_event(std::string_view event_type, const Doc& object,
                                        const schema::Struct& type) {
  WireWriter out;
  out.bytes_field(1, event_type);
  out.message_field(2, [&] { out.bytes_field(1, encode_protobuf(object, type)); });
  const std::string event = out.take();
  std::string frame;
  frame.reserve(event.size() + 4);
  for (int shift = 24; shift >= 0; shift -= 8) {
    frame += static_cast<char>((event.size() >> shift) & 0xff);
  }
  return frame + event;
}

}  // namespace jogak::codec
