// SPDX-License-Identifier: Apache-2.0
// One lock over everything; a thread reads each plugin's stream.
#include "test/kubelet/kubelet.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>

#include <api/device_plugin.grpc.pb.h>
#include <api/pod_resources.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "base/check.h"
#include "base/rng.h"

namespace jogak::kubelet {

namespace {

namespace api = ::v1beta1;
namespace fs = std::filesystem;

constexpr auto kDialTimeout = std::chrono::seconds(2);
constexpr std::string_view kCheckpoint = "kubelet_internal_checkpoint";

struct Device {
  bool is_healthy = false;
  std::int64_t numa = -1;
};

// One registration of a plugin.
struct Endpoint {
  std::string resource, socket;
  std::unique_ptr<api::DevicePlugin::Stub> stub;
  grpc::ClientContext watch_context;
  bool is_watching = false, is_stopped = false, has_options = false;
  bool needs_pre_start = false, can_prefer = false;
  std::thread thread;
};

struct Assigned {
  std::string ns = {}, pod = {}, container = {}, resource = {}, id = {};
  bool is_running = true;  // an init container that has ended keeps its devices for the others
  bool is_init = false;
  bool is_known = true;  // not yet, to a kubelet that has just started
};

}  // namespace

struct Kubelet::Impl final : public std::enable_shared_from_this<Kubelet::Impl>,
                             public api::Registration::Service {
  Impl(std::string folder_in, std::uint64_t seed)
      : folder(std::move(folder_in)), random(seed, "kubelet") {}

  std::string plugins() const { return folder + "/device-plugins"; }

  void step(std::string_view name, const std::string& resource) const {
    if (owner->on_step) owner->on_step(name, resource);
  }

  grpc::Status Register(grpc::ServerContext* /*context*/, const api::RegisterRequest* request,
                        api::Empty* /*response*/) override {
    if (request->version() != "v1beta1") {
      return {grpc::StatusCode::UNKNOWN, "requested API version is not supported"};
    }
    if (request->endpoint().find('/') != std::string::npos) {
      return {grpc::StatusCode::UNKNOWN, "endpoint is not a name in the folder"};
    }
    auto endpoint = std::make_shared<Endpoint>();
    endpoint->resource = request->resource_name();
    endpoint->socket = plugins() + "/" + request->endpoint();
    endpoint->needs_pre_start = request->options().pre_start_required();
    endpoint->can_prefer = request->options().get_preferred_allocation_available();
    grpc::ChannelArguments args;
    args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    endpoint->stub = api::DevicePlugin::NewStub(grpc::CreateCustomChannel(
        "unix:" + endpoint->socket, grpc::InsecureChannelCredentials(), args));
    const std::scoped_lock lock(mutex);
    if (is_stopping) return {grpc::StatusCode::UNAVAILABLE, "stopping"};
    step("register", endpoint->resource);
    if (auto& now = endpoints[endpoint->resource]) now->watch_context.TryCancel();
    endpoints[endpoint->resource] = endpoint;
    all.push_back(endpoint);
    ++registrations[endpoint->resource];
    endpoint->thread = std::thread([this, endpoint] { watch(*endpoint); });
    changed.notify_all();
    return grpc::Status::OK;
  }

  // Options, then the stream until it ends; nobody dials again.
  void watch(Endpoint& endpoint) {
    {
      const std::scoped_lock lock(mutex);
      step("options", endpoint.resource);
    }
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDialTimeout);
    api::DevicePluginOptions options;
    const bool has_options =
        endpoint.stub->GetDevicePluginOptions(&context, api::Empty(), &options).ok();
    {
      const std::scoped_lock lock(mutex);
      endpoint.has_options = has_options;
      step("options-given", endpoint.resource);
      if (has_options && (options.pre_start_required() != endpoint.needs_pre_start ||
                          options.get_preferred_allocation_available() != endpoint.can_prefer)) {
        complaints.push_back("options differ from those of Register");
      }
      endpoint.is_stopped = !has_options;
    }
    if (!has_options) return;  // a plugin that cannot be reached is none
    const auto stream = endpoint.stub->ListAndWatch(&endpoint.watch_context, api::Empty());
    api::ListAndWatchResponse list;
    while (stream->Read(&list)) {
      const std::scoped_lock lock(mutex);
      if (endpoints[endpoint.resource].get() != &endpoint) continue;
      endpoint.is_watching = true;
      step("list", endpoint.resource);
      std::map<std::string, Device>& known = devices[endpoint.resource];
      known.clear();
      for (const api::Device& device : list.devices()) {
        if (device.id().empty() || device.id().size() > 63 || known.contains(device.id())) {
          complaints.push_back(fmt::format("bad or repeated id \"{}\"", device.id()));
        }
        if (device.health() != "Healthy" && device.health() != "Unhealthy") {
          complaints.push_back(fmt::format("bad health \"{}\"", device.health()));
        }
        Device& to = known[device.id()];
        to.is_healthy = device.health() == "Healthy";
        if (device.topology().nodes_size() > 0) to.numa = device.topology().nodes(0).id();
        if (device.has_topology() && to.numa < 0) complaints.push_back("a bad NUMA node");
        last_health[{endpoint.resource, device.id()}] = device.health();
      }
      changed.notify_all();
    }
    (void)stream->Finish();
    const std::scoped_lock lock(mutex);
    endpoint.is_watching = false;
    endpoint.is_stopped = true;
    if (endpoints[endpoint.resource].get() == &endpoint) {
      for (auto& [id, device] : devices[endpoint.resource]) device.is_healthy = false;
    }
    changed.notify_all();
  }

