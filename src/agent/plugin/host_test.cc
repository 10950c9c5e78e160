// SPDX-License-Identifier: Apache-2.0
// What is found of a driver below made roots.
#include "agent/plugin/host.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/temp_folder.h"

namespace jogak::agent {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<std::string>;

class HostTest : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text = "x") {
    const std::string whole = folder_.path() + path;
    fs::create_directories(fs::path(whole).parent_path());
    ASSERT_TRUE(write_file(whole, text));
  }
  HostFiles find() {
    const std::string root = folder_.path();
    return find_host_files({.driver = root, .devices = root, .system = root, .host = root},
                           "550.90.07");
  }
  TempFolder folder_;
};

TEST_F(HostTest, an_empty_machine_has_nothing) { EXPECT_EQ(find(), HostFiles()); }

TEST_F(HostTest, libraries_of_this_driver_alone) {
  put("/usr/lib/x86_64-linux-gnu/libcuda.so.550.90.07");
  put("/usr/lib/x86_64-linux-gnu/libcuda.so.535.1");
  put("/usr/lib/x86_64-linux-gnu/libc.so.6");
  put("/usr/bin/nvidia-smi");
  put("/usr/bin/nvidia-ctk");
  fs::create_symlink("usr/lib", folder_.path("lib"));  // the same files by another name
  const HostFiles files = find();
  EXPECT_EQ(files.libraries, Paths{"/usr/lib/x86_64-linux-gnu/libcuda.so.550.90.07"});
  EXPECT_EQ(files.programs, Paths{"/usr/bin/nvidia-smi"});
  EXPECT_TRUE(files.has_hook);
}

TEST_F(HostTest, device_nodes_and_screens) {
  for (const auto* const path :
       {"/dev/nvidia0", "/dev/nvidiactl", "/dev/sda", "/dev/nvidia-caps/nvidia-cap3",
        "/dev/dri/card1", "/sys/bus/pci/devices/0000:07:00.0/drm/card1/dev"}) {
    put(path);
  }
  const HostFiles files = find();
  EXPECT_EQ(files.device_nodes,
            (std::set<std::string, std::less<>>{"/dev/nvidia0", "/dev/nvidiactl",
                                                "/dev/nvidia-caps/nvidia-cap3"}));
  EXPECT_EQ(files.drm_nodes.at("0000:07:00.0"), Paths{"/dev/dri/card1"});
}

TEST_F(HostTest, mig_access_by_table_or_by_file) {
  put("/proc/driver/nvidia/capabilities/gpu0/mig/gi7/access",
      "DeviceFileMinor: 66\nDeviceFileMode: 292\n");
  put("/proc/driver/nvidia/capabilities/gpu0/mig/gi7/ci0/access", "DeviceFileMinor: 67\n");
  EXPECT_EQ(find().mig_cap(0, 7, -1), 66);
  EXPECT_EQ(find().mig_cap(0, 7, 0), 67);
  EXPECT_EQ(find().mig_cap(1, 7, 0), -1);
  put("/proc/driver/nvidia-caps/mig-minors", "config 1\ngpu0/gi7/access 12\nnonsense\n\n");
  EXPECT_EQ(find().mig_cap(0, 7, -1), 12);
}

}  // namespace
}  // namespace jogak::agent
