// SPDX-License-Identifier: Apache-2.0
//
// A protobuf message to a Doc, led by its type. Unknown fields are skipped, a field that comes
// twice is merged or counts last as the format says, and no input makes more work than its length
// allows: pieces of one message are read in one go, entries of a map are sorted once.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/codec/codec.h"
#include "apiserver/codec/wire.h"
#include "apiserver/schema/base64.h"
#include "apiserver/schema/go_text.h"
#include "apiserver/schema/go_time.h"
#include "apiserver/schema/normalise.h"
#include "apiserver/schema/unions.h"

namespace jogak::codec {
namespace {

using schema::Base;
using schema::Field;
using schema::kSchemaProps;
using schema::Struct;
using schema::Type;
using schema::Union;
using schema::union_of;
using Shape = Type::Shape;
using Pieces = std::vector<std::string_view>;

// Only schemas of custom resources nest without end.
constexpr int kDepthMax = 200;

bool is_zero_scalar(const Doc& value) {
  return (value.is_bool() && !value.as_bool()) || (value.is_int() && value.as_int() == 0) ||
         (value.is_string() && value.as_string().empty());
}

class MessageReader {
 public:
  Result<Doc> message(const Pieces& pieces, const Struct& type, int depth) {
    if (depth > kDepthMax) return invalid("proto: messages are nested too deep");
    Frame frame{.type = type, .values = std::vector<Doc>(type.fields.size()), .parts = {}};
    for (const std::string_view piece : pieces) JOGAK_TRY_VOID(fields(piece, 0, frame, depth));
    JOGAK_TRY_VOID(parts(frame, depth));
    Doc object = Doc::object();
    for (std::size_t i = 0; i < type.fields.size(); ++i) {
      Doc& value = frame.values[i];
      if (value.is_null()) continue;
      if (type.fields[i].type.shape == Shape::Map) settle(value);
      object.members().emplace_back(std::string(type.fields[i].name), std::move(value));
    }
    return object;
  }

 private:
  // A message while it is read.
  struct Frame {
    const Struct& type;
    std::vector<Doc> values;  // by field; null: absent
    // Pieces of members that are messages themselves, in the order they came.
    std::vector<std::pair<std::size_t, std::string_view>> parts;
    std::size_t hint = 0;  // where in wire_order the last field was

    // The position of the field with that number; npos when there is none.
    std::size_t find(std::uint16_t outer, std::uint32_t number) {
      const auto& order = type.wire_order;
      for (std::size_t step = 0; step < order.size(); ++step) {
        const std::size_t at = (hint + step) % order.size();
        const Field& field = type.fields[order[at]];
        if (field.inline_number == outer && field.number == number) {
          hint = at;
          return order[at];
        }
      }
      return std::string_view::npos;
    }

    bool has_inline(std::uint32_t number) const {
      return std::ranges::any_of(
          type.wire_order, [&](std::uint8_t i) { return type.fields[i].inline_number == number; });
    }
  };

  Result<void> fields(std::string_view bytes, std::uint16_t outer, Frame& frame, int depth) {
    WireReader in(bytes);
    while (!in.is_done()) {
      JOGAK_TRY(const WireReader::Tag tag, in.tag());
      const std::size_t at = frame.find(outer, tag.number);
      if (at != std::string_view::npos) {
        JOGAK_TRY_VOID(field(in, tag.wire, at, frame, depth));
      } else if (outer == 0 && tag.wire == Wire::Bytes && frame.has_inline(tag.number)) {
        JOGAK_TRY(const std::string_view inner, in.bytes());
        JOGAK_TRY_VOID(fields(inner, static_cast<std::uint16_t>(tag.number), frame, depth));
      } else {
        JOGAK_TRY_VOID(in.skip(tag.wire));
      }
    }
    return {};
  }

