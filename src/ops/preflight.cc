// SPDX-License-Identifier: Apache-2.0
//
// GET /version tells whether this is a Kubernetes API server; a list of one node, whether it
// accepts us; a review for each permission, all at once, which are missing.
#include "ops/preflight.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_writer.h"
#include "kube/json_scan.h"
#include "ops/permissions.h"

namespace jogak::ops {

namespace {

// A text or word of an object in JSON, without its quotes; "" when it is not there. Enough for
// answers whose values hold nothing to be unescaped.
std::string member(std::string_view json, std::string_view key) {
  std::string found;
  kube::JsonScanner scanner(json);
  const auto read = scanner.each_field([&](std::string_view name, std::string_view value) {
    if (name == key) found = value;
    return Result<void>();
  });
  if (!read) return "";
  if (found.size() >= 2 && found.front() == '"') return found.substr(1, found.size() - 2);
  return found;
}

std::string review_of(const Permission& permission, const PreflightOptions& options) {
  JsonWriter json;
  json.begin_object().field("apiVersion", "authorization.k8s.io/v1");
  json.field("kind", "SelfSubjectAccessReview").key("spec").begin_object();
  json.key("resourceAttributes").begin_object().field("verb", permission.verb);
  json.field("group", permission.group).field("resource", permission.resource);
  if (!permission.subresource.empty()) json.field("subresource", permission.subresource);
  if (permission.is_lease) {
    json.field("namespace", options.lease_namespace);
    // A role may name the one lease, but nobody can be allowed to create by name.
    if (permission.verb != "create") json.field("name", options.lease_name);
  }
  json.end_object().end_object().end_object();
  return json.take();
}

// At once: each may need a connection of its own.
constexpr std::size_t kReviewsMax = 4;

// The reviews of one attempt.
struct Round {
  std::vector<const Permission*> waiting;  // not asked for yet, the last one first
  std::size_t open = 0;
  std::vector<std::string> missing;
  bool is_over = false;  // one was dealt with otherwise; the rest do not matter
};

}  // namespace

struct Preflight::State : std::enable_shared_from_this<State> {
  State(kube::ApiClient& api_, PreflightOptions options_, Events events_)
      : api(api_), options(std::move(options_)), events(std::move(events_)) {}

  void ask_version();
  void version_told(const Result<kube::ApiAnswer>& answer);
  void ask_who();
  void who_told(const Result<kube::ApiAnswer>& answer);
  void ask_permissions();
  void ask_permission(const std::shared_ptr<Round>& round);
  void permission_told(const std::shared_ptr<Round>& round, const Permission& permission,
                       const Result<kube::ApiAnswer>& answer);
  void all_told(const Round& round);

  // True when the answer is neither of those: go on. Else it has been dealt with.
  bool is_useful(const Result<kube::ApiAnswer>& answer);
  void fail(Error error);
  void retry(Error error);
  template <class Take>
  void call(kube::ApiRequest request, Take take) {
    api.call(std::move(request), [self = shared_from_this(), take](Result<kube::ApiAnswer> answer) {
      if (self->is_alive) take(*self, std::move(answer));
    });
  }