  // ---- admission ----

  std::vector<std::string> free_ids(const std::string& resource) {
    std::vector<std::string> result;
    for (const auto& [id, device] : devices[resource]) {
      const bool is_used = std::ranges::any_of(
          assigned, [&](const Assigned& one) { return one.resource == resource && one.id == id; });
      if (device.is_healthy && !is_used) result.push_back(id);
    }
    shuffle(result);  // the kubelet's order is random
    return result;
  }

  // What the plugin prefers of them, where that is a possible answer.
  std::vector<std::string> preferred(Endpoint& endpoint, const std::vector<std::string>& available,
                                     std::size_t count) {
    api::PreferredAllocationRequest request;
    auto& ask = *request.add_container_requests();
    for (const std::string& id : available) ask.add_available_deviceids(id);
    ask.set_allocation_size(static_cast<int>(count));
    api::PreferredAllocationResponse response;
    grpc::ClientContext context;
    step("prefer", endpoint.resource);
    const grpc::Status status = endpoint.stub->GetPreferredAllocation(&context, request, &response);
    step("preferred", endpoint.resource);
    // A plugin that has just died is not at fault.
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) return {};
    if (!status.ok() || response.container_responses_size() != 1) {
      complaints.push_back(fmt::format("GetPreferredAllocation has no answer: {} {}",
                                       static_cast<int>(status.error_code()),
                                       status.error_message()));
      return {};
    }
    const auto& ids = response.container_responses(0).deviceids();
    std::set<std::string> unique(ids.begin(), ids.end());
    const bool is_subset = std::ranges::all_of(unique, [&](const std::string& id) {
      return std::ranges::find(available, id) != available.end();
    });
    if (unique.size() != count || ids.size() != static_cast<int>(count) || !is_subset) {
      complaints.push_back("GetPreferredAllocation does not fit what was asked");
      return {};
    }
    return {ids.begin(), ids.end()};
  }

  // Devices that ended init containers of the pod had, and nobody has now.
  std::vector<std::string> reusable(const PodAsk& pod, const std::string& resource,
                                    std::size_t count) {
    std::vector<std::string> result;
    for (const Assigned& one : assigned) {
      if (one.ns != pod.ns || one.pod != pod.name || one.resource != resource || one.is_running ||
          result.size() == count) {
        continue;
      }
      const bool is_taken = std::ranges::any_of(assigned, [&](const Assigned& other) {
        return other.is_running && other.resource == resource && other.id == one.id;
      });
      if (!is_taken && std::ranges::find(result, one.id) == result.end()) result.push_back(one.id);
    }
    return result;
  }

  Result<StartedContainer> admit(const PodAsk& pod, const ContainerAsk& container) {
    StartedContainer started;
    for (const auto& [resource, wanted] : container.devices) {
      const auto count = static_cast<std::size_t>(wanted);
      const auto it = endpoints.find(resource);
      if (it == endpoints.end() || it->second->is_stopped) {
        return fail(Errc::Unavailable,
                    "no healthy devices present; cannot allocate unhealthy devices {}", resource);
      }
      Endpoint& endpoint = *it->second;
      std::vector<std::string> ids = reusable(pod, resource, count);
      if (ids.size() < count) {
        std::vector<std::string> available = free_ids(resource);
        const std::size_t rest = count - ids.size();
        if (available.size() < rest) {
          return fail(Errc::Unavailable, "requested number of devices unavailable for {}",
                      resource);
        }
        std::vector<std::string> more;
        if (endpoint.can_prefer) {
          started.was_asked_to_prefer = true;
          more = preferred(endpoint, available, rest);
        }
        if (more.empty())
          more.assign(available.begin(), available.begin() + static_cast<int>(rest));
        ids.insert(ids.end(), more.begin(), more.end());
      }
      JOGAK_TRY_VOID(allocate(endpoint, ids, started));
      for (const std::string& id : ids) {
        assigned.push_back({.ns = pod.ns,
                            .pod = pod.name,
                            .container = container.name,
                            .resource = resource,
                            .id = id,
                            .is_init = container.is_init});
      }
      started.ids[resource] = ids;
    }
    return started;
  }

  Result<void> allocate(Endpoint& endpoint, const std::vector<std::string>& ids,
                        StartedContainer& started) {
    api::AllocateRequest request;
    auto& ask = *request.add_container_requests();
    for (const std::string& id : ids) ask.add_devices_ids(id);
    api::AllocateResponse response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    step("allocate", endpoint.resource);
    const grpc::Status status = endpoint.stub->Allocate(&context, request, &response);
    step("allocated", endpoint.resource);
    if (!status.ok()) {
      return fail(Errc::Invalid, "UnexpectedAdmissionError: Allocate failed due to rpc error: {}",
                  status.error_message());
    }
    if (response.container_responses_size() != 1) {
      return invalid("UnexpectedAdmissionError: no containers in the answer of Allocate");
    }
    const auto& answer = response.container_responses(0);
    for (const auto& [name, value] : answer.envs()) started.env[name] = value;
    for (const auto& [name, value] : answer.annotations()) started.annotations[name] = value;
    for (const auto& mount : answer.mounts()) {
      started.mounts.emplace_back(mount.host_path(), mount.container_path());
    }
    for (const auto& device : answer.devices()) {
      started.device_nodes.push_back(device.container_path());
    }
    for (const auto& device : answer.cdi_devices()) started.cdi_devices.push_back(device.name());
    return {};
  }

  // Unlocks for the call, which may take long.
  Result<void> pre_start(std::unique_lock<std::mutex>& lock, const std::string& ns,
                         const std::string& pod, const std::string& container) {
    std::map<std::string, std::vector<std::string>> ids;
    for (const Assigned& one : assigned) {
      if (one.ns == ns && one.pod == pod && one.container == container) {
        ids[one.resource].push_back(one.id);
      }
    }
    for (auto& [resource, list] : ids) {
      const std::shared_ptr<Endpoint> endpoint = endpoints[resource];
      if (endpoint == nullptr || !endpoint->needs_pre_start) continue;
      std::ranges::reverse(list);  // its order is not Allocate's
      api::PreStartContainerRequest request;
      for (const std::string& id : list) request.add_devices_ids(id);
      api::PreStartContainerResponse response;
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
      step("pre-start", resource);
      lock.unlock();
      const grpc::Status status = endpoint->stub->PreStartContainer(&context, request, &response);
      lock.lock();
      step("pre-started", resource);
      if (!status.ok()) return invalid("CreateContainerConfigError: {}", status.error_message());
    }
    return {};
  }

  // ---- PodResources ----

  // One entry for each device, with its NUMA node, in an order of no meaning.
  void fill(const std::string& ns, const std::string& name, ::v1::PodResources& pod) {
    pod.set_name(name);
    pod.set_namespace_(ns);
    std::vector<const Assigned*> mine;
    for (const Assigned& one : assigned) {
      // ended init containers are not listed
      if (one.is_running && one.ns == ns && one.pod == name) mine.push_back(&one);
    }
    shuffle(mine);
    std::map<std::string, ::v1::ContainerResources*> containers;
    for (const Assigned* const one : mine) {
      auto*& container = containers[one->container];
      if (container == nullptr) {
        container = pod.add_containers();
        container->set_name(one->container);
      }
      fill(*one, *container->add_devices());
    }
  }

  void fill(const Assigned& one, ::v1::ContainerDevices& entry) {
    entry.set_resource_name(one.resource);
    entry.add_device_ids(one.id);
    const auto& known = devices[one.resource];
    const auto device = known.find(one.id);
    if (device != known.end() && device->second.numa >= 0) {
      entry.mutable_topology()->add_nodes()->set_id(device->second.numa);
    }
  }

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      const auto j = static_cast<std::size_t>(random.below(i));
      std::swap(items[i - 1], items[j]);
    }
  }

  const std::string folder;
  const Kubelet* owner = nullptr;
  Rng random;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::shared_ptr<Endpoint>> endpoints;
  std::vector<std::shared_ptr<Endpoint>> all;
  std::map<std::string, std::map<std::string, Device>> devices;
  std::map<std::string, std::uint64_t> registrations;
  std::vector<Assigned> assigned;
  std::atomic<std::uint64_t> lists = 0;
  std::map<std::pair<std::string, std::string>, std::string> last_health;  // resource, id
  std::vector<std::string> complaints;
  bool is_stopping = false;
  std::unique_ptr<::v1::PodResourcesLister::Service> lister;
  std::unique_ptr<grpc::Server> server, lister_server;
};