  Result<void> field(WireReader& in, Wire wire, std::size_t at, Frame& frame, int depth) {
    const Field& field = frame.type.fields[at];
    Doc& value = frame.values[at];
    if (field.type.shape == Shape::Map) return entry(in, wire, frame.type, field, value, depth);
    if (field.type.shape == Shape::List) return item(in, wire, field, value, depth);
    if (field.type.base == Base::Struct) {
      if (wire != Wire::Bytes) return wrong_wire(wire, field.name);
      JOGAK_TRY(const std::string_view part, in.bytes());
      frame.parts.emplace_back(at, part);
      return {};
    }
    if (const Union kind = union_of(frame.type, field); kind != Union::None) {
      if (wire != Wire::Bytes) return wrong_wire(wire, field.name);
      JOGAK_TRY(const std::string_view bytes, in.bytes());
      JOGAK_TRY(value, either(bytes, kind, depth));
      return {};
    }
    JOGAK_TRY(value, scalar(in, wire, field.type, field.name, depth));
    // JSON would leave it out.
    if (!field.type.is_pointer && !field.is_always && is_zero_scalar(value)) value = Doc();
    return {};
  }

  // The members that are messages: all pieces of one together.
  Result<void> parts(Frame& frame, int depth) {
    std::ranges::stable_sort(frame.parts, {}, &std::pair<std::size_t, std::string_view>::first);
    for (std::size_t i = 0; i < frame.parts.size();) {
      const std::size_t at = frame.parts[i].first;
      Pieces pieces;
      for (; i < frame.parts.size() && frame.parts[i].first == at; ++i) {
        pieces.push_back(frame.parts[i].second);
      }
      JOGAK_TRY(frame.values[at], message(pieces, *frame.type.fields[at].type.of, depth + 1));
    }
    return {};
  }

  Result<void> item(WireReader& in, Wire wire, const Field& field, Doc& list, int depth) {
    if (list.is_null()) list = Doc::array();
    const Type element = field.type.element();
    const bool is_number = element.base == Base::Int32 || element.base == Base::Int64 ||
                           element.base == Base::Bool || element.base == Base::Float64;
    if (!is_number || wire != Wire::Bytes) {
      JOGAK_TRY(Doc value, scalar(in, wire, element, field.name, depth));
      list.items().push_back(std::move(value));
      return {};
    }
    JOGAK_TRY(const std::string_view packed, in.bytes());
    WireReader inner(packed);
    while (!inner.is_done()) {
      const Wire each = element.base == Base::Float64 ? Wire::Fixed64 : Wire::Varint;
      JOGAK_TRY(Doc value, scalar(inner, each, element, field.name, depth));
      list.items().push_back(std::move(value));
    }
    return {};
  }

  Result<void> entry(WireReader& in, Wire wire, const Struct& type, const Field& field, Doc& map,
                     int depth) {
    if (wire != Wire::Bytes) return wrong_wire(wire, field.name);
    JOGAK_TRY(const std::string_view bytes, in.bytes());
    const Type element = field.type.element();
    const Union kind = union_of(type, field);
    std::string key;
    Doc value = kind == Union::None ? schema::zero(element) : Doc();
    if (element.base == Base::Bytes) value = Doc("");
    WireReader inner(bytes);
    while (!inner.is_done()) {
      JOGAK_TRY(const WireReader::Tag tag, inner.tag());
      if (tag.number == 1 && tag.wire == Wire::Bytes) {
        JOGAK_TRY(key, inner.bytes());
      } else if (tag.number != 2) {
        JOGAK_TRY_VOID(inner.skip(tag.wire));
      } else if (kind != Union::None || element.shape == Shape::List) {
        if (tag.wire != Wire::Bytes) return wrong_wire(tag.wire, field.name);
        JOGAK_TRY(const std::string_view part, inner.bytes());
        JOGAK_TRY(value, kind == Union::None ? list_message(part, element, field.name, depth)
                                             : either(part, kind, depth));
      } else {
        JOGAK_TRY(value, scalar(inner, tag.wire, element, field.name, depth));
      }
    }
    if (map.is_null()) map = Doc::object();
    map.members().emplace_back(std::move(key), std::move(value));
    return {};
  }

