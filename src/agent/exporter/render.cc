// SPDX-License-Identifier: Apache-2.0
//
// Entities (what has series) are found when the structure changes; each keeps its labels as text.
#include "agent/exporter/render.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include "agent/exporter/pod_use.h"
#include "agent/exporter/text.h"
#include "agent/health/xid.h"
#include "base/parse_number.h"

namespace jogak::agent {

namespace {

FieldValue whole(std::int64_t value) { return {.is_integer = true, .integer = value}; }
FieldValue seconds_of(TimeUs time) {
  return {.is_integer = false, .real = static_cast<double>(time) / kSecondInUs};
}

std::string with_dashes(std::string text) {
  std::ranges::replace(text, ' ', '-');
  return text;
}

// What series have as labels besides those of the pod.
constexpr std::string_view kOwnLabels[] = {"gpu",
                                           "UUID",
                                           "uuid",
                                           "pci_bus_id",
                                           "device",
                                           "modelName",
                                           "Hostname",
                                           "hostname",
                                           "GPU_I_PROFILE",
                                           "GPU_I_ID",
                                           "pod",
                                           "namespace",
                                           "container",
                                           "pod_name",
                                           "pod_namespace",
                                           "pod_uid",
                                           "vgpu",
                                           "hpc_job",
                                           "container_name",
                                           "err_code",
                                           "err_msg",
                                           "xid",
                                           "clock_event",
                                           "health_watch",
                                           "health_error_code",
                                           "peer_gpu",
                                           "link_status",
                                           "window_size_in_ms"};

// A family that is written only if it has a sample.
class FamilyText {
 public:
  FamilyText(std::string& out, std::string_view name, bool is_counter, std::string_view help,
             ExpositionFormat format)
      : out_(out), start_(out.size()) {
    append_head(out, name, is_counter, help, format);
    body_ = out.size();
  }
  ~FamilyText() {
    if (out_.size() == body_) out_.resize(start_);
  }
  FamilyText(const FamilyText&) = delete;
  FamilyText& operator=(const FamilyText&) = delete;

 private:
  std::string& out_;
  std::size_t start_;
  std::size_t body_ = 0;
};

// A text, or a number that does not change.
std::optional<std::string> label_text(const Field& field, const NodeSnapshot& node,
                                      const nvml::GpuFacts& gpu) {
  if (field.text != nullptr) return field.text(*node.facts, gpu);
  if (!field.is_fact) return std::nullopt;
  const nvml::GpuSample nothing;
  const GpuView view;
  const auto value =
      field.number({.node = node, .gpu = view, .facts = gpu, .sample = nothing, .mig = nullptr});
  if (!value) return std::nullopt;
  std::string text;
  append_value(text, *value);
  return text;
}

// The two that are no XID of the table are in dcgm-exporter's words, which queries may name.
std::string_view xid_text_of(std::uint64_t code) {
  if (code == 0) return "No Error";
  const XidInfo info = xid_info(code);
  return info.kind == XidClass::Unknown ? "Unknown Error" : info.text;
}

// "app.kubernetes.io/name" -> "app_kubernetes_io_name".
std::string label_name(std::string_view key) {
  std::string name(key);
  for (char& c : name) {
    const bool is_fine =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!is_fine) c = '_';
  }
  if (!name.empty() && name[0] >= '0' && name[0] <= '9') name.insert(0, 1, '_');
  return name;
}

// The pod that has a device to itself. Its containers may hold it side by side, as one that still
// initialises and the one that comes after it: then it is the pod's and of no one container.
std::optional<DeviceHolder> only_pod(const DeviceHolders& holders) {
  if (holders.empty()) return std::nullopt;
  DeviceHolder only = holders[0];
  for (const auto& [holder, replica] : holders) {
    const bool is_same =
        holder.pod == only.holder.pod && holder.pod_namespace == only.holder.pod_namespace;
    if (replica >= 0 || !is_same) return std::nullopt;
    if (holder.container != only.holder.container) only.holder.container.clear();
  }
  return only;
}

}  // namespace

