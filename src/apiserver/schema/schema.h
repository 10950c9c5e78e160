// SPDX-License-Identifier: Apache-2.0
//
// What the API server knows of the built-in types: members in the order Go writes them, types,
// protobuf numbers, and how lists merge. Read once from the text kube.types, which
// tools/kube_schema.py wrote and which is linked into the binary. One line a field:
//
//   type core.v1.PodSpec            a struct, and its fields until the next such line
//   containers 2 []core.v1.Container p=merge pk=name l=map k=name
//   NAME NUMBER TYPE FLAGS...
//
// TYPE: prefixes * (pointer: absent differs from zero), [] (list), {} (map from strings), then
// string bool int32 int64 float64 bytes quantity time microtime duration intorstring, raw (any
// JSON), json (any JSON, wrapped in protobuf), fields (FieldsV1), or a struct.
// FLAGS: e omitempty, z omitzero, o optional, p= patch strategy, pk= patch merge key, l= list type
// (atomic, set, map), k= list map keys, m= map type, s= struct type, d= default of a list key,
// i= the field stands in the JSON of this struct but in protobuf inside message number i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace jogak::schema {

enum class Base : std::uint8_t {
  Struct,
  String,
  Bool,
  Int32,
  Int64,
  Float64,
  Bytes,
  Quantity,
  Time,
  MicroTime,
  Duration,
  IntOrString,
  Raw,
  Json,
  Fields
};
constexpr std::size_t kBaseCount = std::to_underlying(Base::Fields) + 1;
enum class ListKind : std::uint8_t { Atomic, Set, Map };

struct Struct;

struct Type {
  Base base = Base::String;
  const Struct* of = nullptr;  // of Base::Struct
  bool is_pointer = false;     // a pointer to the scalar or struct itself: absent is not zero
  // From the outside in: "{}[]string" is a map of lists. At most two levels.
  enum class Shape : std::uint8_t { One, List, Map };
  Shape shape = Shape::One;
  Shape inner_shape = Shape::One;

  // The type of one element of a list or map.
  Type element() const {
    return {.base = base, .of = of, .is_pointer = false, .shape = inner_shape};
  }
  bool is_struct() const { return shape == Shape::One && base == Base::Struct; }
};

struct Field {
  std::string_view name;            // in JSON
  std::uint16_t number = 0;         // in protobuf; 0 for kind and apiVersion
  std::uint16_t inline_number = 0;  // the message around it in protobuf, 0 for none
  Type type;
  bool omit_empty = false;
  bool omit_zero = false;
  bool is_optional = false;
  bool patch_merge = false;  // strategic merge patch merges the list (or set)
  bool patch_retain_keys = false;
  bool patch_replace = false;
  std::string_view patch_key;               // of the list's elements; empty for lists of scalars
  ListKind list = ListKind::Atomic;         // server-side apply
  bool names_list = false;                  // the type says so itself; silence means Atomic too
  std::vector<std::string_view> list_keys;  // of ListKind::Map
  bool is_atomic = false;         // a map or struct that server-side apply takes as one value
  std::string_view default_text;  // JSON text of the default, "" for none
  bool is_always = false;         // Go writes it even when it is zero
};

struct Struct {
  std::string_view name;  // "core.v1.PodSpec"
  std::vector<Field> fields;
  bool is_atomic = false;
  std::size_t always_count = 0;     // fields with is_always
  std::vector<std::uint8_t> slots;  // of find(): a hash table of positions + 1
  // Positions of the fields that protobuf knows, as their messages stand on the wire: by
  // inline_number (number where there is none), then by number.
  std::vector<std::uint8_t> wire_order;

  // nullptr when there is no such member.
  const Field* find(std::string_view json_name) const;
};

// The struct of that name. CHECKs that it exists: names are written in this program.
const Struct& get(std::string_view name);
// nullptr when absent.
const Struct* find(std::string_view name);

}  // namespace jogak::schema
