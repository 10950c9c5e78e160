// SPDX-License-Identifier: Apache-2.0
//
// On a made tree, where a file with its number as its text stands for a device: nobody needs to be
// root.
#include "agent/plugin/device_nodes.h"

#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/plugin/testing/node_facts.h"
#include "base/file.h"
#include "base/testing/temp_folder.h"

namespace jogak::agent {
namespace {

namespace fs = std::filesystem;
using testing::a100_node;
using testing::cut;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::UnorderedElementsAre;

constexpr auto kDevices = R"(Character devices:
  1 mem
195 nvidia
195 nvidia-modeset
195 nvidiactl
507 nvidia-uvm
508 nvidia-caps
509 nvidia-caps-imex-channels

Block devices:
  7 loop
259 nvidia-uvm
)";

// ---- the kernel's tables ---------------------------------------------------------------------

TEST(DeviceTables, MajorsOfCharacterDevicesAlone) {
  const DeviceMajors majors = parse_proc_devices(kDevices);
  EXPECT_EQ(majors.at("nvidia"), 195);
  EXPECT_EQ(majors.at("nvidia-uvm"), 507);
  EXPECT_FALSE(majors.contains("loop"));
  EXPECT_THAT(parse_proc_devices("Character devices:\nx nvidia\n-1 a\n4096 b\n 7\n0 c\n"),
              IsEmpty());
}

TEST(DeviceTables, HowTheDriverWantsItsNodes) {
  EXPECT_EQ(parse_device_params("ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 0\n"
                                "DeviceFileUID: 0\nDeviceFileGID: 44\nDeviceFileMode: 432\n"),
            (DeviceFileRule{.may_make = false, .uid = 0, .gid = 44, .mode = 0660}));
  EXPECT_EQ(parse_device_params(""), DeviceFileRule());
  EXPECT_EQ(parse_device_params("DeviceFileMode: 65535\nDeviceFileUID: -1\nnonsense\n: 7\n"),
            DeviceFileRule());
}

TEST(DeviceTables, WhatACapabilityFileSays) {
  EXPECT_EQ(parse_capability("DeviceFileMinor: 66\nDeviceFileMode: 256\nDeviceFileModify: 0\n"),
            (CapabilityFile{.minor = 66, .mode = 0400, .may_make = false}));
  EXPECT_EQ(parse_capability("DeviceFileMinor: 7"), CapabilityFile{.minor = 7});
  EXPECT_EQ(parse_capability("DeviceFileMode: 292\n"), std::nullopt);
  EXPECT_EQ(parse_capability("DeviceFileMinor: 1048576\n"), std::nullopt);
}

// ---- what should be there --------------------------------------------------------------------

class DeviceNodesTest : public ::testing::Test {
 protected:
  DeviceNodesTest() {
    put("/proc/devices", kDevices);
    put("/proc/driver/nvidia/params",
        "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n");
    put("/proc/driver/nvidia-caps/mig-minors",
        "config 1\nmonitor 2\ngpu0/gi7/access 66\ngpu0/gi7/ci0/access 67\ngpu0/gi8/access 75\n"
        "gpu0/gi8/ci0/access 76\ngpu1/gi7/access 201\n");
    fs::create_directories(folder_.path("dev/char"));
  }
  void put(const std::string& path, const std::string& text) {
    const std::string whole = folder_.path() + path;
    fs::create_directories(fs::path(whole).parent_path());
    ASSERT_TRUE(write_file(whole, text));
  }
  std::string get(const std::string& path) {
    return read_file(folder_.path() + path).value_or("nothing");
  }
  void capability(const std::string& inner, int minor) {
    put("/proc/driver/nvidia/capabilities/" + inner,
        fmt::format("DeviceFileMinor: {}\nDeviceFileMode: 292\nDeviceFileModify: 1\n", minor));
  }
  HostFiles host() {
    const std::string root = folder_.path();
    return find_host_files({.driver = root, .devices = root, .system = root, .host = root}, "1");
  }
  KernelTables tables() { return read_kernel_tables(folder_.path()); }
  DeviceNodes wanted() { return wanted_device_nodes(tables(), facts, config, host()); }
  static std::string text_of(const DeviceNode& node) {
    return fmt::format("{} {} {}:{} {:o}", node.major, node.minor, node.uid, node.gid, node.mode);
  }
  NodeTools tools() {
    return {.look = [](const std::string& path) -> std::optional<NodeTools::Seen> {
              const auto text = read_file(path);
              if (!text) return std::nullopt;
              NodeTools::Seen seen;
              seen.is_device = std::sscanf(text->c_str(), "%d %d", &seen.major, &seen.minor) == 2;
              return seen;
            },
            .make = [this](const std::string& path, const DeviceNode& node) -> Result<void> {
              if (!can_make) return fail(Errc::Unavailable, "not permitted");
              EXPECT_FALSE(fs::exists(path));
              return write_file(path, text_of(node));
            }};
  }
  NodeChanges make() {
    const HostFiles files = host();
    return put_device_nodes(folder_.path(), wanted_device_nodes(tables(), facts, config, files),
                            stale_device_nodes(tables(), facts, files), tools(), on_step);
  }

