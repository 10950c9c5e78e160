// SPDX-License-Identifier: Apache-2.0
//
// A node on which everything breaks, in random order and together, for hours of virtual time: GPUs
// that are lost, tell XIDs, are reset and lose their layout; a driver that is reloaded, is slow or
// answers nonsense; a kubelet, an API server and folders that come and go; an agent that dies.
// While it lasts no device is given twice and no dead GPU is on offer for long. Each time it is
// quiet, all that the agent says is looked at against the driver, by code that shares nothing with
// the agent's.
#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/labels/feature_labels.h"
#include "agent/mig/testing/trial.h"
#include "agent/plugin/cdi.h"
#include "agent/run/testing/node_rig.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/testing/temp_folder.h"
#include "nvml/nvml_source.h"

namespace jogak::agent {
namespace {

namespace fs = std::filesystem;
using nvml::sim::FaultKind;
using nvml::sim::FaultSpec;
using ::testing::IsEmpty;
using testing::MigTrial;
using testing::NodeRig;

constexpr int kGpus = 3;
constexpr auto kMachine = "identity: t\ngpus: [{model: H100-SXM5-80GB, count: 3}]\n";
constexpr auto kWhole = "nvidia.com/gpu";
constexpr auto kConfig = "nvidia.com/mig.config";
constexpr auto kState = "nvidia.com/mig.config.state";
constexpr TimeUs kStep = 100 * kMsInUs;
// How long a GPU may be gone before it must not be on offer any more: a sample comes each second.
constexpr TimeUs kSeenWithin = 3 * kSecondInUs;

FaultSpec fault_of(FaultKind kind, int gpu, TimeUs lasting = 0, std::int64_t code = 0) {
  FaultSpec fault;
  fault.kind = kind;
  fault.gpu = gpu;
  fault.lasting = lasting;
  fault.code = code;
  return fault;
}

// A folder that is sometimes none: whoever writes there finds a file in its place.
class Disk {
 public:
  explicit Disk(std::string path) : path_(std::move(path)) { fs::create_directories(path_); }
  const std::string& path() const { return path_; }
  void set_usable(bool is_usable) {
    if (is_usable == is_usable_) return;
    is_usable_ = is_usable;
    if (is_usable) {
      fs::remove(path_);
      fs::rename(path_ + ".away", path_);
    } else {
      fs::rename(path_, path_ + ".away");
      ASSERT_TRUE(write_file(path_, "in the way"));
    }
  }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : fs::directory_iterator(path_)) {
      result.push_back(entry.path().filename().string());
    }
    return result;
  }

 private:
  std::string path_;
  bool is_usable_ = true;
};

// All values of `before`...`"` in a text: `"name": "` gives the names of a CDI file.
std::set<std::string> values(std::string_view text, std::string_view before) {
  std::set<std::string> result;
  for (std::size_t at = text.find(before); at != std::string_view::npos;
       at = text.find(before, at + 1)) {
    const std::size_t begin = at + before.size();
    result.emplace(text.substr(begin, text.find('"', begin) - begin));
  }
  return result;
}

class Storm {
 public:
  explicit Storm(std::uint64_t seed)
      : rng_(seed, "storm"),
        cdi_(folder_.path("cdi")),
        features_(folder_.path("features.d")),
        has_file_(rng_.below(2) == 0),
        rig_(kMachine, options(), host()) {
    rig_.start();
  }

