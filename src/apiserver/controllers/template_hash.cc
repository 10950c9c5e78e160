// SPDX-License-Identifier: Apache-2.0
//
// Members are hashed in the order of their names, so that equal templates have equal names.
#include "apiserver/controllers/template_hash.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace jogak::controllers {

namespace {

// FNV-1a, 32 bits: the names need to be short, not secret.
struct Fnv {
  std::uint32_t value = 2'166'136'261U;

  void add(std::string_view text) {
    for (const char c : text) {
      value ^= static_cast<unsigned char>(c);
      value *= 16'777'619U;
    }
    value ^= 0x1fU;  // "ab","c" is not "a","bc"
    value *= 16'777'619U;
  }
};

void add(Fnv& hash, const Doc& value) {
  if (value.is_object()) {
    std::vector<const Doc::Member*> members;
    for (const Doc::Member& member : value.members()) members.push_back(&member);
    std::ranges::sort(members, {}, [](const Doc::Member* member) { return member->key; });
    hash.add("{");
    for (const Doc::Member* member : members) {
      hash.add(member->key);
      add(hash, member->value);
    }
    hash.add("}");
  } else if (value.is_array()) {
    hash.add("[");
    for (const Doc& item : value.items()) add(hash, item);
    hash.add("]");
  } else {
    std::string text;
    value.append_json(text);
    hash.add(text);
  }
}

}  // namespace

std::string template_hash(const Doc& value, std::int64_t collisions) {
  static constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  Fnv hash;
  add(hash, value);
  if (collisions > 0) hash.add(std::to_string(collisions));
  std::string name;
  for (const char digit : std::to_string(hash.value)) {
    name += kLetters[static_cast<unsigned char>(digit) % kLetters.size()];
  }
  return name;
}

}  // namespace jogak::controllers
