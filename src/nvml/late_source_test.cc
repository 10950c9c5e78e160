// SPDX-License-Identifier: Apache-2.0
// A driver that comes while somebody waits for it.
#include "nvml/late_source.h"

#include <gtest/gtest.h>

#include "nvml/nvml_source.h"

namespace jogak::nvml {
namespace {

TEST(LateSource, IsWhatWasFoundOnceItIsThere) {
  int tries = 0;
  bool is_there = false;
  const auto open = [&]() -> Result<std::unique_ptr<GpuSource>> {
    ++tries;
    if (!is_there) return fail(Errc::Unavailable, "no library, try {}", tries);
    return NvmlSource::open("sim:t4-x4");
  };
  LateSource source(open, {.code = Errc::Unavailable, .what = "no library"});
  EXPECT_EQ(source.poll_events(0).error().what, "no library");
  EXPECT_EQ(source.facts().error().what, "no library, try 1");
  // Only facts() looks for it; the others say what it found.
  EXPECT_EQ(source.sample("GPU-1", {}).error().what, "no library, try 1");
  EXPECT_EQ(source.set_mig_mode("GPU-1", true).error().code, Errc::Unavailable);
  EXPECT_EQ(tries, 1);

  is_there = true;
  const auto facts = source.facts();
  ASSERT_TRUE(facts) << facts.error().what;
  EXPECT_EQ(facts->gpus.size(), 4U);
  EXPECT_TRUE(source.sample(facts->gpus[0].uuid, {}));
  EXPECT_TRUE(source.processes(facts->gpus[0].uuid));
  EXPECT_EQ(source.is_recut(facts->gpus[0].uuid), false);
  EXPECT_TRUE(source.facts());
  EXPECT_EQ(tries, 2);
}

}  // namespace
}  // namespace jogak::nvml