  void live(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      act();
      pass(static_cast<TimeUs>(rng_.below(200)) * kStep);
    }
  }

  // All that was broken is mended, and the node is asked for a layout: then everything holds.
  void calm() {
    for (Disk* const disk : {&cdi_, &features_}) disk->set_usable(true);
    rig_.kubelet = {};
    rig_.catch_up();
    pods_.clear();
    // What lasts ends; the facts, which are read once a minute, know the names of all GPUs again.
    pass(100 * kSecondInUs);
    rig_.machine->inject(fault_of(FaultKind::Reset, -1));
    const bool is_cut = rng_.below(2) == 0;
    rig_.label(kConfig, "");
    rig_.label(kConfig, is_cut ? "all-1g.10gb" : "all-disabled");
    // Facts of health are told for some minutes more, and the facts are read once a minute.
    pass(400 * kSecondInUs);
    EXPECT_EQ(rig_.node_label(kState), "success")
        << rig_.node_annotation("jogak.io/mig.config.reason") << last_lines();
    const nvml::NodeFacts facts = driver();
    EXPECT_EQ(facts.gpus.size(), static_cast<std::size_t>(kGpus));
    for (const nvml::GpuFacts& gpu : facts.gpus) {
      EXPECT_EQ(gpu.mig_instances.size(), is_cut ? 7U : 0U);
    }
    check_offer(facts);
    check_cdi(facts);
    check_labels(facts, is_cut);
    check_metrics(facts);
    for (const char* const type : {"GpuUnusable", "GpuMemoryErrors", "GpuThrottled"}) {
      EXPECT_FALSE(rig_.condition(type)) << type;
    }
    EXPECT_THAT(rig_.failures, IsEmpty());
  }

  // In use by this process, with what the rig wrote down thrown away.
  std::size_t memory() {
    if (rig_.offers.size() > 1) rig_.offers.erase(rig_.offers.begin(), rig_.offers.end() - 1);
    if (rig_.wishes.size() > 1) rig_.wishes.erase(rig_.wishes.begin(), rig_.wishes.end() - 1);
    rig_.offers.shrink_to_fit();
    rig_.wishes.shrink_to_fit();
    rig_.lines.lines.clear();
    rig_.lines.lines.shrink_to_fit();
    return ::mallinfo2().uordblks;
  }

  bool dies = true;
  int allocations = 0, restarts = 0;

 private:
  struct Pod {
    std::string name, resource, id;
    int gpu = 0;
  };

  AgentOptions options() const {
    AgentOptions options = NodeRig::defaults();
    options.plugin.mig_strategy = MigStrategy::Mixed;
    options.plugin.fail_on_init_error = false;  // an agent that starts during a reload waits
    options.plugin.list_strategies = {ListStrategy::CdiCri};
    options.plugin.gfd.output_file = features_.path() + "/gfd";
    options.labels = has_file_ ? LabelPlace::File : LabelPlace::Node;
    return options;
  }

  HostView host() const {
    HostView host;
    host.put_cdi = [path = cdi_.path()](const std::vector<CdiFile>& files) {
      return CdiFolder(path).put(files);
    };
    host.has_cdi = [path = cdi_.path()] { return CdiFolder(path).has_files(); };
    host.put_labels = write_features_file;
    return host;
  }

  std::string last_lines() const {
    std::string text;
    const auto& lines = rig_.lines.lines;
    for (std::size_t i = lines.size() > 30 ? lines.size() - 30 : 0; i < lines.size(); ++i) {
      text += "\n" + lines[i];
    }
    return text;
  }

  // ---- what happens ---------------------------------------------------------------------------

  void act() {
    const int gpu = static_cast<int>(rng_.below(kGpus));
    const TimeUs lasting = rng_.between(1, 30) * kSecondInUs;
    switch (rng_.below(16)) {
      case 0:
      case 1:
        lost_until_[gpu] = std::max(lost_until_[gpu], rig_.loop.now() + lasting);
        return rig_.machine->inject(fault_of(FaultKind::Lost, gpu, lasting));
      case 2:
        return rig_.machine->inject(fault_of(FaultKind::Xid, gpu, 0, xid()));
      case 3:
        end_pods([&](const Pod& pod) { return pod.gpu == gpu; });
        return rig_.machine->inject(fault_of(FaultKind::Reset, gpu));
      case 4:
        end_pods([](const Pod& /*pod*/) { return true; });
        return rig_.machine->inject(fault_of(FaultKind::DriverReload, -1, lasting));
      case 5:
        return rig_.machine->inject(call_fault(gpu, lasting));
      case 6:
        return rig_.machine->inject(passing_fault(gpu, lasting));
      case 7:
        rig_.kubelet =
            rig_.kubelet ? Result<void>(fail(Errc::Unavailable, "nobody listens")) : Result<void>();
        return;
      case 8:
        return cdi_.set_usable(rng_.below(2) == 0);
      case 9:
        return features_.set_usable(rng_.below(2) == 0);
      case 10:
        if (rig_.writes_node) {
          rig_.writes_node = false;
        } else {
          rig_.catch_up();
        }
        return;
      case 11:
        return rig_.label(kConfig, config());
      case 12:
      case 13:
        return allocate();
      case 14:
        if (!pods_.empty()) pods_.erase(pods_.begin());
        return;
      default:
        if (!dies) return;
        ++restarts;
        return rig_.restart();
    }
  }

  std::int64_t xid() {
    static const std::vector<std::int64_t> kCodes = {13, 31, 43, 48, 63, 64, 74, 79, 94, 95, 119};
    return kCodes[rng_.below(kCodes.size())];
  }
  std::string config() {
    static const std::vector<std::string> kConfigs = {"all-disabled", "all-1g.10gb", "all-balanced",
                                                      "all-7g.80gb", "no-such"};
    return kConfigs[rng_.below(kConfigs.size())];
  }
  // A function of the driver that answers any code that there is.
  FaultSpec call_fault(int gpu, TimeUs lasting) {
    static const std::vector<std::string> kCalls = {"nvmlDeviceGetCount_v2",
                                                    "nvmlDeviceGetHandleByIndex_v2",
                                                    "nvmlDeviceGetUUID",
                                                    "nvmlDeviceGetTemperature",
                                                    "nvmlDeviceGetMemoryInfo_v2",
                                                    "nvmlDeviceGetMigMode",
                                                    "nvmlEventSetWait_v2",
                                                    "nvmlDeviceGetMigDeviceHandleByIndex",
                                                    "nvmlDeviceGetGpuInstances",
                                                    "nvmlDeviceCreateGpuInstanceWithPlacement",
                                                    "nvmlGpuInstanceDestroy",
                                                    "nvmlDeviceSetMigMode",
                                                    "nvmlDeviceGetUtilizationRates"};
    static const std::vector<std::int64_t> kCodes = {1, 2, 3, 4, 6, 9, 10, 15, 17, 19, 999};
    const std::size_t call = rng_.below(kCalls.size());
    const std::size_t code = rng_.below(kCodes.size());
    FaultSpec fault = fault_of(FaultKind::FailCall, gpu, lasting, kCodes[code]);
    fault.call = kCalls[call];
    return fault;
  }
  FaultSpec passing_fault(int gpu, TimeUs lasting) {
    static const std::vector<FaultKind> kKinds = {FaultKind::Thermal, FaultKind::PowerBrake,
                                                  FaultKind::NvlinkDown, FaultKind::Ecc};
    const std::size_t kind = rng_.below(kKinds.size());
    return fault_of(kKinds[kind], gpu, lasting, kKinds[kind] == FaultKind::Thermal ? 95 : 0);
  }

  // The kubelet gives a pod a device that is on offer and that it gave to nobody.
  void allocate() {
    if (!rig_.kubelet || rig_.offers.empty()) return;
    std::vector<Pod> free;
    for (const PluginResource& resource : rig_.offers.back()->inventory.resources) {
      for (const PluginDevice& device : resource.devices) {
        const bool is_held = std::ranges::find(pods_, device.id, &Pod::id) != pods_.end();
        if (!device.is_healthy || is_held) continue;
        free.push_back({.name = "", .resource = resource.name, .id = device.id, .gpu = device.gpu});
      }
    }
    if (free.empty()) return;
    Pod pod = free[rng_.below(free.size())];
    pod.name = fmt::format("pod-{}", ++names_);
    ++allocations;
    pods_.push_back(pod);
    // Whole boards and slices of one board, or two slices that overlap, would be the same thing
    // given twice; slices of one board are apart as the driver made them.
    for (const Pod& other : pods_) {
      if (other.gpu != pod.gpu || other.id == pod.id) continue;
      EXPECT_TRUE(other.resource != kWhole && pod.resource != kWhole)
          << other.id << " of " << other.name << " and " << pod.id << " of " << pod.name;
    }
  }

  // Containers do not outlive the board that they compute on.
  template <class Which>
  void end_pods(Which which) {
    std::erase_if(pods_, which);
  }

  void pass(TimeUs span) {
    const TimeUs end = rig_.loop.now() + span;
    while (rig_.loop.now() < end && !::testing::Test::HasFailure()) {
      rig_.holdings.clear();
      for (const Pod& pod : pods_) {
        rig_.holdings.push_back(
            {.resource = pod.resource,
             .device_id = pod.id,
             .holder = {
                 .pod_namespace = "ml", .pod = pod.name, .container = "main", .pod_uid = ""}});
      }
      if (rig_.loop.now() >= next_list_) {
        next_list_ = rig_.loop.now() + 5 * kSecondInUs;
        if (rig_.kubelet) {
          rig_.node->on_holdings(rig_.holdings);
        } else {
          rig_.node->on_holdings(std::unexpected(rig_.kubelet.error()));
        }
      }
      rig_.loop.run_for(kStep);
      check_always();
    }
  }

  // ---- what must hold -------------------------------------------------------------------------

  void check_always() {
    if (rig_.offers.empty()) return;
    std::set<std::string> ids;
    for (const PluginResource& resource : rig_.offers.back()->inventory.resources) {
      for (const PluginDevice& device : resource.devices) {
        EXPECT_TRUE(ids.insert(device.id).second) << device.id << " is offered twice";
        if (device.is_healthy && is_long_lost(device.gpu_uuid)) {
          ADD_FAILURE() << device.id << " is on offer, and its GPU is lost";
        }
      }
    }
  }

  bool is_long_lost(const std::string& uuid) {
    for (const auto& [gpu, until] : lost_until_) {
      if (rig_.gpu_uuid(gpu) != uuid || rig_.loop.now() >= until) continue;
      if (!rig_.machine->is_driver_up() || !rig_.machine->is_lost(gpu)) continue;
      auto& since = lost_since_[gpu];
      if (since == 0) since = rig_.loop.now();
      return rig_.loop.now() - since > kSeenWithin;
    }
    for (auto& [gpu, since] : lost_since_) {
      if (rig_.gpu_uuid(gpu) == uuid) since = 0;
    }
    return false;
  }

  nvml::NodeFacts driver() {
    const auto source =
        nvml::NvmlSource::of_machine(rig_.machine, [this] { return rig_.loop.now(); });
    auto facts = source->facts();
    EXPECT_TRUE(facts);
    return facts ? *std::move(facts) : nvml::NodeFacts();
  }

  static std::map<std::string, std::string> devices_of(const nvml::NodeFacts& facts) {
    std::map<std::string, std::string> result;  // id -> resource
    for (const nvml::GpuFacts& gpu : facts.gpus) {
      if (!gpu.mig_enabled) result[gpu.uuid] = kWhole;
      for (const nvml::MigInstanceFacts& row : gpu.mig_instances) {
        result[row.uuid] = "nvidia.com/mig-" + row.profile;
      }
    }
    return result;
  }

  void check_offer(const nvml::NodeFacts& facts) {
    std::map<std::string, std::string> offered;
    for (const PluginResource& resource : rig_.offers.back()->inventory.resources) {
      for (const PluginDevice& device : resource.devices) {
        offered[device.id] = resource.name;
        EXPECT_TRUE(device.is_healthy) << device.id << ": " << device.reason;
      }
    }
    EXPECT_EQ(offered, devices_of(facts));
  }

  void check_cdi(const nvml::NodeFacts& facts) {
    EXPECT_THAT(cdi_.names(), ::testing::ElementsAre("k8s.device-plugin.nvidia.com-gpu.json"));
    const auto text = read_file(cdi_.path() + "/k8s.device-plugin.nvidia.com-gpu.json");
    ASSERT_TRUE(text);
    std::set<std::string> named;
    for (const std::string& name : values(*text, "\"name\": \"")) {
      if (name.starts_with("GPU-") || name.starts_with("MIG-")) named.insert(name);
    }
    std::set<std::string> wanted;
    for (const auto& [id, resource] : devices_of(facts)) wanted.insert(id);
    for (const nvml::GpuFacts& gpu : facts.gpus) {
      if (gpu.mig_enabled) named.erase(gpu.uuid);  // whether the board itself is named is free
    }
    EXPECT_EQ(named, wanted);
  }

  void check_labels(const nvml::NodeFacts& facts, bool is_cut) {
    Labels labels = rig_.wishes.back().labels;
    if (has_file_) {
      EXPECT_THAT(features_.names(), ::testing::ElementsAre("gfd"));
      const std::string text = read_file(features_.path() + "/gfd").value_or("");
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string line = text.substr(at, end - at);
        const std::size_t equals = line.find('=');
        if (equals != std::string::npos) labels[line.substr(0, equals)] = line.substr(equals + 1);
        at = end + 1;
      }
    }
    EXPECT_EQ(labels["nvidia.com/gpu.count"], std::to_string(facts.gpus.size()));
    EXPECT_EQ(labels["nvidia.com/mig-1g.10gb.count"], is_cut ? "21" : "");
    for (const auto& [name, value] : labels) {
      const bool is_of_slices = name.starts_with("nvidia.com/mig-");
      EXPECT_TRUE(!is_of_slices || is_cut || value.empty()) << name << "=" << value << " is stale";
    }
  }

  void check_metrics(const nvml::NodeFacts& facts) {
    const auto page = rig_.node->exporter()->page(ExpositionFormat::Text);
    std::set<std::string> boards;
    for (const nvml::GpuFacts& gpu : facts.gpus) boards.insert(gpu.uuid);
    EXPECT_EQ(values(*page, ",UUID=\""), boards);
    std::set<std::string> slices;
    for (const nvml::GpuFacts& gpu : facts.gpus) {
      for (const nvml::MigInstanceFacts& row : gpu.mig_instances) {
        slices.insert(std::to_string(row.gi_id));
      }
    }
    EXPECT_EQ(values(*page, ",GPU_I_ID=\""), slices);
    EXPECT_THAT(values(*page, ",pod=\"pod"), IsEmpty()) << "pods that are gone are measured";
  }

  Rng rng_;
  TempFolder folder_;
  Disk cdi_, features_;
  const bool has_file_;
  NodeRig rig_;
  std::vector<Pod> pods_;
  std::map<int, TimeUs> lost_until_, lost_since_;
  int names_ = 0;
  TimeUs next_list_ = 0;
};