struct Renderer::LabelFilter {
  explicit LabelFilter(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) expressions.push_back(std::make_unique<RE2>(text));
  }
  bool admits(const std::string& key) const {
    return expressions.empty() || std::ranges::any_of(expressions, [&](const auto& expression) {
             return RE2::PartialMatch(key, *expression);
           });
  }
  std::vector<std::unique_ptr<RE2>> expressions;
};

Result<void> check_label_allowlist(const std::vector<std::string>& expressions) {
  for (const std::string& text : expressions) {
    const RE2 expression(text, RE2::Quiet);
    if (!expression.ok()) {
      return invalid("\"{}\" is no regular expression: {}", text.substr(0, 100),
                     expression.error());
    }
  }
  return {};
}

// Something that has series of its own.
struct Renderer::Entity {
  std::size_t gpu = 0;  // in NodeSnapshot::gpus
  int gi_id = -1;       // -1: the GPU as a whole
  std::size_t mig_row = 0;
  bool tells_board = true;     // fields of FieldScope::Gpu
  bool tells_instance = true;  // fields of FieldScope::Instance
  std::string labels = {};
  // Of a shared device: its holders, each container once, and their labels.
  std::vector<Holder> sharers = {};
  std::vector<std::string> sharer_labels = {};
  std::optional<DeviceUse> use = {};  // of this snapshot
};

namespace {

constexpr int kDeviceIdMax = 4095;

// "0,2-4".
Result<std::vector<int>> parse_ids(std::string_view text) {
  std::vector<int> ids;
  while (true) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view range = text.substr(0, end);
    const std::size_t dash = std::min(range.find('-'), range.size());
    JOGAK_TRY(const std::int64_t first, parse_int(range.substr(0, dash), 0, kDeviceIdMax));
    std::int64_t last = first;
    if (dash < range.size()) {
      JOGAK_TRY(last, parse_int(range.substr(dash + 1), 0, kDeviceIdMax));
      if (last < first) return invalid("{} goes backwards; write {}-{}", range, last, first);
    }
    for (std::int64_t id = first; id <= last; ++id) ids.push_back(static_cast<int>(id));
    if (end == text.size()) return ids;
    text.remove_prefix(end + 1);
  }
}

// One of "g", "g:LIST", "i", "i:LIST".
Result<void> add_devices(std::string_view part, DeviceChoice& choice) {
  const std::size_t colon = std::min(part.find(':'), part.size());
  const std::string_view kind = part.substr(0, colon);
  if (kind != "g" && kind != "i") {
    return invalid("use f, g, i, a list like g:0,2-4, or both kinds like g+i:0");
  }
  bool& is_told = kind == "g" ? choice.gpus : choice.instances;
  if (is_told) return invalid("{} is there twice; put the numbers into one list", kind);
  is_told = true;
  if (colon == part.size()) return {};
  std::vector<int>& ids = kind == "g" ? choice.gpu_ids : choice.instance_ids;
  JOGAK_TRY(ids, parse_ids(part.substr(colon + 1)));
  return {};
}

}  // namespace

Result<MigParent> parse_mig_parent(std::string_view text) {
  if (text == "once") return MigParent::Once;
  if (text == "repeat") return MigParent::Repeat;
  return invalid("\"{}\" is not once or repeat", text.substr(0, 40));
}

Result<DeviceChoice> parse_device_choice(std::string_view text) {
  DeviceChoice choice;
  if (text == "f") return choice;
  choice.flex = false;
  for (std::string_view rest = text;;) {
    const std::size_t end = std::min(rest.find('+'), rest.size());
    if (const auto added = add_devices(rest.substr(0, end), choice); !added) {
      return in_context(fmt::format("devices \"{}\"", text.substr(0, 40)), added.error());
    }
    if (end == rest.size()) return choice;
    rest.remove_prefix(end + 1);
  }
}

Renderer::Renderer(RenderOptions options)
    : options_(std::move(options)),
      label_filter_(std::make_unique<LabelFilter>(options_.pod_label_allowlist)) {}
Renderer::~Renderer() = default;

