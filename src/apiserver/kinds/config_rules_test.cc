// SPDX-License-Identifier: Apache-2.0
// Config maps, secrets and base64.
#include <gtest/gtest.h>

#include "apiserver/kinds/config_data.h"
#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

TEST(Base64, BothWays) {
  for (const auto& [plain, text] :
       std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                        {"f", "Zg=="},
                                                        {"fo", "Zm8="},
                                                        {"foo", "Zm9v"},
                                                        {"text", "dGV4dA=="},
                                                        {std::string("\0\1\2", 3), "AAEC"},
                                                        {"\xff\xfe", "//4="}}) {
    EXPECT_EQ(base64_encode(plain), text);
    EXPECT_EQ(base64_decode(text), plain);
    EXPECT_EQ(base64_size(text), plain.size());
  }
  EXPECT_EQ(base64_decode("Zm9v\nZg=="), "foof");
  EXPECT_EQ(base64url_encode("\xff\xfe"), "__4");
}

TEST(Base64, BrokenTexts) {
  for (const std::string_view text : {"%%", "Zg", "Zg=", "Z===", "Zg==Zg==", "Zm9v="}) {
    EXPECT_EQ(base64_decode(text), std::nullopt) << text;
  }
}

Doc map() {
  return json(R"({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"},
                  "data": {"k": "v"}})");
}

TEST(ConfigMap, IsRefused) {
  WorkloadBench bench;
  expect_creates(bench, map(),
                 {{"right", {R"(binaryData={"b": "AAEC"})"}},
                  {"key", {R"(data={"a b": "x"})"}, "Invalid data[a b]"},
                  {"dots", {R"(data={"..": "x"})"}, "Invalid data[..]"},
                  {"binary key", {R"(binaryData={"a b": "AA=="})"}, "Invalid binaryData[a b]"},
                  {"both", {R"(binaryData={"k": "AAEC"})"}, "Invalid data[k]"},
                  {"name", {"metadata/name=A"}, "Invalid metadata.name"},
                  {"as much as fits", {"data={\"k\": \"" + std::string(1024 * 1024, 'x') + "\"}"}},
                  {"a byte more",
                   {"data={\"k\": \"" + std::string(1024 * 1024 + 1, 'x') + "\"}"},
                   "TooLong "}});
}

TEST(ConfigMap, CanBeFrozen) {
  WorkloadBench bench;
  const Doc frozen = with(map(), {"immutable=true", R"(binaryData={"b": "AAEC"})"});
  expect_edits(bench, frozen,
               {{"label", {R"(metadata/labels={"a": "b"})"}},
                {"the same", {R"(data={"k": "v"})"}},
                {"data", {R"(data={"k": "w"})"}, "Forbidden data"},
                {"binary", {"binaryData"}, "Forbidden binaryData"},
                {"thaw", {"immutable=false"}, "Forbidden immutable"},
                {"all of it", {"immutable", "data"}, "Forbidden immutable, Forbidden data"}});
  expect_edits(bench, map(), {{"freeze", {"immutable=true"}}, {"data", {R"(data={"k": "w"})"}}});
}

Doc secret() {
  return json(R"({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})");
}

TEST(Secret, PlainTextWinsAndIsNotShown) {
  WorkloadBench bench;
  const auto made = bench.create(
      with(secret(), {R"(data={"p": "cHc="})", R"(stringData={"q": "text", "p": "wins"})"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["data"], json(R"({"p": "d2lucw==", "q": "dGV4dA=="})"));
  EXPECT_FALSE(made->has("stringData"));
  EXPECT_EQ((*made)["type"], Doc("Opaque"));
}

TEST(Secret, EachTypeDemandsItsKeys) {
  WorkloadBench bench;
  const std::string type = "type=kubernetes.io/";
  expect_creates(
      bench, secret(),
      {{"unknown type", {"type=x/y"}},
       {"key", {R"(data={"a b": "eA=="})"}, "Invalid data[a b]"},
       {"tls", {type + "tls"}, "Required data[tls.crt], Required data[tls.key]"},
       {"half tls", {type + "tls", R"(data={"tls.crt": ""})"}, "Required data[tls.key]"},
       {"docker", {type + "dockerconfigjson"}, "Required data[.dockerconfigjson]"},
       {"docker text",
        {type + "dockerconfigjson", R"(data={".dockerconfigjson": "eA=="})"},
        "Invalid data[.dockerconfigjson]"},
       {"docker list",
        {type + "dockerconfigjson", R"(data={".dockerconfigjson": "W10="})"},
        "Invalid data[.dockerconfigjson]"},
       {"docker right", {type + "dockerconfigjson", R"(data={".dockerconfigjson": "e30="})"}},
       {"old docker", {type + "dockercfg"}, "Required data[.dockercfg]"},
       {"basic", {type + "basic-auth"}, "Required data[username], Required data[password]"},
       {"basic, one is enough", {type + "basic-auth", R"(data={"username": ""})"}},
       {"ssh",
        {type + "ssh-auth", R"(data={"ssh-privatekey": ""})"},
        "Required data[ssh-privatekey]"},
       {"account",
        {type + "service-account-token"},
        "Required metadata.annotations[kubernetes.io/service-account.name]"}});
}

TEST(Secret, ChangesAreRefused) {
  WorkloadBench bench;
  const Doc frozen = with(secret(), {"immutable=true", R"(data={"k": "AAEC"})"});
  expect_edits(bench, frozen,
               {{"type", {"type=other"}, "Invalid type"},
                {"data", {R"(data={"k": "eA=="})"}, "Forbidden data"},
                {"text", {R"(stringData={"k": "x"})"}, "Forbidden data"},
                {"thaw", {"immutable"}, "Forbidden immutable"}});
}

TEST(Secret, ARefusedOneIsNotWarnedAbout) {
  WorkloadBench bench;
  ASSERT_FALSE(bench.create(with(secret(), {"type=kubernetes.io/tls"})).has_value());
  EXPECT_TRUE(bench.warnings().empty());
}

TEST(Secret, WarnsOfAKeyPairThatIsNone) {
  WorkloadBench bench;
  const auto pair = [](std::string_view certificate, std::string_view key) {
    return with(secret(), {"type=kubernetes.io/tls", "data/tls.crt=" + base64_encode(certificate),
                           "data/tls.key=" + base64_encode(key)});
  };
  const std::string certificate = "-----BEGIN CERTIFICATE-----";
  ASSERT_TRUE(bench.create(pair("", "")).has_value());
  ASSERT_EQ(bench.warnings().size(), 1U);
  EXPECT_TRUE(bench.warnings()[0].contains("certificate"));
  ASSERT_TRUE(bench.create(with(pair(certificate, ""), {"metadata/name=t"})).has_value());
  ASSERT_EQ(bench.warnings().size(), 1U);
  EXPECT_TRUE(bench.warnings()[0].contains("key"));
  ASSERT_TRUE(
      bench.create(with(pair(certificate, "-----BEGIN RSA PRIVATE KEY-----"), {"metadata/name=u"}))
          .has_value());
  EXPECT_TRUE(bench.warnings().empty());
}

}  // namespace
}  // namespace jogak::api
