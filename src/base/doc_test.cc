// SPDX-License-Identifier: Apache-2.0
//
// One tree, two forms of print.
#include "base/doc.h"

#include <gtest/gtest.h>

namespace jogak {
namespace {

Doc sample() {
  Doc nodes = Doc::array();
  nodes.push(Doc::object().set("name", "n1").set("gpus", 8));
  nodes.push(Doc::object().set("name", "n2").set("labels", Doc::object().set("zone", "a")));
  Doc matrix = Doc::array();
  matrix.push(Doc::array().push(1).push(2)).push(Doc::array()).push("x");
  Doc doc = Doc::object();
  doc.set("kind", "Report").set("ready", true).set("used", Doc::decimal(12.345, 1));
  doc.set("none", Doc()).set("nodes", nodes).set("matrix", matrix);
  doc.set("empty", Doc::object()).set("share", Doc::decimal(std::int64_t{1250}, 3));
  return doc;
}

TEST(Doc, Json) {
  EXPECT_EQ(sample().json(JsonWriter::Style::Compact),
            R"({"kind":"Report","ready":true,"used":12.3,"none":null,)"
            R"("nodes":[{"name":"n1","gpus":8},{"name":"n2","labels":{"zone":"a"}}],)"
            R"("matrix":[[1,2],[],"x"],"empty":{},"share":1.250})");
}

TEST(Doc, Yaml) {
  EXPECT_EQ(sample().yaml(), R"(kind: Report
ready: true
used: 12.3
none: null
nodes:
- name: n1
  gpus: 8
- name: n2
  labels:
    zone: a
matrix:
- - 1
  - 2
- []
- x
empty: {}
share: 1.250
)");
}

TEST(Doc, YamlQuotesWhatCouldBeReadAsSomethingElse) {
  for (const char* text : {"n1", "gpu-node-3.example.com", "NVIDIA A100", "a b, c", "/dev/null",
                           "nvidia.com/gpu", "key=value (note)", "Nope"}) {
    EXPECT_EQ(Doc(text).yaml(), std::string(text) + "\n");
  }
  for (const char* text :
       {"",     " a",   "a ",   "1",          "1.5",  "-1",  "0x10", "1e3", ".5",   "~",
        "null", "Null", "true", "YES",        "off",  "n",   "a: b", "a:",  "a #b", "- a",
        "? a",  "[a",   "{a",   "&a",         "*a",   "!a",  "|",    ">",   "'a'",  "%a",
        "@a",   "`a",   "100m", "2024-01-01", "1:30", "---", "=",    "<<"}) {
    EXPECT_EQ(Doc(text).yaml(), "\"" + std::string(text) + "\"\n") << text;
  }
  EXPECT_EQ(Doc("two\nlines").yaml(), "\"two\\nlines\"\n");
  EXPECT_EQ(Doc::object().set("1", 2).yaml(), "\"1\": 2\n");
}

TEST(Doc, ScalarsAtTheTop) {
  EXPECT_EQ(Doc().yaml(), "null\n");
  EXPECT_EQ(Doc(3).json(), "3\n");
  EXPECT_EQ(Doc::array().yaml(), "[]\n");
}

TEST(Doc, SetReplacesInPlace) {
  Doc doc = Doc::object();
  doc.set("a", 1).set("b", 2).set("a", 3);
  EXPECT_EQ(doc.json(JsonWriter::Style::Compact), R"({"a":3,"b":2})");
  EXPECT_EQ(doc.size(), 2U);
}

TEST(DocDeathTest, KindsAreKept) {
  Doc array = Doc::array();
  EXPECT_DEATH(array.set("a", 1), "not an object");
  Doc object = Doc::object();
  EXPECT_DEATH(object.push(1), "check failed");
}

}  // namespace
}  // namespace jogak
