// SPDX-License-Identifier: Apache-2.0
//
// What the verbs share: from a Doc to a stored version and back, the steps of a write.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/ops/ops.h"

namespace jogak::api {

struct Ops::Impl {
  Loop& loop;
  store::Store& store;
  Registry& registry;
  Rng rng;
  std::vector<std::unique_ptr<AdmissionPlugin>> plugins;
  bool allows_privileged = false;
  std::string write_refusal;  // why nothing may be written any more, "" if it may

  ApiResult<void> may_write(const WriteRequest& request) const;
  WriteContext context(const Ops& ops, WriteRequest& request) {
    return {.now = loop.now(),
            .lookup = ops,
            .rng = rng,
            .user = request.user,
            .is_dry_run = request.is_dry_run,
            .warnings = request.warnings};
  }
  store::TableId table(const Resource& resource) { return store.table(resource.table); }
  store::ObjectPtr find(const WriteRequest& request) {
    return store.get(table(*request.resource), request.ns, request.name);
  }

  // The bytes, labels and fields of an object as it is written with that revision. Sets
  // metadata.resourceVersion in `object`.
  store::Object stored(const Resource& resource, Doc& object, store::Revision revision) const;
  // Encodes for the wire: order of the type, kind and apiVersion in front.
  Doc encoded(const Resource& resource, Doc object) const;
  // Writes `object` (dry run: only pretends) and returns what the client sees.
  Doc write(WriteRequest& request, Doc object);
  // Removes for good; `last` is the state that watchers see.
  void erase(const Resource& resource, Doc last);

  ApiResult<void> mutate(const Ops& ops, Admission& admission, WriteRequest& request);
  ApiResult<void> validate(const Ops& ops, const Admission& admission, WriteRequest& request);
  // Who writes, for managed fields.
  void track(const WriteRequest& request, const Doc& old, Doc& object) const;
  ApiResult<void> check_namespace(const WriteRequest& request, Doc& object) const;
  std::string new_uid();
  std::string name_suffix();
};

// `object` with these members of metadata taken from `old`, or without them where `old` has none.
void keep_metadata(Doc& object, const Doc& old, std::initializer_list<std::string_view> keys);

}  // namespace jogak::api
