// SPDX-License-Identifier: Apache-2.0
//
// Turns lists and events of one collection into changes, each told once: what is known already is
// not told again, what is older than what is known is not told at all, what a list no longer has is
// told as gone, and an object under the name of another is the end of that and a new one.
//
// Versions of objects are compared for equality. That one is older than another is only seen of
// plain decimal numbers, which all versions of Kubernetes' own API servers are.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "kube/known_objects.h"
#include "kube/object_change.h"
#include "kube/object_meta.h"

namespace jogak::kube {

class ObjectTracker {
 public:
  // False: whoever listens has gone; nothing more may be told.
  using Tell = std::function<bool(const ObjectChange&)>;
  ObjectTracker(std::uint64_t seed, Tell tell) : known_(seed), tell_(std::move(tell)) {}

  // Each of these returns false when tell did, and then the tracker must not be used any more.

  // A list begins. `is_truth`: versions went back (the server was restored from an old state); what
  // the list has counts even where something newer is known.
  void begin_list(bool is_truth);
  // An item, or an object that is added or changes while a streaming list still goes on.
  bool listed(const ObjectMeta& meta, std::string_view json);
  // The list is complete and was made at that version.
  bool end_list(std::string_view version);
  // Asked before end_list: the list is older than what was seen before, so that nothing in it tells
  // what is gone; it has to be read once more as the truth.
  bool is_list_older(std::string_view version) const;

  // Events of a watch, or of a streaming list the last.
  bool changed(const ObjectMeta& meta, std::string_view json);
  bool deleted(const ObjectMeta& meta, std::string_view json);
  // A bookmark.
  void advance(std::string_view version);

  // Up to where the collection is known; "" before the first list.
  const std::string& version() const { return version_; }
  std::size_t size() const { return known_.size(); }

 private:
  bool tell_object(const ObjectMeta& meta, std::string_view json);
  bool tell_gap(const KnownObject& object);
  bool replace(KnownObject* known, const ObjectMeta& meta, std::string_view json);
  void add(const ObjectMeta& meta);

  KnownObjects known_;
  Tell tell_;
  std::string version_;
  // Of a streaming list: the newest deletion while it went on. What was there at its start is told
  // before, so that what comes after is newer.
  std::string deleted_version_;
  std::uint32_t mark_ = 0;
  bool is_listing_ = false;
  bool is_truth_ = false;
};

}  // namespace jogak::kube
