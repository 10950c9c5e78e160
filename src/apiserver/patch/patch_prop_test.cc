// SPDX-License-Identifier: Apache-2.0
//
// Random documents and writes against slow, obvious versions of the same thing, and what must hold
// of owners whatever happens. A failure prints its seed.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "apiserver/patch/compare.h"
#include "apiserver/patch/managed_fields.h"
#include "apiserver/patch/patch.h"
#include "apiserver/patch/testing/json.h"
#include "apiserver/patch/typed_value.h"
#include "apiserver/schema/normalise.h"
#include "base/rng.h"

namespace jogak::patch {
namespace {

constexpr std::uint64_t kSeeds = 300;

std::string pick(Rng& rng, std::initializer_list<const char*> words) {
  return *(words.begin() + static_cast<std::ptrdiff_t>(rng.below(words.size())));
}

Doc random_value(Rng& rng, int depth, bool has_nulls) {
  const std::uint64_t kind = rng.below(depth == 0 ? 4 : 8);
  if (kind == 0) return has_nulls ? Doc() : Doc("n");
  if (kind == 1) return Doc(rng.between(0, 3));
  if (kind == 2) return Doc(rng.below(2) == 0);
  if (kind == 3) return Doc(pick(rng, {"", "x", "y"}));
  Doc value = kind < 6 ? Doc::object() : Doc::array();
  for (std::uint64_t i = rng.below(4); i > 0; --i) {
    Doc inner = random_value(rng, depth - 1, has_nulls);
    if (value.is_object()) {
      value.set(pick(rng, {"a", "b", "c", "x/y", "m~n"}), std::move(inner));
    } else {
      value.push(std::move(inner));
    }
  }
  return value;
}

Doc random_object(Rng& rng, bool has_nulls) {
  Doc object = Doc::object();
  for (const char* key : {"a", "b", "c"}) {
    if (rng.below(3) > 0) object.set(key, random_value(rng, 3, has_nulls));
  }
  return object;
}

// --- merge patch

// The smallest merge patch from one object to another; neither holds a null.
Doc difference(const Doc& from, const Doc& to) {
  Doc patch = Doc::object();
  for (const auto& [key, value] : from.members()) {
    if (!to.has(key)) patch.set(key, Doc());
  }
  for (const auto& [key, value] : to.members()) {
    const Doc* before = from.find(key);
    if (before != nullptr && *before == value) continue;
    const bool are_objects = before != nullptr && before->is_object() && value.is_object();
    patch.set(key, are_objects ? difference(*before, value) : value);
  }
  return patch;
}

TEST(MergePatchProp, TheDifferenceLeadsThere) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed, "merge");
    const Doc from = random_object(rng, false);
    const Doc to = random_object(rng, false);
    const auto result = merge_patch(from, difference(from, to));
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(*result, to) << text(*result) << text(to);
  }
}

// --- JSON patch

using Tokens = std::vector<std::string>;

// One operation on a value, made anew on the way back up: nullopt when it cannot be done.
class Oracle {
 public:
  static std::optional<Doc> run(const Doc& root, const Doc& operation) {
    const std::string op = operation["op"].as_string();
    const auto path = tokens(operation["path"].as_string());
    const auto from = tokens(operation["from"].as_string());
    const Doc& value = operation["value"];
    if (op == "test") {
      const auto found = read(root, path);
      return found && *found == value ? std::optional(root) : std::nullopt;
    }
    if (op == "replace" && path.empty()) {
      return value.is_object() || value.is_array() ? std::optional(value) : std::nullopt;
    }
    if (path.empty() || ((op == "move" || op == "copy") && from.empty())) return std::nullopt;
    if (op == "add") return write(root, path, value, Way::Insert);
    if (op == "replace") return write(root, path, value, Way::Replace);
    if (op == "remove") return write(root, path, Doc(), Way::Remove);
    const auto moved = read(root, from);
    if (!moved) return std::nullopt;
    if (op == "copy") return write(root, path, *moved, Way::Insert);
    const auto without = write(root, from, Doc(), Way::Remove);
    return without ? write(*without, path, *moved, Way::Insert) : std::nullopt;
  }

 private:
  enum class Way : std::uint8_t { Insert, Replace, Remove };

  static Tokens tokens(std::string_view path) {
    Tokens out;
    if (path.empty()) return out;
    path.remove_prefix(1);
    std::string token;
    for (std::size_t i = 0; i <= path.size(); ++i) {
      if (i == path.size() || path[i] == '/') {
        out.push_back(std::exchange(token, ""));
      } else if (path[i] == '~' && i + 1 < path.size()) {
        token += path[++i] == '0' ? '~' : '/';
      } else {
        token += path[i];
      }
    }
    return out;
  }

