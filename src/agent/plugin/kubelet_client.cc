// SPDX-License-Identifier: Apache-2.0
// Calls are counted, so that the destructor can cancel what is under way and wait for gRPC's
// threads to be out of it.
#include "agent/plugin/kubelet_client.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

#include <api/device_plugin.grpc.pb.h>
#include <api/pod_resources.grpc.pb.h>
#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>

#include "base/hand_over.h"

namespace jogak::agent {

namespace {

constexpr auto kTimeout = std::chrono::seconds(5);
constexpr int kListBytesMax = 16 << 20;  // a dense node's answer passes gRPC's usual 4 MiB

// The library writes about bad messages to standard error, as often as they come; the error that
// follows says enough.
void quieten_protobuf() {
  static const bool kIsQuiet = [] {
    google::protobuf::SetLogHandler(nullptr);
    return true;
  }();
  (void)kIsQuiet;
}

std::shared_ptr<grpc::Channel> dial(const std::string& socket) {
  grpc::ChannelArguments args;
  // Channels of one address would share their connection, and its pauses after a failure.
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  args.SetMaxReceiveMessageSize(kListBytesMax);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), args);
}

Error to_error(const std::string& socket, const grpc::Status& status) {
  Errc code = Errc::Unavailable;
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) code = Errc::NotFound;
  if (status.error_code() == grpc::StatusCode::INVALID_ARGUMENT) code = Errc::Invalid;
  if (status.error_code() == grpc::StatusCode::UNKNOWN) code = Errc::Invalid;  // Go's plain error
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) code = Errc::Timeout;
  return {.code = code, .what = fmt::format("{}: {}", socket, status.error_message())};
}

std::vector<Holding> to_holdings(const ::v1::ListPodResourcesResponse& response) {
  std::vector<Holding> result;
  for (const auto& pod : response.pod_resources()) {
    for (const auto& container : pod.containers()) {
      // The kubelet writes an entry for each device, or for each NUMA node; all the same here.
      for (const auto& devices : container.devices()) {
        for (const std::string& id : devices.device_ids()) {
          result.push_back({.resource = devices.resource_name(),
                            .device_id = id,
                            .holder = {.pod_namespace = pod.namespace_(),
                                       .pod = pod.name(),
                                       .container = container.name(),
                                       .pod_uid = ""}});
        }
      }
    }
  }
  std::ranges::sort(result);
  const auto rest = std::ranges::unique(result);
  result.erase(rest.begin(), rest.end());
  return result;
}

template <class Request, class Response>
struct Call {
  std::shared_ptr<grpc::Channel> channel;
  grpc::ClientContext context;
  Request request;
  Response response;
};

// A callback for gRPC, which copies what it is given and calls it once. `answer` is not copied: all
// of it, and all that was done before, comes before the call for whoever looks.
std::function<void(grpc::Status)> for_grpc(std::function<void(const grpc::Status&)> answer) {
  auto* const kept = new std::function<void(const grpc::Status&)>(std::move(answer));
  hand_over(kept);
  return [kept](const grpc::Status& status) {
    const TakenOver call(kept);
    const std::unique_ptr<std::function<void(const grpc::Status&)>> own(kept);
    (*own)(status);
  };
}

struct ListCall : Call<::v1::ListPodResourcesRequest, ::v1::ListPodResourcesResponse> {
  std::unique_ptr<::v1::PodResourcesLister::Stub> stub;
  std::string socket;
  KubeletClient::HoldingsDone done;
  bool is_on_kept = false;
  grpc::Status status;
  Result<std::vector<Holding>> result;
};

}  // namespace

struct KubeletClient::Impl {
  explicit Impl(Loop& owner) : loop(owner) {}

  Loop& loop;
  std::mutex mutex;
  std::condition_variable idle;
  std::set<grpc::ClientContext*> calls;  // guarded by mutex
  // Read and written on the loop alone: answers that are still posted find nobody.
  bool is_gone = false;
  // Of the last list that was answered, for the next: a channel costs threads and a handshake.
  std::string kept_socket;
  std::shared_ptr<grpc::Channel> kept;

  void begin(grpc::ClientContext* context) {
    const std::scoped_lock lock(mutex);
    calls.insert(context);
  }
  // Posts the answer under the lock: the destructor, and with it the loop's end, waits for that.
  void end(grpc::ClientContext* context, Loop::Task answer) {
    const std::scoped_lock lock(mutex);
    calls.erase(context);
    loop.post(std::move(answer));
    if (calls.empty()) idle.notify_all();
  }

