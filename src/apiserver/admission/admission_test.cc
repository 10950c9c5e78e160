// SPDX-License-Identifier: Apache-2.0
//
// The plugins, each against a few stored objects.
#include "apiserver/admission/admission.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

class FakeLookup : public Lookup {
 public:
  void put(std::string table, std::string ns, Doc object) {
    const std::string name = name_of(object);
    objects_[{std::move(table), std::move(ns), name}] = std::move(object);
  }
  std::optional<Doc> get(std::string_view resource, std::string_view ns,
                         std::string_view name) const override {
    const auto found = objects_.find({std::string(resource), std::string(ns), std::string(name)});
    return found == objects_.end() ? std::nullopt : std::optional<Doc>(found->second);
  }
  std::vector<Doc> list(std::string_view resource, std::string_view ns) const override {
    std::vector<Doc> out;
    for (const auto& [key, object] : objects_) {
      if (std::get<0>(key) == resource && (ns.empty() || std::get<1>(key) == ns)) {
        out.push_back(object);
      }
    }
    return out;
  }

 private:
  std::map<std::tuple<std::string, std::string, std::string>, Doc> objects_;
};

Doc named(std::string_view name) {
  Doc object = Doc::object();
  object.at("metadata").set("name", name);
  return object;
}

Resource resource(std::string group, std::string plural) {
  Resource made;
  made.table = group.empty() ? plural : plural + "." + group;
  made.group = std::move(group);
  made.version = "v1";
  made.plural = std::move(plural);
  return made;
}

class AdmissionTest : public testing::Test {
 protected:
  AdmissionTest()
      : plugins_(default_admission([this](std::string_view table, std::string_view ns,
                                          std::string_view name, const StatusChange& change) {
          const auto changed = change(lookup_.get(table, ns, name).value());
          lookup_.put(std::string(table), std::string(ns), changed.value());
          return ApiResult<void>();
        })) {
    Doc space = named("ns");
    space.at("status").set("phase", "Active");
    lookup_.put("namespaces", "", space);
  }

  // "" or the refusal's message; `object` is changed as the plugins like.
  std::string admit(const Resource& of, Doc& object, const Doc* old = nullptr,
                    std::string_view subresource = "", std::string_view ns = "ns",
                    Operation operation = Operation::Create) {
    Admission admission{.operation = old != nullptr && operation == Operation::Create
                                         ? Operation::Update
                                         : operation,
                        .resource = of,
                        .subresource = subresource,
                        .ns = ns,
                        .name = name_of(object),
                        .object = operation == Operation::Delete ? nullptr : &object,
                        .old = old};
    WriteContext context{.now = 0,
                         .lookup = lookup_,
                         .rng = rng_,
                         .user = user_,
                         .is_dry_run = is_dry_run_,
                         .warnings = warnings_};
    for (const bool is_mutating : {true, false}) {
      for (const auto& plugin : plugins_) {
        const auto answer =
            is_mutating ? plugin->mutate(admission, context) : plugin->validate(admission, context);
        if (!answer.has_value()) {
          error_ = answer.error();
          return error_.message;
        }
      }
    }
    return "";
  }

  Doc pod(std::string_view name = "p") const {
    Doc made = named(name);
    Doc container = Doc::object();
    container.set("name", "c");
    made.at("spec", "containers").push(container);
    return made;
  }
  Doc gpu_pod(std::string_view gpus) const {
    Doc made = pod();
    for (const std::string_view side : {"limits", "requests"}) {
      made.at("spec", "containers").items()[0].at("resources", side).set("nvidia.com/gpu", gpus);
    }
    return made;
  }

  FakeLookup lookup_;
  Rng rng_{1, "admission"};
  User user_;
  bool is_dry_run_ = false;
  std::vector<std::string> warnings_;
  std::vector<std::unique_ptr<AdmissionPlugin>> plugins_;
  ApiError error_;
  const Resource pods_ = resource("", "pods");
};

TEST_F(AdmissionTest, NamespacesMustExist) {
  Doc object = pod();
  EXPECT_EQ(admit(pods_, object, nullptr, "", "nons"), "namespaces \"nons\" not found");
  EXPECT_EQ(error_.code, 404);
}

TEST_F(AdmissionTest, NothingNewInANamespaceThatEnds) {
  Doc space = named("ns");
  space.at("status").set("phase", "Terminating");
  lookup_.put("namespaces", "", space);
  Doc object = pod();
  EXPECT_NE(admit(pods_, object), "");
  EXPECT_EQ(error_.code, 403);
  ASSERT_EQ(error_.causes.size(), 1U);
  EXPECT_EQ(error_.causes[0].reason, "NamespaceTerminating");
  const Doc old = pod();
  EXPECT_EQ(admit(pods_, object, &old), "");  // what is there may still change
}