namespace {

class Lister final : public ::v1::PodResourcesLister::Service {
 public:
  explicit Lister(Kubelet::Impl& kubelet) : kubelet_(kubelet) {}

  grpc::Status List(grpc::ServerContext* /*context*/,
                    const ::v1::ListPodResourcesRequest* /*request*/,
                    ::v1::ListPodResourcesResponse* response) override {
    const std::scoped_lock lock(kubelet_.mutex);
    ++kubelet_.lists;
    kubelet_.changed.notify_all();
    std::set<std::pair<std::string, std::string>> pods;
    for (const Assigned& one : kubelet_.assigned) {
      if (one.is_running && one.is_known) pods.emplace(one.ns, one.pod);
    }
    for (const auto& [ns, pod] : pods) kubelet_.fill(ns, pod, *response->add_pod_resources());
    return grpc::Status::OK;
  }

  grpc::Status Get(grpc::ServerContext* /*context*/, const ::v1::GetPodResourcesRequest* request,
                   ::v1::GetPodResourcesResponse* response) override {
    const std::scoped_lock lock(kubelet_.mutex);
    const bool is_there = std::ranges::any_of(kubelet_.assigned, [&](const Assigned& one) {
      return one.ns == request->pod_namespace() && one.pod == request->pod_name();
    });
    if (!is_there) return {grpc::StatusCode::UNKNOWN, "pod not found"};
    kubelet_.fill(request->pod_namespace(), request->pod_name(),
                  *response->mutable_pod_resources());
    return grpc::Status::OK;
  }

