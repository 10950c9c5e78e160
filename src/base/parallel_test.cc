// SPDX-License-Identifier: Apache-2.0
//
// Every index once, whatever the number of threads; a failure comes back as itself.
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace jogak {
namespace {

TEST(ParallelFor, EveryIndexOnce) {
  for (const std::size_t jobs : {0U, 1U, 2U, 8U}) {
    for (const std::size_t n : {0U, 1U, 7U, 1000U}) {
      std::vector<int> calls(n);
      parallel_for(n, jobs, [&](std::size_t i) { ++calls[i]; });
      EXPECT_EQ(calls, std::vector<int>(n, 1)) << jobs << " jobs";
    }
  }
}

TEST(ParallelFor, RethrowsTheFailureOfTheSmallestIndex) {
  for (int round = 0; round < 50; ++round) {
    std::string caught;
    try {
      parallel_for(100, 4, [](std::size_t i) {
        if (i % 3 == 2) throw std::runtime_error(std::to_string(i));
      });
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    EXPECT_EQ(caught, "2");
  }
}

TEST(ParallelFor, StartsNothingNewAfterAFailure) {
  std::atomic<int> calls{0};
  EXPECT_THROW(parallel_for(1'000'000, 1,
                            [&](std::size_t) {
                              ++calls;
                              throw std::runtime_error("first");
                            }),
               std::runtime_error);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace jogak
