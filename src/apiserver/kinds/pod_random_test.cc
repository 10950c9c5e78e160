// SPDX-License-Identifier: Apache-2.0
//
// Pods of any shape that decoding lets through: the rules must neither fail on them nor be undone
// by a second pass, and what is accepted once is accepted again.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/kinds/pod_spec.h"
#include "apiserver/kinds/pod_strategy.h"
#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/schema/normalise.h"
#include "base/rng.h"

namespace jogak::api {
namespace {

constexpr int kRounds = 400;
constexpr int kDepthMax = 6;

// Words that mean something somewhere, right and wrong ones.
constexpr std::array<std::string_view, 28> kWords = {
    "",           "a",           "A_",        "c",       "Always",    "Never",
    "OnFailure",  "Exists",      "In",        "Gt",      "NoExecute", "TCP",
    "File",       "None",        "..",        "/x",      "a/../b",    "::1",
    "10.0.0.1",   "localhost/p", "Localhost", "windows", "linux",     "metadata.name",
    "limits.cpu", "v1",          "None",      "a b"};
constexpr std::array<std::string_view, 7> kKeys = {
    "cpu", "memory", "nvidia.com/gpu", "gpu", "hugepages-2Mi", "a b", "app"};
constexpr std::array<std::string_view, 8> kQuantities = {
    "0", "1", "500m", "-1", "1Gi", "3Mi", "99999999999999999999", "1500e-3"};
constexpr std::array<std::int64_t, 8> kNumbers = {0, 1, -1, 2, 80, 420, 70000, 2147483647};

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : rng_(seed, "pods") {}

  Doc object(const schema::Struct& type, int depth) {
    Doc out = Doc::object();
    for (const schema::Field& field : type.fields) {
      // Few members deep inside, or nothing ever ends.
      if (rng_.below(depth < 2 ? 3 : 5) == 0) {
        out.set(field.name, value(field.type, depth));
      }
    }
    return out;
  }

 private:
  template <std::size_t N>
  std::string_view pick(const std::array<std::string_view, N>& list) {
    return list[rng_.below(N)];
  }

  Doc value(const schema::Type& type, int depth) {
    if (type.shape == schema::Type::Shape::List) {
      Doc list = Doc::array();
      for (std::uint64_t i = rng_.below(3); i > 0; --i) {
        list.push(value(type.element(), depth + 1));
      }
      return list;
    }
    if (type.shape == schema::Type::Shape::Map) {
      Doc map = Doc::object();
      for (std::uint64_t i = rng_.below(3); i > 0; --i) {
        map.set(pick(kKeys), value(type.element(), depth + 1));
      }
      return map;
    }
    return scalar(type, depth);
  }

  Doc scalar(const schema::Type& type, int depth) {
    switch (type.base) {
      case schema::Base::Struct:
        return depth < kDepthMax ? object(*type.of, depth + 1) : Doc::object();
      case schema::Base::Bool:
        return rng_.below(2) == 0;
      case schema::Base::Int32:
      case schema::Base::Int64:
        return kNumbers[rng_.below(kNumbers.size())];
      case schema::Base::IntOrString:
        return rng_.below(2) == 0 ? Doc(80) : Doc("http");
      case schema::Base::Quantity:
        return pick(kQuantities);
      case schema::Base::Time:
        return "2024-01-01T00:00:00Z";
      case schema::Base::String:
        return pick(kWords);
      default:
        return {};
    }
  }

  Rng rng_;
};

Doc random_pod(std::uint64_t seed) {
  Doc pod = json(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}})");
  pod.set("spec", Maker(seed).object(schema::get("core.v1.PodSpec"), 0));
  schema::Complaints complaints;
  auto decoded = schema::decode(std::move(pod), schema::get("core.v1.Pod"), complaints);
  EXPECT_TRUE(decoded.has_value() && complaints.unknown.empty()) << "seed " << seed;
  return decoded.value_or(Doc());
}

// Types and places, without the values that texts show; sorted, since keys of maps have no order.
std::multiset<std::string> places(const FieldErrors& errors) {
  std::multiset<std::string> out;
  for (const FieldError& error : errors.list()) {
    out.insert(std::string(reason_of(error.type)) + " " + error.field);
  }
  return out;
}

// One right container and at most a few other members: most of these pods are accepted.
void thin_out(Doc& spec, std::uint64_t seed) {
  Rng rng(seed, "thin");
  std::erase_if(spec.members(), [&](const Doc::Member&) { return rng.below(6) != 0; });
  for (const std::string_view list : {"initContainers", "ephemeralContainers"}) {
    spec.erase(list);
  }
  spec.set("containers", json(R"([{"name": "c", "image": "i"}])"));
}

TEST(RandomPods, DefaultsSettleAtOnce) {
  const auto strategy = pod_strategy({});
  for (int seed = 1; seed <= kRounds; ++seed) {
    Doc pod = random_pod(static_cast<std::uint64_t>(seed));
    strategy->set_defaults(pod);
    const Doc once = pod;
    strategy->set_defaults(pod);
    ASSERT_EQ(pod, once) << "seed " << seed;
  }
}

TEST(RandomPods, EncodingKeepsWhatTheRulesSee) {
  const auto strategy = pod_strategy({});
  const schema::Struct& type = schema::get("core.v1.Pod");
  for (int seed = 1; seed <= kRounds; ++seed) {
    Doc pod = random_pod(static_cast<std::uint64_t>(seed));
    strategy->set_defaults(pod);
    FieldErrors before;
    validate_pod_template(pod, Path("template"), before);
    Doc written = schema::encode(pod, type);
    strategy->set_defaults(written);
    FieldErrors after;
    validate_pod_template(written, Path("template"), after);
    ASSERT_EQ(places(before), places(after)) << "seed " << seed;
  }
}

TEST(RandomPods, AreStoredOrRefusedButNeverBreakAnything) {
  WorkloadBench bench;
  int stored = 0;
  for (int seed = 1; seed <= kRounds; ++seed) {
    Doc pod = random_pod(static_cast<std::uint64_t>(seed));
    pod.at("metadata").set("name", "p" + std::to_string(seed));
    if (seed % 2 == 0) {
      thin_out(pod.at("spec"), static_cast<std::uint64_t>(seed));
    }
    const auto made = bench.create(pod);
    if (!made.has_value()) {
      ASSERT_EQ(made.error().code, 422) << "seed " << seed;
      continue;
    }
    ++stored;
    // What was stored is right, so that writing it again changes nothing.
    const auto again = bench.update(*made);
    ASSERT_EQ(refusal(again), "") << "seed " << seed;
    ASSERT_EQ(*again, *made) << "seed " << seed;
  }
  EXPECT_GT(stored, 0);
}

}  // namespace
}  // namespace jogak::api