  // {1: items}
  Result<Doc> list_message(std::string_view bytes, const Type& list, std::string_view name,
                           int depth) {
    Doc result = Doc::array();
    WireReader in(bytes);
    while (!in.is_done()) {
      JOGAK_TRY(const WireReader::Tag tag, in.tag());
      if (tag.number != 1) {
        JOGAK_TRY_VOID(in.skip(tag.wire));
        continue;
      }
      JOGAK_TRY(Doc value, scalar(in, tag.wire, list.element(), name, depth));
      result.items().push_back(std::move(value));
    }
    return result;
  }

  // Of equal keys the last one counts.
  static void settle(Doc& map) {
    Doc::Members& members = map.members();
    std::ranges::stable_sort(members, {}, &Doc::Member::key);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const bool is_last = i + 1 == members.size() || members[i + 1].key != members[i].key;
      if (!is_last) continue;
      if (kept != i) members[kept] = std::move(members[i]);
      ++kept;
    }
    members.resize(kept);
  }

  Result<Doc> scalar(WireReader& in, Wire wire, const Type& type, std::string_view name,
                     int depth) {
    switch (type.base) {
      case Base::Bool:
      case Base::Int32:
      case Base::Int64: {
        if (wire != Wire::Varint) return wrong_wire(wire, name);
        JOGAK_TRY(const std::uint64_t value, in.varint());
        if (type.base == Base::Bool) return Doc(value != 0);
        if (type.base == Base::Int64) return Doc(static_cast<std::int64_t>(value));
        return Doc(static_cast<std::int32_t>(static_cast<std::uint32_t>(value)));
      }
      case Base::Float64: {
        if (wire != Wire::Fixed64) return wrong_wire(wire, name);
        JOGAK_TRY(const std::uint64_t bits, in.fixed64());
        const auto value = std::bit_cast<double>(bits);
        if (!std::isfinite(value)) return invalid("json: unsupported value: {}", name);
        return Doc::number(schema::float_text(value));
      }
      default:
        break;
    }
    if (wire != Wire::Bytes) return wrong_wire(wire, name);
    JOGAK_TRY(const std::string_view bytes, in.bytes());
    switch (type.base) {
      case Base::String:
        return Doc(bytes);
      case Base::Bytes:
        return Doc(schema::encode_base64(bytes));
      case Base::Struct:
        return message({bytes}, *type.of, depth + 1);
      case Base::Quantity:
        return quantity(bytes);
      case Base::Duration:
        return duration(bytes);
      case Base::IntOrString:
        return int_or_string(bytes);
      case Base::Time:
      case Base::MicroTime:
        return time(bytes, type.base == Base::MicroTime);
      default:
        return raw(bytes);
    }
  }

  // The small messages with rules of their own: numbers up to three, strings or varints.
  struct Small {
    std::uint64_t numbers[4] = {};
    std::string_view texts[4];
    bool has[4] = {};
  };

  static Result<Small> small(std::string_view bytes) {
    Small result;
    WireReader in(bytes);
    while (!in.is_done()) {
      JOGAK_TRY(const WireReader::Tag tag, in.tag());
      if (tag.number > 3 || (tag.wire != Wire::Varint && tag.wire != Wire::Bytes)) {
        JOGAK_TRY_VOID(in.skip(tag.wire));
        continue;
      }
      result.has[tag.number] = true;
      if (tag.wire == Wire::Varint) {
        JOGAK_TRY(result.numbers[tag.number], in.varint());
      } else {
        JOGAK_TRY(result.texts[tag.number], in.bytes());
      }
    }
    return result;
  }

  static Result<Doc> quantity(std::string_view bytes) {
    JOGAK_TRY(const Small fields, small(bytes));
    return fields.has[1] ? Doc(fields.texts[1]) : Doc("0");
  }