// Each name once, and none that a series has already: two labels of one name spoil the whole page.
void Renderer::append_pod_labels(std::string& labels, const PodFacts& pod) const {
  std::vector<std::string> taken;
  for (const auto& [key, value] : pod.labels) {
    if (!label_filter_->admits(key)) continue;
    std::string name = label_name(key);
    const bool is_ours =
        std::ranges::find(kOwnLabels, name) != std::end(kOwnLabels) || find_field(name) != nullptr;
    if (is_ours || name.empty() || std::ranges::find(taken, name) != taken.end()) continue;
    append_label(labels, name, value);
    taken.push_back(std::move(name));
  }
}

// ---- entities and their labels ---------------------------------------------------------------

std::string Renderer::device_labels(const NodeSnapshot& node, const nvml::GpuFacts& gpu,
                                    const nvml::MigInstanceFacts* mig) const {
  std::string labels;
  append_label(labels, "gpu", fmt::to_string(gpu.index));
  append_label(labels, options_.old_names ? "uuid" : "UUID", gpu.uuid);
  append_label(labels, "pci_bus_id", gpu.pci_bus_id);
  append_label(labels, "device", fmt::format("nvidia{}", gpu.index));
  append_label(labels, "modelName", options_.blanks_to_dashes ? with_dashes(gpu.name) : gpu.name);
  if (mig != nullptr) {
    append_label(labels, "GPU_I_PROFILE", mig->gi_profile);
    append_label(labels, "GPU_I_ID", fmt::to_string(mig->gi_id));
  }
  if (!options_.hostname.empty()) {
    append_label(labels, options_.naming == Naming::Classic ? "Hostname" : "hostname",
                 options_.hostname);
  }
  for (const CounterSpec& spec : options_.counters.specs) {
    if (spec.type != CounterType::Label || spec.field == nullptr) continue;
    const auto text = label_text(*spec.field, node, gpu);
    if (text && !text->empty()) append_label(labels, spec.name, *text);
  }
  append_jobs(labels, gpu, mig);
  return labels;
}

void Renderer::append_jobs(std::string& labels, const nvml::GpuFacts& gpu,
                           const nvml::MigInstanceFacts* mig) const {
  if (jobs_.empty()) return;
  const auto at = jobs_.find(mig == nullptr ? fmt::to_string(gpu.index)
                                            : fmt::format("{}.{}", gpu.index, mig->gi_id));
  if (at == jobs_.end() || at->second.empty()) return;
  append_label(labels, "hpc_job", fmt::format("{}", fmt::join(at->second, ",")));
}

// The labels of a series come from the counters, too.
void Renderer::set_counters(Counters counters) {
  options_.counters = std::move(counters);
  structure_.reset();
}

void Renderer::set_jobs(JobTable jobs) {
  if (jobs == jobs_) return;
  jobs_ = std::move(jobs);
  structure_.reset();
}

std::string Renderer::holder_labels(const NodeSnapshot& node, const DeviceHolder& holder) const {
  std::string labels;
  const bool is_old = options_.old_names;
  if (options_.virtual_gpus && holder.replica >= 0) {
    append_label(labels, "vgpu", fmt::to_string(holder.replica));
  }
  if (!holder.holder.container.empty()) {
    append_label(labels, is_old ? "container_name" : "container", holder.holder.container);
  }
  append_label(labels, is_old ? "pod_namespace" : "namespace", holder.holder.pod_namespace);
  append_label(labels, is_old ? "pod_name" : "pod", holder.holder.pod);
  const auto at = node.pods->find({holder.holder.pod_namespace, holder.holder.pod});
  const PodFacts* const pod = at == node.pods->end() ? nullptr : &at->second;
  if (options_.pod_uid) {
    const std::string& uid =
        holder.holder.pod_uid.empty() && pod != nullptr ? pod->uid : holder.holder.pod_uid;
    if (!uid.empty()) append_label(labels, "pod_uid", uid);
  }
  if (options_.pod_k8s_labels && pod != nullptr) append_pod_labels(labels, *pod);
  return labels;
}

