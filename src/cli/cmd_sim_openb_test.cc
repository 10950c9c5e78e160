// SPDX-License-Identifier: Apache-2.0
// `jogak sim openb` on good and bad trace folders: exit codes, and nothing half-written.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/seed_list.h"

namespace jogak::cli {
namespace {

class SimOpenb : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    dir = ::testing::TempDir() + "jogak_sim_openb_" + test->name();
    std::filesystem::remove_all(dir);
    std::filesystem::create_directories(dir);
    write("openb_node_list_gpu_node.csv",
          "sn,cpu_milli,memory_mib,gpu,model\na,8000,8192,2,T4\nb,8000,8192,4,G2\n");
    write("openb_pod_list_tiny.csv", pods);
  }
  void TearDown() override { std::filesystem::remove_all(dir); }

  void write(const std::string& name, std::string_view text) {
    ASSERT_TRUE(write_file(dir + "/" + name, text).has_value());
  }
  int run(std::vector<std::string_view> more) {
    std::vector<std::string_view> words = {"--dir", dir, "--variant", "tiny", "--policy", "fgd"};
    words.insert(words.end(), more.begin(), more.end());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = cmd_sim_openb(words);
    out = ::testing::internal::GetCapturedStdout();
    err = ::testing::internal::GetCapturedStderr();
    return code;
  }
  bool exists(const std::string& name) { return std::filesystem::exists(dir + "/" + name); }

  std::string dir;
  std::string out, err;
  const std::string pods =
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1000,1024,1,500\np1,1000,1024,1,1000\n";
};

TEST_F(SimOpenb, WritesTableReportAndPlacements) {
  const std::string report = dir + "/r.html";
  const std::string placements = dir + "/p.csv";
  EXPECT_EQ(run({"--report", report, "--placements", placements, "--check"}), kExitDone) << err;
  EXPECT_NE(out.find("tiny"), std::string::npos);
  const auto page = read_file(report);
  ASSERT_TRUE(page.has_value());
  EXPECT_NE(page->find("</html>"), std::string::npos);
  EXPECT_EQ(page->find("<script"), std::string::npos);
  EXPECT_TRUE(exists("p.csv"));
}

TEST_F(SimOpenb, JobsDoNotShow) {
  const std::vector<std::string_view> common = {"--seeds", "1-4",         "-o",
                                                "json",    "--no-timing", "--jobs"};
  std::vector<std::string_view> one = common;
  one.push_back("1");
  std::vector<std::string_view> four = common;
  four.push_back("4");
  ASSERT_EQ(run(one), kExitDone) << err;
  const std::string first = out;
  ASSERT_EQ(run(four), kExitDone) << err;
  EXPECT_EQ(out, first);
}

TEST_F(SimOpenb, BadInputIsOneLineAndNothingIsWritten) {
  const std::string report = dir + "/r.html";
  write("openb_pod_list_tiny.csv", pods + "p2,many,1,1,1000\n");
  EXPECT_EQ(run({"--report", report}), kExitUsage);
  EXPECT_EQ(out, "");
  EXPECT_NE(err.find("openb_pod_list_tiny.csv:4: column cpu_milli"), std::string::npos) << err;
  EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1);
  EXPECT_FALSE(exists("r.html"));

  EXPECT_EQ(run({"--skip-bad"}), kExitDone);
  EXPECT_NE(err.find("skipped 1 bad rows"), std::string::npos);
}

TEST_F(SimOpenb, UnknownNamesAreSuggested) {
  EXPECT_EQ(run({"--variant", "tinny"}), kExitUsage);
  EXPECT_NE(err.find("did you mean tiny?"), std::string::npos) << err;
  EXPECT_EQ(run({"--policy", "fdg"}), kExitUsage);
  EXPECT_NE(err.find("did you mean fgd?"), std::string::npos) << err;
  EXPECT_EQ(run({"--seeds", "4-2"}), kExitUsage);
  EXPECT_EQ(run({"--mix", "none"}), kExitUsage);
}

TEST_F(SimOpenb, ATruncatedOrderFileIsRefused) {
  std::filesystem::create_directories(dir + "/sequences");
  write("sequences/tiny.txt.gz", std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b", 11));
  EXPECT_EQ(run({"--seeds", "42"}), kExitUsage);
  EXPECT_NE(err.find("tiny.txt.gz"), std::string::npos) << err;
  EXPECT_EQ(run({"--seeds", "42", "--order", "none"}), kExitDone) << err;
}

TEST(SeedList, Ranges) {
  EXPECT_EQ(*parse_seeds("42-44,7"), (std::vector<std::int64_t>{42, 43, 44, 7}));
  for (const std::string_view bad : {"", "a", "3-", "-3", "5-4", "1,,2", "1,1", "0-99999"}) {
    EXPECT_FALSE(parse_seeds(bad).has_value()) << bad;
  }
  EXPECT_FALSE(parse_words("a,b,a").has_value());
}

}  // namespace
}  // namespace jogak::cli
