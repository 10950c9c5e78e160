// SPDX-License-Identifier: Apache-2.0
//
// What Doc prints, other people's readers read back as the same tree: nlohmann-json for JSON,
// yaml-cpp for YAML.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/doc.h"
#include "base/rng.h"

namespace jogak {
namespace {

using Json = nlohmann::ordered_json;

// Pieces that have a meaning to some reader, and ordinary ones.
std::string make_text(Rng& rng) {
  static const std::vector<std::string> kPieces = {
      "n1", "a",  "true", "null", "~",   "1",  "0x1f", "1e3",  ".5", "-",  ": ",   " #",
      "\n", "\t", "\"",   "\\",   "'",   "[",  "]",    "{",    "}",  ",",  "&",    "*",
      "!",  "|",  ">",    "%",    "@",   "`",  " ",    "조각", "é",  "🧩", "\x7f", "\x01",
      "=",  "?",  "on",   "no",   "---", "\r", "/",    ".",    "_",  "<<", "()",   ":"};
  std::string text;
  const std::uint64_t pieces = rng.below(5);
  for (std::uint64_t i = 0; i < pieces; ++i) text += kPieces[rng.below(kPieces.size())];
  return text;
}

// The same random tree twice: as ours, and as the other library's.
struct Pair {
  Doc doc;
  Json json;
};

Pair make_tree(Rng& rng, int depth) {
  const std::uint64_t kind = rng.below(depth > 0 ? 7 : 4);
  if (kind == 0) return {.doc = Doc(), .json = nullptr};
  if (kind == 1) return {.doc = Doc(true), .json = true};
  if (kind == 2) {
    const std::int64_t number = rng.between(-1'000'000, 1'000'000);
    return {.doc = Doc(number), .json = number};
  }
  if (kind == 3) {
    const std::string text = make_text(rng);
    return {.doc = Doc(text), .json = text};
  }
  const std::uint64_t children = rng.below(4);
  if (kind == 4) {
    Pair array = {.doc = Doc::array(), .json = Json::array()};
    for (std::uint64_t i = 0; i < children; ++i) {
      Pair child = make_tree(rng, depth - 1);
      array.doc.push(child.doc);
      array.json.push_back(child.json);
    }
    return array;
  }
  Pair object = {.doc = Doc::object(), .json = Json::object()};
  for (std::uint64_t i = 0; i < children; ++i) {
    const std::string key = make_text(rng);
    Pair child = make_tree(rng, depth - 1);
    object.doc.set(key, child.doc);
    object.json[key] = child.json;
  }
  return object;
}

void expect_same(const YAML::Node& yaml, const Json& json, const std::string& text) {
  if (json.is_null()) {
    RC_ASSERT(yaml.IsNull());
  } else if (json.is_boolean()) {
    RC_ASSERT(yaml.as<bool>() == json.get<bool>());
  } else if (json.is_number()) {
    RC_ASSERT(yaml.as<std::int64_t>() == json.get<std::int64_t>());
  } else if (json.is_string()) {
    RC_ASSERT(yaml.IsScalar());
    RC_ASSERT(yaml.Scalar() == json.get<std::string>());
    RC_ASSERT((yaml.Tag() == "!" || YAML::IsNullString(yaml.Scalar()) == false));
  } else if (json.is_array()) {
    RC_ASSERT(yaml.IsSequence());
    RC_ASSERT(yaml.size() == json.size());
    for (std::size_t i = 0; i < json.size(); ++i) expect_same(yaml[i], json[i], text);
  } else {
    RC_ASSERT(yaml.IsMap());
    RC_ASSERT(yaml.size() == json.size());
    auto it = yaml.begin();
    for (const auto& [key, value] : json.items()) {
      RC_ASSERT(it->first.Scalar() == key);
      expect_same(it->second, value, text);
      ++it;
    }
  }
}

RC_GTEST_PROP(DocRoundTrip, JsonReadsBack, (std::uint64_t seed)) {
  Rng rng(seed, "doc");
  const Pair tree = make_tree(rng, 3);
  RC_ASSERT(Json::parse(tree.doc.json(JsonWriter::Style::Compact)) == tree.json);
  RC_ASSERT(Json::parse(tree.doc.json(JsonWriter::Style::Pretty)) == tree.json);
}

RC_GTEST_PROP(DocRoundTrip, YamlReadsBack, (std::uint64_t seed)) {
  Rng rng(seed, "doc");
  const Pair tree = make_tree(rng, 3);
  const std::string text = tree.doc.yaml();
  RC_LOG() << text;
  expect_same(YAML::Load(text), tree.json, text);
}

// Whatever the bytes, the output is JSON.
RC_GTEST_PROP(DocRoundTrip, AnyBytesGiveJson, (std::string bytes)) {
  const Json json = Json::parse(Doc(bytes).json());
  RC_ASSERT(json.is_string());
}

}  // namespace
}  // namespace jogak