void Renderer::add_gpu(const NodeSnapshot& node, const GpuView& gpu, std::size_t at,
                       int& instances_seen) {
  const nvml::GpuFacts& facts = *gpu.facts;
  const DeviceChoice& choice = options_.devices;
  const auto is_among = [](const std::vector<int>& ids, int id) {
    return ids.empty() || std::ranges::find(ids, id) != ids.end();
  };
  const auto add = [&](Entity entity, const nvml::MigInstanceFacts* mig,
                       const DeviceHolders& holders) {
    entity.gpu = at;
    entity.labels = device_labels(node, facts, mig);
    const auto only = only_pod(holders);
    if (options_.pod_labels && only) {
      entity.labels += ',';
      entity.labels += holder_labels(node, *only);
    } else if (options_.pod_labels) {
      for (const DeviceHolder& holder : holders) {
        const bool is_known =
            std::ranges::find(entity.sharers, holder.holder) != entity.sharers.end();
        if (is_known) continue;
        entity.sharers.push_back(holder.holder);
        entity.sharer_labels.push_back(holder_labels(node, holder));
      }
    }
    entities_.push_back(std::move(entity));
  };

  std::vector<std::size_t> rows;  // the first of each GPU instance
  if (facts.mig_enabled) {
    for (std::size_t row = 0; row < facts.mig_instances.size(); ++row) {
      const bool is_first =
          row == 0 || facts.mig_instances[row].gi_id != facts.mig_instances[row - 1].gi_id;
      if (is_first) rows.push_back(row);
    }
  }
  const bool is_cut = !rows.empty();
  const bool repeats = options_.mig_parent == MigParent::Repeat;
  if (choice.flex ? !(is_cut && repeats) : choice.gpus && is_among(choice.gpu_ids, facts.index)) {
    // Under flex the memory of a GPU that is cut is told by its instances.
    add({.tells_instance = !is_cut || !choice.flex}, nullptr, node.holders->of_gpu(gpu.uuid));
  }
  for (const std::size_t row : rows) {
    const nvml::MigInstanceFacts& mig = facts.mig_instances[row];
    const int number = instances_seen++;
    const bool is_told = choice.flex || (choice.instances && is_among(choice.instance_ids, number));
    if (!is_told) continue;
    add({.gi_id = mig.gi_id, .mig_row = row, .tells_board = repeats}, &mig,
        node.holders->of_instance(gpu.uuid, mig.gi_id));
  }
}

void Renderer::index(const NodeSnapshot& node) {
  entities_.clear();
  int instances_seen = 0;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    if (node.gpus[i].facts != nullptr) add_gpu(node, node.gpus[i], i, instances_seen);
  }
}

// ---- dcgm-exporter's series ------------------------------------------------------------------

void Renderer::add_shares(std::string& out, const NodeSnapshot& /*node*/, const CounterSpec& spec,
                          const Entity& entity) const {
  for (std::size_t i = 0; i < entity.use->pods.size(); ++i) {
    const auto share = entity.use->pods[i].of(spec.field->share);
    if (!share) continue;
    append_sample(out, spec.name, entity.labels, entity.sharer_labels[i],
                  spec.field->from_share(*share));
  }
}

