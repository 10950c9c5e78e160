// SPDX-License-Identifier: Apache-2.0
// gRPC's callback API. A watcher has at most one message in flight and the newest list in wait, so
// a reader that stalls costs nothing.
#include "agent/plugin/plugin_server.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>

#include <api/device_plugin.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/plugin/preferred.h"
#include "base/hand_over.h"

namespace jogak::agent {

namespace {

namespace api = ::v1beta1;

constexpr int kHandshakeMsMax = 10'000;
constexpr int kMessageBytesMax = 4 << 20;
constexpr std::size_t kMemoryBytesMax = std::size_t{32} << 20;
constexpr auto kGrace = std::chrono::milliseconds(100);

grpc::Status to_status(const Error& error) {
  switch (error.code) {
    case Errc::Invalid:
      return {grpc::StatusCode::INVALID_ARGUMENT, error.what};
    case Errc::NotFound:
      return {grpc::StatusCode::NOT_FOUND, error.what};
    case Errc::Conflict:
      return {grpc::StatusCode::FAILED_PRECONDITION, error.what};
    case Errc::Timeout:
      return {grpc::StatusCode::DEADLINE_EXCEEDED, error.what};
    case Errc::Gone:
    case Errc::Unavailable:
      return {grpc::StatusCode::UNAVAILABLE, error.what};
  }
  return {grpc::StatusCode::UNKNOWN, error.what};
}

using List = std::shared_ptr<const api::ListAndWatchResponse>;

List make_list(const PluginSnapshot& snapshot, const std::string& resource) {
  auto list = std::make_shared<api::ListAndWatchResponse>();
  if (const PluginResource* const found = snapshot.inventory.find(resource)) {
    for (const PluginDevice& from : found->devices) {
      api::Device& to = *list->add_devices();
      to.set_id(from.id);
      to.set_health(from.is_healthy ? "Healthy" : "Unhealthy");
      if (from.numa_node) to.mutable_topology()->add_nodes()->set_id(*from.numa_node);
    }
  }
  return list;
}

template <class T>
std::vector<std::string> strings(const T& from) {
  return {from.begin(), from.end()};
}

void fill(const ContainerAnswer& from, api::ContainerAllocateResponse& to) {
  for (const auto& [name, value] : from.env) (*to.mutable_envs())[name] = value;
  for (const auto& [name, value] : from.annotations) (*to.mutable_annotations())[name] = value;
  for (const ContainerMount& mount : from.mounts) {
    api::Mount& made = *to.add_mounts();
    made.set_host_path(mount.host_path);
    made.set_container_path(mount.container_path);
    made.set_read_only(mount.is_read_only);
  }
  for (const ContainerDevice& device : from.devices) {
    api::DeviceSpec& made = *to.add_devices();
    made.set_host_path(device.host_path);
    made.set_container_path(device.container_path);
    made.set_permissions(device.permissions);
  }
  for (const std::string& name : from.cdi_devices) to.add_cdi_devices()->set_name(name);
}

// A call that ends once, by whoever comes first: the owner's reply or the end of the server.
class PendingCall {
 public:
  explicit PendingCall(grpc::ServerUnaryReactor* reactor) : reactor_(reactor) {}
  void finish(const grpc::Status& status) {
    grpc::ServerUnaryReactor* reactor = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      std::swap(reactor, reactor_);
    }
    if (reactor != nullptr) reactor->Finish(status);
  }

 private:
  std::mutex mutex_;
  grpc::ServerUnaryReactor* reactor_;  // guarded by mutex_; null: finished
};

// Each call of gRPC's into it says so (TakenOver): gRPC promises that one comes after start(), that
// those of one watcher come one after the other, and that none comes once the server is gone. What
// several of them touch is guarded by mutexes.
class Service final : public api::DevicePlugin::CallbackService {
 public:
  Service(std::string resource, PluginSnapshotPtr snapshot, PluginServer::Events events)
      : resource_(std::move(resource)), events_(std::move(events)) {
    list_ = make_list(*snapshot, resource_);
    snapshot_ = std::move(snapshot);
  }

  void publish(PluginSnapshotPtr snapshot) {
    List list = make_list(*snapshot, resource_);
    const std::scoped_lock lock(mutex_);
    snapshot_ = std::move(snapshot);
    if (list->SerializeAsString() == list_->SerializeAsString()) return;
    list_ = std::move(list);
    for (Watcher* const watcher : watchers_) watcher->send(list_);
  }