  kube::ApiClient& api;
  PreflightOptions options;
  Events events;
  std::string version;
  TimeUs wait = 0;
  TimerId timer = 0;
  bool is_alive = true;
};

Preflight::Preflight(kube::ApiClient& api, PreflightOptions options, Events events)
    : state_(std::make_shared<State>(api, std::move(options), std::move(events))) {
  state_->ask_version();
}

Preflight::~Preflight() {
  state_->is_alive = false;
  state_->api.loop().cancel(state_->timer);
}

void Preflight::State::fail(Error error) {
  is_alive = false;
  const auto told = events.on_failed;
  told(error);
}

void Preflight::State::retry(Error error) {
  wait = std::clamp(wait * 2, options.first_wait, options.wait_max);
  timer = api.loop().after(wait, [self = shared_from_this()] {
    if (self->is_alive) self->ask_version();
  });
  const auto told = events.on_retry;
  told(error, wait);
}

bool Preflight::State::is_useful(const Result<kube::ApiAnswer>& answer) {
  if (!answer) {
    Error error = answer.error();
    if (error.code == Errc::Invalid) {
      fail(std::move(error));
    } else {
      error.what += "; is the API server running, and is this its address?";
      retry(std::move(error));
    }
    return false;
  }
  const kube::ApiProblem problem = kube::problem_of(*answer);
  if (answer->status == 401) {
    std::string why = options.refusal ? options.refusal() : "";
    if (why.empty()) {
      why = fmt::format(
          "{} does not accept the credentials (401 {}): the token or certificate has "
          "expired or is another cluster's; get a new kubeconfig",
          options.server, problem.message);
    }
    fail({Errc::Invalid, std::move(why)});
    return false;
  }
  if (answer->status == 429 || answer->status >= 500) {
    retry({Errc::Unavailable, fmt::format("the API server {} is not ready ({}: {})", options.server,
                                          answer->status, problem.message)});
    return false;
  }
  return true;
}

void Preflight::State::ask_version() {
  call({.method = "GET", .target = "/version", .retries_max = 0},
       [](State& self, const Result<kube::ApiAnswer>& answer) { self.version_told(answer); });
}

void Preflight::State::version_told(const Result<kube::ApiAnswer>& answer) {
  if (!is_useful(answer)) return;
  // Some clusters show it to nobody but those they know; what follows tells the rest.
  if (answer->status == 403) return ask_who();
  version = answer->status == 200 ? member(answer->body, "gitVersion") : "";
  if (!version.empty()) return ask_who();
  fail({Errc::Invalid,
        fmt::format("{} is not a Kubernetes API server: GET /version gave {} without a gitVersion; "
                    "look at `server` in the kubeconfig",
                    options.server, answer->status)});
}

void Preflight::State::ask_who() {
  call({.method = "GET", .target = "/api/v1/nodes?limit=1", .retries_max = 0},
       [](State& self, const Result<kube::ApiAnswer>& answer) { self.who_told(answer); });
}

void Preflight::State::who_told(const Result<kube::ApiAnswer>& answer) {
  if (!is_useful(answer)) return;
  ask_permissions();
}

void Preflight::State::ask_permissions() {
  const auto round = std::make_shared<Round>();
  for (const Permission& permission : permissions()) {
    if (permission.is_lease && options.lease_namespace.empty()) continue;
    round->waiting.push_back(&permission);
  }
  std::ranges::reverse(round->waiting);
  for (std::size_t i = 0; i < kReviewsMax; ++i) ask_permission(round);
}

void Preflight::State::ask_permission(const std::shared_ptr<Round>& round) {
  if (round->waiting.empty()) return;
  const Permission& permission = *round->waiting.back();
  round->waiting.pop_back();
  ++round->open;
  call({.method = "POST",
        .target = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        .body = review_of(permission, options),
        .retries_max = 0},
       [round, &permission](State& self, const Result<kube::ApiAnswer>& answer) {
         self.permission_told(round, permission, answer);
       });
}

void Preflight::State::permission_told(const std::shared_ptr<Round>& round,
                                       const Permission& permission,
                                       const Result<kube::ApiAnswer>& answer) {
  --round->open;
  if (round->is_over) return;
  if (!is_useful(answer)) {
    round->is_over = true;
    return;
  }
  // A server that does not review (403, 404) does not say no: the calls themselves will tell.
  const bool is_answer = answer->status == 200 || answer->status == 201;
  if (is_answer && member(member(answer->body, "status"), "allowed") != "true") {
    round->missing.push_back(permission_text(permission));
  }
  ask_permission(round);
  if (round->open == 0) all_told(*round);
}

void Preflight::State::all_told(const Round& round) {
  if (!round.missing.empty()) {
    return fail({Errc::Invalid,
                 fmt::format("not permitted on {}: {}; grant it with deploy/jogak-scheduler.yaml "
                             "(ClusterRole jogak-scheduler)",
                             options.server, fmt::join(round.missing, ", "))});
  }
  is_alive = false;
  const auto told = events.on_passed;
  told(version);
}

}  // namespace jogak::ops
