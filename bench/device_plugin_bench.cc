// SPDX-License-Identifier: Apache-2.0
//
// Allocate and GetPreferredAllocation as the kubelet sees them: calls over the plugin's unix
// socket, on a node of 8 GPUs with 7 MIG instances each. Prints percentiles; fails above the floor.
//   usage: device_plugin_bench [CALLS]
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <vector>

#include <api/device_plugin.grpc.pb.h>
#include <fmt/core.h>
#include <grpcpp/create_channel.h>
#include <unistd.h>

#include "agent/plugin/plugin_server.h"
#include "base/check.h"
#include "base/mono_clock.h"

namespace jogak::bench {
namespace {

constexpr std::int64_t kFloorUs = 2000;  // p99

nvml::NodeFacts dense_node() {
  nvml::NodeFacts facts;
  facts.driver_version = "550.90.07";
  for (int gpu = 0; gpu < 8; ++gpu) {
    nvml::GpuFacts& to = facts.gpus.emplace_back();
    to.index = gpu;
    to.uuid = fmt::format("GPU-{:08x}-1111-2222-3333-444444444444", gpu);
    to.minor = gpu;
    to.mig_enabled = true;
    to.links.resize(8);
    for (int i = 0; i < 7; ++i) {
      nvml::MigInstanceFacts& instance = to.mig_instances.emplace_back();
      instance.uuid = fmt::format("MIG-{:04x}{:04x}-1111-2222-3333-444444444444", gpu, i);
      instance.profile = instance.gi_profile = "1g.5gb";
      instance.gi_id = i + 7;
      instance.ci_id = 0;
      instance.index = i;
    }
  }
  return facts;
}

bool report(const char* name, int calls, const std::function<void(int i)>& call) {
  std::vector<std::int64_t> times;
  for (int i = 0; i < calls; ++i) {
    const std::int64_t start = mono_now_ns();
    call(i);
    times.push_back((mono_now_ns() - start) / 1000);
  }
  std::ranges::sort(times);
  const auto at = [&](std::size_t percent) { return times[(times.size() - 1) * percent / 100]; };
  fmt::print("{:24} {} calls  p50 {} us  p99 {} us  max {} us\n", name, calls, at(50), at(99),
             times.back());
  return at(99) <= kFloorUs;
}

int run(int calls) {
  const std::string resource = "nvidia.com/mig-1g.5gb";
  agent::PluginConfig config;
  config.mig_strategy = agent::MigStrategy::Mixed;
  config.list_strategies = {agent::ListStrategy::Envvar, agent::ListStrategy::CdiCri};
  const auto snapshot = agent::make_snapshot(dense_node(), config, {}, {});
  const std::string socket =
      (std::filesystem::temp_directory_path() / fmt::format("jogak-bench-{}.sock", ::getpid()))
          .string();
  auto server = agent::PluginServer::start(socket, resource, snapshot, {});
  JOGAK_CHECK(server.has_value(), "{}", server.error().what);
  const auto stub = ::v1beta1::DevicePlugin::NewStub(
      grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials()));
  const auto& devices = snapshot->inventory.resources[0].devices;

  const bool allocates = report("Allocate", calls, [&](int i) {
    ::v1beta1::AllocateRequest request;
    request.add_container_requests()->add_devices_ids(
        devices[static_cast<std::size_t>(i) % devices.size()].id);
    ::v1beta1::AllocateResponse response;
    grpc::ClientContext context;
    JOGAK_CHECK(stub->Allocate(&context, request, &response).ok());
  });
  // Without a floor: a hint.
  report("GetPreferredAllocation", calls, [&](int) {
    ::v1beta1::PreferredAllocationRequest request;
    auto& ask = *request.add_container_requests();
    for (const auto& device : devices) ask.add_available_deviceids(device.id);
    ask.set_allocation_size(4);
    ::v1beta1::PreferredAllocationResponse response;
    grpc::ClientContext context;
    JOGAK_CHECK(stub->GetPreferredAllocation(&context, request, &response).ok());
  });
  return allocates ? 0 : 1;
}

}  // namespace
}  // namespace jogak::bench

int main(int argc, char** argv) {
  return jogak::bench::run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 20'000);
}
