// SPDX-License-Identifier: Apache-2.0
//
// Protobuf both ways against bytes of Go's own code, and against bytes made to do harm.
#include <cstddef>
#include <random>
#include <string>
#include <string_view>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "apiserver/codec/codec.h"
#include "apiserver/codec/testing/protobuf_samples.h"
#include "apiserver/codec/wire.h"
#include "apiserver/schema/normalise.h"

namespace jogak::codec {
namespace {

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

std::string bytes_of(std::string_view digits) {
  std::string out;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    out += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  }
  return out;
}

Doc doc_of(std::string_view json) { return parse_json(json).value().doc; }
std::string compact(const Doc& doc) { return doc.json(JsonWriter::Style::Compact); }

// A message of that type as encode() writes it, or the error.
std::string decoded(std::string_view message, const char* type) {
  const auto result = decode_protobuf(message, schema::get(type), "", "");
  return result ? compact(*result) : result.error().what;
}

TEST(Protobuf, WritesTheBytesOfGo) {
  for (const auto& sample : testing::kProtobufSamples) {
    EXPECT_EQ(hex(encode_protobuf(doc_of(sample.json), schema::get(sample.type))), sample.hex)
        << sample.type;
  }
}

TEST(Protobuf, ReadsTheBytesOfGo) {
  for (const auto& sample : testing::kProtobufSamples) {
    const std::string bytes = bytes_of(sample.hex);
    const auto envelope = open_envelope(bytes);
    ASSERT_TRUE(envelope.has_value()) << sample.type;
    const schema::Struct& type = schema::get(sample.type);
    auto object = decode_protobuf(envelope->raw, type, envelope->api_version, envelope->kind);
    ASSERT_TRUE(object.has_value()) << sample.type << object.error().what;
    EXPECT_EQ(schema::encode(*std::move(object), type), doc_of(sample.json)) << sample.type;
  }
}

TEST(Protobuf, ReadsShortBytes) {
  // No field but the ones that count, as other writers do.
  const std::string bytes = bytes_of(
      "6b3873000a0f0a0276311209436f6e6669674d6170121b0a110a0270621a0b6d65646961"
      "2d747970657312060a016b120176");
  const auto envelope = open_envelope(bytes);
  ASSERT_TRUE(envelope.has_value());
  EXPECT_EQ(envelope->kind, "ConfigMap");
  EXPECT_EQ(envelope->api_version, "v1");
  EXPECT_EQ(decoded(envelope->raw, "core.v1.ConfigMap"),
            R"({"metadata":{"name":"pb","namespace":"media-types"},"data":{"k":"v"}})");
}

TEST(Protobuf, UnknownFieldsAreSkipped) {
  // 99: varint, fixed64, bytes, group with a group inside, fixed32; then data 2 of a ConfigMap.
  const std::string unknown =
      "980601"
      "9906"
      "0102030405060708"
      "9a060161"
      "9b06"
      "9b06"
      "0801"
      "9c06"
      "9c06"
      "9d06"
      "01020304";
  EXPECT_EQ(decoded(bytes_of(unknown + "12060a016b120176"), "core.v1.ConfigMap"),
            R"({"data":{"k":"v"}})");
}

TEST(Protobuf, PiecesOfOneMessageAreMerged) {
  // metadata {name: a}, metadata {namespace: b}, metadata {name: c}
  EXPECT_EQ(decoded(bytes_of("0a030a0161"
                             "0a031a0162"
                             "0a030a0163"),
                    "core.v1.ConfigMap"),
            R"({"metadata":{"name":"c","namespace":"b"}})");
}

TEST(Protobuf, TheLastOfEqualKeysCounts) {
  EXPECT_EQ(decoded(bytes_of("12060a016b120176"
                             "12060a0161120162"
                             "12060a016b120178"),
                    "core.v1.ConfigMap"),
            R"({"data":{"a":"b","k":"x"}})");
}

TEST(Protobuf, EntriesMayLackKeyOrValue) {
  EXPECT_EQ(decoded(bytes_of("1200"
                             "12030a0161"),
                    "core.v1.ConfigMap"),
            R"({"data":{"":"","a":""}})");
}

TEST(Protobuf, PackedNumbersAreRead) {
  // PodSecurityContext.supplementalGroups = 4
  EXPECT_EQ(decoded(bytes_of("22020102"
                             "2003"),
                    "core.v1.PodSecurityContext"),
            R"({"supplementalGroups":[1,2,3]})");
}

TEST(Protobuf, NegativeNumbers) {
  // PriorityClass.value = 2
  EXPECT_EQ(decoded(bytes_of("10ffffffffffffffffff01"), "scheduling.v1.PriorityClass"),
            R"({"value":-1})");
}

TEST(Protobuf, TimesBeyondTheCalendarAreRefused) {
  const auto lease = [](std::uint64_t seconds, std::uint64_t nanos) {
    WireWriter out;
    out.message_field(3, [&] {  // acquireTime
      out.varint_field(1, seconds);
      out.varint_field(2, nanos);
    });
    return decoded(out.take(), "coordination.v1.LeaseSpec");
  };
  EXPECT_EQ(lease(0, 999), R"({"acquireTime":"1970-01-01T00:00:00.000000Z"})");
  EXPECT_EQ(lease(1ULL << 62, 0), "proto: time 4611686018427387904 is out of range");
  EXPECT_EQ(lease(0, 1'000'000'000), "proto: time 0 is out of range");
}

TEST(Protobuf, BrokenMessages) {
  struct Case {
    const char *message, *error;
  };
  const Case cases[] = {
      {"0a", "unexpected EOF"},
      {"0a05", "unexpected EOF"},
      {"0affffffffffffffffff01", "unexpected EOF"},
      {"0affffffffffffffffffff01", "proto: integer overflow"},
      {"67", "proto: illegal wireType 7"},
      {"00", "proto: illegal tag 0 (wire type 0)"},
      {"0c", "proto: wiretype end group for non-group"},
      {"0801", "proto: wrong wireType = 0 for field metadata"},
      {"1001", "proto: wrong wireType = 0 for field data"},
      {"9906010203", "unexpected EOF"},
      {"9b06", "unexpected EOF"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(decoded(bytes_of(c.message), "core.v1.ConfigMap"), c.error) << c.message;
  }
}

TEST(Protobuf, GroupsDoNotNestWithoutEnd) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += "\x9b\x06";
  EXPECT_EQ(decoded(bytes, "core.v1.ConfigMap"), "proto: groups are nested too deep");
}

TEST(Protobuf, SchemasDoNotNestWithoutEnd) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    WireWriter out;
    out.bytes_field(28, bytes);  // not
    bytes = out.take();
  }
  EXPECT_EQ(decoded(bytes, "apiextensions.v1.JSONSchemaProps"),
            "proto: messages are nested too deep");
}

TEST(Protobuf, AnyCutOfASampleIsRefusedOrRead) {
  for (const auto& sample : testing::kProtobufSamples) {
    const std::string bytes = bytes_of(sample.hex);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const auto envelope = open_envelope(std::string_view(bytes).substr(0, size));
      if (envelope) (void)decode_protobuf(envelope->raw, schema::get(sample.type), "", "");
    }
  }
}

