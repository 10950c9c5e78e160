// SPDX-License-Identifier: Apache-2.0
//
// Anything may be given as a cluster file: it is imported or refused with one line, it never leaves
// half of itself in the cluster, and what the cluster then counts is what its pods add up to.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "core/model/cluster.h"
#include "import/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  jogak::core::Cluster cluster;
  const std::uint64_t empty = cluster.digest();
  const auto report = jogak::importer::import_list(text, "fuzz.json", cluster);
  if (!report) {
    JOGAK_CHECK(cluster.digest() == empty, "half imported: {}", report.error().what);
    JOGAK_CHECK(report.error().what.starts_with("fuzz.json: "), "{}", report.error().what);
    return 0;
  }
  const std::string difference = cluster.recount();
  JOGAK_CHECK(difference.empty(), "{}", difference);
  // Importing the same once more replaces each object by itself.
  const std::uint64_t once = cluster.digest();
  const auto again = jogak::importer::import_list(text, "fuzz.json", cluster);
  JOGAK_CHECK(again.has_value(), "{}", again.error().what);
  JOGAK_CHECK(cluster.node_count() == report->nodes);
  JOGAK_CHECK(cluster.digest() == once, "a second import changed the cluster");
  return 0;
}