  TempFolder folder_;
  nvml::NodeFacts facts = a100_node(1);
  PluginConfig config;
  bool can_make = true;
  std::function<void(std::string_view)> on_step = nullptr;
};

TEST_F(DeviceNodesTest, ThoseOfTheGpusAndWhatAllNeed) {
  EXPECT_THAT(wanted(), ElementsAre(Key("/dev/nvidia-modeset"), Key("/dev/nvidia-uvm"),
                                    Key("/dev/nvidia-uvm-tools"), Key("/dev/nvidia0"),
                                    Key("/dev/nvidiactl")));
  EXPECT_EQ(text_of(wanted().at("/dev/nvidiactl")), "195 255 0:0 666");
  EXPECT_EQ(text_of(wanted().at("/dev/nvidia-modeset")), "195 254 0:0 666");
  EXPECT_EQ(text_of(wanted().at("/dev/nvidia-uvm-tools")), "507 1 0:0 666");
  EXPECT_EQ(text_of(wanted().at("/dev/nvidia0")), "195 0 0:0 666");
}

TEST_F(DeviceNodesTest, ThoseOfMigInstancesThatAreThere) {
  cut(facts, 0, {"1g.5gb"});
  capability("gpu0/mig/gi7/access", 66);
  const DeviceNodes nodes = wanted();
  EXPECT_EQ(text_of(nodes.at("/dev/nvidia-caps/nvidia-cap66")), "508 66 0:0 444");
  EXPECT_EQ(text_of(nodes.at("/dev/nvidia-caps/nvidia-cap67")), "508 67 0:0 444");
  EXPECT_FALSE(nodes.contains("/dev/nvidia-caps/nvidia-cap75"));
  EXPECT_FALSE(nodes.contains("/dev/nvidia-caps/nvidia-cap1")) << "nobody is to configure";
}

TEST_F(DeviceNodesTest, OlderDriversHaveOneNameForTheirMajor) {
  put("/proc/devices", "Character devices:\n195 nvidia-frontend\n");
  EXPECT_THAT(wanted(), ElementsAre(Key("/dev/nvidia0"), Key("/dev/nvidiactl")));
  put("/sys/module/nvidia_modeset/refcnt", "0");
  EXPECT_TRUE(wanted().contains("/dev/nvidia-modeset"));
}

TEST_F(DeviceNodesTest, WithoutTheDriverThereIsNothingToWant) {
  put("/proc/devices", "Character devices:\n  1 mem\n");
  EXPECT_THAT(wanted(), IsEmpty());
}

TEST_F(DeviceNodesTest, ImexChannelsThatAreSet) {
  config.imex_channels = {0, 5};
  EXPECT_EQ(text_of(wanted().at("/dev/nvidia-caps-imex-channels/channel5")), "509 5 0:0 666");
}

// ---- making it so ----------------------------------------------------------------------------

TEST_F(DeviceNodesTest, WhatIsMissingIsMadeOnceAndLinked) {
  const NodeChanges changes = make();
  EXPECT_THAT(changes.made, ElementsAre("/dev/nvidia-modeset", "/dev/nvidia-uvm",
                                        "/dev/nvidia-uvm-tools", "/dev/nvidia0", "/dev/nvidiactl"));
  EXPECT_THAT(changes.problems, IsEmpty());
  EXPECT_EQ(get("/dev/nvidia-uvm"), "507 0 0:0 666");
  EXPECT_EQ(fs::read_symlink(folder_.path("dev/char/507:0")), "../nvidia-uvm");
  EXPECT_THAT(make().made, IsEmpty());
}

TEST_F(DeviceNodesTest, ANodeOfBeforeAReloadIsReplaced) {
  put("/dev/nvidia-uvm", "235 0 0:0 666");
  EXPECT_THAT(make().made, ::testing::Contains("/dev/nvidia-uvm"));
  EXPECT_EQ(get("/dev/nvidia-uvm"), "507 0 0:0 666");
}

TEST_F(DeviceNodesTest, WhatIsNoDeviceIsLetBeAndSaid) {
  put("/dev/nvidia0", "somebody's notes");
  const NodeChanges changes = make();
  EXPECT_THAT(changes.problems, ElementsAre(HasSubstr("/dev/nvidia0 is no device")));
  EXPECT_EQ(get("/dev/nvidia0"), "somebody's notes");
}

TEST_F(DeviceNodesTest, ADriverThatForbidsItIsObeyed) {
  put("/proc/driver/nvidia/params", "ModifyDeviceFiles: 0\n");
  put("/dev/nvidiactl", "195 255 0:0 666");
  const NodeChanges changes = make();
  EXPECT_THAT(changes.made, IsEmpty());
  EXPECT_EQ(changes.problems.size(), 4U);
  EXPECT_THAT(changes.problems[0], HasSubstr("NVreg_ModifyDeviceFiles=1"));
}

TEST_F(DeviceNodesTest, OneThatCannotBeMadeKeepsNoneFromTheOthers) {
  can_make = false;
  EXPECT_EQ(make().problems.size(), 5U);
  can_make = true;
  EXPECT_EQ(make().made.size(), 5U);
}

TEST_F(DeviceNodesTest, NodesOfInstancesThatAreGoneGo) {
  cut(facts, 0, {"1g.5gb", "1g.5gb"});
  capability("gpu0/mig/gi7/access", 66);
  capability("gpu0/mig/gi8/access", 75);
  capability("gpu0/mig/gi8/ci0/access", 76);
  make();
  ASSERT_EQ(get("/dev/nvidia-caps/nvidia-cap76"), "508 76 0:0 444");
  put("/dev/nvidia-caps/nvidia-cap1", "508 1 0:0 400");
  put("/dev/nvidia-caps/nvidia-cap201", "508 201 0:0 444");
  facts.gpus[0].mig_instances.pop_back();
  EXPECT_THAT(make().removed, IsEmpty()) << "the driver still shows it";
  fs::remove_all(folder_.path("proc/driver/nvidia/capabilities/gpu0/mig/gi8"));
  facts.gpus[0].is_lost = true;
  EXPECT_THAT(make().removed, IsEmpty()) << "nobody knows";
  facts.gpus[0].is_lost = false;
  EXPECT_THAT(make().removed, UnorderedElementsAre("/dev/nvidia-caps/nvidia-cap75",
                                                   "/dev/nvidia-caps/nvidia-cap76"));
  EXPECT_EQ(get("/dev/nvidia-caps/nvidia-cap66"), "508 66 0:0 444");
  EXPECT_EQ(get("/dev/nvidia-caps/nvidia-cap1"), "508 1 0:0 400");
  EXPECT_EQ(get("/dev/nvidia-caps/nvidia-cap201"), "508 201 0:0 444") << "of a GPU nobody asked";
  EXPECT_FALSE(fs::exists(fs::symlink_status(folder_.path("dev/char/508:76"))));
}

struct Killed {};

TEST_F(DeviceNodesTest, WhoeverIsKilledAtAnyStepLeavesNothingHalf) {
  cut(facts, 0, {"1g.5gb"});
  for (int step = 0;; ++step) {
    fs::remove_all(folder_.path("dev"));
    put("/dev/nvidia-uvm", "235 0 0:0 666");
    int left = step;
    on_step = [&left](std::string_view) {
      if (left-- == 0) throw Killed();
    };
    bool was_killed = false;
    try {
      make();
    } catch (const Killed&) {
      was_killed = true;
    }
    for (const auto& [path, node] : wanted()) {
      const std::string text = get(path);
      const bool is_old = text == "nothing" || text == "235 0 0:0 666";
      EXPECT_TRUE(is_old || text == text_of(node)) << path << ": " << text;
    }
    on_step = nullptr;
    EXPECT_THAT(make().problems, IsEmpty());
    for (const auto& [path, node] : wanted()) EXPECT_EQ(get(path), text_of(node)) << step;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path("dev"))) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(".jogak-")) << entry.path();
    }
    if (!was_killed) break;
  }
}

TEST_F(DeviceNodesTest, TheRealToolsSeeARealDevice) {
  const NodeTools real = real_node_tools();
  const auto null = real.look("/dev/null");
  ASSERT_TRUE(null);
  EXPECT_TRUE(null->is_device);
  EXPECT_EQ(null->major, 1);
  EXPECT_EQ(null->minor, 3);
  EXPECT_FALSE(real.look(folder_.path("none")));
  EXPECT_FALSE(real.look(folder_.path("proc/devices"))->is_device);
  // With or without the right to make one: no other outcome, and nothing half.
  const std::string path = folder_.path("made");
  const auto made = real.make(path, {.major = 1, .minor = 3, .mode = 0640});
  EXPECT_EQ(made.has_value(), real.look(path).has_value());
}

}  // namespace
}  // namespace jogak::agent
