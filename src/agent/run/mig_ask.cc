// SPDX-License-Identifier: Apache-2.0
//
// See mig_ask.h.
#include "agent/run/mig_ask.h"

#include "agent/mig/profile_name.h"
#include "base/parse_number.h"
#include "kube/gpu_annotations.h"

namespace jogak::agent {

namespace {

constexpr std::string_view kProfile = "jogak.io/mig-profile";
constexpr std::string_view kCount = "jogak.io/gpu-count";
constexpr std::int64_t kCountMax = 32;

}  // namespace

Result<std::optional<MigAsk>> read_mig_ask(const PodName& pod, const Annotations& annotations) {
  const std::string_view profile = annotations(kProfile);
  if (profile.empty()) return std::nullopt;
  if (const auto name = parse_mig_name(profile); !name) return in_context(kProfile, name.error());
  MigAsk ask = {.pod = pod, .profile = std::string(profile), .count = 1, .places = {}};
  if (const std::string_view text = annotations(kCount); !text.empty()) {
    const auto count = parse_int(text, 1, kCountMax);
    if (!count) return in_context(kCount, count.error());
    ask.count = static_cast<int>(*count);
  }
  if (const std::string_view text = annotations(kHoldsAnnotation); !text.empty()) {
    const auto holdings = kube::parse_gpu_holdings(text);
    if (!holdings) return in_context(kHoldsAnnotation, holdings.error());
    for (const kube::GpuHolding& holding : *holdings) {
      // Anything else is not the scheduler's word on instances.
      if (holding.kind != kube::GpuHolding::Kind::Mig) continue;
      ask.places.emplace_back(holding.gpu, holding.amount);
    }
    if (ask.places.size() != static_cast<std::size_t>(ask.count)) ask.places.clear();
  }
  return ask;
}

}  // namespace jogak::agent