  // No call begins after this, and those under way end.
  void end_calls() {
    std::set<std::shared_ptr<PendingCall>> pending;
    {
      const std::scoped_lock lock(mutex_);
      is_ending_ = true;
      pending.swap(pending_);
      for (Watcher* const watcher : watchers_) watcher->end();
    }
    for (const auto& call : pending) {
      call->finish({grpc::StatusCode::UNAVAILABLE, "the device plugin is ending"});
    }
  }
  void wait_for_watchers() {
    std::unique_lock lock(mutex_);
    no_watchers_.wait(lock, [this] { return watchers_.empty(); });
  }

  grpc::ServerUnaryReactor* GetDevicePluginOptions(grpc::CallbackServerContext* context,
                                                   const api::Empty* /*request*/,
                                                   api::DevicePluginOptions* options) override {
    const TakenOver call(this);
    options->set_pre_start_required(events_.pre_start != nullptr);
    options->set_get_preferred_allocation_available(true);
    return finished(context, grpc::Status::OK);
  }

  grpc::ServerWriteReactor<api::ListAndWatchResponse>* ListAndWatch(
      grpc::CallbackServerContext* /*context*/, const api::Empty* /*request*/) override {
    const TakenOver call(this);
    auto* const watcher = new Watcher(*this);  // deletes itself in OnDone
    hand_over(watcher);
    {
      const std::scoped_lock lock(mutex_);
      watchers_.insert(watcher);
      watcher->send(list_);
      if (is_ending_) watcher->end();
    }
    if (events_.on_watch_start) events_.on_watch_start();
    return watcher;
  }

  grpc::ServerUnaryReactor* GetPreferredAllocation(
      grpc::CallbackServerContext* context, const api::PreferredAllocationRequest* request,
      api::PreferredAllocationResponse* response) override {
    const TakenOver call(this);
    const PluginSnapshotPtr now = snapshot();
    const PluginResource* const resource = now->inventory.find(resource_);
    const PluginResource none;
    for (const auto& asked : request->container_requests()) {
      const PreferredQuestion question = {.available = strings(asked.available_deviceids()),
                                          .must_include = strings(asked.must_include_deviceids()),
                                          .size = asked.allocation_size()};
      auto& answer = *response->add_container_responses();
      for (const std::string& id : prefer(resource != nullptr ? *resource : none, now->gpus,
                                          now->config.shared_policy, question)) {
        answer.add_deviceids(id);
      }
    }
    return finished(context, grpc::Status::OK);
  }

  grpc::ServerUnaryReactor* Allocate(grpc::CallbackServerContext* context,
                                     const api::AllocateRequest* request,
                                     api::AllocateResponse* response) override {
    const TakenOver call(this);
    if (events_.on_step) events_.on_step("allocate");
    const PluginSnapshotPtr now = snapshot();
    for (const auto& asked : request->container_requests()) {
      const auto answer = allocate(*now, resource_, strings(asked.devices_ids()));
      if (!answer) {
        report("Allocate", answer.error());
        return finished(context, to_status(answer.error()));
      }
      fill(*answer, *response->add_container_responses());
    }
    if (events_.on_step) events_.on_step("allocated");
    return finished(context, grpc::Status::OK);
  }

  grpc::ServerUnaryReactor* PreStartContainer(grpc::CallbackServerContext* context,
                                              const api::PreStartContainerRequest* request,
                                              api::PreStartContainerResponse* /*out*/) override {
    const TakenOver taken(this);
    if (!events_.pre_start) return finished(context, grpc::Status::OK);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    auto call = std::make_shared<PendingCall>(reactor);
    bool is_ending = false;
    {
      const std::scoped_lock lock(mutex_);
      is_ending = is_ending_;
      if (!is_ending) pending_.insert(call);
    }
    if (is_ending) {
      call->finish({grpc::StatusCode::UNAVAILABLE, "the device plugin is ending"});
      return reactor;
    }
    // The reply may come after the server: it then finds the call finished.
    events_.pre_start(strings(request->devices_ids()),
                      [call, self = weak_](const Result<void>& result) {
                        if (const auto service = self.lock()) (*service)->forget(call);
                        call->finish(result ? grpc::Status::OK : to_status(result.error()));
                      });
    return reactor;
  }

  // Valid while the server lives; taken before it starts.
  void set_weak(std::weak_ptr<Service*> weak) { weak_ = std::move(weak); }
  bool has_pre_start() const { return events_.pre_start != nullptr; }

 private:
  class Watcher : public grpc::ServerWriteReactor<api::ListAndWatchResponse> {
   public:
    explicit Watcher(Service& service) : service_(service) {}