void Renderer::add_special(std::string& out, const CounterSpec& spec, const NodeSnapshot& node,
                           const Entity& entity) const {
  const GpuView& gpu = node.gpus[entity.gpu];
  const auto add_counts = [&](const EventWindow::Counts& counts, std::string_view label,
                              TimeUs window, auto text_of) {
    std::string window_label;
    if (window > 0) {
      append_label(window_label, "window_size_in_ms", fmt::to_string(window / kMsInUs));
    }
    for (const auto& [kind, count] : counts) {
      std::string labels = window_label;
      append_label(labels, label, text_of(kind));
      append_sample(out, spec.name, entity.labels, labels, whole(count));
    }
    if (counts.empty()) append_sample(out, spec.name, entity.labels, window_label, whole(0));
  };
  const auto xid_text = [](std::uint64_t code) {
    return code == EventWindow::kOther ? std::string("other") : fmt::to_string(code);
  };
  const auto event_text = [](std::uint64_t bit) { return std::string(clock_event_text(bit)); };
  switch (spec.field->kind) {
    case FieldKind::XidLast: {
      std::string labels;
      append_label(labels, "err_code", fmt::to_string(gpu.last_xid));
      append_label(labels, "err_msg", xid_text_of(gpu.last_xid));
      append_sample(out, spec.name, entity.labels, labels,
                    whole(static_cast<std::int64_t>(gpu.last_xid)));
      return;
    }
    case FieldKind::XidCount:
      return add_counts(gpu.xids->recent(), "xid", options_.xid_window, xid_text);
    case FieldKind::XidTotal:
      return add_counts(gpu.xids->totals(), "xid", 0, xid_text);
    case FieldKind::ClockEventsCount:
      return add_counts(gpu.clock_events->recent(), "clock_event", options_.clock_event_window,
                        event_text);
    case FieldKind::ClockEventsTotal:
      return add_counts(gpu.clock_events->totals(), "clock_event", 0, event_text);
    case FieldKind::HealthStatus:
      return add_health(out, spec, node, entity);
    case FieldKind::P2pStatus:
      return add_peers(out, spec, node, entity);
    case FieldKind::Number:
    case FieldKind::Label:
      return;
  }
}

// One series per watch of DCGM, always: 0 passes, 10 warns, 20 fails; the worst incident names the
// error.
void Renderer::add_health(std::string& out, const CounterSpec& spec, const NodeSnapshot& node,
                          const Entity& entity) {
  const GpuHealthView* const health = node.health->find(node.gpus[entity.gpu].uuid);
  if (health == nullptr) return;
  for (const std::string_view watch : health_watches()) {
    int value = 0;
    std::string_view error = "DCGM_FR_OK";
    for (const HealthFact& fact : health->facts) {
      const auto words = health_words(fact);
      if (!words || words->watch != watch) continue;
      const int worth = fact.severity == Severity::Critical ? 20 : 10;
      if (worth <= value) continue;
      value = worth;
      error = words->error;
    }
    std::string labels;
    append_label(labels, "health_watch", watch);
    append_label(labels, "health_error_code", error);
    append_sample(out, spec.name, entity.labels, labels, whole(value));
  }
}

// Whether each other GPU can be reached over NVLink.
void Renderer::add_peers(std::string& out, const CounterSpec& spec, const NodeSnapshot& node,
                         const Entity& entity) {
  const nvml::GpuFacts& facts = *node.gpus[entity.gpu].facts;
  for (std::size_t peer = 0; peer < facts.links.size(); ++peer) {
    const nvml::Reading<int>& status = facts.links[peer].p2p_nvlink;
    if (!status) continue;
    std::string labels;
    append_label(labels, "peer_gpu", fmt::to_string(peer));
    append_label(labels, "link_status", p2p_status_text(*status));
    append_sample(out, spec.name, entity.labels, labels, whole(*status));
  }
}

void Renderer::add_counter(std::string& out, const NodeSnapshot& node, const CounterSpec& spec,
                           ExpositionFormat format) const {
  if (spec.field == nullptr || spec.type == CounterType::Label) return;
  const Field& field = *spec.field;
  const FamilyText family(out, spec.name, spec.type == CounterType::Counter, spec.help, format);
  for (const Entity& entity : entities_) {
    const bool is_told = field.scope == FieldScope::Instance ? entity.tells_instance
                         : field.scope == FieldScope::Board  ? entity.gi_id < 0
                                                             : entity.tells_board;
    const GpuView& gpu = node.gpus[entity.gpu];
    if (!is_told || gpu.sample == nullptr) continue;
    if (field.kind != FieldKind::Number) {
      add_special(out, spec, node, entity);
      continue;
    }
    FieldSource source = {.node = node,
                          .gpu = gpu,
                          .facts = *gpu.facts,
                          .sample = *gpu.sample,
                          .mig = nullptr,
                          .part = field.part};
    if (entity.gi_id >= 0 && field.scope == FieldScope::Instance) {
      const auto& migs = gpu.sample->mig;
      const bool fits = entity.mig_row < migs.size() && migs[entity.mig_row].gi_id == entity.gi_id;
      const auto at = fits ? migs.begin() + static_cast<std::ptrdiff_t>(entity.mig_row)
                           : std::ranges::find(migs, entity.gi_id, &nvml::MigInstanceSample::gi_id);
      if (at == migs.end()) continue;  // made after the sample
      source.mig = &*at;
    }
    if (const auto value = field.number(source)) {
      append_sample(out, spec.name, entity.labels, *value);
    }
    if (options_.virtual_gpus && field.from_share != nullptr && entity.use) {
      add_shares(out, node, spec, entity);
    }
  }
}

