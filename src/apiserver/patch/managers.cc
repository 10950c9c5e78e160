// SPDX-License-Identifier: Apache-2.0
//
// Reading, ordering and writing managers.
#include "apiserver/patch/managers.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "apiserver/object/meta.h"

namespace jogak::patch {
namespace {

constexpr std::size_t kUpdatersMax = 10;
constexpr std::string_view kFieldsType = "FieldsV1";

std::int64_t seconds_of(const Doc& manager) {
  const auto time = api::parse_time(manager["time"].as_string());
  if (!time) return 0;
  return *time >= 0 ? *time / kSecondInUs : (*time - kSecondInUs + 1) / kSecondInUs;
}

const std::string& text_of(const Doc& manager, std::string_view key) {
  return manager[key].as_string();
}

// What tells managers apart, in the order of members that the server compares as text.
auto identity_of(const Doc& manager) {
  static const std::string kNone;
  return std::tie(text_of(manager, "manager"), text_of(manager, "operation"),
                  is_applier(manager) ? kNone : text_of(manager, "apiVersion"),
                  text_of(manager, "subresource"));
}

std::optional<Doc> read_manager(const Doc& sent) {
  const std::string& operation = text_of(sent, "operation");
  if (operation != kApply && operation != kUpdate) return std::nullopt;
  if (text_of(sent, "apiVersion").empty() || text_of(sent, "fieldsType") != kFieldsType) {
    return std::nullopt;
  }
  auto fields = canonical_set(sent["fieldsV1"]);
  if (!fields) return std::nullopt;
  Doc manager = make_manager(text_of(sent, "manager"), operation, text_of(sent, "apiVersion"),
                             text_of(sent, "subresource"));
  if (sent["time"].is_string()) manager.set("time", sent["time"]);
  manager.set("fieldsV1", std::move(*fields));
  return manager;
}

// The members in the order in which the server writes them.
Doc ordered(Doc manager) {
  Doc out = Doc::object();
  for (const std::string_view key :
       {"manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"}) {
    Doc* member = manager.find(key);
    if (member == nullptr) continue;
    if (member->is_string() && member->as_string().empty()) continue;
    out.set(key, std::move(*member));
  }
  return out;
}

bool is_ordered(const Doc& manager) {
  const Doc::Members& members = manager.members();
  const std::size_t before_time = 3;
  return members.size() <= before_time || members[before_time].key == "time" ||
         !manager.has("time");
}

bool goes_before(const Doc& a, const Doc& b) {
  const auto key = [](const Doc& manager) {
    return std::tie(text_of(manager, "manager"), text_of(manager, "apiVersion"),
                    text_of(manager, "subresource"));
  };
  if (text_of(a, "operation") != text_of(b, "operation")) {
    return text_of(a, "operation") < text_of(b, "operation");
  }
  const std::int64_t a_seconds = seconds_of(a);
  const std::int64_t b_seconds = seconds_of(b);
  return a_seconds != b_seconds ? a_seconds < b_seconds : key(a) < key(b);
}

}  // namespace

bool is_applier(const Doc& manager) { return text_of(manager, "operation") == kApply; }

Doc make_manager(std::string_view name, std::string_view operation, std::string_view api_version,
                 std::string_view subresource) {
  Doc manager = Doc::object();
  manager.set("manager", name).set("operation", operation).set("apiVersion", api_version);
  manager.set("fieldsType", kFieldsType).set("fieldsV1", Doc::object());
  if (!subresource.empty()) manager.set("subresource", subresource);
  return manager;
}

bool is_same_manager(const Doc& a, const Doc& b) { return identity_of(a) == identity_of(b); }

Doc* find_manager(Managers& managers, const Doc& like) {
  const auto it = std::ranges::find_if(
      managers, [&](const Doc& manager) { return is_same_manager(manager, like); });
  return it == managers.end() ? nullptr : &*it;
}

void set_time(Doc& manager, TimeUs now) { manager.set("time", api::format_time(now)); }

bool is_reset(const Doc& sent) {
  if (!sent.is_array()) return false;
  return sent.empty() ||
         (sent.size() == 1 && sent.items().front().is_object() && sent.items().front().empty());
}

std::optional<Managers> read_managers(const Doc& sent) {
  Managers managers;
  for (const Doc& entry : sent.items()) {
    auto manager = read_manager(entry);
    if (!manager) return std::nullopt;
    if (Doc* same = find_manager(managers, *manager)) {
      *same = std::move(*manager);
    } else {
      managers.push_back(std::move(*manager));
    }
  }
  return managers;
}

void take_fields(Managers& managers, const FieldSet& fields) {
  if (fields.empty()) return;
  for (Doc& manager : managers) subtract_from(manager.at("fieldsV1"), fields);
}

void drop_empty(Managers& managers) {
  std::erase_if(managers, [](const Doc& manager) { return fields_of(manager).empty(); });
}

void cap_updaters(Managers& managers) {
  const auto is_updater = [](const Doc& manager) { return !is_applier(manager); };
  auto count = static_cast<std::size_t>(std::ranges::count_if(managers, is_updater));
  if (count <= kUpdatersMax) return;
  std::vector<Doc> updaters;
  std::vector<Doc> result;
  for (Doc& manager : managers) {
    (is_updater(manager) ? updaters : result).push_back(std::move(manager));
  }
  std::ranges::stable_sort(updaters, [](const Doc& a, const Doc& b) {
    const std::int64_t a_seconds = seconds_of(a);
    const std::int64_t b_seconds = seconds_of(b);
    return a_seconds != b_seconds ? a_seconds < b_seconds : identity_of(a) < identity_of(b);
  });
  // The oldest of a version waits for a second one to share a bucket with.
  std::vector<Doc> buckets;
  std::size_t i = 0;
  for (; i < updaters.size() && count > kUpdatersMax; ++i) {
    const std::string& version = text_of(updaters[i], "apiVersion");
    const auto bucket = std::ranges::find_if(
        buckets, [&](const Doc& candidate) { return text_of(candidate, "apiVersion") == version; });
    if (bucket == buckets.end()) {
      buckets.push_back(std::move(updaters[i]));
      continue;
    }
    unite_with(bucket->at("fieldsV1"), fields_of(updaters[i]));
    bucket->set("manager", "ancient-changes");
    bucket->erase("subresource");
    bucket->erase("time");
    if (updaters[i].has("time")) bucket->set("time", updaters[i]["time"]);
    --count;
  }
  for (Doc& bucket : buckets) result.push_back(std::move(bucket));
  for (; i < updaters.size(); ++i) result.push_back(std::move(updaters[i]));
  managers = std::move(result);
}

void write_managers(Managers managers, Doc& object) {
  Doc& metadata = object.at("metadata");
  if (managers.empty()) {
    metadata.erase("managedFields");
    return;
  }
  for (Doc& manager : managers) {
    if (!is_ordered(manager)) manager = ordered(std::move(manager));
  }
  if (managers.size() > 1) std::ranges::stable_sort(managers, goes_before);
  metadata.set("managedFields", Doc::array(std::move(managers)));
}

std::string manager_text(const Doc& manager) {
  std::string text = Doc(text_of(manager, "manager")).json(JsonWriter::Style::Compact);
  if (const std::string& subresource = text_of(manager, "subresource"); !subresource.empty()) {
    text += fmt::format(" with subresource \"{}\"", subresource);
  }
  if (!is_applier(manager)) text += fmt::format(" using {}", text_of(manager, "apiVersion"));
  return text;
}

}  // namespace jogak::patch
