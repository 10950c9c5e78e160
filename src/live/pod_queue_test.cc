// SPDX-License-Identifier: Apache-2.0
//
// Who is tried first, who waits and until when, and what a changed or removed pod does to that.
#include "live/pod_queue.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace jogak::live {
namespace {

constexpr TimeUs kStart = 1'000 * kSecondInUs;

std::vector<std::string> pop_all(PodQueue& queue) {
  std::vector<std::string> keys;
  while (auto key = queue.pop()) keys.push_back(*key);
  return keys;
}

TEST(PodQueue, PriorityThenAge) {
  PodQueue queue;
  queue.add("a", 0);
  queue.add("b", 5);
  queue.add("c", 5);
  queue.add("d", -1);
  EXPECT_EQ(pop_all(queue), (std::vector<std::string>{"b", "c", "a", "d"}));
  EXPECT_FALSE(queue.has_ready());
}

TEST(PodQueue, TheLowestPriorityOfAllIsLast) {
  PodQueue queue;
  queue.add("low", INT32_MIN);
  queue.add("high", INT32_MAX);
  queue.add("none", 0);
  EXPECT_EQ(pop_all(queue), (std::vector<std::string>{"high", "none", "low"}));
}

TEST(PodQueue, AddedAgainKeepsItsAgeAndTakesTheNewPriority) {
  PodQueue queue;
  queue.add("a", 0);
  queue.add("b", 0);
  queue.add("a", 0);
  EXPECT_EQ(queue.size(), 2U);
  EXPECT_EQ(pop_all(queue), (std::vector<std::string>{"a", "b"}));
  queue.add("b", 0);
  queue.add("a", 0);
  queue.add("b", 1);
  EXPECT_EQ(pop_all(queue), (std::vector<std::string>{"b", "a"}));
}

TEST(PodQueue, RemovedIsForgotten) {
  PodQueue queue;
  queue.add("a", 0);
  queue.remove("a");
  queue.remove("never-seen");
  EXPECT_FALSE(queue.pop().has_value());
  queue.refuse("b", 0, kStart);
  queue.remove("b");
  EXPECT_EQ(queue.waiting(), 0U);
  EXPECT_FALSE(queue.release(kStart + 100 * kSecondInUs, true).has_value());
  EXPECT_FALSE(queue.has_ready());
}

TEST(PodQueue, RefusedWaitsForAChangeAndItsBackOff) {
  PodQueue queue;
  queue.add("a", 0);
  queue.pop();
  queue.refuse("a", 0, kStart);
  EXPECT_EQ(queue.waiting(), 1U);
  EXPECT_FALSE(queue.has_ready());
  EXPECT_EQ(queue.release(kStart, true), kStart + kSecondInUs);
  EXPECT_EQ(queue.release(kStart + kSecondInUs - 1, false), kStart + kSecondInUs);
  EXPECT_FALSE(queue.release(kStart + kSecondInUs, false).has_value());
  EXPECT_EQ(queue.pop(), "a");
}

TEST(PodQueue, WithoutAChangeARefusedPodIsTriedAfterFiveMinutes) {
  PodQueue queue;
  queue.refuse("a", 0, kStart);
  EXPECT_EQ(queue.release(kStart, false), kStart + kSecondInUs);
  EXPECT_EQ(queue.release(kStart + kSecondInUs, false), kStart + 300 * kSecondInUs);
  EXPECT_EQ(queue.settled(), 1U);
  EXPECT_FALSE(queue.release(kStart + 300 * kSecondInUs, false).has_value());
  EXPECT_EQ(queue.pop(), "a");
}

TEST(PodQueue, ASettledPodIsTriedAsSoonAsSomethingChanges) {
  PodQueue queue;
  queue.refuse("a", 0, kStart);
  static_cast<void>(queue.release(kStart + kSecondInUs, false));
  EXPECT_FALSE(queue.has_ready());
  EXPECT_FALSE(queue.release(kStart + 2 * kSecondInUs, true).has_value());
  EXPECT_EQ(queue.pop(), "a");
}

TEST(PodQueue, AFailedPodNeedsNoChange) {
  PodQueue queue;
  queue.retry("a", 0, kStart);
  EXPECT_EQ(queue.release(kStart, false), kStart + kSecondInUs);
  EXPECT_FALSE(queue.release(kStart + kSecondInUs, false).has_value());
  EXPECT_EQ(queue.pop(), "a");
  queue.retry("a", 0, kStart);
  EXPECT_EQ(queue.release(kStart, false), kStart + 2 * kSecondInUs);
  queue.refuse("a", 0, kStart);  // a refusal ends the row of failures
  queue.retry("a", 0, kStart);
  EXPECT_EQ(queue.release(kStart, false), kStart + kSecondInUs);
}

TEST(PodQueue, RemembersAttemptsAndFirstSight) {
  PodQueue queue;
  queue.add("a", 0, kStart);
  queue.pop();
  queue.refuse("a", 0, kStart + 1);
  queue.retry("a", 0, kStart + 2);
  EXPECT_EQ(queue.history("a").attempts, 2);
  EXPECT_EQ(queue.history("a").since, kStart);
  EXPECT_EQ(queue.history("b").attempts, 0);
}

TEST(PodQueue, BackOffDoublesToTenSeconds) {
  PodQueue queue;
  queue.add("a", 0);
  for (const int seconds : {1, 2, 4, 8, 10, 10}) {
    queue.pop();
    queue.refuse("a", 0, kStart);
    EXPECT_EQ(queue.release(kStart, true), kStart + seconds * kSecondInUs);
    EXPECT_FALSE(queue.release(kStart + seconds * kSecondInUs, true).has_value());
  }
}

TEST(PodQueue, ManyRefusalsStayInRange) {
  PodQueue queue;
  for (int i = 0; i < 200; ++i) queue.refuse("a", 0, kStart);
  EXPECT_EQ(queue.release(kStart, true), kStart + 10 * kSecondInUs);
}

TEST(PodQueue, AChangedPodIsTriedAtOnce) {
  PodQueue queue;
  queue.add("a", 0);
  queue.pop();
  queue.refuse("a", 0, kStart);
  queue.add("a", 0);
  EXPECT_EQ(queue.waiting(), 0U);
  EXPECT_EQ(queue.pop(), "a");
}

TEST(PodQueue, ReleaseNamesTheFirstThatIsStillToCome) {
  PodQueue queue;
  queue.refuse("a", 0, kStart);
  queue.refuse("b", 0, kStart + 300 * kMsInUs);
  queue.refuse("c", 0, kStart + 600 * kMsInUs);
  EXPECT_EQ(queue.release(kStart + kSecondInUs, true), kStart + 1300 * kMsInUs);
  EXPECT_EQ(pop_all(queue), (std::vector<std::string>{"a"}));
  EXPECT_EQ(queue.waiting(), 2U);
}

}  // namespace
}  // namespace jogak::live
