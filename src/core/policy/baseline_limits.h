// SPDX-License-Identifier: Apache-2.0
// The fixed maxima by which the published baselines scale CPU and GPU: not the node's own size.
#pragma once

#include <cstdint>

namespace jogak::core {

inline constexpr std::int64_t kCpuMilliMax = 128000;
inline constexpr std::int64_t kGpuMilliMax = 8000;
// Bounds that keep the products of hostile input inside 64 bits; no real node reaches them.
inline constexpr std::int64_t kClampCpuMilli = 100'000'000;
inline constexpr std::int64_t kClampGpuMilli = 4'000'000;

}  // namespace jogak::core
