// SPDX-License-Identifier: Apache-2.0
//
// The node labels of NVIDIA's GPU feature discovery, with the same names and values, from the facts
// of the node. Pure. With several models in one node the labels that name one model tell the most
// numerous (of equals the first by name), so that they do not flip; each model's count is in an
// extra label jogak.io/gpu.count.PRODUCT then.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

using Labels = std::map<std::string, std::string>;

enum class LabelMigStrategy : std::uint8_t { None, Single, Mixed };
Result<LabelMigStrategy> parse_mig_strategy(std::string_view text);  // "none", "single", "mixed"

enum class SharingStrategy : std::uint8_t { None, TimeSlicing, Mps };

// A resource that is handed out several times.
struct LabelSharedResource {
  std::string name;         // "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
  int replicas = 1;         // of each device
  bool is_renamed = false;  // handed out as NAME.shared
};

struct LabelOptions {
  LabelMigStrategy mig = LabelMigStrategy::None;
  SharingStrategy sharing = SharingStrategy::None;
  std::vector<LabelSharedResource> shared = {};
  std::string machine = {};  // /sys/class/dmi/id/product_name; "" unknown
  TimeUs timestamp = 0;      // of nvidia.com/gfd.timestamp; 0: no such label
  // PCI class of each GPU by its bus id, of /sys/bus/pci/devices/*/class: 0x030200. May be empty.
  std::map<std::string, std::uint32_t> pci_class = {};
};

struct FeatureLabels {
  Labels labels;
  std::vector<std::string> warnings;  // one line each, for the log
};

FeatureLabels feature_labels(const nvml::NodeFacts& node, const LabelOptions& options);

// "NVIDIA A100-SXM4-40GB" -> "NVIDIA-A100-SXM4-40GB"; always a legal label value.
std::string label_value(std::string_view text);

// KEY=VALUE lines for node feature discovery's features.d, sorted.
std::string features_file_text(const Labels& labels);
// Puts the file in place whole or not at all; removes it when there are no labels.
Result<void> write_features_file(const std::string& path, const Labels& labels);

}  // namespace jogak::agent
