// SPDX-License-Identifier: Apache-2.0
//
// The items of a list by their path elements.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apiserver/patch/type_view.h"
#include "base/doc.h"

namespace jogak::patch {

class ItemIndex {
 public:
  // Several items of one element are kept together, at the place of the first. Items without an
  // element are left out.
  struct Entry {
    std::string element;
    const Doc* item = nullptr;    // the first of them
    std::vector<const Doc*> all;  // only when there are several
    bool is_repeated() const { return !all.empty(); }
  };

  ItemIndex(const Doc::Items& items, const TypeView& list);
  ItemIndex(const ItemIndex&) = delete;
  ItemIndex& operator=(const ItemIndex&) = delete;

  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(std::string_view element) const;
  // Why the first item without an element has none; "" when all have one.
  const std::string& problem() const { return problem_; }

 private:
  static constexpr std::size_t kLinearMax = 8;  // below that a scan beats a table

  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, std::size_t> table_;  // views into entries_
  std::string problem_;
};

}  // namespace jogak::patch