  using Self = std::shared_ptr<Impl>;
  static void list(const Self& self, std::shared_ptr<grpc::Channel> on_kept,
                   const std::string& socket, HoldingsDone done);
  static void on_list(const Self& self, ListCall& list);
};

KubeletClient::KubeletClient(Loop& loop) : impl_(std::make_shared<Impl>(loop)) {
  quieten_protobuf();
}

KubeletClient::~KubeletClient() {
  impl_->is_gone = true;
  impl_->kept = nullptr;
  std::unique_lock lock(impl_->mutex);
  for (grpc::ClientContext* const call : impl_->calls) call->TryCancel();
  impl_->idle.wait(lock, [this] { return impl_->calls.empty(); });
}

void KubeletClient::register_resource(const RegisterCall& asked, RegisterDone done) {
  auto call = std::make_shared<Call<::v1beta1::RegisterRequest, ::v1beta1::Empty>>();
  call->request.set_version("v1beta1");
  call->request.set_endpoint(asked.endpoint);
  call->request.set_resource_name(asked.resource);
  call->request.mutable_options()->set_pre_start_required(asked.requires_pre_start);
  call->request.mutable_options()->set_get_preferred_allocation_available(true);
  call->context.set_deadline(std::chrono::system_clock::now() + kTimeout);
  call->channel = dial(asked.kubelet_socket);
  impl_->begin(&call->context);
  auto stub = std::make_shared<::v1beta1::Registration::Stub>(call->channel);
  auto answer = [impl = impl_, call, stub, socket = asked.kubelet_socket,
                 done = std::move(done)](const grpc::Status& status) mutable {
    Result<void> result;
    if (!status.ok()) result = std::unexpected(to_error(socket, status));
    grpc::ClientContext* const context = &call->context;
    // gRPC is still in the channel: it ends on the loop, with the call.
    impl->end(context, [impl, done, result = std::move(result),
                        keep = std::pair(std::move(stub), std::move(call))] {
      if (!impl->is_gone) done(result);
    });
  };
  stub->async()->Register(&call->context, &call->request, &call->response,
                          for_grpc(std::move(answer)));
}

void KubeletClient::list_holdings(const std::string& socket, HoldingsDone done) {
  const bool has_kept = impl_->kept != nullptr && impl_->kept_socket == socket;
  Impl::list(impl_, has_kept ? impl_->kept : nullptr, socket, std::move(done));
}

void KubeletClient::Impl::list(const Self& self, std::shared_ptr<grpc::Channel> on_kept,
                               const std::string& socket, HoldingsDone done) {
  auto list = std::make_shared<ListCall>();
  list->socket = socket;
  list->done = std::move(done);
  list->is_on_kept = on_kept != nullptr;
  list->channel = list->is_on_kept ? std::move(on_kept) : dial(socket);
  list->context.set_deadline(std::chrono::system_clock::now() + kTimeout);
  list->stub = std::make_unique<::v1::PodResourcesLister::Stub>(list->channel);
  self->begin(&list->context);
  auto answer = [self, list](const grpc::Status& status) mutable {
    list->status = status;
    if (status.ok()) {
      list->result = to_holdings(list->response);
    } else {
      list->result = std::unexpected(to_error(list->socket, status));
    }
    grpc::ClientContext* const context = &list->context;
    // gRPC is still in the channel: it ends on the loop, with the call.
    self->end(context, [self, list = std::move(list)] { on_list(self, *list); });
  };
  list->stub->async()->List(&list->context, &list->request, &list->response,
                            for_grpc(std::move(answer)));
}

void KubeletClient::Impl::on_list(const Self& self, ListCall& list) {
  if (self->is_gone) return;
  if (list.status.ok()) {
    self->kept_socket = list.socket;
    self->kept = list.channel;
  } else if (self->kept == list.channel) {
    self->kept = nullptr;
  }
  // Perhaps it led to a kubelet that has ended since.
  if (list.is_on_kept && list.status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return Impl::list(self, nullptr, list.socket, std::move(list.done));
  }
  list.done(std::move(list.result));
}

Result<std::vector<Holding>> read_holdings(std::string_view list_response) {
  quieten_protobuf();
  ::v1::ListPodResourcesResponse response;
  if (!response.ParseFromArray(list_response.data(), static_cast<int>(list_response.size()))) {
    return invalid("the kubelet's list of pod resources is not one");
  }
  return to_holdings(response);
}

}  // namespace jogak::agent
