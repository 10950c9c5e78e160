// SPDX-License-Identifier: Apache-2.0
//
// One page at a time: a page is read and dropped before the next is asked for.
#include "ops/drift_run.h"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "kube/list_page.h"

namespace jogak::ops {

namespace {

struct Listed {
  std::string_view path, kind;
};
constexpr std::array<Listed, 2> kListed = {{{"/api/v1/nodes", "Node"}, {"/api/v1/pods", "Pod"}}};

}  // namespace

struct DriftRun::State : std::enable_shared_from_this<State> {
  State(kube::ApiClient& api_, const core::Cluster& memory_, DriftRunOptions options_, Done done_)
      : api(api_),
        memory(memory_),
        options(std::move(options_)),
        done(std::move(done_)),
        check(memory_) {}

  void ask();
  void answered(Result<std::string> body);
  Result<std::string> read(std::string_view body);  // the next page's token
  void settle();
  void finish(Result<live::DriftReport> result);

  kube::ApiClient& api;
  const core::Cluster& memory;
  DriftRunOptions options;
  Done done;
  live::DriftCheck check;
  std::size_t listed = 0;  // of kListed
  std::string next;
  TimerId timer = 0;
  bool is_alive = true;
};

DriftRun::DriftRun(kube::ApiClient& api, const core::Cluster& memory, DriftRunOptions options,
                   Done done)
    : state_(std::make_shared<State>(api, memory, std::move(options), std::move(done))) {
  state_->ask();
}

DriftRun::~DriftRun() {
  state_->is_alive = false;
  state_->api.loop().cancel(state_->timer);
}

void DriftRun::State::ask() {
  std::string target = fmt::format("{}?limit={}", kListed[listed].path, options.page_size);
  if (!next.empty()) target += "&continue=" + kube::escape(next);
  api.call_ok({.method = "GET", .target = std::move(target)},
              [self = shared_from_this()](Result<std::string> body) {
                if (self->is_alive) self->answered(std::move(body));
              });
}

Result<std::string> DriftRun::State::read(std::string_view body) {
  kube::ListPageReader reader;
  reader.feed(body);
  while (true) {
    JOGAK_TRY(const std::string_view item, reader.next_item());
    if (item.empty()) break;
    JOGAK_TRY_VOID(check.add_object(kListed[listed].kind, item));
  }
  JOGAK_TRY(kube::ListPageReader::Tail tail, reader.finish());
  return std::move(tail.next);
}

void DriftRun::State::answered(Result<std::string> body) {
  auto token = body ? read(*body) : std::unexpected(std::move(body).error());
  if (!token) {
    // A listing that grew too old (410) could be begun again; whoever asked can do that as well.
    return finish(
        in_context(fmt::format("GET {}", kListed[listed].path), std::move(token).error()));
  }
  next = *std::move(token);
  if (next.empty()) ++listed;
  if (listed < kListed.size()) return ask();
  settle();
}

void DriftRun::State::settle() {
  timer = api.loop().after(options.settle_time, [self = shared_from_this()] {
    if (self->is_alive) self->finish(self->check.finish(self->memory, self->options.is_assumed));
  });
}

void DriftRun::State::finish(Result<live::DriftReport> result) {
  is_alive = false;
  const Done told = std::move(done);
  told(std::move(result));
}

}  // namespace jogak::ops
