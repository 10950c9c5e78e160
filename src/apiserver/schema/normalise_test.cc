// SPDX-License-Identifier: Apache-2.0
//
// What decode() takes, refuses and complains of, and what encode() writes. The texts of errors are
// those of a real server.
#include "apiserver/schema/normalise.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "apiserver/schema/schema.h"

namespace jogak::schema {
namespace {

using Strings = std::vector<std::string>;

Doc object(std::initializer_list<std::pair<const char*, Doc>> members) {
  Doc doc = Doc::object();
  for (const auto& [key, value] : members) doc.set(key, value);
  return doc;
}
Doc list(std::initializer_list<Doc> items) { return Doc::array(Doc::Items(items)); }

std::string compact(const Doc& doc) { return doc.json(JsonWriter::Style::Compact); }

// decode() of a value of that type as text, or its error.
std::string decoded(const char* type, Doc value) {
  Complaints complaints;
  const auto result = decode(std::move(value), get(type), complaints);
  return result ? compact(*result) : result.error().what;
}

std::string encoded(const char* type, Doc value) {
  return compact(encode(std::move(value), get(type)));
}

Doc pod_of(Doc spec) {
  return object({{"metadata", object({{"name", "x"}})}, {"spec", std::move(spec)}});
}
Doc container_with(const char* key, Doc value) {
  return object({{"containers", list({object({{"name", "c"}, {key, std::move(value)}})})}});
}

TEST(Decode, MembersComeIntoTheOrderOfTheType) {
  EXPECT_EQ(decoded("core.v1.Pod", object({{"spec", object({{"nodeName", "n"},
                                                            {"containers", list({})},
                                                            {"restartPolicy", "Never"}})},
                                           {"apiVersion", "v1"},
                                           {"kind", "Pod"}})),
            R"({"kind":"Pod","apiVersion":"v1","spec":{"restartPolicy":"Never","nodeName":"n"}})");
}

TEST(Decode, NullAndEmptyMembersGo) {
  EXPECT_EQ(decoded("core.v1.PodSpec", object({{"containers", Doc()},
                                               {"nodeName", ""},
                                               {"volumes", list({})},
                                               {"nodeSelector", Doc::object()},
                                               {"hostNetwork", false},
                                               {"priority", Doc()}})),
            "{}");
}

TEST(Decode, PointersAreKeptEvenWhenZero) {
  EXPECT_EQ(decoded("core.v1.PodSpec", object({{"priority", 0},
                                               {"automountServiceAccountToken", false},
                                               {"securityContext", Doc::object()}})),
            R"({"automountServiceAccountToken":false,"securityContext":{},"priority":0})");
}

TEST(Decode, NullElementsAreZeroValues) {
  EXPECT_EQ(decoded("core.v1.ConfigMap", object({{"data", object({{"a", Doc()}})}})),
            R"({"data":{"a":""}})");
  EXPECT_EQ(decoded("core.v1.PodSpec", object({{"tolerations", list({Doc()})}})),
            R"({"tolerations":[{}]})");
  EXPECT_EQ(decoded("core.v1.ResourceRequirements", object({{"limits", object({{"cpu", Doc()}})}})),
            R"({"limits":{"cpu":"0"}})");
}

TEST(Decode, WrongTypesAreRefusedInTheServersWords) {
  struct Case {
    Doc value;
    const char* error;
  };
  const Case cases[] = {
      {pod_of(object({{"containers", "c"}})),
       "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type "
       "[]v1.Container"},
      {pod_of(object({{"priority", "high"}})),
       "json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32"},
      {pod_of(object({{"terminationGracePeriodSeconds", Doc::number("1.5")}})),
       "json: cannot unmarshal number 1.5 into Go struct field "
       "PodSpec.spec.terminationGracePeriodSeconds of type int64"},
      {object({{"metadata", object({{"labels", object({{"a", 1}})}})}}),
       "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type "
       "string"},
      {pod_of(object({{"nodeSelector", object({{"a", true}})}})),
       "json: cannot unmarshal bool into Go struct field PodSpec.spec.nodeSelector of type string"},
      {pod_of(container_with("ports", list({object({{"containerPort", 5'000'000'000}})}))),
       "json: cannot unmarshal number 5000000000 into Go struct field "
       "ContainerPort.spec.containers.ports.containerPort of type int32"},
      {object({{"metadata", "x"}}),
       "json: cannot unmarshal string into Go struct field Pod.metadata of type v1.ObjectMeta"},
      {object({{"metadata", object({{"creationTimestamp", "yesterday"}})}}),
       "parsing time \"yesterday\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"yesterday\" as "
       "\"2006\""},
      {list({}), "json: cannot unmarshal array into Go value of type v1.Pod"},
      {pod_of(object({{"hostNetwork", "yes"}})),
       "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool"},
  };
  for (const Case& c : cases) EXPECT_EQ(decoded("core.v1.Pod", c.value), c.error);
  EXPECT_EQ(decoded("core.v1.Event", object({{"firstTimestamp", 0}})),
            "json: cannot unmarshal number into Go struct field Event.firstTimestamp of type "
            "string");
}

TEST(Decode, WholeNumbersHaveNoFraction) {
  for (const char* digits : {"1.0", "1e3", "9223372036854775808"}) {
    EXPECT_EQ(decoded("core.v1.PodSpec", object({{"activeDeadlineSeconds", Doc::number(digits)}})),
              std::string("json: cannot unmarshal number ") + digits +
                  " into Go struct field PodSpec.activeDeadlineSeconds of type int64");
  }
}

TEST(Decode, UnknownFieldsGoWithAComplaintEach) {
  Complaints complaints;
  const auto result = decode(
      object({{"metadata", object({{"name", "x"}, {"foo", 1}})},
              {"Spec", 1},
              {"spec", object({{"nodeselector", Doc::object()},
                               {"containers", list({object({{"bar", object({{"x", 1}})}})})}})}}),
      get("core.v1.Pod"), complaints);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(compact(*result), R"({"metadata":{"name":"x"},"spec":{"containers":[{}]}})");
  EXPECT_EQ(complaints.unknown, (Strings{"unknown field \"metadata.foo\"", "unknown field \"Spec\"",
                                         "unknown field \"spec.nodeselector\"",
                                         "unknown field \"spec.containers[0].bar\""}));
}

TEST(Decode, DuplicatesStandAmongThem) {
  Complaints complaints;
  complaints.duplicates = {"duplicate field \"spec.containers[0].image\"",
                           "duplicate field \"metadata.labels.a\"",
                           "duplicate field \"spec.bar.x\""};
  const Doc containers = list({object({{"image", "i"}, {"foo", 1}})});
  const auto result =
      decode(object({{"metadata", object({{"labels", object({{"a", "b"}})}})},
                     {"spec", object({{"bar", object({{"x", 1}})}, {"containers", containers}})}}),
             get("core.v1.Pod"), complaints);
  ASSERT_TRUE(result.has_value());
  // What stands in an unknown field is never looked at.
  EXPECT_EQ(complaints.unknown,
            (Strings{"duplicate field \"metadata.labels.a\"", "unknown field \"spec.bar\"",
                     "duplicate field \"spec.containers[0].image\"",
                     "unknown field \"spec.containers[0].foo\""}));
  EXPECT_TRUE(complaints.duplicates.empty());
}

TEST(Decode, ComplaintsOfTheYamlReaderComeFirst) {
  Complaints complaints;
  complaints.duplicates = {"yaml: unmarshal errors:\n  line 10: key \"image\" already set in map"};
  ASSERT_TRUE(decode(object({{"foo", 1}}), get("core.v1.Pod"), complaints).has_value());
  EXPECT_EQ(complaints.unknown,
            (Strings{"yaml: unmarshal errors:\n  line 10: key \"image\" already set in map",
                     "unknown field \"foo\""}));
}

TEST(Decode, NoMoreThanAHundredComplaints) {
  Doc value = Doc::object();
  for (int i = 0; i < 150; ++i) value.set("x" + std::to_string(i), 1);
  Complaints complaints;
  ASSERT_TRUE(decode(std::move(value), get("core.v1.Pod"), complaints).has_value());
  EXPECT_EQ(complaints.unknown.size(), 100U);
}

std::string quantity(Doc value) {
  Complaints complaints;
  auto result = decode(object({{"limits", object({{"cpu", std::move(value)}})}}),
                       get("core.v1.ResourceRequirements"), complaints);
  return result ? (*result)["limits"]["cpu"].as_string() : result.error().what;
}

TEST(Decode, QuantitiesBecomeCanonical) {
  struct Case {
    Doc value;
    const char* text;
  };
  const Case cases[] = {
      {"1", "1"},
      {"0", "0"},
      {"100m", "100m"},
      {"1000m", "1"},
      {"1024Mi", "1Gi"},
      {"1000Mi", "1000Mi"},
      {"1.5", "1500m"},
      {"01", "01"},
      {"1000", "1k"},
      {"999", "999"},
      {"1500", "1500"},
      {" 1 ", "1"},
      {"1.5Gi", "1536Mi"},
      {2, "2"},
      {Doc::number("0.5"), "500m"},
      {Doc::number("1e21"), "1e21"},
      {"1e3", "1e3"},
      {"1000Ki", "1000Ki"},
      {"512Ki", "512Ki"},
      {"-0", "0"},
      {"100000", "100k"},
      {1000, "1k"},
  };
  for (const Case& c : cases) EXPECT_EQ(quantity(c.value), c.text) << compact(c.value);
}

TEST(Decode, WhatIsNoQuantity) {
  for (const char* text : {"1K", "1e", "--1"}) {
    EXPECT_EQ(quantity(text), "unable to parse quantity's suffix") << text;
  }
  const Doc wrong[] = {"one", "",     "1gi",   "1GB",     "1e3Ki",       "1_000", "1 Gi",
                       "abc", "0x10", "1.2.3", Doc(true), Doc::object(), list({})};
  for (const Doc& value : wrong) {
    EXPECT_EQ(quantity(value),
              "quantities must match the regular expression "
              "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
        << compact(value);
  }
}

TEST(Decode, IntOrString) {
  const auto port = [](Doc value) {
    return decoded("core.v1.ServicePort", object({{"targetPort", std::move(value)}}));
  };
  EXPECT_EQ(port(80), R"({"targetPort":80})");
  EXPECT_EQ(port("http"), R"({"targetPort":"http"})");
  EXPECT_EQ(port(Doc::number("1.5")),
            "json: cannot unmarshal number 1.5 into Go struct field ServicePort.targetPort of type "
            "int32");
  EXPECT_EQ(port(true),
            "json: cannot unmarshal bool into Go struct field ServicePort.targetPort "
            "of type int32");
}

TEST(Decode, Bytes) {
  const auto data = [](const char* text) {
    return decoded("core.v1.Secret", object({{"data", object({{"k", text}})}}));
  };
  EXPECT_EQ(data("YQ=="), R"({"data":{"k":"YQ=="}})");
  EXPECT_EQ(data("YR=="), R"({"data":{"k":"YQ=="}})");
  EXPECT_EQ(data(""), R"({"data":{"k":""}})");
  EXPECT_EQ(data("!"), "illegal base64 data at input byte 0");
}

TEST(Decode, TimesAreCanonical) {
  EXPECT_EQ(decoded("core.v1.Event", object({{"firstTimestamp", "2024-01-01T02:00:00+02:00"}})),
            R"({"firstTimestamp":"2024-01-01T00:00:00Z"})");
  EXPECT_EQ(decoded("core.v1.Event", object({{"firstTimestamp", "0001-01-01T00:00:00Z"}})), "{}");
}

TEST(Decode, FreeFormStaysAsItIs) {
  const Doc free = object({{"z", list({1, Doc::number("1.50")})}, {"a", Doc()}});
  EXPECT_EQ(decoded("apps.v1.ControllerRevision", object({{"data", free}})),
            R"({"data":{"z":[1,1.50],"a":null}})");
}

TEST(Decode, SchemasStandInListsAndFlags) {
  const Doc schema = object({{"type", "object"}, {"foo", 1}});
  const auto props = [](const char* field, Doc value) {
    return decoded("apiextensions.v1.JSONSchemaProps", object({{field, std::move(value)}}));
  };
  // What is unknown in there goes without a complaint, as in Go.
  Complaints complaints;
  const auto result =
      decode(object({{"items", schema}}), get("apiextensions.v1.JSONSchemaProps"), complaints);
  EXPECT_EQ(compact(result.value()), R"({"items":{"type":"object"}})");
  EXPECT_TRUE(complaints.unknown.empty());
  EXPECT_EQ(props("items", list({schema})), R"({"items":[{"type":"object"}]})");
  EXPECT_EQ(props("items", "x"), "{}");
  EXPECT_EQ(props("additionalProperties", false), R"({"additionalProperties":false})");
  EXPECT_EQ(props("additionalProperties", schema), R"({"additionalProperties":{"type":"object"}})");
  EXPECT_EQ(props("additionalProperties", "x"), "boolean or JSON schema expected");
  EXPECT_EQ(props("dependencies", object({{"a", list({"b"})}, {"c", schema}})),
            R"({"dependencies":{"a":["b"],"c":{"type":"object"}}})");
}

TEST(Decode, NullIsAnEmptyObject) { EXPECT_EQ(decoded("core.v1.Pod", Doc()), "{}"); }

TEST(Encode, StructsAreAlwaysWritten) {
  EXPECT_EQ(encoded("core.v1.Pod", Doc::object()),
            R"({"metadata":{},"spec":{"containers":null},"status":{}})");
}

TEST(Encode, ZeroValuesWithoutOmitemptyAreFilledIn) {
  EXPECT_EQ(encoded("core.v1.Event", Doc::object()),
            R"({"metadata":{},"involvedObject":{},"source":{},"firstTimestamp":null,)"
            R"("lastTimestamp":null,"eventTime":null,"reportingComponent":"",)"
            R"("reportingInstance":""})");
  EXPECT_EQ(encoded("core.v1.Container", Doc::object()), R"({"name":"","resources":{}})");
}

TEST(Encode, EmptyOmitemptyMembersAreLeftOut) {
  EXPECT_EQ(encoded("core.v1.PodSpec", object({{"nodeName", ""},
                                               {"volumes", list({})},
                                               {"hostPID", false},
                                               {"containers", list({})},
                                               {"priority", 0}})),
            R"({"containers":[],"priority":0})");
}

TEST(Encode, OrderIsThatOfTheType) {
  EXPECT_EQ(encoded("core.v1.Toleration",
                    object({{"effect", "NoExecute"}, {"key", "k"}, {"operator", "Exists"}})),
            R"({"key":"k","operator":"Exists","effect":"NoExecute"})");
}

TEST(Encode, KeysOfMapsAreSorted) {
  EXPECT_EQ(encoded("core.v1.ConfigMap",
                    object({{"data", object({{"b", "2"}, {"a", "1"}, {"B", "3"}})}})),
            R"({"metadata":{},"data":{"B":"3","a":"1","b":"2"}})");
}

TEST(Encode, IsIdempotent) {
  const Doc once = encode(pod_of(container_with("image", "i")), get("core.v1.Pod"));
  EXPECT_EQ(compact(encode(once, get("core.v1.Pod"))), compact(once));
}

TEST(Encode, CreationTimestampGoesWhenThereIsNone) {
  EXPECT_EQ(encoded("meta.v1.ObjectMeta", object({{"creationTimestamp", Doc()}, {"name", "x"}})),
            R"({"name":"x"})");
}

TEST(Zero, OfEachKind) {
  const auto zero_of = [](const char* type, const char* field) {
    return compact(zero(get(type).find(field)->type));
  };
  EXPECT_EQ(zero_of("core.v1.PodSpec", "containers"), "null");
  EXPECT_EQ(zero_of("core.v1.PodSpec", "priority"), "null");
  EXPECT_EQ(zero_of("core.v1.PodSpec", "nodeName"), "\"\"");
  EXPECT_EQ(zero_of("core.v1.PodSpec", "hostNetwork"), "false");
  EXPECT_EQ(zero_of("core.v1.ContainerPort", "containerPort"), "0");
  EXPECT_EQ(zero_of("core.v1.Event", "firstTimestamp"), "null");
  EXPECT_EQ(zero_of("core.v1.ResourceFieldSelector", "divisor"), "\"0\"");
  EXPECT_EQ(zero_of("core.v1.ServicePort", "targetPort"), "0");
  EXPECT_EQ(zero_of("core.v1.Pod", "spec"), R"({"containers":null})");
}

TEST(Settle, NumbersAndKeys) {
  Doc value = object({{"b", Doc::number("1.0")},
                      {"a", list({Doc::number("1e3"), Doc::number("1.50"), 7,
                                  Doc::number("18446744073709551615")})}});
  ASSERT_TRUE(settle(value).has_value());
  EXPECT_EQ(compact(value), R"({"a":[1000,1.5,7,18446744073709552000],"b":1})");
  Doc large = list({Doc::number("1e400")});
  EXPECT_EQ(settle(large).error().what,
            "json: cannot unmarshal number 1e400 into Go value of type float64");
}

}  // namespace
}  // namespace jogak::schema
