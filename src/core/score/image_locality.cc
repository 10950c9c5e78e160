// SPDX-License-Identifier: Apache-2.0
// See image_locality.h.
#include "core/score/image_locality.h"

#include <algorithm>
#include <cstddef>

#include "core/score/normalize.h"

namespace jogak::core {
namespace {

constexpr std::int64_t kMib = 1024 * 1024;
constexpr std::int64_t kMinThreshold = 23 * kMib;  // in all
constexpr std::int64_t kMaxThresholdPerContainer = 1000 * kMib;

// The size, scaled by the share of nodes that have the image.
std::int64_t scaled_size(const ImageInfo& image, std::size_t nodes) {
  using Real = double;  // tidy: kube-float: the original scales and truncates in float64
  const Real spread = static_cast<Real>(image.node_count) / static_cast<Real>(nodes);
  return static_cast<std::int64_t>(static_cast<Real>(image.size_bytes) * spread);
}

struct WantedImage {
  ImageId id;
  std::int64_t size = 0;
};

}  // namespace

std::vector<std::int64_t> image_locality_scores(const Cluster& cluster, const PodView& pod,
                                                std::span<const NodeId> feasible) {
  std::vector<WantedImage> wanted;
  for (const std::string& name : pod.shape->spec.images) {
    const auto id = cluster.find_image(name);
    if (id) wanted.push_back({*id, scaled_size(cluster.images()[id->value], cluster.node_count())});
  }
  const std::int64_t containers = std::max(pod.shape->spec.container_count, 1);
  const std::int64_t max_threshold = kMaxThresholdPerContainer * containers;
  std::vector<std::int64_t> scores;
  scores.reserve(feasible.size());
  for (const NodeId id : feasible) {
    const Node& node = cluster.node(id);
    std::int64_t sum = 0;
    for (const WantedImage& image : wanted) {
      if (std::ranges::binary_search(node.images, image.id)) sum += image.size;
    }
    sum = std::clamp(sum, kMinThreshold, max_threshold);
    scores.push_back(kMaxNodeScore * (sum - kMinThreshold) / (max_threshold - kMinThreshold));
  }
  return scores;
}

}  // namespace jogak::core
