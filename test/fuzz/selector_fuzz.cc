// SPDX-License-Identifier: Apache-2.0
//
// Any text as a label selector and as a field selector.
#include <cstdint>
#include <string_view>

#include "apiserver/object/selector.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jogak::api;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Labels labels = {{"a", "1"}, {"b.c/d", ""}, {"e", "f"}};
  if (const auto selector = LabelSelector::parse(text)) {
    const bool matches = selector->matches(labels);
    if (selector->is_everything()) JOGAK_CHECK(matches);
    // its own canonical text says the same
    const auto again = LabelSelector::parse(selector->text());
    JOGAK_CHECK(again.has_value(), "{}", selector->text());
    JOGAK_CHECK(again->matches(labels) == matches);
    JOGAK_CHECK(again->text() == selector->text());
  }
  if (const auto fields = FieldSelector::parse(text)) {
    const auto value_of = [](std::string_view path) -> std::string_view {
      return path == "metadata.name" ? "x" : "";
    };
    const bool matches = fields->matches(value_of);
    if (fields->terms.empty()) JOGAK_CHECK(matches);
  }
  return 0;
}