  static std::optional<std::size_t> index(const Doc& list, const std::string& token, bool inserts) {
    const auto size = static_cast<std::int64_t>(list.size()) + (inserts ? 1 : 0);
    if (inserts && token == "-") return list.size();
    std::int64_t at = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), at);
    if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
    if (at < 0) at += size;
    if (at < 0 || at >= size) return std::nullopt;
    return static_cast<std::size_t>(at);
  }

  static std::optional<Doc> read(const Doc& value, Tokens path) {
    if (path.empty()) return value;
    const std::string token = path.front();
    path.erase(path.begin());
    if (value.is_object()) {
      if (!value.has(token)) return path.empty() ? std::optional(Doc()) : std::nullopt;
      return read(value[token], path);
    }
    const auto at = value.is_array() ? index(value, token, false) : std::nullopt;
    return at ? read(value.items()[*at], path) : std::nullopt;
  }

  static std::optional<Doc> write(const Doc& value, Tokens path, const Doc& put, Way way) {
    const std::string token = path.front();
    path.erase(path.begin());
    Doc out = value;
    if (value.is_object()) {
      if (!path.empty()) {
        const auto inner = value.has(token) ? write(value[token], path, put, way) : std::nullopt;
        if (!inner) return std::nullopt;
        return out.set(token, *inner);
      }
      if (way != Way::Remove) return out.set(token, put);
      return out.erase(token) ? std::optional(out) : std::nullopt;
    }
    if (!value.is_array()) return std::nullopt;
    const auto at = index(value, token, path.empty() && way == Way::Insert);
    if (!at) return std::nullopt;
    Doc::Items& items = out.items();
    const auto place = items.begin() + static_cast<std::ptrdiff_t>(*at);
    if (!path.empty()) {
      const auto inner = write(*place, path, put, way);
      if (!inner) return std::nullopt;
      *place = *inner;
    } else if (way == Way::Insert) {
      items.insert(place, put);
    } else if (way == Way::Remove) {
      items.erase(place);
    } else {
      *place = put;
    }
    return out;
  }
};

// A path that leads somewhere in most cases.
std::string random_pointer(Rng& rng, const Doc& root) {
  std::string path;
  const Doc* at = &root;
  while (!at->empty() && rng.below(5) > 0) {
    const std::size_t i = rng.below(at->size());
    if (at->is_object()) {
      const Doc::Member& member = at->members()[i];
      path += "/";
      for (const char c : member.key) {
        path += c == '~' ? "~0" : (c == '/' ? "~1" : std::string(1, c));
      }
      at = &member.value;
    } else {
      path += "/" + std::to_string(i);
      at = &at->items()[i];
    }
  }
  if (rng.below(3) == 0) path += "/" + pick(rng, {"a", "z", "-", "0", "1", "-1", "7", ""});
  return path;
}

TEST(JsonPatchProp, AgreesWithTheOracle) {
  int done = 0;
  for (std::uint64_t seed = 1; seed <= 10 * kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed, "json");
    const Doc object = random_object(rng, true);
    std::optional<Doc> expected = object;
    Doc patch = Doc::array();
    for (std::uint64_t i = 1 + rng.below(4); i > 0; --i) {
      Doc operation = Doc::object();
      operation.set("op", pick(rng, {"add", "remove", "replace", "test", "move", "copy"}));
      operation.set("path", random_pointer(rng, object));
      operation.set("from", random_pointer(rng, object));
      operation.set("value", random_value(rng, 2, true));
      if (expected) expected = Oracle::run(*expected, operation);
      patch.push(std::move(operation));
    }
    const auto result = json_patch(object, patch);
    ASSERT_EQ(result.has_value(), expected.has_value()) << text(object) << text(patch);
    if (!expected) continue;
    ++done;
    ASSERT_EQ(*result, *expected) << text(object) << text(patch);
  }
  EXPECT_GT(done, 200);
}

// --- field sets

using PathSet = std::set<std::string>;

PathSet paths_of(const FieldSet& set) {
  PathSet paths;
  each_path(set, [&](const FieldPath& path) { paths.insert(path_text(path)); });
  return paths;
}

FieldSet random_set(Rng& rng) {
  FieldSet set = Doc::object();
  for (std::uint64_t i = rng.below(12); i > 0; --i) {
    FieldPath path;
    for (std::uint64_t depth = 1 + rng.below(3); depth > 0; --depth) {
      path.push_back(pick(rng, {"f:a", "f:b", "v:9", "v:10", "v:\"x\"", "k:{\"n\":9}",
                                "k:{\"n\":10}", "k:{\"n\":\"z\"}"}));
    }
    insert_path(set, path);
  }
  return set;
}

template <class Algorithm>
PathSet combined(const PathSet& a, const PathSet& b, const Algorithm& algorithm) {
  PathSet out;
  algorithm(a.begin(), a.end(), b.begin(), b.end(), std::inserter(out, out.end()));
  return out;
}