  static Result<Doc> duration(std::string_view bytes) {
    JOGAK_TRY(const Small fields, small(bytes));
    return Doc(schema::duration_text(static_cast<std::int64_t>(fields.numbers[1])));
  }

  static Result<Doc> int_or_string(std::string_view bytes) {
    JOGAK_TRY(const Small fields, small(bytes));
    if (fields.numbers[1] == 1) return Doc(fields.texts[3]);
    return Doc(static_cast<std::int32_t>(static_cast<std::uint32_t>(fields.numbers[2])));
  }

  static Result<Doc> time(std::string_view bytes, bool is_micro) {
    if (bytes.empty()) return Doc();
    JOGAK_TRY(const Small fields, small(bytes));
    // Years 1 to 9999, as the format says.
    constexpr std::int64_t kFirst = -62'135'596'800;
    constexpr std::int64_t kLast = 253'402'300'799;
    const auto seconds = static_cast<std::int64_t>(fields.numbers[1]);
    const std::uint64_t nanos = fields.numbers[2];
    if (seconds < kFirst || seconds > kLast || nanos > 999'999'999) {
      return invalid("proto: time {} is out of range", seconds);
    }
    if (!is_micro) return Doc(schema::time_text(seconds));
    return Doc(
        schema::micro_time_text({.seconds = seconds, .nanos = static_cast<std::int32_t>(nanos)}));
  }

  // {1: JSON text}
  static Result<Doc> raw(std::string_view bytes) {
    JOGAK_TRY(const Small fields, small(bytes));
    if (fields.texts[1].empty()) return Doc();
    JOGAK_TRY(Parsed parsed, parse_json(fields.texts[1]));
    return std::move(parsed.doc);
  }

  Result<Doc> either(std::string_view bytes, Union kind, int depth) {
    const Struct& props = schema::get(kSchemaProps);
    Pieces schema_pieces;
    Doc list;
    bool is_allowed = false;
    WireReader in(bytes);
    while (!in.is_done()) {
      JOGAK_TRY(const WireReader::Tag tag, in.tag());
      const bool is_schema = tag.number == (kind == Union::SchemaOrBool ? 2U : 1U);
      if (is_schema && tag.wire == Wire::Bytes) {
        JOGAK_TRY(const std::string_view piece, in.bytes());
        schema_pieces.push_back(piece);
      } else if (kind == Union::SchemaOrBool && tag.number == 1 && tag.wire == Wire::Varint) {
        JOGAK_TRY(const std::uint64_t flag, in.varint());
        is_allowed = flag != 0;
      } else if (kind != Union::SchemaOrBool && tag.number == 2 && tag.wire == Wire::Bytes) {
        JOGAK_TRY(const std::string_view item, in.bytes());
        if (kind == Union::SchemaOrStrings) {
          list.push(item);
        } else {
          JOGAK_TRY(Doc inner, message({item}, props, depth + 1));
          list.push(std::move(inner));
        }
      } else {
        JOGAK_TRY_VOID(in.skip(tag.wire));
      }
    }
    if (!list.is_null()) return list;
    if (!schema_pieces.empty()) return message(schema_pieces, props, depth + 1);
    return kind == Union::SchemaOrBool ? Doc(is_allowed) : Doc();
  }
};

}  // namespace

Result<Doc> decode_protobuf(std::string_view message, const schema::Struct& type,
                            std::string_view api_version, std::string_view kind) {
  JOGAK_TRY(Doc object, MessageReader().message({message}, type, 0));
  // They are the first members of an object, and no part of its message.
  Doc::Members head;
  if (!kind.empty()) head.emplace_back("kind", kind);
  if (!api_version.empty()) head.emplace_back("apiVersion", api_version);
  if (!head.empty()) {
    Doc::Members& members = object.members();
    members.insert(members.begin(), std::make_move_iterator(head.begin()),
                   std::make_move_iterator(head.end()));
  }
  return object;
}

}  // namespace jogak::codec
