// SPDX-License-Identifier: Apache-2.0
//
// Laying an intent over a live value.
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "apiserver/patch/item_index.h"
#include "apiserver/patch/typed_value.h"

namespace jogak::patch {
namespace {

using Form = TypeView::Form;

// Puts the merged value into `out`; false when there is nothing. At least one side is there.
bool merge(const Doc* live, const Doc* intent, const TypeView& type, Doc& out);

bool take_leaf(const Doc* live, const Doc* intent, Doc& out) {
  out = intent != nullptr ? *intent : *live;
  return true;
}

bool merge_maps(const Doc* live, const Doc* intent, const TypeView& type, Doc& out) {
  const Doc* left = live != nullptr && live->is_object() ? live : nullptr;
  const Doc* right = intent != nullptr && intent->is_object() ? intent : nullptr;
  const auto is_empty = [](const Doc* map) { return map == nullptr || map->empty(); };
  if (type.is_atomic_map() || (is_empty(left) && is_empty(right))) {
    return take_leaf(live, intent, out);
  }
  Doc merged;
  const auto add = [&](const std::string& key, const Doc* a, const Doc* b) {
    const auto member = type.member(key);
    Doc value;
    if (merge(a, b, member ? *member : TypeView::deduced(), value)) {
      merged.set(key, std::move(value));
    }
  };
  if (left != nullptr) {
    for (const auto& [key, value] : left->members()) {
      add(key, &value, right == nullptr ? nullptr : right->find(key));
    }
  }
  if (right != nullptr) {
    for (const auto& [key, value] : right->members()) {
      if (left == nullptr || !left->has(key)) add(key, nullptr, &value);
    }
  }
  if (merged.empty()) return false;
  out = std::move(merged);
  return true;
}

// The elements of all items in their order, each as often as it occurs.
std::vector<std::string> elements_of(const Doc::Items& items, const TypeView& type) {
  std::vector<std::string> elements;
  for (const Doc& item : items) elements.push_back(type.item_element(item).value_or(""));
  return elements;
}

// Merges two lists whose items have elements. Live items keep their order, with the intent's new
// ones in between; where the intent orders shared items differently, its order wins.
class ListMerge {
 public:
  ListMerge(const Doc::Items& live, const Doc::Items& intent, const TypeView& type)
      : live_(live),
        item_(type.item()),
        live_elements_(elements_of(live, type)),
        intent_elements_(elements_of(intent, type)),
        live_index_(live, type),
        intent_index_(intent, type) {
    for (const std::string& element : intent_elements_) {
      if (live_index_.find(element) != nullptr) shared_.push_back(element);
    }
  }

  Doc run() {
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < live_elements_.size() || j < intent_elements_.size()) step(i, j);
    return std::move(out_);
  }

 private:
  void step(std::size_t& i, std::size_t& j) {
    const bool has_live = i < live_elements_.size();
    const bool has_intent = j < intent_elements_.size();
    if (has_live && has_intent) {
      if (live_elements_[i] == intent_elements_[j]) {
        take_intent(j);
        ++i;
        ++next_shared_;
        return;
      }
      // A shared item, but not the one that the intent wants next.
      if (intent_index_.find(live_elements_[i]) != nullptr && next_shared_ < shared_.size() &&
          shared_[next_shared_] != live_elements_[i]) {
        ++i;
        return;
      }
    }
    if (has_live) {
      if (intent_index_.find(live_elements_[i]) == nullptr) {
        push(&live_[i], nullptr);
        ++i;
        return;
      }
      if (taken_.contains(live_elements_[i])) ++i;
    }
    if (has_intent) {
      const bool is_next =
          next_shared_ < shared_.size() && shared_[next_shared_] == intent_elements_[j];
      take_intent(j);
      if (is_next) ++next_shared_;
    }
  }

  void take_intent(std::size_t& j) {
    static const Doc kNull;
    const std::string& element = intent_elements_[j++];
    taken_.insert(element);
    const ItemIndex::Entry* live = live_index_.find(element);
    const Doc* before = live == nullptr ? nullptr : live->item;
    if (live != nullptr && live->is_repeated())
      before = &kNull;  // which of them is anybody's guess
    push(before, intent_index_.find(element)->item);
  }

  void push(const Doc* live, const Doc* intent) {
    Doc value;
    if (merge(live, intent, item_, value)) out_.push(std::move(value));
  }

  const Doc::Items& live_;
  TypeView item_;
  std::vector<std::string> live_elements_;
  std::vector<std::string> intent_elements_;
  ItemIndex live_index_;
  ItemIndex intent_index_;
  std::vector<std::string_view> shared_;  // in the order of the intent
  std::size_t next_shared_ = 0;
  std::unordered_set<std::string_view> taken_;
  Doc out_;
};

bool merge_lists(const Doc* live, const Doc* intent, const TypeView& type, Doc& out) {
  static const Doc::Items kNone;
  const Doc::Items& left = live != nullptr && live->is_array() ? live->items() : kNone;
  const Doc::Items& right = intent != nullptr && intent->is_array() ? intent->items() : kNone;
  if (type.is_atomic_list() || (left.empty() && right.empty())) {
    return take_leaf(live, intent, out);
  }
  Doc merged = ListMerge(left, right, type).run();
  if (merged.empty()) return false;
  out = std::move(merged);
  return true;
}

bool merge(const Doc* live, const Doc* intent, const TypeView& type, Doc& out) {
  const Doc* shown = intent == nullptr ? live : intent;
  switch (type.form_for(shown)) {
    case Form::Map:
      return merge_maps(live, intent, type, out);
    case Form::Scalar:
      return take_leaf(live, intent, out);
    case Form::List:
      return merge_lists(live, intent, type, out);
  }
  return false;
}

}  // namespace

Doc merge_values(const Doc& live, const Doc& intent, const TypeView& type) {
  Doc out;
  merge(&live, &intent, type, out);
  return out;
}

}  // namespace jogak::patch