// ---- ours ------------------------------------------------------------------------------------

namespace {

std::string own_labels(const GpuView& gpu) {
  std::string labels;
  if (gpu.facts != nullptr) append_label(labels, "gpu", fmt::to_string(gpu.facts->index));
  append_label(labels, "UUID", gpu.uuid);
  return labels;
}

// 1 or 0 of every GPU. One that was lost before it could be named has no uuid and no series but
// these: a page without it would look like a node that never had it.
template <class Claim>
void add_states(std::string& out, const NodeSnapshot& node, std::string_view name,
                std::string_view help, ExpositionFormat format, Claim is_so) {
  const FamilyText family(out, name, false, help, format);
  for (const GpuView& gpu : node.gpus) {
    append_sample(out, name, own_labels(gpu), whole(is_so(gpu) ? 1 : 0));
  }
  for (const int index : node.health->nameless) {
    std::string labels;
    append_label(labels, "gpu", fmt::to_string(index));
    append_label(labels, "UUID", "");
    append_sample(out, name, labels, whole(0));
  }
}

}  // namespace

void Renderer::add_own(std::string& out, const NodeSnapshot& node, ExpositionFormat format) const {
  const auto family = [&](std::string_view name, bool is_counter, std::string_view help,
                          auto add_samples) {
    const FamilyText text(out, name, is_counter, help, format);
    for (const GpuView& gpu : node.gpus) {
      add_samples(name, gpu, node.health->find(gpu.uuid), own_labels(gpu));
    }
  };
  add_states(out, node, "jogak_gpu_up", "Whether the GPU answers: 0 also for one that is gone.",
             format, [](const GpuView& gpu) { return gpu.sample != nullptr; });
  add_states(out, node, "jogak_gpu_usable", "Whether new pods may get the GPU.", format,
             [&](const GpuView& gpu) {
               const GpuHealthView* const health = node.health->find(gpu.uuid);
               return health != nullptr && health->is_usable();
             });
  family("jogak_gpu_health_fact", false, "What is known to be wrong with the GPU.",
         [&](std::string_view name, const GpuView&, const GpuHealthView* health,
             const std::string& labels) {
           if (health == nullptr) return;
           for (const HealthFact& fact : health->facts) {
             std::string more;
             append_label(more, "kind", health_kind_text(fact.kind));
             append_label(more, "severity", severity_text(fact.severity));
             append_label(more, "code", fmt::to_string(fact.code));
             if (fact.gi_id >= 0) append_label(more, "GPU_I_ID", fmt::to_string(fact.gi_id));
             append_sample(out, name, labels, more, whole(1));
           }
         });
  family("jogak_gpu_xid_errors_total", true, "XIDs since the agent started.",
         [&](std::string_view name, const GpuView& gpu, const GpuHealthView*,
             const std::string& labels) {
           for (const auto& [code, count] : gpu.xids->totals()) {
             std::string more;
             append_label(more, "xid",
                          code == EventWindow::kOther ? "other" : fmt::to_string(code));
             append_sample(out, name, labels, more, whole(count));
           }
         });
  family("jogak_gpu_last_xid_timestamp_seconds", false, "When the last XID was seen.",
         [&](std::string_view name, const GpuView& gpu, const GpuHealthView*,
             const std::string& labels) {
           if (gpu.last_xid != 0) append_sample(out, name, labels, seconds_of(gpu.last_xid_time));
         });
  family("jogak_gpu_sample_timestamp_seconds", false, "When the GPU was last measured.",
         [&](std::string_view name, const GpuView& gpu, const GpuHealthView*,
             const std::string& labels) {
           if (gpu.last_sample != 0) append_sample(out, name, labels, seconds_of(gpu.last_sample));
         });
  const auto link = [&](std::string_view name, std::string_view help, auto member) {
    family(name, true, help,
           [&](std::string_view series, const GpuView& gpu, const GpuHealthView*,
               const std::string& labels) {
             if (gpu.sample == nullptr || !(gpu.sample->nvlink.*member)) return;
             append_sample(out, series, labels, whole(*(gpu.sample->nvlink.*member)));
           });
  };
  link("jogak_gpu_nvlink_transmit_bytes_total", "Data sent over all NVLinks.",
       &nvml::NvlinkSample::tx_bytes);
  link("jogak_gpu_nvlink_receive_bytes_total", "Data received over all NVLinks.",
       &nvml::NvlinkSample::rx_bytes);
  add_pod_series(out, node, format);
}

