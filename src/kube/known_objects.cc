// SPDX-License-Identifier: Apache-2.0
//
// Linear probing; removal moves the followers of a gap back, so that there are no tombstones.
#include "kube/known_objects.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "base/check.h"

namespace jogak::kube {

namespace {

constexpr std::size_t kSlotsMin = 16;

std::uint32_t size_of(std::string_view text) {
  JOGAK_CHECK(text.size() <= std::numeric_limits<std::uint32_t>::max());
  return static_cast<std::uint32_t>(text.size());
}

std::uint64_t mix(std::uint64_t hash, std::string_view text) {
  constexpr std::uint64_t kPrime = 0x9e3779b97f4a7c15ULL;
  const auto add = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * kPrime;
    hash ^= hash >> 29;
  };
  add(text.size());
  while (!text.empty()) {
    std::uint64_t word = 0;
    const std::size_t taken = std::min(text.size(), sizeof word);
    std::memcpy(&word, text.data(), taken);
    add(word);
    text.remove_prefix(taken);
  }
  return hash;
}

}  // namespace

void KnownObject::Deleter::operator()(KnownObject* object) const {
  object->~KnownObject();
  ::operator delete(object);
}

KnownObject::Ptr KnownObject::make(std::string_view ns, std::string_view name, std::string_view uid,
                                   std::string_view version) {
  const std::size_t bytes = ns.size() + name.size() + uid.size() + version.size();
  Ptr object(new (::operator new(sizeof(KnownObject) + bytes)) KnownObject);
  object->ns_size_ = size_of(ns);
  object->name_size_ = size_of(name);
  object->uid_size_ = size_of(uid);
  object->version_size_ = size_of(version);
  char* at = object->text();
  for (const std::string_view part : {ns, name, uid, version}) {
    at = std::copy(part.begin(), part.end(), at);
  }
  return object;
}

std::uint32_t KnownObjects::hash(std::string_view ns, std::string_view name) const {
  const std::uint64_t result = mix(mix(seed_ ^ 0x5851f42d4c957f2dULL, ns), name);
  return static_cast<std::uint32_t>(result >> 32);
}

KnownObject* KnownObjects::find(std::string_view ns, std::string_view name) const {
  if (slots_.empty()) return nullptr;
  const std::uint32_t wanted = hash(ns, name);
  for (std::size_t at = wanted & (slots_.size() - 1); slots_[at] != nullptr;
       at = (at + 1) & (slots_.size() - 1)) {
    KnownObject* const object = slots_[at].get();
    if (object->hash_ == wanted && object->name() == name && object->ns() == ns) return object;
  }
  return nullptr;
}

std::size_t KnownObjects::slot_of(const KnownObject* object) const {
  std::size_t at = object->hash_ & (slots_.size() - 1);
  while (slots_[at].get() != object) {
    JOGAK_CHECK(slots_[at] != nullptr, "no object of this table");
    at = (at + 1) & (slots_.size() - 1);
  }
  return at;
}

void KnownObjects::place(KnownObject::Ptr object) {
  std::size_t at = object->hash_ & (slots_.size() - 1);
  while (slots_[at] != nullptr) at = (at + 1) & (slots_.size() - 1);
  slots_[at] = std::move(object);
}

void KnownObjects::resize(std::size_t slots) {
  std::vector<KnownObject::Ptr> before(slots);
  before.swap(slots_);
  for (KnownObject::Ptr& object : before) {
    if (object != nullptr) place(std::move(object));
  }
}

KnownObject* KnownObjects::add(std::string_view ns, std::string_view name, std::string_view uid,
                               std::string_view version) {
  if (slots_.empty() || (size_ + 1) * 4 > slots_.size() * 3) {
    resize(std::max(kSlotsMin, slots_.size() * 2));
  }
  KnownObject::Ptr object = KnownObject::make(ns, name, uid, version);
  object->hash_ = hash(ns, name);
  KnownObject* const result = object.get();
  place(std::move(object));
  ++size_;
  return result;
}

void KnownObjects::set_version(KnownObject* object, std::string_view version) {
  if (version.size() == object->version_size_) {
    std::copy(version.begin(), version.end(),
              object->text() + object->ns_size_ + object->name_size_ + object->uid_size_);
    return;
  }
  KnownObject::Ptr& slot = slots_[slot_of(object)];
  KnownObject::Ptr longer = KnownObject::make(object->ns(), object->name(), object->uid(), version);
  longer->hash_ = object->hash_;
  longer->mark = object->mark;
  slot = std::move(longer);
}

KnownObject::Ptr KnownObjects::remove(KnownObject* object) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t gap = slot_of(object);
  KnownObject::Ptr result = std::move(slots_[gap]);
  for (std::size_t at = (gap + 1) & mask; slots_[at] != nullptr; at = (at + 1) & mask) {
    // It may move back only to a place that its search passes.
    const std::size_t home = slots_[at]->hash_ & mask;
    if (((at - home) & mask) < ((at - gap) & mask)) continue;
    slots_[gap] = std::move(slots_[at]);
    gap = at;
  }
  --size_;
  if (slots_.size() > kSlotsMin && size_ * 8 < slots_.size()) resize(slots_.size() / 2);
  return result;
}

std::vector<KnownObject::Ptr> KnownObjects::remove_unmarked(std::uint32_t mark) {
  std::vector<KnownObject*> gone;
  for (const KnownObject::Ptr& object : slots_) {
    if (object != nullptr && object->mark != mark) gone.push_back(object.get());
  }
  std::sort(gone.begin(), gone.end(), [](const KnownObject* a, const KnownObject* b) {
    return std::pair(a->ns(), a->name()) < std::pair(b->ns(), b->name());
  });
  std::vector<KnownObject::Ptr> result;
  result.reserve(gone.size());
  for (KnownObject* const object : gone) result.push_back(remove(object));
  return result;
}

}  // namespace jogak::kube
