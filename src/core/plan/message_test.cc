// SPDX-License-Identifier: Apache-2.0
// The sentence on its own: order of the parts and the empty case.
#include "core/plan/message.h"

#include <gtest/gtest.h>

namespace jogak::core {
namespace {

TEST(Message, PartsAreSortedAsPlainStrings) {
  ReasonCounts counts;
  counts.add("node(s) were unschedulable", 10);
  counts.add({"Insufficient memory", "Insufficient cpu"});
  counts.add({"Insufficient cpu"});
  EXPECT_EQ(unavailable_message(13, counts.text()),
            "0/13 nodes are available: 1 Insufficient memory, 10 node(s) were unschedulable, "
            "2 Insufficient cpu.");
}

TEST(Message, WithoutReasonOnlyTheCountIsLeft) {
  EXPECT_EQ(unavailable_message(2, ReasonCounts().text()), "0/2 nodes are available:");
}

}  // namespace
}  // namespace jogak::core