  // Healthy devices alone; nothing while the plugin is away.
  grpc::Status GetAllocatableResources(grpc::ServerContext* /*context*/,
                                       const ::v1::AllocatableResourcesRequest* /*request*/,
                                       ::v1::AllocatableResourcesResponse* response) override {
    const std::scoped_lock lock(kubelet_.mutex);
    std::vector<Assigned> healthy;
    for (const auto& [resource, known] : kubelet_.devices) {
      for (const auto& [id, device] : known) {
        if (device.is_healthy) healthy.push_back({.resource = resource, .id = id});
      }
    }
    kubelet_.shuffle(healthy);
    for (const Assigned& one : healthy) kubelet_.fill(one, *response->add_devices());
    return grpc::Status::OK;
  }

 private:
  Kubelet::Impl& kubelet_;
};

std::unique_ptr<grpc::Server> serve(const std::string& socket, grpc::Service& service) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  auto server = builder.BuildAndStart();
  JOGAK_CHECK(server != nullptr, "{}", socket);
  return server;
}

}  // namespace

Kubelet::Kubelet(std::string folder, std::uint64_t seed)
    : impl_(std::make_shared<Impl>(std::move(folder), seed)) {
  impl_->owner = this;
  fs::create_directories(impl_->plugins());
  fs::create_directories(impl_->folder + "/pod-resources");
}

