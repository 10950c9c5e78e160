// SPDX-License-Identifier: Apache-2.0
// The table of kinds, and the way from a file to single objects.
#include "kube/decode.h"

#include <optional>

#include <fmt/format.h>

#include "kube/decode_parts.h"
#include "kube/json_scan.h"

namespace jogak::kube {

namespace {

using Reader = Object (*)(const Json& json);

template <class T, T (*read)(const Json&)>
Object as_object(const Json& json) {
  return read(json);
}

struct Kind {
  std::string_view name;
  std::string_view group;  // other groups have kinds of the same name (serving.knative.dev Service)
  Reader read;
};

constexpr Kind kKinds[] = {
    {"Pod", "", as_object<Pod, read_pod>},
    {"Node", "", as_object<Node, read_node>},
    {"Namespace", "", as_object<Namespace, read_namespace>},
    {"PriorityClass", "scheduling.k8s.io", as_object<PriorityClass, read_priority_class>},
    {"PodDisruptionBudget", "policy", as_object<PodDisruptionBudget, read_pod_disruption_budget>},
    {"Service", "", [](const Json& json) -> Object { return read_workload(json, "Service"); }},
    {"ReplicationController", "",
     [](const Json& json) -> Object { return read_workload(json, "ReplicationController"); }},
    {"ReplicaSet", "apps",
     [](const Json& json) -> Object { return read_workload(json, "ReplicaSet"); }},
    {"StatefulSet", "apps",
     [](const Json& json) -> Object { return read_workload(json, "StatefulSet"); }},
    {"PersistentVolume", "", as_object<PersistentVolume, read_persistent_volume>},
    {"PersistentVolumeClaim", "", as_object<PersistentVolumeClaim, read_persistent_volume_claim>},
    {"StorageClass", "storage.k8s.io", as_object<StorageClass, read_storage_class>},
    {"CSINode", "storage.k8s.io", as_object<CsiNode, read_csi_node>},
    {"CSIDriver", "storage.k8s.io", as_object<CsiDriver, read_csi_driver>},
    {"CSIStorageCapacity", "storage.k8s.io",
     as_object<CsiStorageCapacity, read_csi_storage_capacity>},
    {"VolumeAttachment", "storage.k8s.io", as_object<VolumeAttachment, read_volume_attachment>},
};

// "" of "v1", "apps" of "apps/v1"; nullopt where the object does not say.
std::optional<std::string_view> group_of(std::string_view api_version) {
  if (api_version.empty()) return std::nullopt;
  const std::size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

// The text of a JSON string without its quotes; empty for anything else.
std::string_view unquoted(std::string_view json) {
  if (json.size() < 2 || json.front() != '"') return {};
  return json.substr(1, json.size() - 2);
}

Result<void> split_document(JsonScanner& scanner, std::string_view text,
                            std::vector<RawObject>& out) {
  std::string_view kind;
  std::optional<std::string_view> items;
  const std::size_t begin = scanner.offset();
  JOGAK_TRY_VOID(scanner.each_field([&](std::string_view key, std::string_view value) {
    if (key == "kind") kind = unquoted(value);
    if (key == "items") items = value;
    return Result<void>();
  }));
  const bool is_list = kind.ends_with("List") || (kind.empty() && items);
  if (!is_list) {
    out.push_back({.kind = {}, .json = text.substr(begin, scanner.offset() - begin)});
    return {};
  }
  // A List without items, or with null, is an empty one.
  if (!items || *items == "null") return {};
  const std::string_view item_kind = kind.empty() ? kind : kind.substr(0, kind.size() - 4);
  JsonScanner list(*items);
  return list.each_item([&](std::string_view item) {
    out.push_back({.kind = item_kind, .json = item});
    return Result<void>();
  });
}

}  // namespace

Result<std::vector<RawObject>> split_objects(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  JsonScanner scanner(text);
  std::vector<RawObject> result;
  if (scanner.at_end()) {
    return invalid("is empty; want the output of `kubectl get nodes,pods,... -A -o json`");
  }
  while (!scanner.at_end()) {
    if (text[scanner.offset()] != '{') {
      return invalid("line {}: want a JSON object, found '{}'; use `kubectl get ... -o json`",
                     JsonScanner::line_of(text, scanner.offset()), text[scanner.offset()]);
    }
    JOGAK_TRY_VOID(split_document(scanner, text, result));
  }
  return result;
}

struct Decoder::Impl {
  simdjson::dom::parser parser;
  JsonContext context;
};

Decoder::Decoder() : impl_(std::make_unique<Impl>()) {}
Decoder::~Decoder() = default;

Result<Object> Decoder::decode(const RawObject& raw) {
  simdjson::dom::element element;
  const auto error = impl_->parser.parse(raw.json.data(), raw.json.size(), true).get(element);
  if (error != simdjson::SUCCESS) {
    return invalid("{} is not valid JSON: {}", raw.kind.empty() ? "object" : raw.kind,
                   simdjson::error_message(error));
  }
  JsonContext& context = impl_->context;
  context.start_over();
  const Json json(context, element);
  std::string kind = json["kind"].text();
  if (kind.empty()) kind = raw.kind;
  if (kind.empty() && context.problem().empty()) {
    json["kind"].complain("is required, e.g. \"Node\" or \"Pod\"");
  }
  Object object = OtherKind{kind};
  const std::optional<std::string_view> group = group_of(json["apiVersion"].view());
  for (const Kind& known : kKinds) {
    if (known.name != kind || (group && *group != known.group)) continue;
    if (context.problem().empty()) object = known.read(json);
  }
  if (context.problem().empty()) return object;

  const std::string problem = context.problem();
  context.start_over();
  const Json meta = json["metadata"];
  const std::string_view ns = meta["namespace"].view();
  const std::string_view name = meta["name"].view();
  return invalid("{}{}{}{}{}: {}", kind.empty() ? "object" : kind, name.empty() ? "" : " ", ns,
                 ns.empty() ? "" : "/", name, problem);
}

}  // namespace jogak::kube
