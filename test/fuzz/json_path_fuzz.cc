// SPDX-License-Identifier: Apache-2.0
//
// Any text as the JSONPath of a printer column: it is a path or it is not, and a path finds values
// in an object or cannot be walked; the same text does the same twice.
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "apiserver/tables/json_path.h"
#include "base/check.h"
#include "base/doc.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using jogak::Doc;
  static const Doc root = [] {
    Doc item = Doc::object();
    item.set("type", "Ready").set("status", "True").set("n", 1);
    Doc doc = Doc::object();
    doc.set("a", Doc::array({item, item, Doc(2), Doc()}));
    doc.at("spec").set("a.b", true).set("size", 3);
    return doc;
  }();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto path = jogak::api::JsonPath::parse(text);
  const auto again = jogak::api::JsonPath::parse(text);
  JOGAK_CHECK(path.has_value() == again.has_value(), "one text, two answers");
  if (path.has_value()) {
    JOGAK_CHECK(path->find(root) == again->find(root), "one path, two results");
  }
  return 0;
}
