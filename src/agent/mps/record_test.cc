// SPDX-License-Identifier: Apache-2.0
//
// The file of what is to be undone: written, read, and refused where it is not ours.
#include "agent/mps/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jogak::agent {
namespace {

using ::testing::HasSubstr;

TEST(MpsRecord, IsReadAsItWasWritten) {
  const MpsRecord record = {.daemons = {"nvidia.com/gpu", "nvidia.com/gpu.shared"},
                            .modes = {{"GPU-1", 0}, {"GPU-2", 2}}};
  EXPECT_EQ(mps_record_text(record),
            "daemon nvidia.com/gpu\ndaemon nvidia.com/gpu.shared\nmode GPU-1 0\nmode GPU-2 2\n");
  EXPECT_EQ(parse_mps_record(mps_record_text(record)), record);
  EXPECT_TRUE(parse_mps_record("\n\n")->is_empty());
}

TEST(MpsRecord, ALineThatIsNotUnderstoodIsNamed) {
  const auto error = [](const char* text) { return parse_mps_record(text).error().what; };
  EXPECT_THAT(error("daemon nvidia.com/gpu\nfolder x\n"), HasSubstr("line 2: \"folder\""));
  EXPECT_THAT(error("mode GPU-1 4"), HasSubstr("line 1"));
  EXPECT_THAT(error("mode GPU-1"), HasSubstr("line 1"));
  EXPECT_THAT(error("mode a/b 0"), HasSubstr("not the uuid"));
  EXPECT_THAT(error("daemon ../../etc"), HasSubstr("not the name of a resource"));
}

TEST(MpsRecord, AResourceNeverLeavesTheFolder) {
  EXPECT_TRUE(is_mps_resource("nvidia.com/gpu.shared"));
  for (const char* const name : {"", "/x", "x/", "a//b", "..", "a/..", "a/.b", "a b", "a\n"}) {
    EXPECT_FALSE(is_mps_resource(name)) << name;
  }
}

}  // namespace
}  // namespace jogak::agent
