// SPDX-License-Identifier: Apache-2.0
//
// Builds the index in one pass.
#include "apiserver/patch/item_index.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace jogak::patch {

ItemIndex::ItemIndex(const Doc::Items& items, const TypeView& list) {
  entries_.reserve(items.size());  // views into the entries stay good
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::string why;
    auto element = list.item_element(items[i], &why);
    if (!element) {
      if (problem_.empty()) problem_ = fmt::format("element {}: {}", i, why);
      continue;
    }
    if (const Entry* found = find(*element)) {
      Entry& entry = entries_[static_cast<std::size_t>(found - entries_.data())];
      if (entry.all.empty()) entry.all.push_back(entry.item);
      entry.all.push_back(&items[i]);
      continue;
    }
    entries_.push_back({.element = std::move(*element), .item = &items[i], .all = {}});
    if (entries_.size() == kLinearMax) {
      for (std::size_t k = 0; k < kLinearMax; ++k) table_.emplace(entries_[k].element, k);
    } else if (entries_.size() > kLinearMax) {
      table_.emplace(entries_.back().element, entries_.size() - 1);
    }
  }
}

const ItemIndex::Entry* ItemIndex::find(std::string_view element) const {
  if (entries_.size() < kLinearMax) {
    const auto it = std::ranges::find(entries_, element, &Entry::element);
    return it == entries_.end() ? nullptr : &*it;
  }
  const auto it = table_.find(element);
  return it == table_.end() ? nullptr : &entries_[it->second];
}

}  // namespace jogak::patch