Kubelet::~Kubelet() { stop(); }

std::string Kubelet::socket() const { return impl_->plugins() + "/kubelet.sock"; }
std::string Kubelet::pod_resources_socket() const {
  return impl_->folder + "/pod-resources/kubelet.sock";
}

void Kubelet::start(Age age) {
  for (const fs::directory_entry& entry : fs::directory_iterator(impl_->plugins())) {
    if (entry.path().filename() != kCheckpoint) fs::remove_all(entry.path());
  }
  fs::remove(pod_resources_socket());
  {
    const std::scoped_lock lock(impl_->mutex);
    impl_->is_stopping = false;
    for (Assigned& one : impl_->assigned) one.is_known = age == Age::Settled;
  }
  impl_->lister = std::make_unique<Lister>(*impl_);
  impl_->lister_server = serve(pod_resources_socket(), *impl_->lister);
  if (age == Age::Settled) {
    // It has started long ago, by the looks.
    fs::last_write_time(pod_resources_socket(),
                        fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  impl_->server = serve(socket(), *impl_);
}

void Kubelet::learn_pods() {
  const std::scoped_lock lock(impl_->mutex);
  for (Assigned& one : impl_->assigned) one.is_known = true;
}

std::uint64_t Kubelet::lists() const { return impl_->lists; }

void Kubelet::stop() {
  std::vector<std::shared_ptr<Endpoint>> all;
  {
    const std::scoped_lock lock(impl_->mutex);
    impl_->is_stopping = true;
    all.swap(impl_->all);
    for (const auto& endpoint : all) endpoint->watch_context.TryCancel();
  }
  for (auto* const server : {&impl_->server, &impl_->lister_server}) {
    if (*server == nullptr) continue;
    (*server)->Shutdown(std::chrono::system_clock::now());
    server->reset();
  }
  for (const auto& endpoint : all) endpoint->thread.join();
  const std::scoped_lock lock(impl_->mutex);
  impl_->endpoints.clear();
  impl_->devices.clear();
}

void Kubelet::lose(const std::string& resource) {
  const std::scoped_lock lock(impl_->mutex);
  const auto it = impl_->endpoints.find(resource);
  if (it != impl_->endpoints.end()) it->second->watch_context.TryCancel();
}

bool Kubelet::wait(const std::function<bool()>& is_so, int timeout_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    if (is_so()) return true;
    std::unique_lock lock(impl_->mutex);
    // Short waits too, for conditions that are not the kubelet's.
    if (std::chrono::steady_clock::now() > end) return false;
    impl_->changed.wait_for(lock, std::chrono::milliseconds(5));
  }
}

NodeCounts Kubelet::counts(const std::string& resource) const {
  const std::scoped_lock lock(impl_->mutex);
  NodeCounts counts;
  for (const auto& [id, device] : impl_->devices[resource]) {
    ++counts.capacity;
    if (device.is_healthy) ++counts.allocatable;
  }
  return counts;
}

std::set<std::string> Kubelet::healthy(const std::string& resource) const {
  const std::scoped_lock lock(impl_->mutex);
  std::set<std::string> result;
  for (const auto& [id, device] : impl_->devices[resource]) {
    if (device.is_healthy) result.insert(id);
  }
  return result;
}

std::map<std::string, std::int64_t> Kubelet::numa_nodes(const std::string& resource) const {
  const std::scoped_lock lock(impl_->mutex);
  std::map<std::string, std::int64_t> result;
  for (const auto& [id, device] : impl_->devices[resource]) result[id] = device.numa;
  return result;
}

bool Kubelet::is_watching(const std::string& resource) const {
  const std::scoped_lock lock(impl_->mutex);
  const auto it = impl_->endpoints.find(resource);
  return it != impl_->endpoints.end() && it->second->is_watching;
}

std::uint64_t Kubelet::registrations(const std::string& resource) const {
  const std::scoped_lock lock(impl_->mutex);
  const auto it = impl_->registrations.find(resource);
  return it == impl_->registrations.end() ? 0 : it->second;
}

bool Kubelet::has_options(const std::string& resource) const {
  const std::scoped_lock lock(impl_->mutex);
  const auto it = impl_->endpoints.find(resource);
  return it != impl_->endpoints.end() && it->second->has_options;
}

Result<std::map<std::string, StartedContainer>> Kubelet::run(const PodAsk& pod) {
  std::map<std::string, StartedContainer> result;
  std::unique_lock lock(impl_->mutex);
  const auto failed = [&](Error error) -> Result<std::map<std::string, StartedContainer>> {
    std::erase_if(impl_->assigned,
                  [&](const Assigned& one) { return one.ns == pod.ns && one.pod == pod.name; });
    return std::unexpected(std::move(error));
  };
  for (const ContainerAsk& container : pod.containers) {
    auto started = impl_->admit(pod, container);
    if (!started) return failed(started.error());
    result[container.name] = *std::move(started);
    if (!container.is_init) continue;
    for (Assigned& one : impl_->assigned) {
      if (one.ns == pod.ns && one.pod == pod.name && one.container == container.name) {
        one.is_running = false;
      }
    }
  }
  for (const ContainerAsk& container : pod.containers) {
    const auto ready = impl_->pre_start(lock, pod.ns, pod.name, container.name);
    if (!ready) return failed(ready.error());
  }
  return result;
}

Result<void> Kubelet::restart_container(const std::string& ns, const std::string& pod,
                                        const std::string& container) {
  std::unique_lock lock(impl_->mutex);
  return impl_->pre_start(lock, ns, pod, container);
}

void Kubelet::remove(const std::string& ns, const std::string& pod) {
  const std::scoped_lock lock(impl_->mutex);
  std::erase_if(impl_->assigned,
                [&](const Assigned& one) { return one.ns == ns && one.pod == pod; });
}

std::vector<std::string> Kubelet::readmit() {
  const std::scoped_lock lock(impl_->mutex);
  std::set<std::pair<std::string, std::string>> killed;
  for (const Assigned& one : impl_->assigned) {
    const auto endpoint = impl_->endpoints.find(one.resource);
    const bool is_there = endpoint != impl_->endpoints.end() && !endpoint->second->is_stopped;
    if (one.is_init && !is_there) killed.emplace(one.ns, one.pod);
  }
  std::erase_if(impl_->assigned,
                [&](const Assigned& one) { return killed.contains({one.ns, one.pod}); });
  std::vector<std::string> names;
  names.reserve(killed.size());
  for (const auto& [ns, pod] : killed) names.push_back(fmt::format("{}/{}", ns, pod));
  return names;
}

std::map<std::string, std::string> Kubelet::health_in_status(const std::string& ns,
                                                             const std::string& pod) const {
  const std::scoped_lock lock(impl_->mutex);
  std::map<std::string, std::string> result;
  for (const Assigned& one : impl_->assigned) {
    if (one.ns != ns || one.pod != pod || !one.is_running) continue;
    const auto health = impl_->last_health.find({one.resource, one.id});
    if (health != impl_->last_health.end()) result[one.id] = health->second;
  }
  return result;
}

std::vector<std::string> Kubelet::complaints() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->complaints;
}

}  // namespace jogak::kubelet
