// SPDX-License-Identifier: Apache-2.0
//
// All built-in kinds on a server without HTTP and without admission: objects written as JSON go
// through decoding, defaults, preparation, validation and the store, as a request's would.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kinds/kinds.h"
#include "apiserver/ops/ops.h"
#include "base/doc.h"
#include "base/sim_loop.h"

namespace jogak {

// gtest shows values as JSON.
inline void PrintTo(const Doc& value, std::ostream* out) {
  *out << value.json(JsonWriter::Style::Compact);
}

}  // namespace jogak

namespace jogak::api {

// A Doc from JSON that is right.
Doc json(std::string_view text);

// `base` with edits: "spec/replicas=3" sets a member (JSON, or a bare word as text),
// "spec/template" removes one. Members are made as needed; a number is the place in a list.
Doc with(Doc base, const std::vector<std::string>& edits);

// What an answer comes to: "" for a success, "Invalid spec.replicas, Required spec.selector" for
// causes in their order, "409 Conflict" for refusals without causes.
std::string refusal(const ApiResult<Doc>& answer);

class WorkloadBench {
 public:
  explicit WorkloadBench(const KindOptions& options = {});

  // By apiVersion and kind of the object, in the namespace "ns" unless it names another.
  ApiResult<Doc> create(const Doc& object);
  ApiResult<Doc> update(const Doc& object, std::string_view subresource = "");
  // The stored object with these edits, written through the main resource or "status". Unlike
  // update() it needs no whole object.
  ApiResult<Doc> edit(const Doc& object, const std::vector<std::string>& edits,
                      std::string_view subresource = "");
  // In the background, whatever the kind's own policy.
  ApiResult<Ops::Removed> remove(const Doc& object);
  Doc get(const Doc& object) const;  // by its apiVersion, kind and name

  const Resource& resource_of(const Doc& object) const;
  const Registry& registry() const { return registry_; }
  Ops& ops() { return ops_; }
  // Of the last write.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  WriteRequest request(const Doc& object, std::string_view subresource) const;
  Doc decoded(const Doc& object) const;

  SimLoop loop_;
  store::Store store_;
  Registry registry_;
  Ops ops_;
  std::vector<std::string> warnings_;
};

// A table of edits and what each comes to.
struct Edited {
  std::string_view why;
  std::vector<std::string> edits;
  std::string_view causes = "";  // as refusal() says them
};
// Each row creates `base` with its edits, under a name of its own unless the edits give one.
void expect_creates(WorkloadBench& bench, const Doc& base, const std::vector<Edited>& rows);
// Each row edits the stored object. A row that succeeds is undone by recreating the object.
void expect_edits(WorkloadBench& bench, const Doc& base, const std::vector<Edited>& rows,
                  std::string_view subresource = "");

}  // namespace jogak::api
