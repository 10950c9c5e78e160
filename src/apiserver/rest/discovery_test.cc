// SPDX-License-Identifier: Apache-2.0
//
// Documents as a client gets them, for a small registry; texts are those of a real server.
#include "apiserver/rest/discovery.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "apiserver/codec/codec.h"
#include "apiserver/rest/discovery_groups.h"
#include "apiserver/rest/discovery_hash.h"

namespace jogak::api {
namespace {

constexpr std::string_view kAggregated =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

Resource resource_of(std::string group, std::string version, std::string plural, std::string kind) {
  Resource resource;
  resource.group = std::move(group);
  resource.version = std::move(version);
  resource.plural = std::move(plural);
  resource.kind = kind;
  resource.list_kind = kind + "List";
  for (const char c : kind) {
    resource.singular += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  resource.table = resource.plural + (resource.group.empty() ? "" : "." + resource.group);
  return resource;
}

Subresource subresource_of(std::string name, std::uint16_t verbs, std::string group = "",
                           std::string version = "", std::string kind = "") {
  Subresource subresource;
  subresource.name = std::move(name);
  subresource.group = std::move(group);
  subresource.version = std::move(version);
  subresource.kind = std::move(kind);
  subresource.verbs = verbs;
  return subresource;
}

constexpr std::uint16_t kCreate = verbs_of({Verb::Create});

// pods and bindings, deployments with scale, autoscalers in two versions.
class DiscoveryTest : public testing::Test {
 protected:
  DiscoveryTest() {
    Resource pods = resource_of("", "v1", "pods", "Pod");
    pods.type = schema::find("core.v1.Pod");
    pods.short_names = {"po"};
    pods.categories = {"all"};
    pods.subresources.push_back(subresource_of("status", kReadAndChange));
    pods.subresources.push_back(subresource_of("eviction", kCreate, "policy", "v1", "Eviction"));
    registry_.add(std::move(pods));
    Resource bindings = resource_of("", "v1", "bindings", "Binding");
    bindings.type = schema::find("core.v1.Binding");
    bindings.verbs = kCreate;
    registry_.add(std::move(bindings));
    Resource classes = resource_of("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass");
    classes.type = schema::find("scheduling.v1.PriorityClass");
    classes.is_namespaced = false;
    registry_.add(std::move(classes));
    Resource deployments = resource_of("apps", "v1", "deployments", "Deployment");
    deployments.type = schema::find("apps.v1.Deployment");
    registry_.add(std::move(deployments));
    for (const char* version : {"v1", "v2"}) {
      Resource scalers = resource_of("autoscaling", version, "horizontalpodautoscalers",
                                     "HorizontalPodAutoscaler");
      scalers.type =
          schema::find("autoscaling." + std::string(version) + ".HorizontalPodAutoscaler");
      scalers.is_storage_version = version == std::string_view("v2");
      registry_.add(std::move(scalers));
    }
  }

  void add_widgets() {
    static const Doc schema = Doc::object();
    Resource widgets = resource_of("g.example", "v1", "widgets", "Widget");
    widgets.custom_schema = &schema;
    widgets.subresources.push_back(
        subresource_of("scale", kReadAndChange, "autoscaling", "v1", "Scale"));
    widgets.subresources.push_back(subresource_of("status", kReadAndChange));
    registry_.add(std::move(widgets));
  }

  TextAnswer get(std::string_view path, std::string_view accept = "application/json",
                 net::Headers more = {}, std::string_view query = "") {
    more.emplace_back("Accept", accept);
    more.emplace_back("Host", "server:6443");
    auto answer = discovery_.answer(path, query, more);
    return answer ? std::move(*answer) : TextAnswer{.status = 0, .headers = {}, .body = ""};
  }
  Doc json(std::string_view path, std::string_view accept = "application/json") {
    const TextAnswer answer = get(path, accept);
    EXPECT_EQ(answer.status, 200) << path;
    auto parsed = codec::parse_json(answer.body);
    return parsed ? std::move(parsed->doc) : Doc();
  }
  static std::string compact(const Doc& doc) { return doc.json(JsonWriter::Style::Compact); }
  static std::vector<std::string> names(const Doc& list, std::string_view member) {
    std::vector<std::string> found;
    for (const Doc& item : list.items()) {
      found.push_back(item[member].as_string());
    }
    return found;
  }

  Registry registry_;
  Discovery discovery_{registry_};
};

using Names = std::vector<std::string>;

TEST_F(DiscoveryTest, TellsTheCoreVersionsAndWhereTheyAre) {
  EXPECT_EQ(compact(json("/api")),
            R"({"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":)"
            R"([{"clientCIDR":"0.0.0.0/0","serverAddress":"server:6443"}]})");
  EXPECT_TRUE(get("/api").body.ends_with("}\n"));
  EXPECT_EQ(get("/api/").body, get("/api").body);
}

TEST_F(DiscoveryTest, ListsGroupsInTheirOrderWithTheBestVersionFirst) {
  add_widgets();
  const Doc list = json("/apis");
  EXPECT_EQ(names(list["groups"], "name"),
            (Names{"apps", "autoscaling", "scheduling.k8s.io", "g.example"}));
  EXPECT_EQ(compact(list["groups"].items()[1]),
            R"({"name":"autoscaling","versions":[{"groupVersion":"autoscaling/v2","version":"v2"},)"
            R"({"groupVersion":"autoscaling/v1","version":"v1"}],)"
            R"("preferredVersion":{"groupVersion":"autoscaling/v2","version":"v2"}})");
  EXPECT_EQ(compact(json("/apis/apps")),
            R"({"kind":"APIGroup","apiVersion":"v1","name":"apps",)"
            R"("versions":[{"groupVersion":"apps/v1","version":"v1"}],)"
            R"("preferredVersion":{"groupVersion":"apps/v1","version":"v1"}})");
}

TEST_F(DiscoveryTest, ListsResourcesByNameWithTheirSubresources) {
  const Doc list = json("/api/v1");
  EXPECT_FALSE(list.has("apiVersion")) << "the core list has none";
  EXPECT_EQ(names(list["resources"], "name"),
            (Names{"bindings", "pods", "pods/eviction", "pods/status"}));
  EXPECT_EQ(compact(list["resources"].items()[0]),
            R"({"name":"bindings","singularName":"binding","namespaced":true,"kind":"Binding",)"
            R"("verbs":["create"]})");
  EXPECT_EQ(compact(list["resources"].items()[2]),
            R"({"name":"pods/eviction","singularName":"","namespaced":true,"group":"policy",)"
            R"("version":"v1","kind":"Eviction","verbs":["create"]})");
  EXPECT_EQ(compact(list["resources"].items()[3]),
            R"({"name":"pods/status","singularName":"","namespaced":true,"kind":"Pod",)"
            R"("verbs":["get","patch","update"]})");
  EXPECT_EQ(json("/apis/apps/v1")["apiVersion"].as_string(), "v1");
}

// sha256("/v1/Pod") and sha256("autoscaling/v2/..."): a real server of 1.36 shows the same.
TEST_F(DiscoveryTest, ShowsTheHashOfTheStoredVersion) {
  const auto hash = [&](std::string_view path) {
    const Doc list = json(path);
    for (const Doc& resource : list["resources"].items()) {
      if (resource.has("storageVersionHash")) {
        return resource["storageVersionHash"].as_string();
      }
    }
    return std::string();
  };
  EXPECT_EQ(hash("/api/v1"), "xPOwRZ+Yhw8=");
  EXPECT_EQ(hash("/apis/apps/v1"), "8aSe+NMegvE=");
  EXPECT_EQ(hash("/apis/autoscaling/v1"), hash("/apis/autoscaling/v2"));
}

TEST_F(DiscoveryTest, ShowsCustomResourcesInTheirOwnWay) {
  add_widgets();
  const Doc resources = json("/apis/g.example/v1")["resources"];
  EXPECT_EQ(names(resources, "name"), (Names{"widgets", "widgets/status", "widgets/scale"}));
  EXPECT_EQ(compact(resources.items()[0]["verbs"]),
            R"(["delete","deletecollection","get","list","patch","create","update","watch"])");
  const Doc item = json("/apis", kAggregated)["items"].items().back();
  EXPECT_EQ(compact(item["versions"].items()[0]["resources"].items()[0]["responseKind"]),
            R"({"group":"g.example","version":"v1","kind":"Widget"})");
}

TEST_F(DiscoveryTest, AggregatesWhenAskedFirst) {
  const TextAnswer answer = get("/api", kAggregated);
  EXPECT_EQ(net::header(answer.headers, "content-type"), kAggregated);
  EXPECT_EQ(net::header(answer.headers, "cache-control"), "public");
  EXPECT_EQ(net::header(answer.headers, "vary"), "Accept");
  const Doc list = json("/api", kAggregated);
  EXPECT_EQ(list["apiVersion"].as_string(), "apidiscovery.k8s.io/v2");
  ASSERT_EQ(list["items"].size(), 1U);
  const Doc& version = list["items"].items()[0]["versions"].items()[0];
  EXPECT_EQ(version["freshness"].as_string(), "Current");
  EXPECT_EQ(compact(version["resources"].items()[1]),
            R"({"resource":"pods","responseKind":{"group":"","version":"","kind":"Pod"},)"
            R"("scope":"Namespaced","singularResource":"pod","verbs":["create","delete",)"
            R"("deletecollection","get","list","patch","update","watch"],"shortNames":["po"],)"
            R"("categories":["all"],"subresources":[{"subresource":"eviction","responseKind":)"
            R"({"group":"policy","version":"v1","kind":"Eviction"},"verbs":["create"]},)"
            R"({"subresource":"status","responseKind":{"group":"","version":"","kind":"Pod"},)"
            R"("verbs":["get","patch","update"]}]})");
  EXPECT_EQ(names(json("/apis", kAggregated)["items"], "nothing").size(), 3U);
}

TEST_F(DiscoveryTest, TakesTheFirstFormItHas) {
  const std::string old =
      "application/json;g=apidiscovery.k8s.io;v=v2beta1;as="
      "APIGroupDiscoveryList";
  EXPECT_EQ(get("/api", old).status, 406) << "the beta form is gone";
  EXPECT_EQ(json("/api", old + ",application/json")["kind"].as_string(), "APIVersions");
  EXPECT_EQ(json("/api", old + "," + std::string(kAggregated))["kind"].as_string(),
            "APIGroupDiscoveryList");
  EXPECT_EQ(json("/apis", "*/*")["kind"].as_string(), "APIGroupList");
  EXPECT_EQ(json("/apis", "application/json;q=0.5," + std::string(kAggregated) + ";q=0.1")["kind"]
                .as_string(),
            "APIGroupList");
  EXPECT_EQ(get("/api/v1", kAggregated).status, 406) << "only the roots have this form";
}

TEST_F(DiscoveryTest, RefusesFormsAsAStatus) {
  const TextAnswer answer = get("/api/v1", "text/html");
  EXPECT_EQ(answer.status, 406);
  const auto status = codec::parse_json(answer.body);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->doc["kind"].as_string(), "Status");
  EXPECT_EQ(status->doc["reason"].as_string(), "NotAcceptable");
  EXPECT_EQ(status->doc["code"].as_int(), 406);
}

TEST_F(DiscoveryTest, AnswersInYaml) {
  const TextAnswer answer = get("/apis/apps", "application/yaml");
  EXPECT_EQ(net::header(answer.headers, "content-type"), "application/yaml");
  EXPECT_TRUE(answer.body.starts_with("kind: APIGroup\n")) << answer.body;
}

TEST_F(DiscoveryTest, SaysThatNothingChanged) {
  const TextAnswer first = get("/apis", kAggregated);
  const std::string tag(net::header(first.headers, "etag"));
  const TextAnswer again = get("/apis", kAggregated, {{"If-None-Match", tag}});
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  EXPECT_EQ(net::header(again.headers, "etag"), tag);
  add_widgets();
  EXPECT_EQ(get("/apis", kAggregated, {{"If-None-Match", tag}}).status, 200);
  EXPECT_EQ(get("/api", kAggregated).status, 200);
}

TEST_F(DiscoveryTest, KnowsWhatIsNotThere) {
  EXPECT_EQ(get("/apis/nosuch.example").status, 0) << "the front answers";
  EXPECT_EQ(get("/apis/nosuch.example/v1").status, 0);
  EXPECT_EQ(get("/nosuch").status, 0);
  const TextAnswer answer = get("/apis/apps/v9");
  EXPECT_EQ(answer.status, 404);
  EXPECT_NE(answer.body.find(R"("details":{})"), std::string::npos) << answer.body;
  EXPECT_EQ(get("/api/v2").status, 404);
}

TEST_F(DiscoveryTest, AnswersHealthChecks) {
  for (const char* path : {"/healthz", "/livez", "/readyz", "/livez/ping", "/healthz/etcd"}) {
    EXPECT_EQ(get(path).body, "ok") << path;
    EXPECT_EQ(net::header(get(path).headers, "content-type"), "text/plain; charset=utf-8");
  }
  EXPECT_EQ(get("/livez/nosuch").status, 0);
  EXPECT_EQ(get("/livezz").status, 0);
  EXPECT_EQ(get("/livez", "*/*", {}, "verbose").body,
            "[+]ping ok\n[+]log ok\n[+]etcd ok\nlivez check passed\n");
  EXPECT_EQ(get("/livez", "*/*", {}, "verbose&exclude=etcd&exclude=odd").body,
            "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n"
            "warn: some health checks cannot be excluded: no matches for \"odd\"\n"
            "livez check passed\n");
}

TEST_F(DiscoveryTest, TellsItsVersionAndPaths) {
  EXPECT_EQ(json("/version")["minor"].as_string(), "36");
  EXPECT_EQ(get("/version/").body, get("/version").body);
  const Doc paths = json("/")["paths"];
  for (const char* path : {"/api/v1", "/apis/apps/v1", "/apis/autoscaling", "/openapi/v3"}) {
    EXPECT_NE(std::ranges::find(paths.items(), Doc(path)), paths.items().end()) << path;
  }
  EXPECT_TRUE(std::ranges::is_sorted(paths.items(), {}, &Doc::as_string));
}

TEST(DiscoveryVersions, AreOrderedAsPeopleMeanThem) {
  const std::vector<std::string_view> ordered = {"v10",      "v2",      "v1",        "v11beta2",
                                                 "v2beta10", "v2beta9", "v12alpha1", "v1alpha2",
                                                 "foo",      "v1gamma1"};
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    for (std::size_t j = 0; j < ordered.size(); ++j) {
      EXPECT_EQ(is_better_version(ordered[i], ordered[j]), i < j)
          << ordered[i] << " " << ordered[j];
    }
  }
}

// FIPS 180-4 examples, and one of each length around a block.
TEST(DiscoveryHash, IsSha256) {
  EXPECT_EQ(content_hash(""), "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855");
  EXPECT_EQ(content_hash("abc"),
            "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD");
  EXPECT_EQ(content_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248D6A61D20638B8E5C026930C3E6039A33CE45964FF2167F6ECEDD419DB06C1");
  EXPECT_EQ(content_hash(std::string(64, 'a')),
            "FFE054FE7AE0CB6DC65C3AF9B61D5209F439851DB43D0BA5997337DF154668EB");
}

}  // namespace
}  // namespace jogak::api