TEST_F(AdmissionTest, SomeNamespacesStay) {
  const Resource namespaces = resource("", "namespaces");
  Doc object = named("default");
  EXPECT_NE(admit(namespaces, object, &object, "", "", Operation::Delete), "");
  Doc other = named("mine");
  EXPECT_EQ(admit(namespaces, other, &other, "", "", Operation::Delete), "");
}

TEST_F(AdmissionTest, PriorityOfNoClass) {
  Doc object = pod();
  EXPECT_EQ(admit(pods_, object), "");
  EXPECT_EQ(object["spec"]["priority"], Doc(0));
  EXPECT_EQ(object["spec"]["preemptionPolicy"], Doc("PreemptLowerPriority"));
  EXPECT_FALSE(object["spec"].has("priorityClassName"));
}

TEST_F(AdmissionTest, PriorityOfAClass) {
  Doc high = named("high");
  high.set("value", 1000).set("preemptionPolicy", "Never");
  lookup_.put("priorityclasses.scheduling.k8s.io", "", high);
  Doc object = pod();
  object.at("spec").set("priorityClassName", "high");
  EXPECT_EQ(admit(pods_, object), "");
  EXPECT_EQ(object["spec"]["priority"], Doc(1000));
  EXPECT_EQ(object["spec"]["preemptionPolicy"], Doc("Never"));
  Doc wrong = pod();
  wrong.at("spec").set("priorityClassName", "high").set("priority", 5);
  EXPECT_NE(admit(pods_, wrong).find("(5) must not be provided"), std::string::npos);
  Doc unknown = pod();
  unknown.at("spec").set("priorityClassName", "nope");
  EXPECT_NE(admit(pods_, unknown).find("no PriorityClass with name nope"), std::string::npos);
}

TEST_F(AdmissionTest, OneDefaultClassForAll) {
  Doc standard = named("standard");
  standard.set("value", 50).set("globalDefault", true);
  lookup_.put("priorityclasses.scheduling.k8s.io", "", standard);
  Doc object = pod();
  EXPECT_EQ(admit(pods_, object), "");
  EXPECT_EQ(object["spec"]["priorityClassName"], Doc("standard"));
  EXPECT_EQ(object["spec"]["priority"], Doc(50));
  const Resource classes = resource("scheduling.k8s.io", "priorityclasses");
  Doc second = named("second");
  second.set("globalDefault", true);
  EXPECT_NE(admit(classes, second, nullptr, "", ""), "");
  EXPECT_EQ(admit(classes, standard, &standard, "", ""), "");
}

TEST_F(AdmissionTest, TolerationsForFiveMinutes) {
  Doc object = pod();
  EXPECT_EQ(admit(pods_, object), "");
  ASSERT_EQ(object["spec"]["tolerations"].size(), 2U);
  EXPECT_EQ(object["spec"]["tolerations"].items()[0]["key"], Doc("node.kubernetes.io/not-ready"));
  EXPECT_EQ(object["spec"]["tolerations"].items()[1]["tolerationSeconds"], Doc(300));
  Doc all = pod();
  all.at("spec", "tolerations").push(Doc::object().set("operator", "Exists"));
  EXPECT_EQ(admit(pods_, all), "");
  EXPECT_EQ(all["spec"]["tolerations"].size(), 1U);
}

TEST_F(AdmissionTest, NewNodesAreTainted) {
  const Resource nodes = resource("", "nodes");
  Doc node = named("n");
  EXPECT_EQ(admit(nodes, node, nullptr, "", ""), "");
  EXPECT_EQ(node["spec"]["taints"].items().at(0)["key"], Doc("node.kubernetes.io/not-ready"));
  EXPECT_EQ(admit(nodes, node, nullptr, "", ""), "");
  EXPECT_EQ(node["spec"]["taints"].size(), 1U);
}

