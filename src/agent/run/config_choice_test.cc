// SPDX-License-Identifier: Apache-2.0
//
// Which file counts, and what is said when none can.
#include "agent/run/config_choice.h"

#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/temp_folder.h"

namespace jogak::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string config_text(std::string_view strategy) {
  return "version: v1\nflags: {migStrategy: " + std::string(strategy) + "}\n";
}

// As a ConfigMap is mounted.
class ConfigFolderTest : public ::testing::Test {
 protected:
  ConfigFolderTest() {
    fs::create_directory(folder_.path("..v1"));
    fs::create_symlink("..v1", folder_.path("..data"));
    put("single", config_text("single"));
    put("mixed", config_text("mixed"));
    put("bad", "version: v1\nflags: {migStrategy: sometimes}\n");
  }
  void put(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file(folder_.path("..v1/" + name), text));
    fs::create_symlink("..data/" + name, folder_.path(name));
  }
  Result<ReadConfig> read(const std::optional<std::string>& label) {
    const auto env = [this](std::string_view name) -> std::optional<std::string> {
      const auto at = env_.find(std::string(name));
      return at == env_.end() ? std::nullopt : std::optional(at->second);
    };
    JOGAK_TRY(const ConfigPlace place, find_config_place({}, env, folder_.path()));
    return read_config(place, label);
  }

  TempFolder folder_;
  std::map<std::string, std::string> env_;
};

TEST_F(ConfigFolderTest, TheLabelNamesAFile) {
  EXPECT_EQ(read("mixed")->config.mig_strategy, MigStrategy::Mixed);
  EXPECT_EQ(read("single")->config.mig_strategy, MigStrategy::Single);
}

TEST_F(ConfigFolderTest, WithoutALabelTheDefaultOrNone) {
  EXPECT_EQ(read(std::nullopt)->config.mig_strategy, MigStrategy::None);
  env_["DEFAULT_CONFIG"] = "mixed";
  EXPECT_EQ(read(std::nullopt)->config.mig_strategy, MigStrategy::Mixed);
  env_.erase("DEFAULT_CONFIG");
  env_["FALLBACK_STRATEGIES"] = "named,single";
  EXPECT_FALSE(read(std::nullopt));
}

TEST_F(ConfigFolderTest, AFileThatIsNotThereIsNamedWithThoseThatAre) {
  const auto config = read("mixd");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().what,
              AllOf(HasSubstr("mixd"), HasSubstr("bad, mixed, single"), HasSubstr("label")));
}

TEST_F(ConfigFolderTest, AFileThatIsWrongNamesTheField) {
  const auto config = read("bad");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().what, AllOf(HasSubstr("bad"), HasSubstr("migStrategy")));
}

TEST(ConfigPlaceTest, TheFolderMayBeAVariable) {
  const auto place = find_config_place(
      {},
      [](std::string_view name) -> std::optional<std::string> {
        return name == "CONFIG_FILE_SRCDIR" ? std::optional<std::string>("/c") : std::nullopt;
      },
      "");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->folder, "/c");
}

TEST(ConfigPlaceTest, WithoutAFolderTheLabelChangesNothing) {
  const auto config = read_config({}, "mixed");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->config, PluginConfig());
}

TEST(ConfigPlaceTest, AFolderThatIsNotThereIsSaid) {
  const auto config = read_config({.folder = "no/such/folder"}, std::nullopt);
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().what, HasSubstr("no/such/folder"));
}

TEST(ConfigFallbacks, AreWords) {
  EXPECT_EQ(parse_config_fallbacks("single,empty")->size(), 2U);
  EXPECT_FALSE(parse_config_fallbacks("single,single"));
  EXPECT_FALSE(parse_config_fallbacks("any"));
}

}  // namespace
}  // namespace jogak::agent
