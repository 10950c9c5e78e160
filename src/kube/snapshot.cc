// SPDX-License-Identifier: Apache-2.0
//
// One list after the other over one connection, each in pages. When the server has forgotten the
// version that the pages of a list were of, that list begins anew, whole: its pages must agree.
#include "kube/snapshot.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "kube/json_scan.h"

namespace jogak::kube {

namespace {

constexpr std::array kResources = std::to_array<SnapshotResource>({
    {"/api/v1/pods", "pods", "Pod"},
    {"/api/v1/nodes", "nodes", "Node"},
    {"/api/v1/namespaces", "namespaces", "Namespace"},
    {"/apis/scheduling.k8s.io/v1/priorityclasses", "priorityclasses.scheduling.k8s.io",
     "PriorityClass"},
    {"/apis/policy/v1/poddisruptionbudgets", "poddisruptionbudgets.policy", "PodDisruptionBudget"},
    {"/api/v1/services", "services", "Service"},
    {"/api/v1/replicationcontrollers", "replicationcontrollers", "ReplicationController"},
    {"/apis/apps/v1/replicasets", "replicasets.apps", "ReplicaSet"},
    {"/apis/apps/v1/statefulsets", "statefulsets.apps", "StatefulSet"},
    {"/api/v1/persistentvolumes", "persistentvolumes", "PersistentVolume"},
    {"/api/v1/persistentvolumeclaims", "persistentvolumeclaims", "PersistentVolumeClaim"},
    {"/apis/storage.k8s.io/v1/storageclasses", "storageclasses.storage.k8s.io", "StorageClass"},
    {"/apis/storage.k8s.io/v1/csinodes", "csinodes.storage.k8s.io", "CSINode"},
    {"/apis/storage.k8s.io/v1/csidrivers", "csidrivers.storage.k8s.io", "CSIDriver"},
    {"/apis/storage.k8s.io/v1/csistoragecapacities", "csistoragecapacities.storage.k8s.io",
     "CSIStorageCapacity"},
    {"/apis/storage.k8s.io/v1/volumeattachments", "volumeattachments.storage.k8s.io",
     "VolumeAttachment"},
});

// A server may ignore the limit of a page.
constexpr std::size_t kBodyMax = std::size_t{1} << 30;
constexpr int kRestartsMax = 3;

// metadata.continue of a list; "" on its last page.
Result<std::string> continue_token(std::string_view list) {
  std::string token;
  bool has_items = false;
  JsonScanner scanner(list);
  JOGAK_TRY_VOID(scanner.each_field([&](std::string_view key, std::string_view value) {
    if (key == "items") has_items = true;
    if (key != "metadata" || !value.starts_with('{')) return Result<void>();
    JsonScanner metadata(value);
    return metadata.each_field([&](std::string_view name, std::string_view text) {
      if (name == "continue" && text.size() >= 2) token = text.substr(1, text.size() - 2);
      return Result<void>();
    });
  }));
  if (!has_items) return invalid("has no items");
  return token;
}

std::string all_resources() {
  std::string names;
  for (const SnapshotResource& resource : kResources) {
    names.append(names.empty() ? "" : ",").append(resource.resource);
  }
  return names;
}

Error refusal(const SnapshotResource& resource, const ApiProblem& problem) {
  switch (problem.status) {
    case 401:
      return {.code = Errc::Invalid,
              .what = fmt::format(
                  "the server does not accept the credentials given ({}); renew the token or the "
                  "certificate in the kubeconfig",
                  problem.message)};
    case 403:
      return {.code = Errc::Invalid,
              .what = fmt::format(
                  "this account may not list {} in all namespaces; let it: kubectl create "
                  "clusterrole jogak-reader --verb=list --resource={}, then kubectl create "
                  "clusterrolebinding jogak-reader --clusterrole=jogak-reader and --user or "
                  "--serviceaccount (the server said: {})",
                  resource.resource, all_resources(), problem.message)};
    case 404:
      return {.code = Errc::NotFound,
              .what = fmt::format(
                  "the server knows no {}: is it a Kubernetes API server? see `server` in the "
                  "kubeconfig",
                  resource.path)};
    default:
      break;
  }
  Error error = error_of(problem);
  error.what = fmt::format("listing {}: {}", resource.resource, error.what);
  return error;
}

}  // namespace

std::span<const SnapshotResource> snapshot_resources() { return kResources; }

struct Snapshot::State : std::enable_shared_from_this<State> {
  State(ApiClient& client, Done on_done, std::size_t size)
      : api(client), done(std::move(on_done)), page_size(size) {}

  ApiClient& api;
  Done done;  // empty: nobody listens any more
  std::size_t page_size;
  std::size_t at = 0;       // in kResources
  std::size_t at_page = 0;  // in pages: the first of this resource
  int restarts = 0;         // of this resource
  std::vector<SnapshotPage> pages;

  const SnapshotResource& resource() const { return kResources[at]; }
  void ask(const std::string& token);
  void take(Result<ApiAnswer> result);
  void take_page(std::string body);
  void next();
  void finish(Result<std::vector<SnapshotPage>> result) {
    std::exchange(done, {})(std::move(result));
  }
};

void Snapshot::State::ask(const std::string& token) {
  ApiRequest request;
  request.target = std::string(resource().path);
  if (restarts == 0) request.target += fmt::format("?limit={}", page_size);
  if (!token.empty()) request.target += "&continue=" + escape(token);
  request.time_limit = 60 * kSecondInUs;
  request.body_bytes_max = kBodyMax;
  api.call(std::move(request), [weak = weak_from_this()](Result<ApiAnswer> result) {
    const std::shared_ptr<State> state = weak.lock();
    if (state != nullptr && state->done) state->take(std::move(result));
  });
}

void Snapshot::State::take(Result<ApiAnswer> result) {
  if (!result.has_value()) {
    return finish(
        in_context(fmt::format("listing {}", resource().resource), std::move(result).error()));
  }
  if (result->status < 400) return take_page(std::move(result->body));
  const ApiProblem problem = problem_of(*result);
  const bool is_group = resource().path.starts_with("/apis/");
  if (problem.status == 404 && is_group) return next();
  if (problem.status == 410 && restarts < kRestartsMax) {
    ++restarts;
    pages.resize(at_page);
    return ask({});
  }
  finish(std::unexpected(refusal(resource(), problem)));
}

void Snapshot::State::take_page(std::string body) {
  const Result<std::string> token = continue_token(body);
  if (!token.has_value()) {
    return finish(
        invalid("listing {}: the answer is not a list: {}; is it a Kubernetes API server?",
                resource().resource, token.error().what));
  }
  pages.push_back({.kind = resource().kind, .json = std::move(body)});
  if (token->empty()) return next();
  ask(*token);
}

void Snapshot::State::next() {
  at_page = pages.size();
  restarts = 0;
  if (++at == kResources.size()) return finish(std::move(pages));
  ask({});
}

Snapshot::Snapshot(ApiClient& api, Done done, std::size_t page_size)
    : state_(std::make_shared<State>(api, std::move(done), page_size)) {
  state_->ask({});
}

Snapshot::~Snapshot() { state_->done = {}; }

}  // namespace jogak::kube
