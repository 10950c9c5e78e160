// SPDX-License-Identifier: Apache-2.0
// Reads what `kubectl get nodes,pods,... -A -o json` prints into a Cluster. Everything is read and
// checked before the first object is applied, so that an error leaves the cluster as it was.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/model/cluster.h"

namespace jogak::importer {

struct ImportReport {
  std::size_t nodes = 0;
  std::size_t pods = 0;               // waiting or on a node
  std::vector<std::string> finished;  // pods Succeeded or Failed, "ns/name": they count for nothing
  std::size_t others = 0;             // namespaces, claims, budgets, ...
  std::map<std::string, std::size_t, std::less<>>
      skipped;  // objects of kinds nobody reads, by kind
};

// Objects collected from any number of files, then applied in one go. Where an object occurs twice
// the later one counts.
class ImportBatch {
 public:
  ImportBatch();
  ~ImportBatch();
  ImportBatch(ImportBatch&&) noexcept;

  // The text of a file: a v1 List, a NodeList, ..., one object, or several of these in a row.
  // Errors: one line, "FILE: Kind ns/name: field: what is wrong".
  Result<void> add(std::string_view json, std::string_view file_name);
  // A single object whose kind may be known from elsewhere.
  Result<void> add_object(std::string_view json, std::string_view kind, std::string_view file_name);

  // Checks what concerns several objects, then applies all of it. The batch is empty afterwards.
  Result<ImportReport> apply(core::Cluster& cluster);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A batch of one file.
Result<ImportReport> import_list(std::string_view json, std::string_view file_name,
                                 core::Cluster& cluster);

}  // namespace jogak::importer
