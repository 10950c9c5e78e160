// SPDX-License-Identifier: Apache-2.0
//
// OpenAPI for a registry of one built-in and one custom kind, against the facts of a real server.
#include "apiserver/rest/openapi.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "apiserver/codec/codec.h"
#include "apiserver/rest/openapi_facts.h"
#include "apiserver/rest/openapi_paths.h"
#include "apiserver/rest/openapi_schemas.h"
#include "apiserver/rest/openapi_v2.h"
#include "apiserver/rest/openapi_words.h"

namespace jogak::api {
namespace {

constexpr std::string_view kProto = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
constexpr std::string_view kOldProto = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

std::string compact(const Doc& doc) { return doc.json(JsonWriter::Style::Compact); }

// Without its description.
std::string bare(Doc schema) {
  EXPECT_TRUE(schema.erase("description"));
  return compact(schema);
}

Doc parsed(std::string_view json) {
  auto result = codec::parse_json(json);
  EXPECT_TRUE(result.has_value()) << json.substr(0, 200);
  return result ? std::move(result->doc) : Doc();
}

std::vector<std::string> keys(const Doc& object) {
  std::vector<std::string> all;
  for (const Doc::Member& member : object.members()) {
    all.push_back(member.key);
  }
  return all;
}

class OpenApiTest : public testing::Test {
 protected:
  OpenApiTest() {
    Resource classes;
    classes.group = "scheduling.k8s.io";
    classes.version = "v1";
    classes.plural = "priorityclasses";
    classes.singular = "priorityclass";
    classes.kind = "PriorityClass";
    classes.list_kind = "PriorityClassList";
    classes.is_namespaced = false;
    classes.type = &schema::get("scheduling.v1.PriorityClass");
    classes.table = "priorityclasses.scheduling.k8s.io";
    registry_.add(std::move(classes));
  }

  void add_widgets() {
    Resource widgets;
    widgets.group = "g.example";
    widgets.version = "v1";
    widgets.plural = "widgets";
    widgets.kind = "Widget";
    widgets.list_kind = "WidgetList";
    widgets.custom_schema = &widget_schema_;
    registry_.add(std::move(widgets));
  }

  TextAnswer get(std::string_view path, std::string_view accept = "application/json",
                 std::string_view query = "", net::Headers more = {}) {
    more.emplace_back("Accept", accept);
    auto answer = openapi_.answer(path, query, more);
    return answer ? std::move(*answer) : TextAnswer{.status = 0, .headers = {}, .body = ""};
  }
  Doc json(std::string_view path) { return parsed(get(path).body); }

