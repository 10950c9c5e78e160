// SPDX-License-Identifier: Apache-2.0
//
// Which objects of a collection are known, by namespace and name, and in which version: one small
// block of memory each (24 bytes, its strings and what malloc adds), found through an open table of
// pointers that grows and shrinks with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace jogak::kube {

class KnownObject {
 public:
  std::string_view ns() const { return {text(), ns_size_}; }
  std::string_view name() const { return {text() + ns_size_, name_size_}; }
  std::string_view uid() const { return {text() + ns_size_ + name_size_, uid_size_}; }
  std::string_view version() const {
    return {text() + ns_size_ + name_size_ + uid_size_, version_size_};
  }
  // The list that last had it.
  std::uint32_t mark = 0;

  struct Deleter {
    void operator()(KnownObject* object) const;
  };
  using Ptr = std::unique_ptr<KnownObject, Deleter>;
  KnownObject(const KnownObject&) = delete;
  KnownObject& operator=(const KnownObject&) = delete;

 private:
  friend class KnownObjects;
  KnownObject() = default;
  static Ptr make(std::string_view ns, std::string_view name, std::string_view uid,
                  std::string_view version);
  const char* text() const { return reinterpret_cast<const char*>(this + 1); }
  char* text() { return reinterpret_cast<char*>(this + 1); }

  std::uint32_t hash_ = 0;
  std::uint32_t ns_size_ = 0, name_size_ = 0, uid_size_ = 0, version_size_ = 0;
};

class KnownObjects {
 public:
  // Names are chosen by users of the cluster: the seed keeps them from choosing collisions.
  explicit KnownObjects(std::uint64_t seed) : seed_(seed) {}

  std::size_t size() const { return size_; }
  // Null when unknown. Until the table changes.
  KnownObject* find(std::string_view ns, std::string_view name) const;
  // It must not be known.
  KnownObject* add(std::string_view ns, std::string_view name, std::string_view uid,
                   std::string_view version);
  void set_version(KnownObject* object, std::string_view version);
  // Takes it out.
  KnownObject::Ptr remove(KnownObject* object);
  // Takes out all that have another mark; in order of namespace and name.
  std::vector<KnownObject::Ptr> remove_unmarked(std::uint32_t mark);

 private:
  std::uint32_t hash(std::string_view ns, std::string_view name) const;
  std::size_t slot_of(const KnownObject* object) const;
  void place(KnownObject::Ptr object);
  void resize(std::size_t slots);

  std::uint64_t seed_;
  std::size_t size_ = 0;
  std::vector<KnownObject::Ptr> slots_;  // a power of two, at most 3/4 full
};

}  // namespace jogak::kube
