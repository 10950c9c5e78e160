// SPDX-License-Identifier: Apache-2.0
//
// Reads leniently (what is absent or of another type is empty) and writes only differences.
#include "agent/labels/node_patch.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/utc_time.h"

namespace jogak::agent {

namespace {

using nlohmann::json;
using Texts = std::map<std::string, std::string>;

constexpr std::string_view kOurTaints = "jogak.io/gpu-";

std::string text_at(const json& object, std::string_view key) {
  if (!object.is_object()) return {};
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

const json& member(const json& object, std::string_view key) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto at = object.find(key);
  return at == object.end() ? kNull : *at;
}

std::vector<std::string> keys_in(const std::string& list) {
  std::vector<std::string> keys;
  std::string_view rest = list;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    if (end > 0) keys.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return keys;
}

std::string list_of(const Texts& texts) {
  std::string list;
  for (const auto& [key, value] : texts) {
    if (!list.empty()) list += ',';
    list += key;
  }
  return list;
}

// Changes that turn the ones that are there into those wanted: values, and null for stale ones.
json changes(const json& there, const Texts& wanted, const std::vector<std::string>& owned,
             std::vector<std::string>* removed) {
  json change = json::object();
  for (const auto& [key, value] : wanted) {
    const json& old = member(there, key);
    if (!old.is_string() || old.get_ref<const std::string&>() != value) change[key] = value;
  }
  for (const std::string& key : owned) {
    if (wanted.contains(key) || member(there, key).is_null()) continue;
    change[key] = nullptr;
    if (removed != nullptr) removed->push_back(key);
  }
  return change;
}

Texts together(Texts texts, const Texts& more) {
  texts.insert(more.begin(), more.end());
  return texts;
}

bool is_ours(const json& taint) { return text_at(taint, "key").starts_with(kOurTaints); }

// All taints as they should be, or null when they are so already.
json taint_change(const json& there, const std::vector<Taint>& wanted, std::string_view now) {
  json taints = json::array();
  std::vector<json> ours;
  if (there.is_array()) {
    for (const json& taint : there) {
      if (is_ours(taint)) {
        ours.push_back(taint);
      } else {
        taints.push_back(taint);
      }
    }
  }
  bool is_same = ours.size() == wanted.size();
  for (const Taint& taint : wanted) {
    const auto at = std::ranges::find_if(ours, [&](const json& old) {
      return text_at(old, "key") == taint.key && text_at(old, "value") == taint.value &&
             text_at(old, "effect") == taint.effect;
    });
    if (at != ours.end()) {
      taints.push_back(*at);
      continue;
    }
    is_same = false;
    json added = {{"key", taint.key}, {"value", taint.value}, {"effect", taint.effect}};
    if (taint.effect == "NoExecute") added["timeAdded"] = now;
    taints.push_back(std::move(added));
  }
  return is_same ? json() : taints;
}

json condition_changes(const json& there, const std::vector<NodeCondition>& wanted,
                       std::string_view now) {
  json changed = json::array();
  for (const NodeCondition& condition : wanted) {
    const std::string status = condition.is_problem ? "True" : "False";
    const json* old = nullptr;
    if (there.is_array()) {
      for (const json& candidate : there) {
        if (text_at(candidate, "type") == condition.type) old = &candidate;
      }
    }
    const bool is_same_status = old != nullptr && text_at(*old, "status") == status;
    if (is_same_status && text_at(*old, "reason") == condition.reason &&
        text_at(*old, "message") == condition.message) {
      continue;
    }
    std::string since(now);
    if (is_same_status) {
      if (std::string before = text_at(*old, "lastTransitionTime"); !before.empty()) {
        since = std::move(before);
      }
    }
    changed.push_back({{"type", condition.type},
                       {"status", status},
                       {"reason", condition.reason},
                       {"message", condition.message},
                       {"lastHeartbeatTime", now},
                       {"lastTransitionTime", since}});
  }
  return changed;
}

std::string dumped(const json& value) {
  // What others wrote may not be UTF-8; it goes back with marks in its place.
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

Result<NodePatches> node_patches(std::string_view node_json, const NodeWish& wish, TimeUs now) {
  const json node = json::parse(node_json, nullptr, false);
  const json& metadata = member(node, "metadata");
  if (!metadata.is_object() || text_at(metadata, "name").empty()) {
    return invalid("the answer of the api server is no node: it has no metadata.name");
  }
  const std::string time = utc_seconds(now);
  const json& annotations = member(metadata, "annotations");
  NodePatches patches;
  json patch = json::object();

  const json labels =
      changes(member(metadata, "labels"), together(wish.labels, wish.lasting_labels),
              keys_in(text_at(annotations, kOwnedLabels)), &patches.removed_labels);
  if (!labels.empty()) patch["metadata"]["labels"] = labels;

  json noted = changes(annotations, together(wish.annotations, wish.lasting_annotations),
                       keys_in(text_at(annotations, kOwnedAnnotations)), nullptr);
  const auto note = [&](std::string_view name, const Texts& owned) {
    const std::string list = list_of(owned);
    if (list == text_at(annotations, name)) return;
    noted[std::string(name)] = list.empty() ? json() : json(list);
  };
  note(kOwnedLabels, wish.labels);
  note(kOwnedAnnotations, wish.annotations);
  if (!noted.empty()) patch["metadata"]["annotations"] = noted;

  if (wish.taints) {
    const json taints = taint_change(member(member(node, "spec"), "taints"), *wish.taints, time);
    if (!taints.is_null()) patch["spec"]["taints"] = taints;
  }
  if (!patch.empty()) {
    // Somebody else may have written since: then the patch is refused and made anew.
    const std::string version = text_at(metadata, "resourceVersion");
    if (!version.empty()) patch["metadata"]["resourceVersion"] = version;
    patches.node = dumped(patch);
  }

  const json conditions =
      condition_changes(member(member(node, "status"), "conditions"), wish.conditions, time);
  if (!conditions.empty()) patches.status = dumped({{"status", {{"conditions", conditions}}}});
  return patches;
}

}  // namespace jogak::agent
