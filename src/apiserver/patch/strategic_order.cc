// SPDX-License-Identifier: Apache-2.0
//
// Ordering as the API machinery does it, its odd corner included: its comparison calls any two
// items in order when one of them has no place, which moves such items to the front.
#include "apiserver/patch/strategic_order.h"

#include <algorithm>
#include <vector>

namespace jogak::patch {
namespace {

// The text by which items are told apart: kinds differ, so 1 and "1" do.
std::string identity_of(const Doc& item, std::string_view key) {
  const Doc& value = key.empty() ? item : item[key];
  std::string text;
  value.append_json(text);
  return text;
}

struct Placed {
  std::size_t place = ItemPlaces::kNone;
  Doc item;
};

bool goes_before(const Placed& a, const Placed& b) {
  if (a.place == ItemPlaces::kNone || b.place == ItemPlaces::kNone) return true;
  return a.place < b.place;
}

// Up to this size Go's stable sort is an insertion sort, where the odd comparison shows.
constexpr std::size_t kInsertionMax = 20;

Doc::Items sorted(Doc::Items items, const ItemPlaces& order, std::string_view key) {
  std::vector<Placed> placed;
  Doc::Items deletions;
  placed.reserve(items.size());
  for (Doc& item : items) {
    if (!key.empty() && item["$patch"].as_string() == "delete") {
      deletions.push_back(std::move(item));
      continue;
    }
    const std::size_t place = order.find(item);
    placed.push_back({.place = place, .item = std::move(item)});
  }
  if (placed.size() <= kInsertionMax) {
    for (std::size_t i = 1; i < placed.size(); ++i) {
      for (std::size_t j = i; j > 0 && goes_before(placed[j], placed[j - 1]); --j) {
        std::swap(placed[j], placed[j - 1]);
      }
    }
  } else {
    std::ranges::stable_sort(placed, [](const Placed& a, const Placed& b) {
      return a.place + 1 < b.place + 1;  // those without a place first
    });
  }
  Doc::Items out;
  out.reserve(items.size());
  for (Placed& one : placed) out.push_back(std::move(one.item));
  for (Doc& deletion : deletions) out.push_back(std::move(deletion));
  return out;
}

}  // namespace

ItemPlaces::ItemPlaces(const Doc::Items& items, std::string_view key) : key_(key) {
  for (std::size_t i = 0; i < items.size(); ++i) add(items[i], i);
}

bool ItemPlaces::add(const Doc& item, std::size_t place) {
  return places_.try_emplace(identity_of(item, key_), place).second;
}

std::size_t ItemPlaces::find(const Doc& item) const {
  const auto it = places_.find(identity_of(item, key_));
  return it == places_.end() ? kNone : it->second;
}

std::pair<Doc::Items, Doc::Items> split_by_presence(Doc::Items items, const Doc::Items& present,
                                                    std::string_view key) {
  const ItemPlaces places(present, key);
  std::pair<Doc::Items, Doc::Items> out;
  for (Doc& item : items) {
    const bool is_present = places.find(item) != ItemPlaces::kNone;
    (is_present ? out.first : out.second).push_back(std::move(item));
  }
  return out;
}

Doc::Items merge_order(Doc::Items named, Doc::Items others, const Doc::Items& patch_order,
                       const Doc::Items& live_order, std::string_view key) {
  const ItemPlaces live(live_order, key);
  named = sorted(std::move(named), ItemPlaces(patch_order, key), key);
  others = sorted(std::move(others), live, key);
  Doc::Items out;
  out.reserve(named.size() + others.size());
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < others.size() && j < named.size()) {
    const std::size_t left = live.find(others[i]);
    const std::size_t right = live.find(named[j]);
    const bool is_before = left != ItemPlaces::kNone && right != ItemPlaces::kNone && left < right;
    out.push_back(std::move(is_before ? others[i++] : named[j++]));
  }
  while (j < named.size()) out.push_back(std::move(named[j++]));
  while (i < others.size()) out.push_back(std::move(others[i++]));
  return out;
}

}  // namespace jogak::patch
