// SPDX-License-Identifier: Apache-2.0
// A name of a node may look like anything, so that nodes are looked for first.
#include "cli/new_nodes.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/doc.h"
#include "base/edit_distance.h"
#include "base/parse_number.h"
#include "import/convert.h"
#include "kube/decode.h"
#include "playground/fleet.h"

namespace jogak::cli {

namespace {

constexpr std::int64_t kNodesMax = 20'000;

Result<core::NodeSpec> spec_of_doc(const Doc& doc) {
  kube::Decoder decoder;
  const std::string json = doc.json();
  JOGAK_TRY(kube::Object object, decoder.decode({.kind = "Node", .json = json}));
  return importer::to_node(std::move(std::get<kube::Node>(object)));
}

class Adder {
 public:
  Adder(const core::Cluster& cluster, sim::WhatifChanges& changes)
      : cluster_(cluster), changes_(changes) {}

  Result<void> add(std::string_view word);

 private:
  bool add_copies(std::string_view word);
  Result<void> add_made_up(std::string_view word);
  std::string free_name(const std::string& base);

  const core::Cluster& cluster_;
  sim::WhatifChanges& changes_;
  std::set<std::string> names_;
};

bool Adder::add_copies(std::string_view word) {
  if (cluster_.find_node(word)) {
    changes_.copy_nodes.push_back({.of = std::string(word), .count = 1});
    return true;
  }
  const std::size_t x = word.find('x');
  if (x == std::string_view::npos) return false;
  const auto count = parse_int(word.substr(0, x), 0, kNodesMax);
  const std::string_view name = word.substr(x + 1);
  if (!count || !cluster_.find_node(name)) return false;
  changes_.copy_nodes.push_back({.of = std::string(name), .count = *count});
  return true;
}

std::string Adder::free_name(const std::string& base) {
  std::string name = "new-" + base;
  for (int i = 2; cluster_.find_node(name) || names_.contains(name); ++i) {
    name = fmt::format("new-{}-{}", base, i);
  }
  names_.insert(name);
  return name;
}

Result<void> Adder::add_made_up(std::string_view word) {
  auto made = playground::fleet_of(word, "", 1);
  if (!made.has_value()) {
    std::vector<std::string> names;
    for (const core::NodeId node : cluster_.node_order()) {
      names.emplace_back(cluster_.text(cluster_.node(node).name));
    }
    const std::size_t x = word.find('x');
    const std::string_view name = x == std::string_view::npos ? word : word.substr(x + 1);
    if (const std::string hint = did_you_mean(name, names); !hint.empty()) {
      return fail(Errc::NotFound, "--add-nodes: {}: no node {} to copy{}", word, name, hint);
    }
    std::string_view why = made.error().what;  // begins with the flag of `jogak up`
    if (why.starts_with("--nodes: ")) why.remove_prefix(9);
    return invalid("--add-nodes: no node {} to copy, and no made-up nodes either: {}", name, why);
  }
  for (Doc& doc : *made) {
    const std::string name = free_name(doc.get("metadata", "name").as_string());
    doc.at("metadata").set("name", name);
    doc.at("metadata", "labels").set("kubernetes.io/hostname", name);
    auto spec = spec_of_doc(doc);
    if (!spec) return in_context(fmt::format("--add-nodes: {}", word), std::move(spec).error());
    changes_.add_nodes.push_back(std::move(*spec));
  }
  return {};
}

Result<void> Adder::add(std::string_view word) {
  if (add_copies(word)) return {};
  return add_made_up(word);
}

}  // namespace

Result<void> add_new_nodes(const core::Cluster& cluster, const std::vector<std::string>& words,
                           sim::WhatifChanges& changes) {
  Adder adder(cluster, changes);
  for (const std::string& list : words) {
    std::string_view rest = list;
    while (true) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      JOGAK_TRY_VOID(adder.add(rest.substr(0, comma)));
      if (comma == rest.size()) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return {};
}

}  // namespace jogak::cli
