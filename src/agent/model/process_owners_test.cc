// SPDX-License-Identifier: Apache-2.0
//
// Control groups as runtimes write them, and a made /proc beside made log folders.
#include "agent/model/process_owners.h"

#include <filesystem>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/temp_folder.h"

namespace jogak::agent {
namespace {

using ::testing::IsEmpty;

const std::string kUid = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
const std::string kSystemdUid = "0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9";
const std::string kId(64, 'a');

TEST(Cgroup, IsReadInEveryForm) {
  const CgroupOwner both = {.pod_uid = kUid, .container_id = kId};
  const std::string cases[] = {
      fmt::format("0::/kubepods.slice/kubepods-burstable.slice/"
                  "kubepods-burstable-pod{}.slice/cri-containerd-{}.scope\n",
                  kSystemdUid, kId),
      fmt::format("0::/kubepods.slice/kubepods-pod{}.slice/crio-{}.scope/container", kSystemdUid,
                  kId),
      fmt::format("12:pids:/kubepods/besteffort/pod{0}/{1}\n11:memory:/kubepods/besteffort/"
                  "pod{0}/{1}\n",
                  kUid, kId),
      fmt::format("3:name=systemd:/\n2:cpu:/kubepods/pod{}/{}\n", kUid, kId),
      fmt::format("0::/system.slice/containerd.service/kubepods-besteffort-pod{}.slice:"
                  "cri-containerd:{}\n",
                  kSystemdUid, kId),
      fmt::format("0::/../../kubepods-pod{}.slice/docker-{}.scope", kSystemdUid, kId),
  };
  for (const std::string& text : cases) EXPECT_EQ(parse_cgroup(text), both) << text;
}

TEST(Cgroup, OfAStaticPodHasItsDigits) {
  const std::string digits(32, 'b');
  EXPECT_EQ(parse_cgroup(fmt::format("0::/kubepods/pod{}/{}", digits, kId)),
            (CgroupOwner{.pod_uid = digits, .container_id = kId}));
}

TEST(Cgroup, OfTheHostNamesNobody) {
  for (const std::string_view text :
       {"", "0::/", "0::/user.slice/user-1000.slice/session-2.scope", "garbage", "1:2",
        "0::/kubepods/podX/abc", "0::/system.slice/my-pod.service"}) {
    EXPECT_EQ(parse_cgroup(text), CgroupOwner{}) << text;
  }
}

TEST(LogNames, TellPodsAndContainers) {
  const auto pod = parse_pod_log_folder("team-a_train-0_" + kUid);
  ASSERT_TRUE(pod);
  EXPECT_EQ(*pod, (Holder{"team-a", "train-0", "", kUid}));
  const auto container = parse_container_log("train-0_team-a_main-loop-" + kId + ".log");
  ASSERT_TRUE(container);
  EXPECT_EQ(container->first, kId);
  EXPECT_EQ(container->second, (Holder{"team-a", "train-0", "main-loop", ""}));
  for (const std::string_view bad : {"", "a_b", "_b_c", "a__c", "a_b_", "a_b_c_d"}) {
    EXPECT_FALSE(parse_pod_log_folder(bad)) << bad;
  }
  for (const std::string& bad : {std::string("a_b_c.log"), "a_b_" + kId + ".log",
                                 "a_b_-" + kId + ".log", "a_b_c-" + kId, "_b_c-" + kId + ".log"}) {
    EXPECT_FALSE(parse_container_log(bad)) << bad;
  }
}

class OwnerFinderTest : public ::testing::Test {
 protected:
  void process(int pid, std::string_view start, std::string_view cgroup) {
    const std::string path = folder.path(fmt::format("proc/{}", pid));
    std::filesystem::create_directories(path);
    std::string stat = fmt::format("{} (odd) name)", pid);
    for (int i = 3; i < 22; ++i) stat += i == 3 ? " S" : " 0";
    ASSERT_TRUE(write_file(path + "/stat", fmt::format("{} {} 0 0\n", stat, start)));
    ASSERT_TRUE(write_file(path + "/cgroup", cgroup));
  }
  void pod_folder(const std::string& name) {
    std::filesystem::create_directories(folder.path("pods/" + name));
  }
  void container_log(const std::string& name) {
    std::filesystem::create_directories(folder.path("containers"));
    ASSERT_TRUE(write_file(folder.path("containers/" + name), ""));
  }
  static std::string cgroup_of(const std::string& uid, const std::string& id) {
    return fmt::format("0::/kubepods/pod{}/{}\n", uid, id);
  }

  TempFolder folder;
  ProcessOwnerFinder finder{{.proc = folder.path("proc"),
                             .pod_logs = folder.path("pods"),
                             .container_logs = folder.path("containers")}};
};

TEST_F(OwnerFinderTest, FindsTheContainerOfAProcess) {
  process(7, "100", cgroup_of(kUid, kId));
  process(8, "100", "0::/user.slice\n");
  pod_folder("team-a_train-0_" + kUid);
  container_log("train-0_team-a_main-" + kId + ".log");
  EXPECT_EQ(finder.find({7, 8, 9}), (ProcessOwners{{7, {"team-a", "train-0", "main", kUid}}}));
}

TEST_F(OwnerFinderTest, KnowsThePodWhereTheContainerHasNoLogYet) {
  process(7, "100", cgroup_of(kUid, kId));
  EXPECT_THAT(finder.find({7}), IsEmpty());
  pod_folder("team-a_train-0_" + kUid);
  EXPECT_EQ(finder.find({7}), (ProcessOwners{{7, {"team-a", "train-0", "", kUid}}}));
}

TEST_F(OwnerFinderTest, APidThatIsUsedAgainIsAnotherProcess) {
  const std::string other_uid = "1a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
  const std::string other_id(64, 'c');
  pod_folder("a_one_" + kUid);
  pod_folder("b_two_" + other_uid);
  process(7, "100", cgroup_of(kUid, kId));
  EXPECT_EQ(finder.find({7}).at(7).pod, "one");
  process(7, "200", cgroup_of(other_uid, other_id));
  EXPECT_EQ(finder.find({7}).at(7).pod, "two");
}

}  // namespace
}  // namespace jogak::agent