TEST_F(AdmissionTest, RuntimeClassesCostAndPlace) {
  Doc object = pod();
  object.at("spec").set("runtimeClassName", "vm");
  EXPECT_NE(admit(pods_, object).find("RuntimeClass \"vm\" not found"), std::string::npos);
  Doc runtime = named("vm");
  runtime.at("overhead", "podFixed").set("cpu", "250m");
  runtime.at("scheduling", "nodeSelector").set("vm", "yes");
  lookup_.put("runtimeclasses.node.k8s.io", "", runtime);
  EXPECT_EQ(admit(pods_, object), "");
  EXPECT_EQ(object["spec"]["overhead"]["cpu"], Doc("250m"));
  EXPECT_EQ(object["spec"]["nodeSelector"]["vm"], Doc("yes"));
  Doc plain = pod();
  plain.at("spec", "overhead").set("cpu", "1");
  EXPECT_NE(admit(pods_, plain).find("Pod Overhead set without"), std::string::npos);
}

TEST_F(AdmissionTest, BoundPodsCarryTheirTopology) {
  Doc node = named("n");
  node.at("metadata", "labels").set("topology.kubernetes.io/zone", "z").set("other", "x");
  lookup_.put("nodes", "", node);
  Doc object = pod();
  object.at("spec").set("nodeName", "n");
  EXPECT_EQ(admit(pods_, object), "");
  EXPECT_EQ(meta(object)["labels"], Doc::object().set("topology.kubernetes.io/zone", "z"));
}

TEST_F(AdmissionTest, LimitRangesFillIn) {
  Doc range = named("r");
  Doc limit = Doc::object();
  limit.set("type", "Container");
  limit.at("default").set("cpu", "1");
  limit.at("defaultRequest").set("cpu", "500m").set("memory", "1Gi");
  range.at("spec", "limits").push(limit);
  lookup_.put("limitranges", "ns", range);
  Doc object = pod();
  EXPECT_EQ(admit(pods_, object), "");
  const Doc& resources = object["spec"]["containers"].items()[0]["resources"];
  EXPECT_EQ(resources["limits"], Doc::object().set("cpu", "1"));
  EXPECT_EQ(resources["requests"], Doc::object().set("cpu", "500m").set("memory", "1Gi"));
  EXPECT_EQ(meta(object)["annotations"]["kubernetes.io/limit-ranger"],
            Doc("LimitRanger plugin set: cpu, memory request for container c; cpu limit for "
                "container c"));
}

TEST_F(AdmissionTest, LimitRangesBound) {
  Doc range = named("r");
  Doc limit = Doc::object();
  limit.set("type", "Container");
  limit.at("max").set("nvidia.com/gpu", "2");
  limit.at("min").set("nvidia.com/gpu", "1");
  range.at("spec", "limits").push(limit);
  lookup_.put("limitranges", "ns", range);
  Doc big = gpu_pod("4");
  EXPECT_EQ(admit(pods_, big),
            "pods \"p\" is forbidden: maximum nvidia.com/gpu usage per Container is 2, but limit "
            "is 4");
  Doc none = pod();
  EXPECT_EQ(admit(pods_, none),
            "pods \"p\" is forbidden: [minimum nvidia.com/gpu usage per Container is 1.  No "
            "request is specified, maximum nvidia.com/gpu usage per Container is 2.  No limit is "
            "specified]");
  Doc right = gpu_pod("2");
  EXPECT_EQ(admit(pods_, right), "");
}

TEST_F(AdmissionTest, LimitRangesBoundRatios) {
  Doc range = named("r");
  Doc limit = Doc::object();
  limit.set("type", "Container");
  limit.at("maxLimitRequestRatio").set("cpu", "2");
  range.at("spec", "limits").push(limit);
  lookup_.put("limitranges", "ns", range);
  Doc object = pod();
  Doc& resources = object.at("spec", "containers").items()[0].at("resources");
  resources.at("limits").set("cpu", "3");
  resources.at("requests").set("cpu", "1");
  EXPECT_EQ(admit(pods_, object),
            "pods \"p\" is forbidden: cpu max limit to request ratio per Container is 2, but "
            "provided ratio is 3.000000");
}

TEST_F(AdmissionTest, ClaimsGetTheDefaultClassAndAFinalizer) {
  Doc storage_class = named("fast");
  storage_class.at("metadata", "annotations")
      .set("storageclass.kubernetes.io/is-default-class", "true");
  lookup_.put("storageclasses.storage.k8s.io", "", storage_class);
  const Resource claims = resource("", "persistentvolumeclaims");
  Doc claim = named("c");
  EXPECT_EQ(admit(claims, claim), "");
  EXPECT_EQ(claim["spec"]["storageClassName"], Doc("fast"));
  EXPECT_TRUE(has_finalizer(claim, "kubernetes.io/pvc-protection"));
  Doc classless = named("d");
  classless.at("spec").set("storageClassName", "");
  EXPECT_EQ(admit(claims, classless), "");
  EXPECT_EQ(classless["spec"]["storageClassName"], Doc(""));
}

