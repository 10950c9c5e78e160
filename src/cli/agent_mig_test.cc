// SPDX-License-Identifier: Apache-2.0
//
// What `jogak agent mig` plans, does and says, on GPUs in memory.
#include "cli/agent_mig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/mig/testing/fake_gpus.h"
#include "base/file.h"
#include "base/testing/temp_folder.h"
#include "cli/agent_mig_report.h"

namespace jogak::cli {
namespace {

using ::testing::HasSubstr;
using Verb = MigRequest::Verb;

class AgentMig : public ::testing::Test {
 protected:
  std::string run(const MigRequest& request) {
    const auto reports = run_mig(request, gpus, store, {});
    if (!reports) return reports.error().what;
    const MigTense tense = request.verb == Verb::Plan ? MigTense::Would : MigTense::Did;
    return mig_report_text(gpus.facts().value(), *reports, tense);
  }

  agent::testing::Fuse fuse;
  agent::testing::FakeGpus gpus{fuse};
  agent::testing::FakeStore store{fuse};
};

TEST_F(AgentMig, OneA100IntoSeven) {
  const std::string gpu = gpus.add("A100-40", true);
  gpus.put(gpu, "3g.20gb", 4);
  EXPECT_EQ(run({.layout = "1g:7"}),
            "gpu 0  NVIDIA A100-SXM4-40GB: 8 steps\n"
            "  slice      0       1       2       3       4       5       6       7\n"
            "  before     .       .       .       .    [3g.20gb                       ]\n"
            "  after   [1g.5gb][1g.5gb][1g.5gb][1g.5gb][1g.5gb][1g.5gb][1g.5gb]   .\n"
            "  1. destroy instance 1 (3g.20gb at slices 4-7)\n"
            "  2. create 1g.5gb at slice 0\n"
            "  3. create 1g.5gb at slice 1\n"
            "  4. create 1g.5gb at slice 2\n"
            "  5. create 1g.5gb at slice 3\n"
            "  6. create 1g.5gb at slice 4\n"
            "  7. create 1g.5gb at slice 5\n"
            "  8. create 1g.5gb at slice 6\n");
  EXPECT_EQ(gpus.changes(), 0);
  const std::string done = run({.verb = Verb::Apply, .layout = "7x1g.5gb", .gpus = "0"});
  EXPECT_TRUE(
      done.starts_with("gpu 0  NVIDIA A100-SXM4-40GB: 8 steps taken, and the driver shows it\n"))
      << done;
  EXPECT_TRUE(run({.layout = "all-1g.5gb"})
                  .starts_with("gpu 0  NVIDIA A100-SXM4-40GB: as wanted already\n"));
}

TEST_F(AgentMig, SaysWhatIsInTheWay) {
  const std::string gpu = gpus.add("A100-40", true);
  gpus.use(gpu, gpus.put(gpu, "3g.20gb", 0), 4711);
  EXPECT_EQ(run({.layout = "7g.40gb"}),
            "gpu 0  NVIDIA A100-SXM4-40GB: refused: 1 x 7g.40gb needs the place of what is in use: "
            "instance 1 (3g.20gb at slices 0-3) by pid 4711 (python); stop that first\n"
            "  slice   0   1   2   3   4   5   6   7\n"
            "  now    [3g.20gb       ] .   .   .   .\n");
}

TEST_F(AgentMig, OffNamesWhatItDestroys) {
  const std::string gpu = gpus.add("A100-40", true);
  gpus.put(gpu, "3g.20gb", 0);
  gpus.put(gpu, "1g.5gb", 4);
  const std::string text = run({.layout = "off"});
  EXPECT_THAT(text, HasSubstr("  1. destroy instance 1 (3g.20gb at slices 0-3)\n"
                              "  2. destroy instance 2 (1g.5gb at slice 4)\n"
                              "  3. disable MIG\n"));
  gpus.use(gpu, 1, 4711);
  EXPECT_THAT(run({.layout = "none"}),
              HasSubstr("refused: an empty layout needs the place of what is in use: instance 1"));
}

TEST_F(AgentMig, TakesAFileOfUsers) {
  const TempFolder folder;
  ASSERT_TRUE(write_file(folder.path("mig.yaml"),
                         "version: v1\n"
                         "mig-configs:\n"
                         "  mine:\n"
                         "  - {devices: [1], mig-enabled: true, mig-devices: {3g.40gb: 2}}\n"));
  gpus.add("H100-80", true);
  const std::string b = gpus.add("H100-80", false);
  const MigRequest request{.verb = Verb::Apply, .config = "mine", .file = folder.path("mig.yaml")};
  EXPECT_TRUE(run(request).starts_with("gpu 1  NVIDIA H100 80GB HBM3: 3 steps taken"));
  EXPECT_EQ(gpus.picture(b), "3g.40gb@0 3g.40gb@4");
  MigRequest other = request;
  other.gpus = "0";
  EXPECT_EQ(run(other), "mine says nothing of gpu 0");
  other.config = "mien";
  EXPECT_EQ(run(other), "there is no MIG config mien; did you mean mine?");
}

TEST_F(AgentMig, SaysWhatIsWrongWithTheWords) {
  gpus.add("A100-40", true);
  EXPECT_EQ(run({}), "say what is wanted with either --layout or --config");
  EXPECT_EQ(run({.layout = "1g:7", .gpus = "3"}), "--gpu: the node has no gpu 3; it has 1");
  EXPECT_EQ(run({.layout = "1g:7", .gpus = "one"}),
            "--gpu: expected all, or indices as in 0,2: one");
  EXPECT_EQ(run({.layout = "3g20gb"}),
            "--layout: 3g20gb is no MIG profile; write it as in 3g.20gb or 1g.10gb+me");
  EXPECT_EQ(run({.layout = "all-balance"}),
            "there is no MIG config all-balance; did you mean all-balanced?");
}

TEST_F(AgentMig, FinishesWhatWasCutShort) {
  const std::string gpu = gpus.add("A100-40", true);
  fuse.light(8);
  EXPECT_THROW(run({.verb = Verb::Apply, .layout = "1g:7"}), agent::testing::Killed);
  fuse.put_out();
  EXPECT_TRUE(run({.verb = Verb::Recover}).starts_with("gpu 0  NVIDIA A100-SXM4-40GB: "));
  EXPECT_EQ(gpus.gpu(gpu).mig_instances.size(), 7U);
  EXPECT_EQ(run({.verb = Verb::Recover}), "nothing to do\n");
}

TEST_F(AgentMig, SaysHowToResetAndGoOn) {
  const std::string gpu = gpus.add("A100-40", false);
  const std::string waits = run({.verb = Verb::Apply, .layout = "3g.20gb:2"});
  EXPECT_TRUE(
      waits.ends_with("  1. enable MIG\n"
                      "reset the GPU while nothing runs on it (nvidia-smi --gpu-reset -i "
                      "N), or reboot; then run `jogak agent mig recover`\n"))
      << waits;
  gpus.reset(gpu);
  run({.verb = Verb::Recover});
  EXPECT_EQ(gpus.picture(gpu), "3g.20gb@0 3g.20gb@4");
}

TEST_F(AgentMig, AnswersPrograms) {
  gpus.add("A100-40", false);
  MigRequest request{.layout = "3g.20gb"};
  const auto reports = run_mig(request, gpus, store, {});
  ASSERT_TRUE(reports.has_value());
  const Doc doc = mig_report_doc(gpus.facts().value(), *reports, MigTense::Would);
  EXPECT_EQ(doc["state"].as_string(), "needs reset");
  const Doc& gpu = doc["gpus"].items().at(0);
  EXPECT_EQ(gpu["steps"].items().at(0).as_string(), "enable MIG");
  EXPECT_EQ(gpu["after"]["instances"].items().at(0)["start"].as_int(), 4);
  EXPECT_EQ(gpu["slices"].as_int(), 8);
}

}  // namespace
}  // namespace jogak::cli
