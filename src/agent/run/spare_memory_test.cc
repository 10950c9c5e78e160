// SPDX-License-Identifier: Apache-2.0
//
// What is given back is less memory, and nothing that the program needs.
#include "agent/run/spare_memory.h"

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace jogak::agent {
namespace {

// Of files, in pages, as /proc/self/statm has it.
long shared_pages() {
  long size = 0, resident = 0, shared = 0;
  std::ifstream("/proc/self/statm") >> size >> resident >> shared;
  return shared;
}

// Constants that the loader writes to when it starts the program.
constexpr const char* kWords[] = {"one", "two", "three"};

TEST(SpareMemory, PagesOfFilesGoAndEverythingIsThereStill) {
  std::map<int, std::string> texts;
  for (int i = 0; i < 1000; ++i) texts[i] = fmt::format("{:>100}", i);
  const long before = shared_pages();
  give_back_memory();
  EXPECT_LT(shared_pages(), before);
  for (const auto& [i, text] : texts) EXPECT_EQ(text, fmt::format("{:>100}", i));
  EXPECT_EQ(std::string(kWords[2]), "three");
  EXPECT_THROW((void)std::vector<int>().at(1), std::out_of_range);  // unwinding reads its tables
  give_back_memory();
}

}  // namespace
}  // namespace jogak::agent
