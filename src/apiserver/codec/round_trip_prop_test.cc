// SPDX-License-Identifier: Apache-2.0
//
// Random objects of every kind: what decode() gave stays what it is through JSON, through YAML,
// through protobuf, and through decode() and encode() again.
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "apiserver/codec/codec.h"
#include "apiserver/schema/normalise.h"
#include "apiserver/schema/unions.h"

namespace jogak::codec {
namespace {

using schema::Base;
using schema::Field;
using schema::Struct;
using schema::Type;

constexpr const char* kKinds[] = {
    "core.v1.Namespace",
    "core.v1.Node",
    "core.v1.Pod",
    "core.v1.Service",
    "core.v1.ConfigMap",
    "core.v1.Secret",
    "core.v1.ServiceAccount",
    "core.v1.Event",
    "core.v1.PersistentVolume",
    "core.v1.PersistentVolumeClaim",
    "core.v1.LimitRange",
    "core.v1.ResourceQuota",
    "core.v1.Endpoints",
    "apps.v1.Deployment",
    "apps.v1.StatefulSet",
    "apps.v1.DaemonSet",
    "apps.v1.ReplicaSet",
    "apps.v1.ControllerRevision",
    "batch.v1.Job",
    "batch.v1.CronJob",
    "policy.v1.PodDisruptionBudget",
    "scheduling.v1.PriorityClass",
    "coordination.v1.Lease",
    "events.v1.Event",
    "storage.v1.StorageClass",
    "storage.v1.CSINode",
    "resource.v1.ResourceSlice",
    "resource.v1.ResourceClaim",
    "autoscaling.v2.HorizontalPodAutoscaler",
    "rbac.v1.ClusterRole",
    "discovery.v1.EndpointSlice",
    "authentication.v1.TokenReview",
    "scheduling.v1alpha2.PodGroup",
    "apiextensions.v1.CustomResourceDefinition",
    "meta.v1.Status",
    "meta.v1.DeleteOptions",
};

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  Doc object(const Struct& type, int depth) {
    Doc result = Doc::object();
    for (const Field& field : type.fields) {
      const bool is_left_out = below(10) < 4 + depth || depth > 8;
      if (is_left_out || field.name == "kind" || field.name == "apiVersion") continue;
      // Schemas in other clothes have tests of their own.
      if (schema::union_of(type, field) != schema::Union::None) continue;
      result.set(field.name, value(field.type, depth + 1));
    }
    return result;
  }

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

  template <std::size_t n>
  const char* one_of(const char* const (&texts)[n]) {
    return texts[below(static_cast<int>(n))];
  }

  Doc value(const Type& type, int depth) {
    if (type.shape == Type::Shape::List) {
      Doc list = Doc::array();
      for (int i = below(3); i > 0; --i) list.push(value(type.element(), depth));
      return list;
    }
    if (type.shape == Type::Shape::Map) {
      Doc map = Doc::object();
      for (int i = below(3); i > 0; --i) {
        map.set(one_of({"cpu", "nvidia.com/gpu", "z", "a", "y"}), value(type.element(), depth));
      }
      return map;
    }
    return scalar(type, depth);
  }

  Doc scalar(const Type& type, int depth) {
    switch (type.base) {
      case Base::Struct:
        return object(*type.of, depth);
      case Base::String:
        return one_of({"", "a", "y", "1", "가나", "\"quoted\"\n", "- x: y", "~"});
      case Base::Bool:
        return below(2) == 0;
      case Base::Int32:
        return below(2000) - 1000;
      case Base::Int64:
        return static_cast<std::int64_t>(random_()) * (below(2) == 0 ? 1 : -1'000'003);
      case Base::Float64:
        return Doc::number(one_of({"1.5", "1e21", "0.1", "-2.25", "1e-7"}));
      case Base::Bytes:
        return one_of({"", "YQ==", "//79", "YWJj"});
      case Base::Quantity:
        return one_of({"0", "1", "100m", "1.5Gi", "1024Mi", "12e6", "8Ei", "-1"});
      case Base::Time:
        return one_of({"2024-01-01T00:00:00Z", "1969-06-30T12:00:00.5+02:00"});
      case Base::MicroTime:
        return "2024-01-01T00:00:00.123456Z";
      case Base::Duration:
        return one_of({"1h", "0s", "1.5s", "-5ms"});
      case Base::IntOrString:
        return below(2) == 0 ? Doc(below(100)) : Doc(one_of({"50%", "", "http"}));
      case Base::Raw:
      case Base::Json:
      case Base::Fields: {
        Doc any = Doc::object();
        any.set("f:b", Doc::object());
        any.set("a", Doc::strings({"x", "1"}));
        return any;
      }
    }
    return Doc();
  }

  std::mt19937 random_;
};

std::string compact(const Doc& doc) { return doc.json(JsonWriter::Style::Compact); }

TEST(RoundTrip, OfRandomObjects) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Generator generator(seed);
  for (std::size_t i = 0; i < 40 * std::size(kKinds); ++i) {
    const Struct& type = schema::get(kKinds[i % std::size(kKinds)]);
    SCOPED_TRACE(std::string(type.name));
    schema::Complaints complaints;
    const auto decoded = schema::decode(generator.object(type, 0), type, complaints);
    ASSERT_TRUE(decoded.has_value()) << decoded.error().what;
    ASSERT_TRUE(complaints.unknown.empty());
    const Doc object = schema::encode(*decoded, type);
    const std::string text = compact(object);

    // As it is.
    EXPECT_EQ(compact(schema::encode(object, type)), text);
    const auto again = schema::decode(object, type, complaints);
    ASSERT_TRUE(again.has_value()) << again.error().what;
    EXPECT_EQ(compact(schema::encode(*again, type)), text);
    // JSON.
    const auto json = parse_json(text);
    ASSERT_TRUE(json.has_value()) << json.error().what;
    EXPECT_EQ(compact(json->doc), text);
    // YAML, in blocks and as JSON.
    for (const std::string& written : {object.yaml(), text}) {
      const auto yaml = parse_yaml(written);
      ASSERT_TRUE(yaml.has_value()) << yaml.error().what << "\n" << written;
      EXPECT_EQ(yaml->doc, object) << written;
    }
    // Protobuf, from either form.
    const std::string bytes = encode_protobuf(object, type);
    EXPECT_EQ(encode_protobuf(*decoded, type), bytes);
    const auto message = decode_protobuf(open_envelope(bytes)->raw, type, "", "");
    ASSERT_TRUE(message.has_value()) << message.error().what;
    EXPECT_EQ(compact(schema::encode(*message, type)), text);
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
}

}  // namespace
}  // namespace jogak::codec
