// SPDX-License-Identifier: Apache-2.0
//
// Field numbers: openapiv2/OpenAPIv2.proto of github.com/google/gnostic-models (Apache-2.0).
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "apiserver/rest/openapi_v2.h"

namespace jogak::api {
namespace {

using Number = std::uint32_t;

void put_varint(std::string& out, std::uint64_t value) {
  constexpr std::uint64_t kMore = 0x80;
  while (value >= kMore) {
    out += static_cast<char>(value | kMore);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

void put_bytes(std::string& out, Number field, std::string_view bytes) {
  constexpr Number kLengthType = 2;
  put_varint(out, field << 3 | kLengthType);
  put_varint(out, bytes.size());
  out += bytes;
}

void put_int(std::string& out, Number field, std::int64_t value) {
  put_varint(out, field << 3);
  put_varint(out, static_cast<std::uint64_t>(value));
}

void put_double(std::string& out, Number field, double value) {
  constexpr Number kFixed64Type = 1;
  put_varint(out, field << 3 | kFixed64Type);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 0; shift < 64; shift += 8) {
    out += static_cast<char>(bits >> shift & 0xff);
  }
}

// Any: its text as YAML, which JSON is.
std::string any(const Doc& value) {
  std::string json, out;
  value.append_json(json);
  put_bytes(out, 2, json + "\n");
  return out;
}

// The Named... messages: a key and a value.
std::string named(std::string_view name, std::string_view value) {
  std::string out;
  put_bytes(out, 1, name);
  put_bytes(out, 2, value);
  return out;
}

void put_extensions(std::string& out, Number field, const Doc& object) {
  for (const Doc::Member& member : object.members()) {
    if (member.key.starts_with("x-")) {
      put_bytes(out, field, named(member.key, any(member.value)));
    }
  }
}

void put_strings(std::string& out, Number field, const Doc& list) {
  for (const Doc& item : list.items()) {
    put_bytes(out, field, item.as_string());
  }
}

// How the value of a simple member is written.
enum class Wire : std::uint8_t { Text, Flag, Whole, Real, Texts, AnyValue, AnyValues };
struct MemberFact {
  std::string_view key;
  Number field;
  Wire wire;
};

constexpr MemberFact kSchemaMembers[] = {
    {"$ref", 1, Wire::Text},
    {"format", 2, Wire::Text},
    {"title", 3, Wire::Text},
    {"description", 4, Wire::Text},
    {"default", 5, Wire::AnyValue},
    {"multipleOf", 6, Wire::Real},
    {"maximum", 7, Wire::Real},
    {"exclusiveMaximum", 8, Wire::Flag},
    {"minimum", 9, Wire::Real},
    {"exclusiveMinimum", 10, Wire::Flag},
    {"maxLength", 11, Wire::Whole},
    {"minLength", 12, Wire::Whole},
    {"pattern", 13, Wire::Text},
    {"maxItems", 14, Wire::Whole},
    {"minItems", 15, Wire::Whole},
    {"uniqueItems", 16, Wire::Flag},
    {"maxProperties", 17, Wire::Whole},
    {"minProperties", 18, Wire::Whole},
    {"required", 19, Wire::Texts},
    {"enum", 20, Wire::AnyValues},
    {"readOnly", 27, Wire::Flag},
    {"example", 30, Wire::AnyValue},
};
constexpr MemberFact kQueryMembers[] = {
    {"required", 1, Wire::Flag},     {"in", 2, Wire::Text},   {"description", 3, Wire::Text},
    {"name", 4, Wire::Text},         {"type", 6, Wire::Text}, {"format", 7, Wire::Text},
    {"uniqueItems", 20, Wire::Flag},
};
constexpr MemberFact kPathMembers[] = {
    {"required", 1, Wire::Flag},     {"in", 2, Wire::Text},   {"description", 3, Wire::Text},
    {"name", 4, Wire::Text},         {"type", 5, Wire::Text}, {"format", 6, Wire::Text},
    {"uniqueItems", 19, Wire::Flag},
};
constexpr MemberFact kBodyMembers[] = {
    {"description", 1, Wire::Text},
    {"name", 2, Wire::Text},
    {"in", 3, Wire::Text},
    {"required", 4, Wire::Flag},
};
constexpr MemberFact kOperationMembers[] = {
    {"tags", 1, Wire::Texts},     {"description", 3, Wire::Text}, {"operationId", 5, Wire::Text},
    {"produces", 6, Wire::Texts}, {"consumes", 7, Wire::Texts},   {"schemes", 10, Wire::Texts},
};

template <std::size_t kSize>
void put_members(std::string& out, const MemberFact (&facts)[kSize], const Doc& object) {
  for (const MemberFact& fact : facts) {
    const Doc* value = object.find(fact.key);
    if (value == nullptr) {
      continue;
    }
    switch (fact.wire) {
      case Wire::Text:
        put_bytes(out, fact.field, value->as_string());
        break;
      case Wire::Flag:
        put_int(out, fact.field, value->as_bool() ? 1 : 0);
        break;
      case Wire::Whole:
        put_int(out, fact.field, value->as_int());
        break;
      case Wire::Real:
        put_double(out, fact.field, std::strtod(value->number_text().c_str(), nullptr));
        break;
      case Wire::Texts:
        put_strings(out, fact.field, *value);
        break;
      case Wire::AnyValue:
        put_bytes(out, fact.field, any(*value));
        break;
      case Wire::AnyValues:
        for (const Doc& item : value->items()) {
          put_bytes(out, fact.field, any(item));
        }
        break;
    }
  }
}

std::string schema_message(const Doc& schema) {
  std::string out;
  put_members(out, kSchemaMembers, schema);
  if (const Doc* more = schema.find("additionalProperties")) {
    std::string item;
    if (more->is_object()) {
      put_bytes(item, 1, schema_message(*more));
    } else {
      put_int(item, 2, more->as_bool() ? 1 : 0);
    }
    put_bytes(out, 21, item);
  }
  if (const Doc* type = schema.find("type")) {
    std::string item;
    put_bytes(item, 1, type->as_string());
    put_bytes(out, 22, item);
  }
  if (const Doc* items = schema.find("items")) {
    std::string item;
    put_bytes(item, 1, schema_message(*items));
    put_bytes(out, 23, item);
  }
  if (const Doc* properties = schema.find("properties")) {
    std::string all;
    for (const Doc::Member& property : properties->members()) {
      put_bytes(all, 1, named(property.key, schema_message(property.value)));
    }
    put_bytes(out, 25, all);
  }
  put_extensions(out, 31, schema);
  return out;
}

// ParametersItem around Parameter around one of its forms.
std::string parameter_message(const Doc& parameter) {
  std::string form, inner, outer;
  const std::string& place = parameter["in"].as_string();
  if (place == "body") {
    put_members(form, kBodyMembers, parameter);
    put_bytes(form, 5, schema_message(parameter["schema"]));
    put_bytes(inner, 1, form);
  } else {
    const bool is_path = place == "path";
    std::string choice;
    if (is_path) {
      put_members(form, kPathMembers, parameter);
    } else {
      put_members(form, kQueryMembers, parameter);
    }
    put_bytes(choice, is_path ? 4 : 3, form);
    put_bytes(inner, 2, choice);
  }
  put_bytes(outer, 1, inner);
  return outer;
}

std::string response_message(const Doc& response) {
  std::string form, value;
  put_bytes(form, 1, response["description"].as_string());
  if (const Doc* schema = response.find("schema")) {
    std::string item;
    put_bytes(item, 1, schema_message(*schema));
    put_bytes(form, 2, item);
  }
  put_bytes(value, 1, form);
  return value;
}

std::string operation_message(const Doc& operation) {
  std::string out, responses;
  put_members(out, kOperationMembers, operation);
  for (const Doc& parameter : operation["parameters"].items()) {
    put_bytes(out, 8, parameter_message(parameter));
  }
  for (const Doc::Member& response : operation["responses"].members()) {
    put_bytes(responses, 1, named(response.key, response_message(response.value)));
  }
  put_bytes(out, 9, responses);
  put_extensions(out, 13, operation);
  return out;
}

std::string path_message(const Doc& item) {
  constexpr std::array<std::pair<std::string_view, Number>, 7> kMethods = {{{"get", 2},
                                                                            {"put", 3},
                                                                            {"post", 4},
                                                                            {"delete", 5},
                                                                            {"options", 6},
                                                                            {"head", 7},
                                                                            {"patch", 8}}};
  std::string out;
  for (const auto& [method, field] : kMethods) {
    if (const Doc* operation = item.find(method)) {
      put_bytes(out, field, operation_message(*operation));
    }
  }
  for (const Doc& parameter : item["parameters"].items()) {
    put_bytes(out, 9, parameter_message(parameter));
  }
  return out;
}

}  // namespace

std::string encode_swagger(const Doc& swagger) {
  std::string out, info, paths, definitions;
  put_bytes(out, 1, swagger["swagger"].as_string());
  put_bytes(info, 1, swagger.get("info", "title").as_string());
  put_bytes(info, 2, swagger.get("info", "version").as_string());
  put_bytes(out, 2, info);
  for (const Doc::Member& path : swagger["paths"].members()) {
    put_bytes(paths, 2, named(path.key, path_message(path.value)));
  }
  put_bytes(out, 8, paths);
  for (const Doc::Member& definition : swagger["definitions"].members()) {
    put_bytes(definitions, 1, named(definition.key, schema_message(definition.value)));
  }
  put_bytes(out, 9, definitions);
  return out;
}

}  // namespace jogak::api
