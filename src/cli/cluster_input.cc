// SPDX-License-Identifier: Apache-2.0
// Texts to a cluster. Each object is looked at twice: first for its kind and age alone, as text,
// then by the importer, in the order found so.
#include "cli/cluster_input.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/file.h"
#include "kube/decode.h"
#include "kube/json_scan.h"
#include "kube/time.h"

namespace jogak::cli {

namespace {

constexpr std::string_view kDefaultClass = "storageclass.kubernetes.io/is-default-class";
constexpr std::int64_t kYoungest = std::numeric_limits<std::int64_t>::max();

std::string_view unquoted(std::string_view json) {
  return json.size() >= 2 && json.front() == '"' ? json.substr(1, json.size() - 2)
                                                 : std::string_view();
}

struct Glance {
  std::string_view kind = {}, name = {};
  std::int64_t created = kYoungest;
  bool is_default_class = false;
};

// What is broken the importer will say better.
Glance glance_at(const kube::RawObject& raw) {
  Glance glance{.kind = raw.kind};
  const auto metadata = [&](std::string_view json) {
    if (!json.starts_with('{')) return Result<void>();
    kube::JsonScanner scanner(json);
    return scanner.each_field([&](std::string_view key, std::string_view value) {
      if (key == "name") glance.name = unquoted(value);
      if (key == "creationTimestamp") {
        glance.created = kube::parse_time(unquoted(value)).value_or(kYoungest);
      }
      if (key == "annotations" && value.starts_with('{')) {
        kube::JsonScanner annotations(value);
        return annotations.each_field([&](std::string_view name, std::string_view text) {
          if (name == kDefaultClass) glance.is_default_class = unquoted(text) == "true";
          return Result<void>();
        });
      }
      return Result<void>();
    });
  };
  kube::JsonScanner scanner(raw.json);
  const auto scanned = scanner.each_field([&](std::string_view key, std::string_view value) {
    if (key == "kind" && !unquoted(value).empty()) glance.kind = unquoted(value);
    if (key == "metadata") return metadata(value);
    return Result<void>();
  });
  static_cast<void>(scanned);
  return glance;
}

struct Found {
  const kube::RawObject* raw;
  std::int64_t created;
  const std::string* file_name;
};

}  // namespace

Result<ClusterSource> cluster_source(const ParsedArgs& args, std::string_view files) {
  ClusterSource source{.files = args.list(files),
                       .kubeconfig = args.text("kubeconfig"),
                       .context = args.text("context")};
  const bool is_live = args.is_given("kubeconfig") || args.is_given("context");
  if (!source.files.empty() && is_live) {
    return invalid("--{} and --{}: the cluster comes from files or from a live one; give one",
                   files, args.is_given("kubeconfig") ? "kubeconfig" : "context");
  }
  return source;
}

Result<ClusterInput> read_texts(const std::vector<ClusterText>& texts, core::Cluster& cluster) {
  ClusterInput input;
  std::vector<std::vector<kube::RawObject>> objects;
  std::vector<Found> order;
  for (const ClusterText& text : texts) {
    auto split = kube::split_objects(text.text);
    if (!split) return in_context(text.name, std::move(split).error());
    for (kube::RawObject& raw : *split) {
      if (raw.kind.empty()) raw.kind = text.kind;
    }
    objects.push_back(std::move(*split));
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (const kube::RawObject& raw : objects[i]) {
      const Glance glance = glance_at(raw);
      if (glance.kind == "PriorityClass") {
        // A list's items need not say what they are; read again they stand alone.
        input.priority_classes.append(R"({"kind":"PriorityClassList","items":[)")
            .append(raw.json)
            .append("]}\n");
      }
      if (glance.kind == "StorageClass" && glance.is_default_class) {
        input.default_storage_class = glance.name;
      }
      const bool is_pod = glance.kind == "Pod";
      order.push_back({.raw = &raw,
                       .created = is_pod ? glance.created : kYoungest,
                       .file_name = &texts[i].name});
    }
  }
  std::ranges::stable_sort(order, {}, &Found::created);
  importer::ImportBatch batch;
  for (const Found& found : order) {
    JOGAK_TRY_VOID(batch.add_object(found.raw->json, found.raw->kind, *found.file_name));
  }
  JOGAK_TRY(input.report, batch.apply(cluster));
  return input;
}

Result<ClusterInput> read_cluster(const ClusterSource& source, core::Cluster& cluster) {
  if (source.files.empty()) {
    JOGAK_TRY(const LiveTexts live, read_live(source));
    JOGAK_TRY(ClusterInput input, read_texts(live.texts, cluster));
    input.ns = live.ns;
    return input;
  }
  std::vector<ClusterText> texts;
  for (const std::string& file : source.files) {
    JOGAK_TRY(std::string text, read_file(file == "-" ? "/dev/stdin" : file));
    texts.push_back({.kind = {}, .text = std::move(text), .name = file == "-" ? "stdin" : file});
  }
  return read_texts(texts, cluster);
}

}  // namespace jogak::cli
