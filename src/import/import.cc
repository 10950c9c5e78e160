// SPDX-License-Identifier: Apache-2.0
// The batch: converted objects by kind, and the checks that need more than one object.
#include "import/import.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/model/spec.h"
#include "import/convert.h"
#include "import/observe.h"
#include "kube/decode.h"

namespace jogak::importer {

namespace {

template <class... Fns>
struct Overloaded : Fns... {
  using Fns::operator()...;
};

struct PendingPod {
  core::PodSpec spec;
  std::string file_name;
  std::string priority_class_name;  // set where the object has no priority of its own
  bool priority_known = true;
  bool policy_known = true;
};

struct PriorityClass {
  std::int32_t value = 0;
  bool never_preempts = false;
};

std::string full_name(std::string_view ns, std::string_view name) {
  return fmt::format("{}/{}", ns, name);
}

// Keeps insertion order; a later value replaces an earlier one of the same key.
template <class T>
class Latest {
 public:
  void put(std::string key, T value) {
    const auto [it, is_new] = index_.try_emplace(std::move(key), values_.size());
    if (is_new) {
      keys_.push_back(&it->first);
      values_.push_back(std::move(value));
    } else {
      values_[it->second] = std::move(value);
    }
  }
  std::vector<T>& values() { return values_; }
  const std::string& key(std::size_t i) const { return *keys_[i]; }
  T* find(const std::string& key) {
    const auto it = index_.find(key);
    return it == index_.end() ? nullptr : &values_[it->second];
  }