TEST_F(AdmissionTest, ClaimsGrowWhenTheirClassAllows) {
  const Resource claims = resource("", "persistentvolumeclaims");
  const auto sized = [](std::string_view size) {
    Doc claim = named("c");
    claim.at("spec").set("storageClassName", "fast");
    claim.at("spec", "resources", "requests").set("storage", size);
    claim.at("status").set("phase", "Bound");
    return claim;
  };
  const Doc old = sized("1Gi");
  Doc more = sized("2Gi");
  EXPECT_NE(admit(claims, more, &old), "");
  Doc storage_class = named("fast");
  storage_class.set("allowVolumeExpansion", true);
  lookup_.put("storageclasses.storage.k8s.io", "", storage_class);
  EXPECT_EQ(admit(claims, more, &old), "");
}

class QuotaAdmission : public AdmissionTest {
 protected:
  void quota(std::string_view name, std::initializer_list<std::array<std::string_view, 3>> rows) {
    Doc object = named(name);
    for (const auto& [resource_name, hard, used] : rows) {
      object.at("status", "hard").set(resource_name, hard);
      object.at("status", "used").set(resource_name, used);
    }
    lookup_.put("resourcequotas", "ns", object);
  }
  std::string used(std::string_view name, std::string_view resource_name) const {
    return (*lookup_.get("resourcequotas", "ns", name))["status"]["used"][resource_name]
        .as_string();
  }
};

TEST_F(QuotaAdmission, ChargesAndRefuses) {
  quota("q", {{"requests.nvidia.com/gpu", "2", "0"}, {"pods", "3", "0"}});
  Doc one = gpu_pod("1");
  EXPECT_EQ(admit(pods_, one), "");
  EXPECT_EQ(used("q", "requests.nvidia.com/gpu"), "1");
  EXPECT_EQ(used("q", "pods"), "1");
  Doc two = gpu_pod("2");
  EXPECT_EQ(admit(pods_, two),
            "pods \"p\" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=2, "
            "used: requests.nvidia.com/gpu=1, limited: requests.nvidia.com/gpu=2");
  EXPECT_EQ(used("q", "pods"), "1");
}

TEST_F(QuotaAdmission, ARefusalChargesNobody) {
  quota("a", {{"pods", "9", "0"}});
  quota("b", {{"pods", "0", "0"}});
  Doc object = pod();
  EXPECT_NE(admit(pods_, object), "");
  EXPECT_EQ(used("a", "pods"), "0");
}

TEST_F(QuotaAdmission, DryRunChargesNothing) {
  quota("q", {{"pods", "1", "0"}});
  is_dry_run_ = true;
  Doc object = pod();
  EXPECT_EQ(admit(pods_, object), "");
  EXPECT_EQ(used("q", "pods"), "0");
}

TEST_F(QuotaAdmission, UncountedQuotasLetNothingIn) {
  Doc object = named("q");
  object.at("status", "hard").set("pods", "3");
  lookup_.put("resourcequotas", "ns", object);
  Doc one = pod();
  EXPECT_NE(admit(pods_, one).find("status unknown for quota: q, resources: pods"),
            std::string::npos);
}

TEST_F(QuotaAdmission, CpuMustBeSaid) {
  quota("cpu", {{"requests.cpu", "1", "0"}});
  Doc object = pod();
  EXPECT_EQ(admit(pods_, object),
            "pods \"p\" is forbidden: failed quota: cpu: must specify requests.cpu for: c");
}

TEST_F(QuotaAdmission, ObjectsAreCounted) {
  quota("q", {{"count/configmaps", "1", "1"}});
  const Resource maps = resource("", "configmaps");
  Doc object = named("m");
  EXPECT_NE(admit(maps, object).find("exceeded quota: q, requested: count/configmaps=1"),
            std::string::npos);
  const Doc old = object;
  EXPECT_EQ(admit(maps, object, &old), "");  // one that is there may change
}

TEST_F(QuotaAdmission, ResizesPayTheDifference) {
  quota("q", {{"requests.nvidia.com/gpu", "4", "1"}});
  const Doc old = gpu_pod("1");
  Doc more = gpu_pod("3");
  EXPECT_EQ(admit(pods_, more, &old, "resize"), "");
  EXPECT_EQ(used("q", "requests.nvidia.com/gpu"), "3");
}

}  // namespace
}  // namespace jogak::api
