// SPDX-License-Identifier: Apache-2.0
//
// What is around the items is small: it is read byte by byte and kept, and parsed when it is whole.
#include "kube/list_page.h"

#include <utility>

namespace jogak::kube {

namespace {

constexpr std::size_t kOutlineBytesMax = std::size_t{1} << 20;

}  // namespace

// Goes on until the items begin or the bytes end.
Result<void> ListPageReader::read_outline() {
  while (!bytes_.empty() && !is_in_items_) {
    const char c = bytes_.front();
    bytes_.remove_prefix(1);
    if (is_done_) {
      if (is_json_space(c)) continue;
      return invalid("more text after the end of the list");
    }
    if (outline_.empty()) {
      if (is_json_space(c)) continue;
      if (c != '{') return invalid("want a list, found text that begins with '{}'", c);
    }
    outline_ += c;
    if (outline_.size() > kOutlineBytesMax) {
      return invalid("more than {} bytes around the items of a list", kOutlineBytesMax);
    }
    if (is_in_string_) {
      if (std::exchange(is_escaped_, false)) continue;
      if (c == '\\') is_escaped_ = true;
      if (c != '"') continue;
      is_in_string_ = false;
      const auto text = std::string_view(outline_).substr(string_begin_);
      before_ = depth_ == 1 && text == "\"items\"" ? Before::ItemsKey : Before::Other;
      continue;
    }
    if (is_json_space(c)) continue;
    const Before before = std::exchange(before_, Before::Other);
    if (c == '"') {
      is_in_string_ = true;
      string_begin_ = outline_.size() - 1;
    } else if (c == ':' && before == Before::ItemsKey) {
      before_ = Before::ItemsColon;
    } else if (c == '[' && before == Before::ItemsColon) {
      is_in_items_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      is_done_ = --depth_ == 0;
    }
  }
  return {};
}

Result<std::string_view> ListPageReader::next_item() {
  while (!bytes_.empty()) {
    if (!is_in_items_) {
      JOGAK_TRY_VOID(read_outline());
      continue;
    }
    if (!cutter_.is_inside()) {
      const char c = bytes_.front();
      if (is_json_space(c) || c == ',') {
        bytes_.remove_prefix(1);
        continue;
      }
      if (c == ']') {
        outline_ += c;
        bytes_.remove_prefix(1);
        is_in_items_ = false;
        continue;
      }
      if (c != '{') return invalid("an item of the list is no object: {}", bytes_.substr(0, 60));
    }
    JOGAK_TRY(const std::string_view item, cutter_.take(bytes_));
    if (!item.empty()) return item;
  }
  return std::string_view();
}

Result<ListPageReader::Tail> ListPageReader::finish() const {
  if (!is_done_) return invalid("the list is not whole");
  Tail tail;
  FieldCursor fields(outline_);
  while (fields.next()) {
    if (fields.key() != "metadata") continue;
    FieldCursor metadata(fields.value());
    while (metadata.next()) {
      std::string* const out = metadata.key() == "resourceVersion" ? &tail.version
                               : metadata.key() == "continue"      ? &tail.next
                                                                   : nullptr;
      if (out == nullptr) continue;
      std::string scratch;
      JOGAK_TRY(const std::string_view value, json_string(metadata.value(), scratch));
      *out = value;
    }
  }
  if (tail.version.empty()) {
    return invalid("no list: metadata.resourceVersion is missing in {}",
                   std::string_view(outline_).substr(0, 60));
  }
  return tail;
}

}  // namespace jogak::kube