void Renderer::add_pod_series(std::string& out, const NodeSnapshot& node,
                              ExpositionFormat format) const {
  const auto each = [&](auto add) {
    for (const Entity& entity : entities_) {
      if (!entity.use) continue;
      std::string labels;
      append_label(labels, "gpu", fmt::to_string(node.gpus[entity.gpu].facts->index));
      append_label(labels, "UUID", node.gpus[entity.gpu].uuid);
      if (entity.gi_id >= 0) append_label(labels, "GPU_I_ID", fmt::to_string(entity.gi_id));
      add(entity, labels);
    }
  };
  {
    constexpr std::string_view kName = "jogak_gpu_pod_memory_used_bytes";
    const FamilyText family(out, kName, false, "Memory of a shared GPU that a pod uses.", format);
    each([&](const Entity& entity, const std::string& labels) {
      for (std::size_t i = 0; i < entity.use->pods.size(); ++i) {
        const auto& bytes = entity.use->pods[i].memory_bytes;
        if (bytes) append_sample(out, kName, labels, entity.sharer_labels[i], whole(*bytes));
      }
    });
  }
  {
    constexpr std::string_view kName = "jogak_gpu_pod_sm_ratio";
    const FamilyText family(out, kName, false,
                            "Share of time in which kernels of a pod ran on a shared GPU.", format);
    each([&](const Entity& entity, const std::string& labels) {
      for (std::size_t i = 0; i < entity.use->pods.size(); ++i) {
        const auto& percent = entity.use->pods[i].sm_percent;
        if (!percent) continue;
        append_sample(out, kName, labels, entity.sharer_labels[i],
                      {.is_integer = false, .real = static_cast<double>(*percent) / 100});
      }
    });
  }
  constexpr std::string_view kName = "jogak_gpu_unattributed_memory_used_bytes";
  const FamilyText family(out, kName, false,
                          "Memory of a shared GPU used by processes of no known pod.", format);
  each([&](const Entity& entity, const std::string& labels) {
    append_sample(out, kName, labels, whole(entity.use->unattributed_memory_bytes));
  });
}

std::string Renderer::render(const NodeSnapshot& node, ExpositionFormat format) {
  if (structure_ != node.structure) {
    index(node);
    structure_ = node.structure;
  }
  for (Entity& entity : entities_) {
    entity.use.reset();
    const GpuView& gpu = node.gpus[entity.gpu];
    if (entity.sharers.empty() || gpu.sample == nullptr) continue;
    entity.use = device_use(*gpu.sample, entity.gi_id, *node.owners, entity.sharers);
  }
  std::string out;
  out.reserve(size_hint_);
  for (const CounterSpec& spec : options_.counters.specs) add_counter(out, node, spec, format);
  if (options_.own_series) add_own(out, node, format);
  size_hint_ = std::max(size_hint_, out.size() + out.size() / 8);
  return out;
}

}  // namespace jogak::agent
