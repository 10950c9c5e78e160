// SPDX-License-Identifier: Apache-2.0
//
// Names of profiles, configuration files as users have them, what they mean for GPUs, and layouts
// as typed.
#include "agent/mig/config_file.h"

#include <gtest/gtest.h>

#include "agent/mig/profile_name.h"
#include "agent/mig/testing/fake_gpus.h"

namespace jogak::agent {
namespace {

using testing::FakeGpus;
using testing::Fuse;
using testing::mig_model;

std::string matched(std::string_view name, std::string_view model) {
  const auto& profiles = mig_model(model).profiles;
  const auto at = match_profile(name, profiles);
  return at ? profiles[static_cast<std::size_t>(*at)].name : at.error().what;
}

TEST(MigName, ReadsEveryForm) {
  for (const std::string name : {"1g.5gb", "7g.141gb", "1g.10gb+me", "1g.24gb-me", "1g.24gb+me.all",
                                 "2c.4g.20gb", "1g.24gb+gfx,me"}) {
    const auto parsed = parse_mig_name(name);
    ASSERT_TRUE(parsed.has_value()) << parsed.error().what;
    EXPECT_EQ(mig_name_text(*parsed), name);
  }
  EXPECT_EQ(parse_mig_name("1g.10gb.me"), parse_mig_name("1g.10gb+me"));
  EXPECT_EQ(parse_mig_name("3c.3g.20gb"), parse_mig_name("3g.20gb"));
  EXPECT_EQ(mig_resource_form("1g.24gb+me.all"), "1g.24gb.me.all");
  EXPECT_EQ(mig_resource_form("1g.24gb-me"), "1g.24gb-me");
}

TEST(MigName, RefusesTheRest) {
  for (const std::string name :
       {"", "g", "1g", "1g.", "1g.5", "1g.5gb+", "1g.5gb++me", "0g.5gb", "1g.5gb+me,me", "01g.5gb",
        "1g.5gb me", "1g.5gb+me-gfx", "99999999999999999999g.5gb", "5c.4g.20gb", "1g5gb"}) {
    EXPECT_FALSE(parse_mig_name(name).has_value()) << name;
  }
  EXPECT_EQ(parse_mig_name("3g20gb").error().what,
            "3g20gb is no MIG profile; write it as in 3g.20gb or 1g.10gb+me");
}

TEST(MigName, MatchesWhatTheGpuOffers) {
  EXPECT_EQ(matched("3g.20gb", "A100-40"), "3g.20gb");
  EXPECT_EQ(matched("7g.79gb", "A100-80"), "7g.80gb") << "another driver's rounding";
  EXPECT_EQ(matched("1g.24gb", "B200"), "1g.23gb");
  EXPECT_EQ(matched("1g.10gb", "A100-40"), "1g.10gb") << "double memory, not the 1g.5gb";
  EXPECT_EQ(matched("1g.5gb.me", "A100-40"), "1g.5gb+me");
  EXPECT_EQ(matched("1g", "A100-40"), "1g.5gb") << "the smallest plain one";
  EXPECT_EQ(matched("3g.40gb", "A100-40"),
            "3g.40gb: the GPU offers 1g.5gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb, 1g.5gb+me, "
            "1g.10gb");
  EXPECT_EQ(matched("1c.3g.20gb", "A100-40"),
            "1c.3g.20gb: a part of an instance cannot be asked for here; ask for 3g.20gb");
}

TEST(MigName, MatchesParts) {
  const auto& profiles = testing::mig_model("A100-40").profiles;
  EXPECT_EQ(match_part("1c.3g.20gb", profiles), (MigMatch{.profile = 2, .part_slices = 1}));
  EXPECT_EQ(match_part("3c.3g.20gb", profiles), (MigMatch{.profile = 2})) << "the whole";
  EXPECT_EQ(match_part("2c.7g.39gb", profiles), (MigMatch{.profile = 4, .part_slices = 2}));
  EXPECT_EQ(match_part("4c.3g.20gb", profiles).error().what,
            "4c.3g.20gb: 4 of 3 compute slices cannot be");
}

constexpr std::string_view kFile = R"(version: v1
mig-configs:
  all-disabled:
    - devices: all
      mig-enabled: false
  two-kinds:
    - devices: [0]
      mig-enabled: true
      mig-devices: {"1g.5gb": 7}
    - device-filter: "0x20B710DE"
      devices: all
      mig-enabled: true
      mig-devices:
        "1g.6gb": 2
        "2g.12gb": 1
  empty:
    - device-filter: ["0x20B010DE", "0x20B710DE"]
      devices: all
      mig-enabled: true
      mig-devices: {}
)";

TEST(MigConfigFile, ReadsWhatUsersHave) {
  const auto configs = read_mig_configs("f", kFile);
  ASSERT_TRUE(configs.has_value()) << configs.error().what;
  ASSERT_EQ(configs->size(), 3U);
  EXPECT_FALSE((*configs)[0].entries[0].is_enabled);
  const MigConfigEntry& filtered = (*configs)[1].entries[1];
  EXPECT_EQ(filtered.device_filter, std::vector<std::uint32_t>{0x20B710DE});
  EXPECT_EQ(filtered.wanted, (std::vector<MigGoal::Count>{{"1g.6gb", 2}, {"2g.12gb", 1}}));
  EXPECT_EQ(read_mig_configs("g", mig_configs_doc(*configs).yaml()), *configs);
}

TEST(MigConfigFile, SaysWhatIsWrong) {
  const auto what = [](std::string_view text) {
    const auto configs = read_mig_configs("f", text);
    return configs ? std::string("read") : configs.error().what;
  };
  const auto entry = [&](std::string_view fields) {
    return what(fmt::format("{{version: v1, mig-configs: {{a: [{{{}}}]}}}}", fields));
  };
  EXPECT_EQ(what("{mig-configs: {a: []}}"), "f:1: version: is required");
  EXPECT_EQ(what("{version: v2, mig-configs: {a: []}}"), "f:1: version: expected v1");
  EXPECT_EQ(what("{version: v1, mig-configs: {\xff: []}}"), "f: is not UTF-8");
  EXPECT_EQ(what("{version: v1}"),
            "f:1: mig-configs: is required: a map of names to lists of entries");
  EXPECT_EQ(what("{version: v1, mig-configs: {a: []}}"),
            "f:1: mig-configs.a: needs at least one entry");
  EXPECT_EQ(what("{version: v1, mig-configs: {a: []}, other: 1}"),
            "f:1: mig-configs.a: needs at least one entry");
  EXPECT_EQ(entry("mig-enabled: false"),
            "f:1: mig-configs.a[0].devices: is required: all, or a list of GPU indices");
  EXPECT_EQ(entry("devices: some, mig-enabled: false"),
            "f:1: mig-configs.a[0].devices: expected all, or a list of GPU indices");
  EXPECT_EQ(entry("devices: all"), "f:1: mig-configs.a[0].mig-enabled: is required: true or false");
  EXPECT_EQ(entry("devices: all, mig-enabled: true"),
            "f:1: mig-configs.a[0].mig-devices: is required with mig-enabled: true; {} for no "
            "instances");
  EXPECT_EQ(entry("devices: all, mig-enabled: false, mig-devices: {1g.5gb: 1}"),
            "f:1: mig-configs.a[0].mig-devices: must be empty with mig-enabled: false");
  EXPECT_EQ(entry("devices: all, mig-enabled: true, mig-devices: {1g5gb: 1}"),
            "f:1: mig-configs.a[0].mig-devices: 1g5gb is no MIG profile; write it as in 3g.20gb or "
            "1g.10gb+me");
  EXPECT_EQ(entry("devices: all, mig-enabled: true, mig-device: {}"),
            "f:1: mig-configs.a[0].mig-devices: is required with mig-enabled: true; {} for no "
            "instances");
  EXPECT_EQ(entry("devices: all, mig-enabled: true, mig-devices: {}, device-filter: 20B0"),
            "f:1: mig-configs.a[0].device-filter: expected PCI device ids, as in 0x20B010DE");
  EXPECT_EQ(entry("devices: all, mig-enabled: false, mig-enabled: true").substr(0, 4), "f:1:");
}

struct Node {
  Fuse fuse;
  FakeGpus gpus{fuse};
  nvml::NodeFacts facts() { return gpus.facts().value(); }
};

TEST(MigConfigFile, MeansGpusInOrder) {
  Node node;
  node.gpus.add("A100-40", true);
  node.gpus.add("A30", true);
  node.gpus.add("A30", true);
  const MigConfigs configs = read_mig_configs("f", kFile).value();
  const auto goals = config_goals(find_config(configs, "two-kinds").value(), node.facts());
  ASSERT_TRUE(goals.has_value()) << goals.error().what;
  ASSERT_EQ(goals->size(), 3U);
  EXPECT_EQ((*goals)[0].wanted, (std::vector<MigGoal::Count>{{"1g.5gb", 7}}));
  EXPECT_EQ((*goals)[1].wanted.size(), 2U);
  EXPECT_EQ(find_config(configs, "two-kind").error().what,
            "there is no MIG config two-kind; did you mean two-kinds?");
  EXPECT_TRUE(
      find_config(configs, "x").error().what.starts_with("there is no MIG config x; there are "));
}

TEST(MigConfigFile, AMatchOfNothingIsAnError) {
  Node node;
  node.gpus.add("H100-80", true);
  const MigConfigs configs = read_mig_configs("f", kFile).value();
  EXPECT_EQ(config_goals(find_config(configs, "empty").value(), node.facts()).error().what,
            "empty: no GPU of this node is meant by it");
  EXPECT_EQ(config_goals(find_config(configs, "two-kinds").value(), node.facts())
                .error()
                .what.substr(0, 34),
            "two-kinds: gpu 0: 1g.5gb: the GPU ");
}

TEST(MigConfigFile, GpusWithoutMigArePassedOverOrRefused) {
  Node node;
  const std::string gpu = node.gpus.add("A100-40", false);
  node.gpus.gpu(gpu).mig_capable = false;
  const MigConfigs configs = read_mig_configs("f", kFile).value();
  EXPECT_EQ(config_goals(configs[0], node.facts()).error().what,
            "all-disabled: no GPU of this node is meant by it");
  EXPECT_EQ(config_goals(configs[1], node.facts()).error().what,
            "two-kinds: gpu 0 (NVIDIA A100-SXM4-40GB) cannot be cut with MIG");
}

TEST(MigConfigFile, StandardConfigsComeFromTheHardware) {
  Node node;
  node.gpus.add("A100-40", true);
  node.gpus.add("A100-40", true);
  const MigConfigs one = standard_configs(node.facts());
  std::string names;
  for (const MigConfig& config : one) names += config.name + " ";
  EXPECT_EQ(names,
            "all-disabled all-enabled all-1g.10gb all-1g.5gb all-1g.5gb.me all-2g.10gb all-3g.20gb "
            "all-4g.20gb all-7g.40gb all-balanced ");
  EXPECT_EQ(find_config(one, "all-balanced")->entries[0].wanted,
            (std::vector<MigGoal::Count>{{"1g.5gb", 2}, {"2g.10gb", 1}, {"3g.20gb", 1}}));
  EXPECT_TRUE(find_config(one, "all-1g.5gb")->entries[0].device_filter.empty());
  for (const MigConfig& config : one) {
    EXPECT_EQ(config_goals(config, node.facts())->size(), 2U) << config.name;
  }

  node.gpus.add("A30", true);
  const MigConfigs two = standard_configs(node.facts());
  const MigConfig balanced = find_config(two, "all-balanced").value();
  ASSERT_EQ(balanced.entries.size(), 2U);
  EXPECT_EQ(balanced.entries[1].device_filter, std::vector<std::uint32_t>{0x20B710DE});
  EXPECT_EQ(balanced.entries[1].wanted,
            (std::vector<MigGoal::Count>{{"1g.6gb", 2}, {"2g.12gb", 1}}));
  EXPECT_EQ(config_goals(balanced, node.facts())->size(), 3U);
  EXPECT_EQ(read_mig_configs("g", mig_configs_doc(two).yaml()).value().size(), two.size());
}

TEST(MigLayoutText, ReadsWhatPeopleType) {
  using Counts = std::vector<MigGoal::Count>;
  EXPECT_EQ(parse_layout("3g.20gb:2,1g.5gb")->wanted, (Counts{{"3g.20gb", 2}, {"1g.5gb", 1}}));
  EXPECT_EQ(parse_layout("7x1g.5gb")->wanted, (Counts{{"1g.5gb", 7}}));
  EXPECT_EQ(parse_layout(" 1g = 7 ")->wanted, (Counts{{"1g", 7}}));
  EXPECT_EQ(parse_layout("3g.20gb: 2")->wanted, (Counts{{"3g.20gb", 2}}));
  EXPECT_FALSE(parse_layout("off")->is_enabled);
  EXPECT_TRUE(parse_layout("none")->wanted.empty());
  EXPECT_EQ(parse_layout("3g.20gb:x").error().what.substr(0, 8), "3g.20gb:");
  EXPECT_FALSE(parse_layout("").has_value());
  EXPECT_FALSE(parse_layout("1g.5gb,,1g.5gb").has_value());
}

}  // namespace
}  // namespace jogak::agent