TEST(Protobuf, AnyChangedByteIsRefusedOrRead) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (const auto& sample : testing::kProtobufSamples) {
    const schema::Struct& type = schema::get(sample.type);
    for (int i = 0; i < 200; ++i) {
      std::string bytes = bytes_of(sample.hex);
      for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
      const auto envelope = open_envelope(bytes);
      if (!envelope) continue;
      auto object = decode_protobuf(envelope->raw, type, "", "");
      if (!object) continue;
      // What was read can be written.
      (void)encode_protobuf(*object, type);
    }
  }
}

TEST(Envelope, MustBeOne) {
  EXPECT_EQ(open_envelope("").error().what, "empty data");
  EXPECT_EQ(open_envelope("xxxx").error().what,
            "provided data does not appear to be a protobuf message, expected prefix "
            "[107 56 115 0]");
  EXPECT_EQ(open_envelope(std::string_view("k8s\0", 4)).error().what, "empty body");
  EXPECT_EQ(open_envelope(std::string_view("k8s\0garbage", 11)).error().what,
            "proto: illegal wireType 7");
  EXPECT_EQ(open_envelope(bytes_of("6b3873000801")).error().what,
            "proto: wrong wireType = 0 for field TypeMeta");
}

TEST(Envelope, OfAList) {
  const Doc list =
      doc_of(R"({"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7",)"
             R"("continue":"c","remainingItemCount":3},"items":[{"metadata":{"name":"a"}},{}]})");
  EXPECT_EQ(hex(encode_protobuf_list(list, schema::get("core.v1.ConfigMap"))),
            "6b3873000a130a027631120d436f6e6669674d61704c69737412350a0a0a001201371a0163200312130a11"
            "0a016112001a0022002a0032003800420012120a100a0012001a0022002a003200380042001a002200");
}

TEST(Envelope, FramesOfAWatch) {
  const Doc object = doc_of(R"({"kind":"ConfigMap","apiVersion":"v1"})");
  EXPECT_EQ(hex(encode_protobuf_watch_event("ADDED", object, schema::get("core.v1.ConfigMap"))),
            "000000380a054144444544122f0a2d6b3873000a0f0a0276311209436f6e6669674d617012120a100a0012"
            "001a0022002a003200380042001a002200");
}

TEST(Envelope, OfAStatus) {
  const Doc status =
      doc_of(R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"m",)"
             R"("reason":"NotFound","details":{"name":"x","kind":"pods"},"code":404})");
  EXPECT_EQ(hex(encode_protobuf(status, schema::get("meta.v1.Status"))),
            "6b3873000a0c0a027631120653746174757312320a060a0012001a0012074661696c7572651a016d22084e"
            "6f74466f756e642a0f0a017812001a04706f6473280032003094031a002200");
}

}  // namespace
}  // namespace jogak::codec
