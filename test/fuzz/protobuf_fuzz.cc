// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a protobuf message of some type (the first byte chooses), with and without the
// envelope: refused or read; and what was read and written once reads and writes the same.
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "apiserver/codec/codec.h"
#include "apiserver/schema/normalise.h"
#include "base/check.h"

namespace {

constexpr const char* kTypes[] = {
    "core.v1.Pod",           "core.v1.Node",
    "core.v1.ConfigMap",     "core.v1.Secret",
    "apps.v1.Deployment",    "batch.v1.CronJob",
    "core.v1.Service",       "autoscaling.v2.HorizontalPodAutoscaler",
    "meta.v1.Status",        "apiextensions.v1.CustomResourceDefinition",
    "meta.v1.DeleteOptions", "authentication.v1.TokenReview",
    "coordination.v1.Lease", "apps.v1.ControllerRevision",
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jogak;
  if (size == 0) return 0;
  const schema::Struct& type = schema::get(kTypes[data[0] % std::size(kTypes)]);
  std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (const auto envelope = codec::open_envelope(bytes)) bytes = envelope->raw;
  const auto object = codec::decode_protobuf(bytes, type, "v1", "Kind");
  if (!object) {
    JOGAK_CHECK(!object.error().what.empty());
    return 0;
  }
  const std::string once = codec::encode_protobuf(*object, type);
  const auto envelope = codec::open_envelope(once);
  JOGAK_CHECK(envelope.has_value() && envelope->kind == "Kind");
  const auto again = codec::decode_protobuf(envelope->raw, type, "v1", "Kind");
  JOGAK_CHECK(again.has_value(), "{}", again.error().what);
  JOGAK_CHECK(codec::encode_protobuf(*again, type) == once);
  schema::Complaints complaints;
  if (auto decoded = schema::decode(*again, type, complaints)) {
    (void)codec::encode_protobuf(*decoded, type);
    JOGAK_CHECK(complaints.unknown.empty());
  }
  return 0;
}
