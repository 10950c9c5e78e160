// SPDX-License-Identifier: Apache-2.0
//
// Inside of tables/: what a printer of one kind is, and the bits of text that many of them share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/doc.h"
#include "base/loop.h"

namespace jogak::api {

struct ColumnFact {
  std::string_view name;
  std::string_view type = "string";
  std::string_view format = {};
  std::int32_t priority = 0;  // 1: only in wide output
  std::string_view description = {};
};

// The columns that nearly every kind has.
constexpr ColumnFact kNameColumn{"Name", "string", "name", 0, "Name of the object"};
constexpr ColumnFact kAgeColumn{"Age", "string", "", 0, "Time since the object was created"};

// Appends one cell per column. `object` is in the storage version.
using PrintCells = void (*)(const Doc& object, TimeUs now, Doc::Items& cells);

struct Printer {
  std::string_view group, kind;
  std::span<const ColumnFact> columns;
  PrintCells print;
};

// One list a family of kinds.
std::span<const Printer> pod_printers();
std::span<const Printer> node_printers();
std::span<const Printer> workload_printers();
std::span<const Printer> service_printers();
std::span<const Printer> config_printers();
std::span<const Printer> storage_printers();
std::span<const Printer> scheduling_printers();
std::span<const Printer> autoscaler_printers();
std::span<const Printer> rbac_printers();
std::span<const Printer> network_printers();
std::span<const Printer> policy_printers();

// The pod's name, phase and so on: text of a member, or `absent` when it is missing or empty.
std::string text_or(const Doc& value, std::string_view absent);
// "<unknown>" when `time` is not a time.
std::string age_since(const Doc& time, TimeUs now);
std::string age_of(const Doc& object, TimeUs now);
// A quantity as it stands, or `absent`.
std::string amount_or(const Doc& quantity, std::string_view absent);
// A number or a percentage.
std::string int_or_string(const Doc& value);
// "True", "False", "<unset>".
std::string flag_text(const Doc& flag);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
// "a=b,c=d" with sorted keys, "<none>" for none.
std::string labels_text(const Doc& labels);
// The canonical text of a LabelSelector; `empty` for one that selects all.
std::string selector_text(const Doc& selector, std::string_view empty);
// That member of every container, comma between: "name", "image".
std::string containers_text(const Doc& containers, std::string_view member);
// "a,b,c + 2 more...": at most `shown` of the parts.
std::string shortened(const std::vector<std::string>& parts, std::size_t shown,
                      std::string_view empty);

}  // namespace jogak::api