TEST(Storm, WhateverBreaksTheNodeIsWhatTheDriverSaysOnceItIsQuiet) {
  const MigTrial trial = MigTrial::from_env(12);
  int allocations = 0;
  int restarts = 0;
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    SCOPED_TRACE(trial.repeat(round));
    Storm storm(trial.seed_of(round));
    for (int i = 0; i < 2 && !HasFailure(); ++i) {
      storm.live(60);
      if (!HasFailure()) storm.calm();
    }
    allocations += storm.allocations;
    restarts += storm.restarts;
    if (HasFailure()) return;
  }
  if (trial.rounds < 12) return;
  EXPECT_GT(allocations, 50);
  EXPECT_GT(restarts, 20);
}

TEST(Storm, MemoryDoesNotGrow) {
  Storm storm(1);
  storm.dies = false;
  std::vector<std::size_t> used;
  for (int i = 0; i < 6 && !HasFailure(); ++i) {
    storm.live(60);
    storm.calm();
    used.push_back(storm.memory());
  }
  ASSERT_EQ(used.size(), 6U);
  // Windows of events fill up at first; sanitizers count nothing here.
  EXPECT_LT(used[5], used[2] + 300'000) << ::testing::PrintToString(used);
}

}  // namespace
}  // namespace jogak::agent