TEST(FieldSetProp, AlgebraIsThatOfSetsOfPaths) {
  for (std::uint64_t seed = 1; seed <= 10 * kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed, "sets");
    const FieldSet a = random_set(rng);
    const FieldSet b = random_set(rng);
    const PathSet pa = paths_of(a);
    const PathSet pb = paths_of(b);
    const auto unions = [](auto... args) { return std::set_union(args...); };
    const auto intersections = [](auto... args) { return std::set_intersection(args...); };
    const auto differences = [](auto... args) { return std::set_difference(args...); };
    EXPECT_EQ(paths_of(unite(a, b)), combined(pa, pb, unions));
    EXPECT_EQ(paths_of(intersect(a, b)), combined(pa, pb, intersections));
    EXPECT_EQ(paths_of(subtract(a, b)), combined(pa, pb, differences));
    FieldSet united = a;
    unite_with(united, b);
    EXPECT_EQ(text(united), text(unite(a, b)));
    FieldSet reduced = a;
    subtract_from(reduced, b);
    EXPECT_EQ(text(reduced), text(subtract(a, b)));
    for (const FieldSet& set : {a, unite(a, b), subtract(a, b), intersect(a, b)}) {
      const auto canonical = canonical_set(set);
      ASSERT_TRUE(canonical.has_value());
      EXPECT_EQ(text(*canonical), text(set)) << "results are canonical";
    }
  }
}

// --- owners

Doc random_pod(Rng& rng) {
  Doc pod = json("{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p'},'spec':{}}");
  for (std::uint64_t i = rng.below(3); i > 0; --i) {
    pod.at("metadata", "labels", pick(rng, {"a", "b"})) = pick(rng, {"1", "2"});
  }
  std::map<std::string, Doc> containers;
  for (std::uint64_t i = 1 + rng.below(3); i > 0; --i) {
    Doc container = Doc::object();
    container.set("name", pick(rng, {"c", "d", "e"})).set("image", pick(rng, {"i:1", "i:2"}));
    if (rng.below(2) == 0) container.set("args", json("['x']"));
    if (rng.below(2) == 0) {
      container.at("env").push(Doc::object()).items()[0].set("name", pick(rng, {"A", "B"}));
    }
    containers.insert_or_assign(container["name"].as_string(), container);
  }
  for (auto& [name, container] : containers) {
    pod.at("spec", "containers").push(std::move(container));
  }
  if (rng.below(2) == 0) pod.at("spec").set("nodeSelector", json("{'x':'y'}"));
  if (rng.below(2) == 0) pod.at("spec").set("hostname", pick(rng, {"h", "g"}));
  return pod;
}

const ObjectType& pod_type() {
  static const ObjectType kType = {.builtin = &schema::get("core.v1.Pod")};
  return kType;
}

Writer writer(std::string manager, TimeUs now) {
  return {.manager = std::move(manager),
          .api_version = "v1",
          .subresource = "",
          .has_status = true,
          .now = now};
}

// After any updates every field that was ever set is owned, and by one manager only.
TEST(OwnersProp, UpdatersShareNothingAndLeaveNothing) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed, "owners");
    Doc live;
    for (TimeUs now = 1; now < 6; ++now) {
      Doc next = random_pod(rng);
      track_update(live, next, writer(pick(rng, {"m", "n", "o"}), now * kSecondInUs), pod_type());
      next.at("metadata").set("uid", "u");
      live = std::move(next);

      FieldSet owned = Doc::object();
      for (const Doc& manager : live["metadata"]["managedFields"].items()) {
        EXPECT_TRUE(intersect(owned, manager["fieldsV1"]).empty()) << "owned twice";
        unite_with(owned, manager["fieldsV1"]);
      }
      Doc bare = live;
      bare.at("metadata").erase("managedFields");
      const FieldSet all = compare(Doc(), bare, TypeView::of(pod_type())).changed;
      EXPECT_EQ(text(subtract(all, owned)), "{}") << "owned by nobody";
      EXPECT_EQ(text(subtract(owned, all)), "{}") << "owned but not there";
    }
  }
}

// An apply names its own fields; a second one of the same intent changes nothing at all; and who
// forces takes exactly what others had with other values.
TEST(ApplyProp, TwiceIsOnceAndForceTakesIt) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed, "apply");
    Doc live;
    for (TimeUs now = 1; now < 6; ++now) {
      const Doc intent = random_pod(rng);
      const std::string manager = pick(rng, {"m", "n"});
      const bool is_forced = rng.below(2) == 0;
      const auto first =
          apply(live, intent, writer(manager, now * kSecondInUs), is_forced, pod_type());
      if (!first) {
        ASSERT_EQ(first.error().code, 409);
        ASSERT_FALSE(is_forced);
        ASSERT_FALSE(first.error().causes.empty());
        continue;
      }
      live = *first;
      live.at("metadata").set("uid", "u");
      live = schema::encode(std::move(live), *pod_type().builtin);  // as it is stored
      const auto second =
          apply(live, intent, writer(manager, (now + 50) * kSecondInUs), false, pod_type());
      ASSERT_TRUE(second.has_value()) << second.error().message;
      ASSERT_EQ(text(schema::encode(*second, *pod_type().builtin)), text(live));

      const TypeView view = TypeView::of(pod_type());
      const FieldSet named = named_fields(intent, view);
      const FieldSet there = named_fields(live, view);
      EXPECT_EQ(text(subtract(named, there)), "{}") << "the intent was not carried out";
    }
  }
}

}  // namespace
}  // namespace jogak::patch