    void send(List list) {
      const std::scoped_lock lock(mutex_);
      next_ = std::move(list);
      write_next();
    }
    void end() {
      const std::scoped_lock lock(mutex_);
      is_ending_ = true;
      if (!sent_) finish();
    }
    void OnWriteDone(bool is_ok) override {
      const TakenOver call(this);
      const std::scoped_lock lock(mutex_);
      sent_ = nullptr;
      if (!is_ok || is_ending_) {
        finish();
      } else {
        write_next();
      }
    }
    void OnCancel() override {
      const TakenOver call(this);
      end();
    }
    void OnDone() override {
      take_over(this);
      service_.remove(this);
    }

   private:
    void write_next() {
      if (sent_ || !next_ || is_ending_ || is_finished_) return;
      sent_ = std::move(next_);
      next_ = nullptr;
      StartWrite(sent_.get());
    }
    void finish() {
      if (is_finished_) return;
      is_finished_ = true;
      Finish(grpc::Status::OK);
    }

    Service& service_;
    std::mutex mutex_;
    List sent_, next_;  // in flight; to come. guarded by mutex_
    bool is_ending_ = false, is_finished_ = false;
  };

  static grpc::ServerUnaryReactor* finished(grpc::CallbackServerContext* context,
                                            const grpc::Status& status) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(status);
    return reactor;
  }

  PluginSnapshotPtr snapshot() {
    const std::scoped_lock lock(mutex_);
    return snapshot_;
  }

  void report(std::string_view call, const Error& error) {
    if (events_.on_problem) events_.on_problem(call, error.what);
  }

  void forget(const std::shared_ptr<PendingCall>& call) {
    const std::scoped_lock lock(mutex_);
    pending_.erase(call);
  }

  void remove(Watcher* watcher) {
    const TakenOver call(this);
    if (events_.on_watch_end) events_.on_watch_end();
    const std::scoped_lock lock(mutex_);
    watchers_.erase(watcher);
    delete watcher;
    if (watchers_.empty()) no_watchers_.notify_all();
  }

  const std::string resource_;
  const PluginServer::Events events_;
  std::weak_ptr<Service*> weak_;
  std::mutex mutex_;
  std::condition_variable no_watchers_;
  // Guarded by mutex_.
  PluginSnapshotPtr snapshot_;
  List list_;
  std::set<Watcher*> watchers_;
  std::set<std::shared_ptr<PendingCall>> pending_;
  bool is_ending_ = false;
};

}  // namespace

struct PluginServer::Impl {
  std::string socket_path;
  std::unique_ptr<Service> service;
  std::shared_ptr<Service*> self;  // whether replies still find the service
  std::unique_ptr<grpc::Server> server;
};

PluginServer::PluginServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<PluginServer>> PluginServer::start(const std::string& socket_path,
                                                          const std::string& resource,
                                                          PluginSnapshotPtr snapshot,
                                                          Events events) {
  if (socket_path.size() >= sizeof(sockaddr_un::sun_path)) {
    return invalid(
        "{}: longer than the {} characters that a socket's path may have; use a shorter "
        "folder",
        socket_path, sizeof(sockaddr_un::sun_path) - 1);
  }
  auto impl = std::make_unique<Impl>();
  impl->socket_path = socket_path;
  impl->service = std::make_unique<Service>(resource, std::move(snapshot), std::move(events));
  impl->self = std::make_shared<Service*>(impl->service.get());
  impl->service->set_weak(impl->self);
  hand_over(impl->service.get());

  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket_path, grpc::InsecureServerCredentials());
  builder.RegisterService(impl->service.get());
  builder.SetMaxReceiveMessageSize(kMessageBytesMax);
  // A client that says nothing, or nonsense, is dropped; one that says much finds an end.
  builder.AddChannelArgument("grpc.server_handshake_timeout_ms", kHandshakeMsMax);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 64);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  builder.SetResourceQuota(grpc::ResourceQuota(resource).Resize(kMemoryBytesMax));
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr) {
    return fail(Errc::Unavailable, "{}: the socket could not be made", socket_path);
  }
  return std::unique_ptr<PluginServer>(new PluginServer(std::move(impl)));
}

PluginServer::~PluginServer() {
  impl_->service->end_calls();
  impl_->server->Shutdown(std::chrono::system_clock::now() + kGrace);
  impl_->service->wait_for_watchers();
  impl_->self.reset();
  impl_->server.reset();
  take_over(impl_->service.get());
  ::unlink(impl_->socket_path.c_str());
}

void PluginServer::publish(PluginSnapshotPtr snapshot) {
  impl_->service->publish(std::move(snapshot));
}

bool PluginServer::requires_pre_start() const { return impl_->service->has_pre_start(); }

}  // namespace jogak::agent
