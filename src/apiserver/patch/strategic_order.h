// SPDX-License-Identifier: Apache-2.0
//
// The order of a list after a strategic merge: items that the patch names come in the patch's
// order, the others in the live order, and both are interleaved as the live order allows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/doc.h"

namespace jogak::patch {

// `key` is the merge key of lists of objects, "" of lists of scalars. `named` and `others` are the
// items of the merged list; places in `patch_order` and `live_order` are found by key or value.
Doc::Items merge_order(Doc::Items named, Doc::Items others, const Doc::Items& patch_order,
                       const Doc::Items& live_order, std::string_view key);

// The items of a list that stand in another, and the rest.
std::pair<Doc::Items, Doc::Items> split_by_presence(Doc::Items items, const Doc::Items& present,
                                                    std::string_view key);

// Finds items by merge key or value.
class ItemPlaces {
 public:
  ItemPlaces(const Doc::Items& items, std::string_view key);

  // False when such an item is known already.
  bool add(const Doc& item, std::size_t place);

  static constexpr std::size_t kNone = SIZE_MAX;
  std::size_t find(const Doc& item) const;  // of the first such item

 private:
  std::string_view key_;
  std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace jogak::patch