  Doc widget_schema_ =
      parsed(R"({"type":"object","properties":{"spec":{"type":"object","properties":)"
             R"({"size":{"type":"integer","minimum":1}}}}})");
  Registry registry_;
  OpenApi openapi_{registry_};
};

using Names = std::vector<std::string>;

TEST_F(OpenApiTest, ListsADocumentForEachGroupVersion) {
  const TextAnswer answer = get("/openapi/v3");
  EXPECT_EQ(net::header(answer.headers, "content-type"), "text/plain; charset=utf-8");
  const Doc paths = parsed(answer.body)["paths"];
  EXPECT_EQ(keys(paths), (Names{"api", "apis", "apis/scheduling.k8s.io",
                                "apis/scheduling.k8s.io/v1", "version"}));
  const std::string url = paths["apis/scheduling.k8s.io/v1"]["serverRelativeURL"].as_string();
  EXPECT_TRUE(url.starts_with("/openapi/v3/apis/scheduling.k8s.io/v1?hash=")) << url;
  for (const std::string& name : keys(paths)) {
    EXPECT_EQ(get("/openapi/v3/" + name).status, 200) << name;
  }
}

TEST_F(OpenApiTest, ChangesAUrlWithItsDocumentAlone) {
  const Doc before = json("/openapi/v3")["paths"];
  add_widgets();
  const Doc after = json("/openapi/v3")["paths"];
  EXPECT_EQ(before["apis/scheduling.k8s.io/v1"], after["apis/scheduling.k8s.io/v1"]);
  EXPECT_TRUE(after.has("apis/g.example/v1"));
  const std::string url = after["apis/g.example/v1"]["serverRelativeURL"].as_string();
  registry_.remove("g.example", "v1", "widgets");
  widget_schema_.set("description", "new");
  add_widgets();
  EXPECT_NE(json("/openapi/v3")["paths"]["apis/g.example/v1"]["serverRelativeURL"].as_string(),
            url);
}

TEST_F(OpenApiTest, LetsADocumentWithItsHashBeKept) {
  constexpr std::string_view kPath = "/openapi/v3/apis/scheduling.k8s.io/v1";
  const std::string url =
      json("/openapi/v3")["paths"]["apis/scheduling.k8s.io/v1"]["serverRelativeURL"].as_string();
  const std::string query = url.substr(url.find('?') + 1);
  EXPECT_EQ(net::header(get(kPath).headers, "cache-control"), "no-cache, private");
  const TextAnswer hashed = get(kPath, "application/json", query);
  EXPECT_EQ(net::header(hashed.headers, "cache-control"), "public, immutable");
  EXPECT_EQ(hashed.body, get(kPath).body);
  const TextAnswer wrong = get(kPath, "application/json", "hash=0000");
  EXPECT_EQ(wrong.status, 301);
  EXPECT_EQ(net::header(wrong.headers, "location"), url);
  const std::string tag(net::header(hashed.headers, "etag"));
  EXPECT_EQ(get(kPath, "*/*", "", {{"If-None-Match", tag}}).status, 304);
}

TEST_F(OpenApiTest, RefusesWhatItHasNot) {
  EXPECT_EQ(get("/openapi/v3/apis/nosuch/v1").status, 404);
  EXPECT_EQ(get("/openapi/v3/apis/scheduling.k8s.io/v1", "text/html").status, 406);
  EXPECT_EQ(get("/openapi/v2", "text/html").status, 406);
  EXPECT_EQ(get("/openapi/v4").status, 0);
}

// The names that a real server of 1.36 has in this document, but for its sharding.
TEST_F(OpenApiTest, DescribesOneGroupVersion) {
  const Doc doc = json("/openapi/v3/apis/scheduling.k8s.io/v1");
  EXPECT_EQ(doc["openapi"].as_string(), "3.0.0");
  EXPECT_EQ(compact(doc["info"]), R"({"title":"Kubernetes","version":"1.36"})");
  EXPECT_EQ(keys(doc["paths"]),
            (Names{"/apis/scheduling.k8s.io/v1/", "/apis/scheduling.k8s.io/v1/priorityclasses",
                   "/apis/scheduling.k8s.io/v1/priorityclasses/{name}",
                   "/apis/scheduling.k8s.io/v1/watch/priorityclasses",
                   "/apis/scheduling.k8s.io/v1/watch/priorityclasses/{name}"}));
  const std::string meta = "io.k8s.apimachinery.pkg.apis.meta.v1.";
  EXPECT_EQ(
      keys(doc["components"]["schemas"]),
      (Names{"io.k8s.api.scheduling.v1.PriorityClass", "io.k8s.api.scheduling.v1.PriorityClassList",
             meta + "APIResource", meta + "APIResourceList", meta + "DeleteOptions",
             meta + "FieldsV1", meta + "ListMeta", meta + "ManagedFieldsEntry", meta + "ObjectMeta",
             meta + "OwnerReference", meta + "Patch", meta + "Preconditions", meta + "ShardInfo",
             meta + "Status", meta + "StatusCause", meta + "StatusDetails", meta + "Time",
             meta + "WatchEvent", "io.k8s.apimachinery.pkg.runtime.RawExtension"}));
}

TEST_F(OpenApiTest, DescribesPatchesSoThatClientsValidateHere) {
  const Doc doc = json("/openapi/v3/apis/scheduling.k8s.io/v1");
  const Doc& patch = doc["paths"]["/apis/scheduling.k8s.io/v1/priorityclasses/{name}"]["patch"];
  EXPECT_EQ(patch["operationId"].as_string(), "patchSchedulingV1PriorityClass");
  EXPECT_EQ(compact(patch["tags"]), R"(["scheduling_v1"])");
  EXPECT_EQ(patch["x-kubernetes-action"].as_string(), "patch");
  EXPECT_EQ(compact(patch["x-kubernetes-group-version-kind"]),
            R"({"group":"scheduling.k8s.io","version":"v1","kind":"PriorityClass"})");
  Names names;
  for (const Doc& parameter : patch["parameters"].items()) {
    names.push_back(parameter["name"].as_string());
    EXPECT_EQ(parameter["in"].as_string(), "query");
  }
  EXPECT_EQ(names, (Names{"dryRun", "fieldManager", "fieldValidation", "force"}));
  EXPECT_EQ(keys(patch["requestBody"]["content"]),
            (Names{"application/apply-patch+yaml", "application/json-patch+json",
                   "application/merge-patch+json", "application/strategic-merge-patch+json"}));
  EXPECT_EQ(keys(patch["responses"]), (Names{"200", "201", "401"}));
  EXPECT_EQ(keys(patch["responses"]["200"]["content"]),
            (Names{"application/json", "application/vnd.kubernetes.protobuf", "application/yaml"}));
}

TEST_F(OpenApiTest, DescribesMembersOfTypes) {
  const Doc schema =
      json("/openapi/v3/apis/scheduling.k8s.io/v1")["components"]["schemas"]
                                                   ["io.k8s.api.scheduling.v1.PriorityClass"];
  const Doc& properties = schema["properties"];
  EXPECT_EQ(bare(properties["value"]), R"({"type":"integer","format":"int32","default":0})");
  EXPECT_EQ(bare(properties["globalDefault"]), R"({"type":"boolean"})");
  EXPECT_EQ(bare(properties["preemptionPolicy"]),
            R"({"type":"string","enum":["Never","PreemptLowerPriority"]})");
  EXPECT_EQ(bare(properties["metadata"]),
            R"({"allOf":[{"$ref":"#/components/schemas/)"
            R"(io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}],"default":{}})");
  EXPECT_EQ(compact(schema["x-kubernetes-group-version-kind"]),
            R"([{"group":"scheduling.k8s.io","kind":"PriorityClass","version":"v1"}])");
}

TEST_F(OpenApiTest, ShowsCustomResourcesWithTheirSchema) {
  add_widgets();
  const Doc doc = json("/openapi/v3/apis/g.example/v1");
  const Doc& schema = doc["components"]["schemas"]["example.g.v1.Widget"];
  EXPECT_EQ(compact(schema["properties"]["spec"]["properties"]["size"]),
            R"({"type":"integer","minimum":1})");
  EXPECT_TRUE(schema["properties"].has("metadata"));
  EXPECT_EQ(compact(schema["x-kubernetes-group-version-kind"]),
            R"([{"group":"g.example","kind":"Widget","version":"v1"}])");
  const Doc& patch =
      doc["paths"]["/apis/g.example/v1/namespaces/{namespace}/widgets/{name}"]["patch"];
  EXPECT_EQ(patch["operationId"].as_string(), "patchGExampleV1NamespacedWidget");
  EXPECT_FALSE(patch["requestBody"]["content"].has("application/strategic-merge-patch+json"));
}

TEST_F(OpenApiTest, PutsSharedParametersAtThePath) {
  const Doc paths = json("/openapi/v3/apis/scheduling.k8s.io/v1")["paths"];
  const Doc& item = paths["/apis/scheduling.k8s.io/v1/priorityclasses/{name}"];
  ASSERT_EQ(item["parameters"].size(), 2U);
  EXPECT_EQ(item["parameters"].items()[0]["name"].as_string(), "name");
  EXPECT_TRUE(item["parameters"].items()[0]["required"].as_bool());
  EXPECT_EQ(item["parameters"].items()[1]["name"].as_string(), "pretty");
  EXPECT_FALSE(item["get"].has("parameters"));
}

TEST_F(OpenApiTest, HasAllInOneForOldClients) {
  const Doc doc = json("/openapi/v2");
  EXPECT_EQ(doc["swagger"].as_string(), "2.0");
  const Doc& value = doc["definitions"]["io.k8s.api.scheduling.v1.PriorityClass"]["properties"];
  EXPECT_EQ(bare(value["value"]), R"({"type":"integer","format":"int32"})") << "no defaults";
  EXPECT_EQ(bare(value["metadata"]),
            R"({"$ref":"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"})");
  const Doc& item = doc["paths"]["/apis/scheduling.k8s.io/v1/priorityclasses/{name}"];
  const Doc& body = item["put"]["parameters"].items().back();
  EXPECT_EQ(body["in"].as_string(), "body");
  EXPECT_TRUE(body["required"].as_bool());
  EXPECT_EQ(compact(body["schema"]),
            R"({"$ref":"#/definitions/io.k8s.api.scheduling.v1.PriorityClass"})");
  EXPECT_EQ(compact(item["parameters"].items()[1]["type"]), R"("string")");
  EXPECT_EQ(compact(item["get"]["produces"]),
            R"(["application/json","application/vnd.kubernetes.protobuf","application/yaml"])");
}

TEST_F(OpenApiTest, HasTheOldFormInProtobuf) {
  for (const std::string_view accept : {kProto, kOldProto}) {
    const TextAnswer answer = get("/openapi/v2", accept);
    EXPECT_EQ(net::header(answer.headers, "content-type"), kProto);
    EXPECT_TRUE(
        answer.body.starts_with("\x0a\x03"
                                "2.0\x12"))
        << "swagger, then info";
  }
}

TEST_F(OpenApiTest, EncodesMessagesByTheirNumbers) {
  const Doc swagger =
      parsed(R"({"swagger":"2.0","info":{"title":"T","version":"1"},"paths":{},"definitions":)"
             R"({"D":{"description":"d","type":"object","required":["a"],"x-k":true}}})");
  const std::string schema = std::string(
                                 "\x22\x01"
                                 "d") +  // 4 description
                             "\x9a\x01\x01"
                             "a" +  // 19 required
                             "\xb2\x01\x08\x0a\x06"
                             "object" +                           // 22 type {1}
                             "\xfa\x01\x0e\x0a\x03x-k\x12\x07" +  // 31 extension {name, value}
                             "\x12\x05true\n";                    // Any: 2 yaml
  std::string named =
      "\x0a\x01"
      "D\x12";
  named += static_cast<char>(schema.size());
  named += schema;
  std::string definitions = "\x0a";
  definitions += static_cast<char>(named.size());
  definitions += named;
  std::string document =
      "\x0a\x03"
      "2.0\x12\x06\x0a\x01T\x12\x01"
      "1";
  document += std::string("\x42\x00", 2) + "\x4a";
  document += static_cast<char>(definitions.size());
  document += definitions;
  EXPECT_EQ(encode_swagger(swagger), document);
}

TEST(OpenApiNames, FollowTheRealOnes) {
  EXPECT_EQ(group_title(""), "Core");
  EXPECT_EQ(group_title("apps"), "Apps");
  EXPECT_EQ(group_title("rbac.authorization.k8s.io"), "RbacAuthorization");
  EXPECT_EQ(group_title("g.example"), "GExample");
  EXPECT_EQ(component_name(schema::get("core.v1.Pod")), "io.k8s.api.core.v1.Pod");
  EXPECT_EQ(component_name(schema::get("meta.v1.Status")),
            "io.k8s.apimachinery.pkg.apis.meta.v1.Status");
  EXPECT_EQ(component_name(schema::get("apiextensions.v1.CustomResourceDefinition")),
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition");
}

TEST(OpenApiWords, AreOfTheTypeBeforeTheyAreOfTheName) {
  EXPECT_EQ(type_words("core.v1.Pod"), "Containers that run together on one node");
  EXPECT_EQ(type_words("core.v1.Unheard"), "");
  EXPECT_EQ(member_words("core.v1.PodSpec", "priority"), "Priority; pods of higher ones go first");
  EXPECT_EQ(member_words("core.v1.Unheard", "kind"), "What the object is");
  EXPECT_EQ(member_words("core.v1.PodSpec", "unheard"), "");
}

TEST(OpenApiFacts, AreOfMembersThatExist) {
  EXPECT_EQ(enum_values("apps.v1.DeploymentStrategy", "type"),
            (std::vector<std::string_view>{"Recreate", "RollingUpdate"}));
  EXPECT_TRUE(enum_values("core.v1.Pod", "spec").empty());
  EXPECT_TRUE(enum_values("core.v1.HostPathVolumeSource", "type").front().empty())
      << "an empty value is one, too";
  EXPECT_TRUE(is_required_anyway("batch.v1.CronJob", "spec"));
  EXPECT_FALSE(is_required_anyway("batch.v1.Job", "spec"));
  EXPECT_EQ(group_of_package("rbac"), "rbac.authorization.k8s.io");
  EXPECT_EQ(group_of_package("apps"), "apps");
}

// Every reference leads somewhere, whatever the types refer to.
TEST(OpenApiComponents, AreClosed) {
  for (const char* root : {"core.v1.Pod", "core.v1.PersistentVolume", "resource.v1.ResourceClaim",
                           "apiextensions.v1.CustomResourceDefinition", "batch.v1.CronJob"}) {
    Components components("", "v1");
    components.ref(schema::get(root));
    const Doc schemas = components.take();
    std::string text;
    schemas.append_json(text);
    constexpr std::string_view kRef = "\"#/components/schemas/";
    for (std::size_t at = text.find(kRef); at != std::string::npos; at = text.find(kRef, at)) {
      at += kRef.size();
      const std::string name = text.substr(at, text.find('"', at) - at);
      EXPECT_TRUE(schemas.has(name)) << root << " " << name;
    }
  }
}

}  // namespace
}  // namespace jogak::api