 private:
  std::vector<T> values_;
  std::unordered_map<std::string, std::size_t> index_;  // its keys stay where they are
  std::vector<const std::string*> keys_;                // of values_
};

template <class T>
void merge_into(std::map<std::string, T, std::less<>>& target,
                std::map<std::string, T, std::less<>>& source) {
  for (auto& [key, value] : source) target.insert_or_assign(key, std::move(value));
}

}  // namespace

struct ImportBatch::Impl {
  kube::Decoder decoder;
  ImportReport report;
  Latest<core::NodeSpec> nodes;
  Latest<std::optional<PendingPod>> pods;  // nullopt: finished
  core::Objects objects;
  std::map<std::string, PriorityClass, std::less<>> priority_classes = {
      {"system-cluster-critical", {2'000'000'000, false}},
      {"system-node-critical", {2'000'001'000, false}},
  };
  std::optional<PriorityClass> global_default;

  Result<void> add(const kube::RawObject& raw, std::string_view file_name);
  Result<void> take(kube::Object&& object, std::string_view file_name);
  Result<void> take_pod(kube::Pod&& pod, std::string_view file_name);
  void take_priority_class(kube::PriorityClass&& from);
  Result<void> settle_priority(PendingPod& pod) const;
  Result<void> settle_holds(const core::Cluster& cluster, PendingPod& pod);
  std::size_t move_objects(core::Cluster& cluster);
};

Result<void> ImportBatch::Impl::add(const kube::RawObject& raw, std::string_view file_name) {
  auto object = decoder.decode(raw);
  if (!object) return in_context(file_name, std::move(object).error());
  return take(std::move(*object), file_name);
}

Result<void> ImportBatch::Impl::take_pod(kube::Pod&& pod, std::string_view file_name) {
  std::string key = full_name(pod.meta.ns, pod.meta.name);
  if (pod.finished) {
    pods.put(std::move(key), std::nullopt);
    return {};
  }
  PendingPod pending;
  pending.file_name = file_name;
  pending.priority_known = pod.priority.has_value();
  pending.policy_known = pod.never_preempts.has_value();
  pending.priority_class_name = std::move(pod.priority_class_name);
  auto spec = to_pod(std::move(pod));
  if (!spec) return in_context(fmt::format("{}: Pod {}", file_name, key), std::move(spec).error());
  pending.spec = std::move(*spec);
  pods.put(std::move(key), std::move(pending));
  return {};
}

void ImportBatch::Impl::take_priority_class(kube::PriorityClass&& from) {
  const PriorityClass value{from.value, from.never_preempts};
  if (from.global_default) global_default = value;
  priority_classes.insert_or_assign(std::move(from.meta.name), value);
}

Result<void> ImportBatch::Impl::take(kube::Object&& object, std::string_view file_name) {
  return std::visit(Overloaded{
                        [this](kube::OtherKind& x) {
                          ++report.skipped[std::move(x.kind)];
                          return Result<void>();
                        },
                        [&](kube::Node& x) -> Result<void> {
                          std::string name = x.meta.name;
                          auto spec = to_node(std::move(x));
                          if (!spec) {
                            return in_context(fmt::format("{}: Node {}", file_name, name),
                                              std::move(spec).error());
                          }
                          nodes.put(std::move(name), std::move(*spec));
                          return {};
                        },
                        [&](kube::Pod& x) { return take_pod(std::move(x), file_name); },
                        [this](kube::PriorityClass& x) {
                          take_priority_class(std::move(x));
                          return Result<void>();
                        },
                        [&](auto& x) {
                          put_object(objects, std::move(x));
                          return Result<void>();
                        },
                    },
                    object);
}

// What priority admission does on a real API server.
Result<void> ImportBatch::Impl::settle_priority(PendingPod& pod) const {
  if (pod.priority_known && pod.policy_known) return {};
  std::optional<PriorityClass> from;
  if (pod.priority_class_name.empty()) {
    from = global_default;
  } else {
    const auto it = priority_classes.find(pod.priority_class_name);
    if (it != priority_classes.end()) {
      from = it->second;
    } else if (!pod.priority_known) {
      return invalid(
          "{}: Pod {}: spec.priorityClassName: no PriorityClass \"{}\" among the "
          "objects; add it or set spec.priority",
          pod.file_name, full_name(pod.spec.ns, pod.spec.name), pod.priority_class_name);
    }
  }
  if (!from) return {};
  if (!pod.priority_known) pod.spec.shape.priority = from->value;
  if (!pod.policy_known && from->never_preempts) {
    pod.spec.shape.preemption = core::PreemptionPolicy::Never;
  }
  return {};
}

Result<void> ImportBatch::Impl::settle_holds(const core::Cluster& cluster, PendingPod& pod) {
  if (!pod.spec.holds) return {};
  std::size_t devices = 0;
  if (const core::NodeSpec* const spec = nodes.find(pod.spec.bound_node)) {
    devices = spec->gpus.size();
  } else if (const auto id = cluster.find_node(pod.spec.bound_node)) {
    devices = cluster.node(*id).gpus.size();
  }
  if (devices == 0) {
    pod.spec.holds.reset();  // the node does not say which devices it has
    return {};
  }
  for (const core::GpuHold& hold : *pod.spec.holds) {
    if (static_cast<std::size_t>(hold.gpu) < devices) continue;
    return invalid(
        "{}: Pod {}: metadata.annotations[\"jogak.io/gpu-holds\"]: names gpu {}, but node {} has "
        "{} devices in its annotation jogak.io/gpus",
        pod.file_name, full_name(pod.spec.ns, pod.spec.name), hold.gpu, pod.spec.bound_node,
        devices);
  }
  return {};
}

std::size_t ImportBatch::Impl::move_objects(core::Cluster& cluster) {
  core::Objects& from = objects;
  const std::size_t count = from.namespaces.size() + from.pdbs.size() + from.workloads.size() +
                            from.pvs.size() + from.pvcs.size() + from.storage_classes.size() +
                            from.csi_nodes.size() + from.csi_drivers.size() +
                            from.csi_capacities.size() + from.attachments.size();
  if (count == 0) return 0;
  core::Objects& to = cluster.mutable_objects();
  merge_into(to.namespaces, from.namespaces);
  merge_into(to.pdbs, from.pdbs);
  merge_into(to.workloads, from.workloads);
  merge_into(to.pvs, from.pvs);
  merge_into(to.pvcs, from.pvcs);
  merge_into(to.storage_classes, from.storage_classes);
  merge_into(to.csi_nodes, from.csi_nodes);
  merge_into(to.csi_drivers, from.csi_drivers);
  merge_into(to.csi_capacities, from.csi_capacities);
  merge_into(to.attachments, from.attachments);
  return count;
}

ImportBatch::ImportBatch() : impl_(std::make_unique<Impl>()) {}
ImportBatch::~ImportBatch() = default;
ImportBatch::ImportBatch(ImportBatch&&) noexcept = default;

Result<void> ImportBatch::add(std::string_view json, std::string_view file_name) {
  auto objects = kube::split_objects(json);
  if (!objects) return in_context(file_name, std::move(objects).error());
  for (const kube::RawObject& raw : *objects) JOGAK_TRY_VOID(impl_->add(raw, file_name));
  return {};
}

Result<void> ImportBatch::add_object(std::string_view json, std::string_view kind,
                                     std::string_view file_name) {
  return impl_->add({.kind = kind, .json = json}, file_name);
}

Result<ImportReport> ImportBatch::apply(core::Cluster& cluster) {
  const std::unique_ptr<Impl> batch = std::exchange(impl_, std::make_unique<Impl>());
  for (std::optional<PendingPod>& pod : batch->pods.values()) {
    if (!pod) continue;
    JOGAK_TRY_VOID(batch->settle_priority(*pod));
    JOGAK_TRY_VOID(batch->settle_holds(cluster, *pod));
  }

  ImportReport report = std::move(batch->report);
  for (const core::NodeSpec& node : batch->nodes.values()) {
    JOGAK_TRY_VOID(cluster.upsert_node(node));
    ++report.nodes;
  }
  std::vector<std::optional<PendingPod>>& pods = batch->pods.values();
  for (std::size_t i = 0; i < pods.size(); ++i) {
    std::optional<PendingPod>& pod = pods[i];
    if (!pod) {
      report.finished.push_back(batch->pods.key(i));
      continue;
    }
    JOGAK_TRY_VOID(cluster.upsert_pod(pod->spec));
    ++report.pods;
    pod.reset();  // the cluster has it now; half the memory at the peak
  }
  report.others = batch->move_objects(cluster);
  return report;
}

Result<ImportReport> import_list(std::string_view json, std::string_view file_name,
                                 core::Cluster& cluster) {
  ImportBatch batch;
  JOGAK_TRY_VOID(batch.add(json, file_name));
  return batch.apply(cluster);
}

}  // namespace jogak::importer
