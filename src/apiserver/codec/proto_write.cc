// SPDX-License-Identifier: Apache-2.0
//
// A Doc as the message of its type, byte for byte as Go's generated code writes it: fields by
// number, all that are no pointers even when zero, maps sorted.
#include "apiserver/codec/proto_write.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <string>
#include <vector>

#include "apiserver/schema/base64.h"
#include "apiserver/schema/go_text.h"
#include "apiserver/schema/go_time.h"
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

std::uint64_t unsigned_of(std::int64_t value) { return static_cast<std::uint64_t>(value); }

const Doc& null_doc() {
  static const Doc kNull;
  return kNull;
}

class MessageWriter {
 public:
  explicit MessageWriter(WireWriter& out) : out_(out) {}

  void message(const Doc& object, const Struct& type) {
    std::array<const Doc*, 256> values;  // only those of the type's fields are set
    std::fill_n(values.begin(), type.fields.size(), nullptr);
    for (const Doc::Member& member : object.members()) {
      const Field* field = type.find(member.key);
      if (field != nullptr) values[position(type, *field)] = &member.value;
    }
    const auto& order = type.wire_order;
    for (std::size_t i = 0; i < order.size();) {
      const std::uint16_t outer = type.fields[order[i]].inline_number;
      if (outer == 0) {
        write(type, order[i], values);
        ++i;
        continue;
      }
      out_.message_field(outer, [&] {
        for (; i < order.size() && type.fields[order[i]].inline_number == outer; ++i) {
          write(type, order[i], values);
        }
      });
    }
  }

 private:
  using Values = std::array<const Doc*, 256>;

  static std::size_t position(const Struct& type, const Field& field) {
    return static_cast<std::size_t>(&field - type.fields.data());
  }

  void write(const Struct& type, std::size_t at, const Values& values) {
    const Field& field = type.fields[at];
    const Doc& value = values[at] == nullptr ? null_doc() : *values[at];
    const Union kind = union_of(type, field);
    if (field.type.shape == Shape::List) {
      const Type element = field.type.element();
      for (const Doc& item : value.items()) one(field.number, item, element);
    } else if (field.type.shape == Shape::Map) {
      map(field, value, kind);
    } else if (!value.is_null() || !field.type.is_pointer) {
      if (kind != Union::None) return either(field.number, value, kind);
      if (field.type.base == Base::Bytes && value.is_null()) return;  // a nil slice
      one(field.number, value, field.type);
    }
  }

  void map(const Field& field, const Doc& value, Union kind) {
    std::vector<const Doc::Member*> entries;
    entries.reserve(value.size());
    for (const Doc::Member& member : value.members()) entries.push_back(&member);
    std::ranges::sort(entries, {},
                      [](const Doc::Member* entry) -> const std::string& { return entry->key; });
    const Type element = field.type.element();
    for (const Doc::Member* entry : entries) {
      out_.message_field(field.number, [&] {
        out_.bytes_field(1, entry->key);
        if (kind != Union::None) return either(2, entry->value, kind);
        if (element.shape != Shape::List) return one(2, entry->value, element);
        // A list in a map is a message of its own: {1: items}.
        out_.message_field(2, [&] {
          for (const Doc& item : entry->value.items()) one(1, item, element.element());
        });
      });
    }
  }

  void one(std::uint32_t number, const Doc& value, const Type& type) {
    switch (type.base) {
      case Base::Struct:
        out_.message_field(number, [&] { message(value, *type.of); });
        return;
      case Base::String:
        out_.bytes_field(number, value.as_string());
        return;
      case Base::Bool:
        out_.varint_field(number, value.as_bool() ? 1 : 0);
        return;
      case Base::Int32:
      case Base::Int64:
        out_.varint_field(number, unsigned_of(value.as_int()));
        return;
      case Base::Float64:
        out_.fixed64_field(number, std::bit_cast<std::uint64_t>(
                                       schema::read_float(value.number_text()).value_or(0)));
        return;
      case Base::Bytes:
        out_.bytes_field(number, schema::decode_base64(value.as_string()).value_or(""));
        return;
      case Base::Quantity:
        out_.message_field(number, [&] {
          out_.bytes_field(1, value.is_string() ? std::string_view(value.as_string()) : "0");
        });
        return;
      case Base::Time:
      case Base::MicroTime:
        out_.message_field(number, [&] { time(value, type.base == Base::MicroTime); });
        return;
      case Base::Duration:
        out_.message_field(number, [&] {
          const auto nanos = schema::read_duration(value.as_string());
          out_.varint_field(1, unsigned_of(nanos.value_or(0)));
        });
        return;
      case Base::IntOrString:
        out_.message_field(number, [&] {
          out_.varint_field(1, value.is_string() ? 1 : 0);
          out_.varint_field(2, unsigned_of(value.as_int()));
          out_.bytes_field(3, value.as_string());
        });
        return;
      case Base::Raw:
      case Base::Json:
      case Base::Fields:
        out_.message_field(number, [&] {
          if (!value.is_null()) out_.bytes_field(1, json_of(value));
        });
        return;
    }
  }

  // The zero time is an empty message.
  void time(const Doc& value, bool is_micro) {
    if (value.as_string().empty()) return;
    const schema::Instant instant = schema::instant_of(value.as_string());
    out_.varint_field(1, unsigned_of(instant.seconds));
    out_.varint_field(2, is_micro ? unsigned_of(instant.nanos) : 0);
  }

  void either(std::uint32_t number, const Doc& value, Union kind) {
    static const Type kSchema{.base = Base::Struct, .of = &schema::get(kSchemaProps)};
    out_.message_field(number, [&] {
      if (kind == Union::SchemaOrBool) {
        out_.varint_field(1, value.is_object() || value.as_bool() ? 1 : 0);
        if (value.is_object()) one(2, value, kSchema);
        return;
      }
      if (value.is_object()) one(1, value, kSchema);
      const Type item =
          kind == Union::SchemaOrArray ? kSchema : Type{.base = Base::String, .of = nullptr};
      for (const Doc& inner : value.items()) one(2, inner, item);
    });
  }

  static std::string json_of(const Doc& value) {
    std::string text;
    value.append_json(text);
    return text;
  }

  WireWriter& out_;
};

}  // namespace

void write_message(WireWriter& out, const Doc& object, const schema::Struct& type) {
  MessageWriter(out).message(object, type);
}

}  // namespace jogak::codec
