// SPDX-License-Identifier: Apache-2.0
//
// The table changes before anything is told, and nothing is read from it afterwards: whoever
// listens may ask how much is known, or go.
#include "kube/object_tracker.h"

#include <utility>

namespace jogak::kube {

bool ObjectTracker::tell_object(const ObjectMeta& meta, std::string_view json) {
  return tell_(
      {.ns = meta.ns, .name = meta.name, .uid = meta.uid, .version = meta.version, .json = json});
}

bool ObjectTracker::tell_gap(const KnownObject& object) {
  return tell_({.is_deleted = true,
                .is_gap = true,
                .ns = object.ns(),
                .name = object.name(),
                .uid = object.uid(),
                .version = object.version(),
                .json = {}});
}

void ObjectTracker::add(const ObjectMeta& meta) {
  known_.add(meta.ns, meta.name, meta.uid, meta.version)->mark = mark_;
}

// An object of another uid under a known name.
bool ObjectTracker::replace(KnownObject* known, const ObjectMeta& meta, std::string_view json) {
  const KnownObject::Ptr gone = known_.remove(known);
  add(meta);
  return tell_gap(*gone) && tell_object(meta, json);
}

void ObjectTracker::begin_list(bool is_truth) {
  ++mark_;
  is_listing_ = true;
  deleted_version_.clear();
  is_truth_ = is_truth;
}

bool ObjectTracker::listed(const ObjectMeta& meta, std::string_view json) {
  KnownObject* const known = known_.find(meta.ns, meta.name);
  if (known == nullptr) {
    const auto order = compare_versions(meta.version, deleted_version_);
    if (order && *order <= 0) return true;  // told a second time
    add(meta);
    return tell_object(meta, json);
  }
  known->mark = mark_;
  if (known->uid() == meta.uid && known->version() == meta.version) return true;
  if (!is_truth_ && is_older(meta.version, known->version())) return true;
  if (known->uid() != meta.uid) return replace(known, meta, json);
  known_.set_version(known, meta.version);
  return tell_object(meta, json);
}

bool ObjectTracker::is_list_older(std::string_view version) const {
  return !is_truth_ && is_older(version, version_);
}

bool ObjectTracker::end_list(std::string_view version) {
  version_ = version;
  is_listing_ = false;
  is_truth_ = false;
  for (const KnownObject::Ptr& gone : known_.remove_unmarked(mark_)) {
    if (!tell_gap(*gone)) return false;
  }
  return true;
}

void ObjectTracker::advance(std::string_view version) {
  // Of a list that still goes on, only its end says how far it goes.
  if (is_listing_ || version.empty() || is_older(version, version_)) return;
  version_ = version;
}

bool ObjectTracker::changed(const ObjectMeta& meta, std::string_view json) {
  if (is_listing_) return listed(meta, json);
  KnownObject* const known = known_.find(meta.ns, meta.name);
  if (known == nullptr) {
    // Events come in order: one that is not beyond what was seen is told a second time, of an
    // object that has been deleted since.
    const auto order = compare_versions(meta.version, version_);
    if (order && *order <= 0) return true;
    advance(meta.version);
    add(meta);
    return tell_object(meta, json);
  }
  advance(meta.version);
  if (known->uid() == meta.uid && known->version() == meta.version) return true;
  if (is_older(meta.version, known->version())) return true;
  if (known->uid() != meta.uid) return replace(known, meta, json);
  known_.set_version(known, meta.version);
  return tell_object(meta, json);
}

bool ObjectTracker::deleted(const ObjectMeta& meta, std::string_view json) {
  advance(meta.version);
  if (is_listing_ && !is_older(meta.version, deleted_version_)) deleted_version_ = meta.version;
  KnownObject* const known = known_.find(meta.ns, meta.name);
  if (known == nullptr) return true;
  if (!is_truth_ && is_older(meta.version, known->version())) return true;
  if (known->uid() == meta.uid) {
    const KnownObject::Ptr gone = known_.remove(known);
    return tell_({.is_deleted = true,
                  .ns = meta.ns,
                  .name = meta.name,
                  .uid = meta.uid,
                  .version = meta.version,
                  .json = json});
  }
  // The end of another object of that name. Nothing of that name is left when it came later; where
  // that cannot be seen it is told a second time.
  if (!compare_versions(meta.version, known->version())) return true;
  const KnownObject::Ptr gone = known_.remove(known);
  return tell_gap(*gone);
}

}  // namespace jogak::kube
