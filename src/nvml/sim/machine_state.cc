// SPDX-License-Identifier: Apache-2.0
//
// What a GPU remembers while programs come and go: MIG modes and instances, kept in the file that
// `stateFile` names. It is written whole before a call that changed something returns, so that
// whoever comes after a killed process finds the GPUs as that one left them.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/check.h"
#include "base/doc.h"
#include "base/file.h"
#include "nvml/sim/machine.h"
#include "yaml/yaml_fields.h"

namespace jogak::nvml::sim {

namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kIdMax = 1'000'000;
constexpr std::int64_t kStateBytesMax = std::int64_t{16} << 20;

Doc instance_doc(const GpuState& gpu, const GpuInstanceState& instance) {
  Doc compute = Doc::array();
  for (const ComputeInstanceState& one : instance.compute) {
    compute.push(Doc()
                     .set("id", one.id)
                     .set("queryIndex", one.query_index)
                     .set("start", one.start)
                     .set("migIndex", one.mig_index)
                     .set("uuid", one.uuid));
  }
  return Doc()
      .set("id", instance.id)
      .set("profile", gpu.spec.mig_profiles[static_cast<std::size_t>(instance.profile)].name)
      .set("start", instance.placement.start)
      .set("compute", std::move(compute));
}

// Required: a state with a hole is no state.
int number(YamlFields& fields, std::string_view name) {
  if (!fields.has(name)) fields.bad(name, "is required");
  return static_cast<int>(fields.integer(name, 0, 0, kIdMax));
}

}  // namespace

std::string Machine::state_text() const {
  Doc gpus = Doc::array();
  for (const GpuState& gpu : gpus_) {
    Doc instances = Doc::array();
    for (const GpuInstanceState& one : gpu.instances) instances.push(instance_doc(gpu, one));
    gpus.push(Doc()
                  .set("uuid", gpu.spec.uuid)
                  .set("migEnabled", gpu.mig_enabled)
                  .set("migPending", gpu.mig_pending)
                  .set("created", gpu.created)
                  .set("instances", std::move(instances)));
  }
  return Doc().set("version", kVersion).set("gpus", std::move(gpus)).json();
}

Result<void> Machine::restore_state(const std::string& file, std::string_view text) {
  if (!is_utf8(text)) return invalid("{}: is not UTF-8", file);
  JOGAK_TRY_VOID(
      read_yaml_map(file, text, "the state of a simulated machine", [&](YamlFields& fields) {
        if (fields.integer("version", 0, 0, kIdMax) != kVersion) {
          fields.bad("version", "expected 1: written by another release");
        }
        std::set<std::string> seen;
        for (YamlFields& gpu : fields.maps("gpus")) {
          const std::string uuid = gpu.required_text("uuid");
          const auto at =
              std::ranges::find(gpus_, uuid, [](const GpuState& state) { return state.spec.uuid; });
          if (at == gpus_.end()) {
            gpu.bad("uuid",
                    "the machine has no such GPU; the file is of another "
                    "machine, remove it to begin anew");
          } else if (!seen.insert(uuid).second) {
            gpu.bad("uuid", "is there twice");
          }
          if (gpu.failed()) return;
          restore_gpu(gpu, *at);
        }
        fields.finish();
      }));
  return {};
}

void Machine::restore_gpu(YamlFields& fields, GpuState& gpu) {
  const bool can_mig = gpu.spec.mig_support != MigSupport::None;
  gpu.mig_enabled = fields.flag("migEnabled", false);
  gpu.mig_pending = fields.flag("migPending", false);
  if (gpu.mig_enabled && !can_mig) fields.bad("migEnabled", "the GPU has no MIG");
  if (gpu.mig_pending && !can_mig) fields.bad("migPending", "the GPU has no MIG");
  gpu.created = static_cast<std::uint64_t>(number(fields, "created"));
  std::vector<ProcessState> processes = gpu.processes;
  drop_instances(gpu);
  for (YamlFields& instance : fields.maps("instances")) {
    if (!fields.failed()) restore_instance(instance, gpu);
  }
  fields.finish();
  // Those on instances that are gone have ended.
  std::erase_if(processes, [&](const ProcessState& process) {
    return process.gi_id >= 0 && instance(gpu.index, process.gi_id) == nullptr;
  });
  gpu.processes = std::move(processes);
}

void Machine::restore_instance(YamlFields& fields, GpuState& gpu) {
  const std::string profile = fields.required_text("profile");
  const int id = number(fields, "id");
  const int start = number(fields, "start");
  const auto at = std::ranges::find(gpu.spec.mig_profiles, profile, &MigProfileSpec::name);
  if (at == gpu.spec.mig_profiles.end()) fields.bad("profile", "the GPU offers no such profile");
  if (instance(gpu.index, id) != nullptr) fields.bad("id", "is there twice");
  if (fields.failed()) return;
  int made_id = -1;
  const auto index = static_cast<int>(at - gpu.spec.mig_profiles.begin());
  if (create_instance(gpu.index, index, start, made_id, id) != abi::Return::Success) {
    fields.bad("start", "the instance does not fit there beside those before it");
    return;
  }
  for (YamlFields& one : fields.maps("compute")) {
    restore_compute(one, gpu, id);
    if (fields.failed()) return;
  }
  fields.finish();
}

void Machine::restore_compute(YamlFields& fields, GpuState& gpu, int gi_id) {
  const int id = number(fields, "id");
  const int query_index = number(fields, "queryIndex");
  const int start = number(fields, "start");
  const int mig_index = number(fields, "migIndex");
  const std::string uuid = fields.required_text("uuid");
  if (compute_instance(gpu.index, gi_id, id) != nullptr) fields.bad("id", "is there twice");
  for (const GpuInstanceState& parent : gpu.instances) {
    if (std::ranges::find(parent.compute, mig_index, &ComputeInstanceState::mig_index) !=
        parent.compute.end()) {
      fields.bad("migIndex", "is there twice");
    }
  }
  if (fields.failed()) return;
  const std::uint64_t created = gpu.created;
  int made_id = -1;
  if (create_compute(gpu.index, gi_id, query_index, start, made_id, id) != abi::Return::Success) {
    fields.bad("start", "the compute instance does not fit there");
    return;
  }
  gpu.created = created;
  ComputeInstanceState* const made = compute_instance(gpu.index, gi_id, id);
  made->mig_index = mig_index;
  made->uuid = uuid;
  fields.finish();
}

Result<void> Machine::open_state() {
  if (spec_.state_file.empty()) return {};
  const auto text = read_file(spec_.state_file, kStateBytesMax);
  if (text) {
    JOGAK_TRY_VOID(restore_state(spec_.state_file, *text));
  } else if (text.error().code == Errc::NotFound) {
    if (auto written = write_file(spec_.state_file, state_text()); !written) {
      return in_context("stateFile", std::move(written).error());
    }
  } else {
    return in_context("stateFile", text.error());
  }
  keeps_state_ = true;
  return {};
}

void Machine::keep_state() const {
  if (!keeps_state_) return;
  const auto written = write_file(spec_.state_file, state_text());
  // A GPU that forgets what it was told would teach nobody anything.
  JOGAK_CHECK(written.has_value(), "stateFile: {}", written.error().what);
}

}  // namespace jogak::nvml::sim
