// SPDX-License-Identifier: Apache-2.0
//
// Any text as a JSON body: what an independent reader (simdjson) takes is taken and means the same;
// what was read reads the same again after it was written; and every type takes or refuses it.
#include <cstdint>
#include <string>
#include <string_view>

#include <simdjson.h>

#include "apiserver/codec/codec.h"
#include "apiserver/schema/normalise.h"
#include "base/check.h"

namespace {

using jogak::Doc;
using Element = simdjson::dom::element;
using simdjson::dom::element_type;

bool is_same(const Doc& doc, Element element) {
  switch (element.type()) {
    case element_type::NULL_VALUE:
      return doc.is_null();
    case element_type::BOOL:
      return doc.is_bool() && doc.as_bool() == bool(element);
    case element_type::STRING:
      return doc.is_string() && doc.as_string() == std::string_view(element);
    case element_type::INT64:
      return doc.is_int() && doc.as_int() == std::int64_t(element);
    case element_type::UINT64:
      return doc.number_text() == std::to_string(std::uint64_t(element));
    case element_type::DOUBLE:
      return doc.kind() == Doc::Kind::Number;
    case element_type::ARRAY: {
      std::size_t i = 0;
      for (const Element item : simdjson::dom::array(element)) {
        if (i >= doc.items().size() || !is_same(doc.items()[i++], item)) return false;
      }
      return doc.is_array() && i == doc.size();
    }
    case element_type::OBJECT: {
      // Of equal keys ours has only the last.
      const simdjson::dom::object object(element);
      for (const Doc::Member& member : doc.members()) {
        bool is_there = false;
        Element last;
        for (const auto [key, value] : object) {
          if (key != member.key) continue;
          is_there = true;
          last = value;
        }
        if (!is_there || !is_same(member.value, last)) return false;
      }
      for (const auto [key, value] : object) {
        if (!doc.has(key)) return false;
      }
      return doc.is_object();
    }
  }
  return false;
}

Doc read_again(const Doc& doc, const jogak::schema::Struct& type) {
  jogak::schema::Complaints complaints;
  auto decoded = jogak::schema::decode(doc, type, complaints);
  JOGAK_CHECK(decoded.has_value(), "{}", decoded.error().what);
  JOGAK_CHECK(complaints.unknown.empty());
  return jogak::schema::encode(*std::move(decoded), type);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto parsed = jogak::codec::parse_json(text);

  simdjson::dom::parser parser;
  const simdjson::padded_string padded(text);
  Element element;
  if (parser.parse(padded).get(element) == simdjson::SUCCESS) {
    const bool is_deep = !parsed && parsed.error().what.ends_with("exceeded max depth");
    JOGAK_CHECK(parsed.has_value() || is_deep, "{}", parsed.error().what);
    JOGAK_CHECK(is_deep || is_same(parsed->doc, element));
  }
  if (!parsed) {
    JOGAK_CHECK(parsed.error().what.starts_with("couldn't get version/kind; json parse error: "));
    return 0;
  }
  std::string written;
  parsed->doc.append_json(written);
  const auto again = jogak::codec::parse_json(written);
  JOGAK_CHECK(again.has_value() && again->doc == parsed->doc && again->duplicates.empty());

  for (const char* name : {"core.v1.Pod", "core.v1.Node", "apps.v1.Deployment",
                           "apiextensions.v1.CustomResourceDefinition"}) {
    const auto& type = jogak::schema::get(name);
    jogak::schema::Complaints complaints{.unknown = {}, .duplicates = parsed->duplicates};
    auto decoded = jogak::schema::decode(parsed->doc, type, complaints);
    if (!decoded) continue;
    // Written and read once more it stays what it is. (Not at once: quantities beyond any use are
    // cut to the largest number there is, and what that is written as may be cut again.)
    const Doc once = jogak::schema::encode(*std::move(decoded), type);
    const Doc twice = read_again(once, type);
    JOGAK_CHECK(read_again(twice, type) == twice);
  }
  return 0;
}
