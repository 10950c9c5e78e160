// SPDX-License-Identifier: Apache-2.0
//
// Simulated GPU nodes in a whole cluster: what kubectl would see is what the agent found and the
// kubelet handed out.
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/object/meta.h"
#include "base/testing/temp_folder.h"
#include "playground/fleet.h"
#include "test/playground/http_probe.h"
#include "test/playground/world.h"

namespace jogak::playground::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kGpu = "nvidia.com/gpu";
constexpr std::string_view kSlice = "nvidia.com/mig-1g.10gb";

Doc gpu_node(std::string_view name, std::string_view gpus, std::string_view mig_config = "") {
  Doc node = simulated_node(name, 64, 0);
  node.at("metadata", "annotations").set("jogak.io/simulated-gpus", gpus);
  if (!mig_config.empty()) node.at("metadata", "labels").set("nvidia.com/mig.config", mig_config);
  return node;
}

std::vector<Doc> one(Doc node) {
  std::vector<Doc> nodes;
  nodes.push_back(std::move(node));
  return nodes;
}

PlaygroundOptions options() {
  PlaygroundOptions made;
  made.server.tokens["t"] = {.name = "admin", .uid = "", .groups = {"system:masters"}};
  return made;
}

class GpuNodeTest : public ::testing::Test {
 protected:
  void start(Doc node) {
    world_.emplace(one(std::move(node)), options());
    run_for(2 * kSecondInUs);
  }
  void run_for(TimeUs span) { world_->run_for(span); }
  Doc node() { return *world_->api().get("nodes", "", "n"); }
  std::string label(std::string_view key) {
    return node().get("metadata", "labels")[key].as_string();
  }
  std::string allocatable(std::string_view resource) {
    return node().get("status", "allocatable")[resource].as_string();
  }
  std::string capacity(std::string_view resource) {
    return node().get("status", "capacity")[resource].as_string();
  }
  void set_label(std::string_view key, std::string_view value) {
    Doc patch = Doc::object();
    patch.at("metadata", "labels").set(key, value);
    ASSERT_TRUE(world_->api().patch("nodes", "", "n", api::PatchType::Merge, patch).has_value());
  }
  void add_pod(std::string_view name, std::string_view resource, int count) {
    Doc pod = simple_pod(name, 1, 0);
    pod.at("spec")
        .at("containers")
        .items()[0]
        .at("resources", "limits")
        .set(resource, std::to_string(count));
    world_->add(std::move(pod));
  }
  // Ids of the devices that the pod's containers hold, as its status says.
  std::vector<std::string> devices(std::string_view pod, std::string_view key = "resourceID") {
    std::vector<std::string> ids;
    const Doc object = world_->pod(pod);
    for (const Doc& status : object.get("status", "containerStatuses").items()) {
      for (const Doc& resource : status["allocatedResourcesStatus"].items()) {
        for (const Doc& device : resource["resources"].items()) {
          ids.push_back(device[key].as_string());
        }
      }
    }
    return ids;
  }
  std::string condition(std::string_view type) {
    const Doc object = node();
    for (const Doc& condition : object.get("status", "conditions").items()) {
      if (condition["type"].as_string() == type) return condition["status"].as_string();
    }
    return "none";
  }
  AnswerPtr get(const std::string& path) {
    const auto answer = std::make_shared<Answer>();
    world_->playground().server().handle(
        {.method = "GET", .target = path, .headers = {{"Authorization", "Bearer t"}}, .body = {}},
        answer);
    run_for(0);
    return answer;
  }
  std::string metrics() { return get("/api/v1/nodes/n:9400/proxy/metrics")->body; }
  // The value of the first series of that name whose labels have the text; "" without one.
  std::string series(std::string_view name, std::string_view labels) {
    const std::string page = metrics();
    for (std::size_t at = 0; at < page.size();) {
      const std::size_t end = std::min(page.find('\n', at), page.size());
      const std::string_view line = std::string_view(page).substr(at, end - at);
      at = end + 1;
      if (!line.starts_with(std::string(name) + "{") || !line.contains(labels)) continue;
      return std::string(line.substr(line.rfind(' ') + 1));
    }
    return {};
  }

