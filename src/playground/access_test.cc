// SPDX-License-Identifier: Apache-2.0
//
// Tokens, the text of the kubeconfig, and that its file is whole and for the user alone whatever
// was there before.
#include "playground/access.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/temp_folder.h"
#include "playground/fleet.h"

namespace jogak::playground {
namespace {

constexpr mode_t kForTheUserAlone = 0600;

Doc config_of(const Access& access) {
  const auto read = read_manifests(kubeconfig_text(access), "kubeconfig");
  return read.has_value() && read->size() == 1 ? read->front() : Doc();
}

std::string ca_of(std::string pem) {
  return config_of({.url = "https://h:1", .token = "t", .ca_pem = std::move(pem)})["clusters"]
      .items()[0]
      .get("cluster", "certificate-authority-data")
      .as_string();
}

TEST(Access, TokensAreLongAndDiffer) {
  const auto a = random_token();
  const auto b = random_token();
  ASSERT_TRUE(a.has_value() && b.has_value());
  EXPECT_EQ(a->size(), 64U);
  EXPECT_EQ(a->find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(*a, *b);
}

TEST(Access, KubeconfigHasOneContext) {
  const Doc config = config_of({.url = "https://127.0.0.1:6443", .token = "0123", .ca_pem = "ab"});
  EXPECT_EQ(config["kind"].as_string(), "Config");
  EXPECT_EQ(config["current-context"].as_string(), "jogak");
  EXPECT_EQ(config["clusters"].items()[0].get("cluster", "server").as_string(),
            "https://127.0.0.1:6443");
  EXPECT_EQ(config["users"].items()[0].get("user", "token").as_string(), "0123");
  EXPECT_EQ(config["contexts"].items()[0].get("context", "user").as_string(), "jogak");
}

TEST(Access, CertificatesAreBase64) {
  EXPECT_EQ(ca_of("f"), "Zg==");
  EXPECT_EQ(ca_of("fo"), "Zm8=");
  EXPECT_EQ(ca_of("foo"), "Zm9v");
  EXPECT_EQ(ca_of("foob"), "Zm9vYg==");
  const Doc plain = config_of({.url = "http://h:1", .token = "t", .ca_pem = ""});
  EXPECT_FALSE(plain["clusters"].items()[0]["cluster"].has("certificate-authority-data"));
}

TEST(Access, TheFileIsForTheUserAlone) {
  const TempFolder folder;
  const std::string path = folder.path("config");
  std::ofstream(path) << "older and open to all";
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  const Access access{.url = "https://h:1", .token = "secret", .ca_pem = ""};
  ASSERT_TRUE(write_kubeconfig(path, access).has_value());
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, kForTheUserAlone);
  EXPECT_EQ(read_file(path).value(), kubeconfig_text(access));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}),
            1);  // nothing left
  EXPECT_FALSE(write_kubeconfig(folder.path("no/such/place"), access).has_value());
}

}  // namespace
}  // namespace jogak::playground
