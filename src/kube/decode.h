// SPDX-License-Identifier: Apache-2.0
// Kubernetes JSON to the structs of objects.h. Values that come without API defaulting (written by
// hand) get the defaulting that scheduling depends on. Errors are one line: kind, ns/name, path of
// the field, what is wrong and what would be right.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/objects.h"

namespace jogak::kube {

// One object of a file, still text.
struct RawObject {
  std::string_view kind;  // what the list around it says ("Node" in a NodeList); may be empty
  std::string_view json;
};

// Takes a file apart: a v1 List, a NodeList, PodList, ..., a single object, or any number of these
// one after another. Views point into `text`.
Result<std::vector<RawObject>> split_objects(std::string_view text);

// Not thread-safe; reusing one saves its buffers.
class Decoder {
 public:
  Decoder();
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // `raw.kind` is used where the object does not name its kind itself.
  Result<Object> decode(const RawObject& raw);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace jogak::kube