  std::optional<World> world_;
};

TEST_F(GpuNodeTest, LabelsNumbersAndConditionsComeFromTheAgent) {
  start(gpu_node("n", "4xH100-SXM5-80GB"));
  EXPECT_EQ(label("nvidia.com/gpu.product"), "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(label("nvidia.com/gpu.count"), "4");
  EXPECT_EQ(label("nvidia.com/mig.strategy"), "mixed");
  EXPECT_EQ(label("nvidia.com/gpu.present"), "true");
  EXPECT_EQ(label("nvidia.com/gpu.mode"), "compute");
  EXPECT_EQ(label("nvidia.com/gpu.machine"), "Jogak-Playground");
  EXPECT_EQ(allocatable(kGpu), "4");
  EXPECT_EQ(condition("GpuUnusable"), "False");
  EXPECT_EQ(condition("Ready"), "True");
  EXPECT_THAT(node().get("metadata", "annotations")["jogak.io/gpus"].as_string(),
              HasSubstr(R"("nvlink":[1,2,3])"));
}

TEST_F(GpuNodeTest, APodHasTheDevicesThatItsStatusAndItsAnnotationName) {
  start(gpu_node("n", "4xH100-SXM5-80GB"));
  add_pod("a", kGpu, 2);
  add_pod("b", kGpu, 2);
  run_for(3 * kSecondInUs);
  const std::vector<std::string> a = devices("a");
  const std::vector<std::string> b = devices("b");
  std::set<std::string> all(a.begin(), a.end());
  all.insert(b.begin(), b.end());
  EXPECT_EQ(a.size(), 2U);
  EXPECT_EQ(all.size(), 4U) << "each device has one owner";
  for (const std::string& id : all) EXPECT_THAT(id, ::testing::StartsWith("GPU-"));
  EXPECT_THAT(world_->pod("a").get("metadata", "annotations")["jogak.io/gpu-holds"].as_string(),
              HasSubstr("\"gpu\":"));
  EXPECT_EQ(world_->broken_rule(), "");
}

// The case from the field: seven instances of one card, seven pods at once, each with one.
TEST_F(GpuNodeTest, SevenPodsRunOnSevenSlicesOfOneCard) {
  start(gpu_node("n", "1xA100-SXM4-80GB", "all-1g.10gb"));
  EXPECT_EQ(label("nvidia.com/mig.config.state"), "success");
  EXPECT_EQ(allocatable(kSlice), "7");
  for (int i = 0; i < 8; ++i) add_pod(fmt::format("p{}", i), kSlice, 1);
  run_for(5 * kSecondInUs);
  EXPECT_EQ(world_->count("p", "Running"), 7U);
  EXPECT_EQ(world_->count("p", "Pending"), 1U);
  std::set<std::string> ids;
  for (int i = 0; i < 8; ++i) {
    for (const std::string& id : devices(fmt::format("p{}", i))) {
      EXPECT_THAT(id, ::testing::StartsWith("MIG-"));
      EXPECT_TRUE(ids.insert(id).second) << id << " is given twice";
    }
  }
  EXPECT_EQ(ids.size(), 7U);
}

TEST_F(GpuNodeTest, AnotherLayoutWaitsForWhatIsInUse) {
  start(gpu_node("n", "2xA100-SXM4-80GB", "all-1g.10gb"));
  EXPECT_EQ(allocatable(kSlice), "14");
  add_pod("p", kSlice, 1);
  run_for(3 * kSecondInUs);
  set_label("nvidia.com/mig.config", "all-2g.20gb");
  run_for(5 * kSecondInUs);
  EXPECT_EQ(label("nvidia.com/mig.config.state"), "failed");
  EXPECT_EQ(allocatable(kSlice), "14");
  EXPECT_EQ(world_->count("p", "Running"), 1U);
  ASSERT_TRUE(world_->api().remove("pods", "default", "p", {}).has_value());
  run_for(10 * kSecondInUs);
  set_label("nvidia.com/mig.config", "all-1g.10gb");
  run_for(5 * kSecondInUs);
  set_label("nvidia.com/mig.config", "all-2g.20gb");
  run_for(5 * kSecondInUs);
  EXPECT_EQ(label("nvidia.com/mig.config.state"), "success");
  EXPECT_EQ(allocatable("nvidia.com/mig-2g.20gb"), "6");
  EXPECT_EQ(capacity(kSlice), "0") << "what was offered once is still named, with none of it";
}

TEST_F(GpuNodeTest, AModeThatWantsAResetGetsOne) {
  start(gpu_node("n", "1xA100-SXM4-80GB"));
  EXPECT_EQ(allocatable(kGpu), "1");
  set_label("nvidia.com/mig.config", "all-3g.40gb");
  run_for(kSecondInUs);
  EXPECT_EQ(label("nvidia.com/mig.config.state"), "rebooting");
  run_for(5 * kSecondInUs);
  EXPECT_EQ(label("nvidia.com/mig.config.state"), "success");
  EXPECT_EQ(allocatable("nvidia.com/mig-3g.40gb"), "2");
  EXPECT_EQ(allocatable(kGpu), "0");
}

TEST_F(GpuNodeTest, FaultsAreScriptedByAnAnnotationAndHealed) {
  start(gpu_node("n", "4xA100-SXM4-80GB"));
  add_pod("p", kGpu, 4);
  run_for(3 * kSecondInUs);
  world_->may_refuse("n");
  world_->annotate_node("n", "jogak.io/gpu-fault", "0=xid:79,1=lost");
  run_for(3 * kSecondInUs);
  EXPECT_EQ(allocatable(kGpu), "2");
  EXPECT_EQ(capacity(kGpu), "4");
  EXPECT_EQ(condition("GpuUnusable"), "True");
  EXPECT_EQ(world_->count("p", "Running"), 1U) << "who has a device keeps it";
  const std::vector<std::string> health = devices("p", "health");
  EXPECT_EQ(std::ranges::count(health, "Unhealthy"), 2);
  EXPECT_EQ(series("DCGM_FI_DEV_XID_ERRORS", "gpu=\"0\""), "79");
  const std::vector<Doc> events = world_->api().list("events");
  EXPECT_TRUE(std::ranges::any_of(events, [](const Doc& event) {
    return event["source"]["component"].as_string() == "jogak-agent" &&
           event["message"].as_string().contains("79");
  })) << "what happened to the node is an Event of it";

  // A second pod finds too few, told by the words of a kubelet.
  ASSERT_TRUE(world_->api().remove("pods", "default", "p", {}).has_value());
  run_for(5 * kSecondInUs);
  Doc late = simple_pod("late", 1, 3);
  late.at("spec").set("nodeName", "n");
  world_->add(std::move(late));
  run_for(2 * kSecondInUs);
  EXPECT_THAT(world_->pod("late").get("status", "message").as_string(),
              HasSubstr("Requested: 3, Available: 2"));

  world_->annotate_node("n", "jogak.io/gpu-fault", "1=lost");
  run_for(3 * kSecondInUs);
  EXPECT_EQ(allocatable(kGpu), "3") << "the XID is healed at once";
  world_->annotate_node("n", "jogak.io/gpu-fault", "");
  run_for(15 * kSecondInUs);
  EXPECT_EQ(allocatable(kGpu), "4") << "a lost GPU counts as back after ten seconds";
  EXPECT_EQ(condition("GpuUnusable"), "False");
  // On top of it, numbers can be taken away without saying of which device.
  world_->annotate_node("n", "jogak.io/unhealthy", "nvidia.com/gpu=3");
  run_for(kSecondInUs);
  EXPECT_EQ(allocatable(kGpu), "1");
}

TEST_F(GpuNodeTest, AFaultThatIsNoneIsToldAsAnEvent) {
  start(gpu_node("n", "1xT4"));
  world_->annotate_node("n", "jogak.io/gpu-fault", "0=burning");
  run_for(kSecondInUs);
  bool is_told = false;
  for (const Doc& event : world_->api().list("events")) {
    is_told |= event["message"].as_string().contains("no kind \"burning\"");
  }
  EXPECT_TRUE(is_told);
  EXPECT_EQ(allocatable(kGpu), "1");
}

TEST_F(GpuNodeTest, MetricsNameThePodAndFollowIt) {
  start(gpu_node("n", "2xH100-SXM5-80GB"));
  Doc pod = simple_pod("busy", 1, 1);
  pod.at("metadata", "annotations").set("jogak.io/gpu-util", "100");
  world_->add(std::move(pod));
  run_for(5 * kSecondInUs);
  EXPECT_EQ(series("DCGM_FI_DEV_GPU_UTIL", "pod=\"busy\""), "100");
  EXPECT_EQ(series("DCGM_FI_DEV_GPU_UTIL", "pod=\"idle\""), "");
  EXPECT_GT(std::stoll(series("DCGM_FI_DEV_FB_USED", "pod=\"busy\"")), 20'000);
  const std::string before = series("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "pod=\"busy\"");
  run_for(60 * kSecondInUs);
  const std::string after = series("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "pod=\"busy\"");
  EXPECT_GT(std::stoll(after) - std::stoll(before), 60 * 400'000) << "60 s of a busy GPU, in mJ";
  ASSERT_TRUE(world_->api().remove("pods", "default", "busy", {}).has_value());
  run_for(5 * kSecondInUs);
  EXPECT_THAT(metrics(), Not(HasSubstr("pod=\"busy\"")));
  EXPECT_EQ(condition("GpuUnusable"), "False") << "an end of load looks like no reset";
}

TEST_F(GpuNodeTest, TheProxyServesWhatTheNodeServes) {
  start(gpu_node("n", "1xT4"));
  const AnswerPtr page = get("/api/v1/nodes/http:n:9400/proxy/metrics");
  EXPECT_EQ(page->status, 200);
  EXPECT_THAT(std::string(page->header("content-type")), HasSubstr("version=0.0.4"));
  EXPECT_EQ(get("/api/v1/nodes/n:9400/proxy/healthz")->status, 200);
  EXPECT_EQ(get("/api/v1/nodes/n:9400/proxy/nothing")->status, 404);
  EXPECT_EQ(get("/api/v1/nodes/n:9401/proxy/metrics")->status, 503);
  EXPECT_EQ(get("/api/v1/nodes/n/proxy/metrics")->status, 503);
  EXPECT_EQ(get("/api/v1/nodes/n:94x0/proxy/metrics")->status, 400);
  const AnswerPtr missing = get("/api/v1/nodes/other:9400/proxy/metrics");
  EXPECT_EQ(missing->status, 404);
  EXPECT_EQ(missing->json()["message"].as_string(), "nodes \"other\" not found");
}

constexpr std::string_view kFourShares =
    "version: v1\nsharing:\n  timeSlicing:\n    resources:\n"
    "    - {name: nvidia.com/gpu, replicas: 4}\n";
constexpr std::string_view kRenamedShares =
    "version: v1\nsharing:\n  timeSlicing:\n    renameByDefault: true\n    resources:\n"
    "    - {name: nvidia.com/gpu, replicas: 2}\n";

TEST_F(GpuNodeTest, SharesAreThoseOfTheAgent) {
  Doc shared = gpu_node("n", "2xL4");
  shared.at("metadata", "annotations").set("jogak.io/plugin-config", kFourShares);
  start(std::move(shared));
  EXPECT_EQ(label("nvidia.com/gpu.product"), "NVIDIA-L4-SHARED");
  EXPECT_EQ(label("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(label("nvidia.com/gpu.replicas"), "4");
  EXPECT_EQ(label("nvidia.com/gpu.sharing-strategy"), "time-slicing");
  EXPECT_EQ(allocatable(kGpu), "8");
  for (int i = 0; i < 9; ++i) add_pod(fmt::format("p{}", i), kGpu, 1);
  run_for(5 * kSecondInUs);
  EXPECT_EQ(world_->count("p", "Running"), 8U);
  EXPECT_EQ(world_->count("p", "Pending"), 1U);
  std::set<std::string> ids;
  for (int i = 0; i < 9; ++i) {
    for (const std::string& id : devices(fmt::format("p{}", i))) {
      EXPECT_THAT(id, ::testing::ContainsRegex("^GPU-.*::[0-3]$"));
      EXPECT_TRUE(ids.insert(id).second) << id << " is given twice";
    }
  }
  EXPECT_EQ(ids.size(), 8U);
  // What a GPU does is told of each pod by its own processes, and is never more than there is.
  constexpr std::int64_t kMemory = std::int64_t{23'034} << 20U;
  std::int64_t sum = 0;
  int told = 0;
  for (int i = 0; i < 9; ++i) {
    const std::string used =
        series("jogak_gpu_pod_memory_used_bytes", fmt::format("pod=\"p{}\"", i));
    if (used.empty()) continue;
    ++told;
    sum += std::stoll(used);
  }
  EXPECT_EQ(told, 8);
  EXPECT_GT(sum, kMemory / 2);
  EXPECT_LT(sum, 2 * kMemory);
}

TEST_F(GpuNodeTest, AnotherConfigurationIsTakenWhileTheNodeRuns) {
  start(gpu_node("n", "2xA10"));
  EXPECT_EQ(allocatable(kGpu), "2");
  EXPECT_EQ(label("nvidia.com/gpu.product"), "NVIDIA-A10");
  world_->annotate_node("n", "jogak.io/plugin-config", kRenamedShares);
  run_for(kSecondInUs);
  EXPECT_EQ(allocatable("nvidia.com/gpu.shared"), "4");
  EXPECT_EQ(allocatable(kGpu), "0");
  EXPECT_EQ(label("nvidia.com/gpu.product"), "NVIDIA-A10") << "the resource's name tells";
  EXPECT_EQ(label("nvidia.com/gpu.replicas"), "2");
  world_->annotate_node("n", "jogak.io/plugin-config", "version: v1\nsharing: {slicing: 2}\n");
  run_for(kSecondInUs);
  EXPECT_EQ(allocatable("nvidia.com/gpu.shared"), "4") << "one that is wrong changes nothing";
  bool is_told = false;
  for (const Doc& event : world_->api().list("events")) {
    is_told |= event["reason"].as_string() == "InvalidPluginConfig" &&
               event["message"].as_string().contains("slicing");
  }
  EXPECT_TRUE(is_told);
  world_->annotate_node("n", "jogak.io/plugin-config", "");
  run_for(kSecondInUs);
  EXPECT_EQ(allocatable(kGpu), "2");
  EXPECT_EQ(allocatable("nvidia.com/gpu.shared"), "0");
}

TEST_F(GpuNodeTest, AConditionKnowsSinceWhenItHolds) {
  start(gpu_node("n", "2xA10"));
  const auto since = [&](std::string_view type) {
    const Doc object = node();
    for (const Doc& condition : object.get("status", "conditions").items()) {
      if (condition["type"].as_string() == type) {
        return condition["lastTransitionTime"].as_string();
      }
    }
    return std::string();
  };
  const std::string ready = since("Ready");
  EXPECT_NE(ready, "");
  run_for(20 * kSecondInUs);
  world_->annotate_node("n", "jogak.io/plugin-config", kFourShares);  // another status is written
  run_for(kSecondInUs);
  EXPECT_EQ(allocatable(kGpu), "8");
  EXPECT_EQ(since("Ready"), ready);
  EXPECT_EQ(since("GpuUnusable"), ready);
}

TEST_F(GpuNodeTest, InstancesThatAreCalledGpusArePlacedByTheirNumber) {
  Doc cut = gpu_node("n", "1xA100-SXM4-80GB", "all-1g.10gb");
  cut.at("metadata", "annotations")
      .set("jogak.io/plugin-config", "version: v1\nflags: {migStrategy: single}\n");
  start(std::move(cut));
  EXPECT_EQ(allocatable(kGpu), "7");
  EXPECT_EQ(label("nvidia.com/gpu.product"), "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb");
  for (int i = 0; i < 8; ++i) add_pod(fmt::format("p{}", i), kGpu, 1);
  run_for(5 * kSecondInUs);
  EXPECT_EQ(world_->count("p", "Running"), 7U);
}

TEST_F(GpuNodeTest, SharedInstances) {
  Doc cut = gpu_node("n", "1xA100-SXM4-80GB", "all-3g.40gb");
  cut.at("metadata", "annotations")
      .set("jogak.io/plugin-config",
           "version: v1\nsharing:\n  timeSlicing:\n    resources:\n"
           "    - {name: nvidia.com/mig-3g.40gb, replicas: 3}\n");
  start(std::move(cut));
  EXPECT_EQ(allocatable("nvidia.com/mig-3g.40gb"), "6");
  EXPECT_EQ(label("nvidia.com/mig-3g.40gb.replicas"), "3");
}

// A pod's wish, the scheduler's place, the agent's cut.
TEST_F(GpuNodeTest, AnInstanceIsCutForAPod) {
  start(gpu_node("n", "1xA100-SXM4-80GB", "all-1g.10gb"));
  add_pod("small", kSlice, 1);
  run_for(3 * kSecondInUs);
  Doc wants = simple_pod("wants", 1, 0);
  wants.at("metadata", "annotations").set("jogak.io/mig-profile", "3g.40gb");
  world_->add(std::move(wants));
  run_for(3 * kSecondInUs);
  EXPECT_EQ(world_->count("", "Running"), 2U);
  EXPECT_EQ(allocatable("nvidia.com/mig-3g.40gb"), "1");
  const std::string small = devices("small").at(0);
  EXPECT_NE(allocatable(kSlice), "7");
  EXPECT_EQ(world_->broken_rule(), "");
  // Who has a device keeps it, and what was cut stays for the next.
  ASSERT_TRUE(world_->api().remove("pods", "default", "wants", {}).has_value());
  run_for(5 * kSecondInUs);
  EXPECT_EQ(devices("small").at(0), small);
  add_pod("next", "nvidia.com/mig-3g.40gb", 1);
  run_for(3 * kSecondInUs);
  EXPECT_EQ(world_->count("next", "Running"), 1U);
}

TEST_F(GpuNodeTest, ANodeThatIsDownIsSilent) {
  start(gpu_node("n", "2xA100-SXM4-80GB"));
  add_pod("p", kGpu, 1);
  run_for(3 * kSecondInUs);
  EXPECT_NE(series("DCGM_FI_DEV_GPU_UTIL", "pod=\"p\""), "");
  const std::vector<std::string> held = devices("p");
  world_->annotate_node("n", "jogak.io/fault", "down");
  run_for(kSecondInUs);
  EXPECT_EQ(get("/api/v1/nodes/n:9400/proxy/metrics")->status, 503);
  world_->annotate_node("n", "jogak.io/gpu-fault", "1=xid:79");
  world_->annotate_node("n", "jogak.io/plugin-config", kFourShares);
  set_label("nvidia.com/mig.config", "all-1g.10gb");
  run_for(60 * kSecondInUs);
  EXPECT_EQ(condition("Ready"), "Unknown");
  EXPECT_EQ(condition("GpuUnusable"), "False") << "nobody looks";
  EXPECT_EQ(allocatable(kGpu), "2");
  EXPECT_EQ(label("nvidia.com/gpu.replicas"), "1");
  EXPECT_EQ(label("nvidia.com/mig.config.state"), "");
  world_->annotate_node("n", "jogak.io/fault", "");
  run_for(5 * kSecondInUs);
  EXPECT_EQ(condition("Ready"), "True");
  EXPECT_EQ(condition("GpuUnusable"), "True");
  EXPECT_EQ(label("nvidia.com/gpu.replicas"), "4");
  EXPECT_EQ(label("nvidia.com/mig.config.state"), "failed") << "the pod is in its way";
  EXPECT_EQ(get("/api/v1/nodes/n:9400/proxy/metrics")->status, 200);
  EXPECT_EQ(world_->count("p", "Running"), 1U);
  EXPECT_EQ(devices("p"), held);
}

TEST_F(GpuNodeTest, ANodeThatIsMadeDownStartsWhenItComes) {
  Doc down = gpu_node("n", "1xV100-SXM2-32GB");
  down.at("metadata", "annotations").set("jogak.io/fault", "down");
  start(std::move(down));
  EXPECT_TRUE(world_->playground().is_settled());
  EXPECT_EQ(label("nvidia.com/gpu.product"), "");
  EXPECT_EQ(get("/api/v1/nodes/n:9400/proxy/metrics")->status, 503);
  world_->annotate_node("n", "jogak.io/fault", "");
  run_for(2 * kSecondInUs);
  EXPECT_EQ(label("nvidia.com/gpu.product"), "Tesla-V100-SXM2-32GB");
  EXPECT_EQ(allocatable(kGpu), "1");
}

TEST_F(GpuNodeTest, V100sAreJoinedAsInADgx1) {
  start(gpu_node("n", "8xV100-SXM2-32GB"));
  EXPECT_THAT(node().get("metadata", "annotations")["jogak.io/gpus"].as_string(),
              HasSubstr(R"("nvlink":[1,2,3,4])"));
  EXPECT_EQ(label("nvidia.com/gpu.family"), "volta");
}

TEST_F(GpuNodeTest, AMachineThatIsNoneLeavesTheManifestsNumbers) {
  Doc node = gpu_node("n", "8xH9000");
  node.at("status", "capacity").set(kGpu, "8");
  start(std::move(node));
  EXPECT_EQ(allocatable(kGpu), "8");
  bool is_told = false;
  for (const Doc& event : world_->api().list("events")) {
    is_told |= event["message"].as_string().contains("expected COUNTxMODEL");
  }
  EXPECT_TRUE(is_told);
}

// The agent of one node is asked, the others are told: all but the UUIDs is the same, and whoever
// is disturbed is a node of its own.
TEST(GpuNodes, NodesWithTheSameGpusDifferInTheirUuids) {
  std::vector<Doc> nodes;
  for (const std::string_view name : {"a", "b", "c"}) nodes.push_back(gpu_node(name, "2xA30"));
  World world(std::move(nodes), options());
  world.run_for(2 * kSecondInUs);
  EXPECT_TRUE(world.playground().is_settled());
  const auto node = [&](std::string_view name) { return *world.api().get("nodes", "", name); };
  const auto gpus = [&](std::string_view name) {
    return node(name).get("metadata", "annotations")["jogak.io/gpus"].as_string();
  };
  std::set<std::string> different;
  for (const std::string_view name : {"a", "b", "c"}) {
    const Doc object = node(name);
    EXPECT_EQ(object.get("status", "allocatable")[kGpu].as_string(), "2");
    EXPECT_EQ(object["metadata"]["labels"]["nvidia.com/gpu.product"].as_string(), "NVIDIA-A30");
    different.insert(gpus(name));
  }
  EXPECT_EQ(different.size(), 3U);
  const std::string before = gpus("b");
  world.annotate_node("b", "jogak.io/gpu-fault", "1=xid:79");
  Doc pod = simple_pod("p", 1, 2);
  pod.at("spec").set("nodeName", "c");
  world.add(std::move(pod));
  world.run_for(5 * kSecondInUs);
  EXPECT_EQ(node("b").get("status", "allocatable")[kGpu].as_string(), "1");
  EXPECT_EQ(node("a").get("status", "allocatable")[kGpu].as_string(), "2");
  EXPECT_EQ(world.count("p", "Running"), 1U);
  const Doc running = world.pod("p");
  std::string status;
  running.append_json(status);
  const std::string first = gpus("c").substr(gpus("c").find("GPU-"), 40);
  EXPECT_THAT(status, HasSubstr(first)) << "what was told is what its own agent finds";
  world.annotate_node("b", "jogak.io/gpu-fault", "");
  world.run_for(5 * kSecondInUs);
  EXPECT_EQ(gpus("b"), before);
}

// Whoever waits for a node that goes down is told by another.
TEST(GpuNodes, NobodyWaitsForANodeThatIsDown) {
  std::vector<Doc> nodes;
  for (const std::string_view name : {"a", "b", "c"}) nodes.push_back(gpu_node(name, "2xL40S"));
  World world(std::move(nodes), options());
  for (const std::string_view name : {"a", "c"})
    world.annotate_node(name, "jogak.io/fault", "down");
  world.run_for(2 * kSecondInUs);
  EXPECT_TRUE(world.playground().is_settled());
  const auto product = [&](std::string_view name) {
    return world.api()
        .get("nodes", "", name)
        ->get("metadata", "labels")["nvidia.com/gpu.product"]
        .as_string();
  };
  EXPECT_EQ(product("b"), "NVIDIA-L40S");
  for (const std::string_view name : {"a", "c"}) world.annotate_node(name, "jogak.io/fault", "");
  world.run_for(2 * kSecondInUs);
  EXPECT_EQ(product("a"), "NVIDIA-L40S");
  EXPECT_EQ(product("c"), "NVIDIA-L40S");
}

// A process that keeps its objects in a folder finds its machines as they were made at first, cuts
// them as the labels say, and gives each pod what it held.
TEST(GpuNodes, PodsKeepTheirDevicesOverARestart) {
  const TempFolder folder;
  const auto held = [](World& world) {
    std::string all;
    for (const std::string_view name : {"s0", "s1", "whole"}) {
      const Doc pod = world.pod(name);
      pod.get("status", "containerStatuses").append_json(all);
    }
    return all;
  };
  const auto nodes = [] {
    std::vector<Doc> made = one(gpu_node("n", "1xA100-SXM4-80GB", "all-1g.10gb"));
    made.push_back(gpu_node("m", "4xA30"));
    return made;
  };
  std::string before;
  {
    PlaygroundOptions made = options();
    made.server.data_dir = folder.path();
    World world(nodes(), std::move(made));
    world.run_for(2 * kSecondInUs);
    for (const std::string_view name : {"s0", "s1"}) {
      Doc pod = simple_pod(name, 1, 0);
      pod.at("spec").at("containers").items()[0].at("resources", "limits").set(kSlice, "1");
      world.add(std::move(pod));
    }
    world.add(simple_pod("whole", 1, 2));
    world.run_for(5 * kSecondInUs);
    EXPECT_EQ(world.count("", "Running"), 3U);
    before = held(world);
    EXPECT_THAT(before, HasSubstr("\"resourceID\":\"MIG-"));
    ASSERT_TRUE(world.playground().server().flush().has_value());
  }
  PlaygroundOptions made = options();
  made.server.data_dir = folder.path();
  World world({}, std::move(made));
  world.run_for(10 * kSecondInUs);
  EXPECT_EQ(world.count("", "Running"), 3U);
  EXPECT_EQ(held(world), before);
  EXPECT_EQ(world.broken_rule(), "");
}

// Everything that happens is a function of the seed.
TEST(GpuNodes, TheSameSeedGivesTheSameHistory) {
  const auto history = [] {
    World world(default_fleet(), options());
    world.run_for(3 * kSecondInUs);
    for (int i = 0; i < 6; ++i) world.add(simple_pod(fmt::format("p{}", i), 1, 1));
    Doc slice = simple_pod("slice", 1, 0);
    slice.at("spec").at("containers").items()[0].at("resources", "limits").set(kSlice, "1");
    world.add(std::move(slice));
    world.run_for(3 * kSecondInUs);
    world.annotate_node("train-0-0", "jogak.io/gpu-fault", "3=xid:79");
    world.run_for(10 * kSecondInUs);
    world.annotate_node("train-0-0", "jogak.io/gpu-fault", "");
    world.run_for(20 * kSecondInUs);
    std::string all;
    for (const std::string_view kind : {"nodes", "pods", "events"}) {
      for (const Doc& object : world.api().list(kind)) object.append_json(all);
    }
    const auto page = std::make_shared<Answer>();
    world.playground().server().handle({.method = "GET",
                                        .target = "/api/v1/nodes/mig-0:9400/proxy/metrics",
                                        .headers = {{"Authorization", "Bearer t"}},
                                        .body = {}},
                                       page);
    world.run_for(0);
    EXPECT_EQ(page->status, 200);
    return all + page->body;
  };
  const std::string first = history();
  EXPECT_TRUE(first == history());
}

}  // namespace
}  // namespace jogak::playground::testing
