// SPDX-License-Identifier: Apache-2.0
// The live cluster of a command: found through the kubeconfig, listed once over a loop of its own.
#include <memory>
#include <optional>
#include <utility>

#include <unistd.h>

#include "cli/cluster_input.h"
#include "kube/api_client.h"
#include "kube/connection.h"
#include "kube/kubeconfig.h"
#include "kube/snapshot.h"
#include "net/epoll_loop.h"

namespace jogak::cli {

Result<LiveTexts> read_live(const ClusterSource& source) {
  const kube::AccessWanted wanted{.kubeconfig = source.kubeconfig, .context = source.context};
  JOGAK_TRY(kube::Access access, kube::find_access(wanted, kube::Environment::of_process()));
  LiveTexts live;
  live.ns = access.namespace_name;
  net::EpollLoop loop;
  JOGAK_TRY(const std::unique_ptr<kube::Connection> connection,
            kube::connect(loop, std::move(access),
                          {.user_agent = "jogak", .has_terminal = isatty(STDIN_FILENO) == 1}));
  kube::ApiClient api(*connection);
  std::optional<Result<std::vector<kube::SnapshotPage>>> result;
  const kube::Snapshot snapshot(api, [&](Result<std::vector<kube::SnapshotPage>> pages) {
    result = std::move(pages);
    loop.stop();
  });
  loop.run();
  if (!result->has_value()) {
    Error error = std::move(*result).error();
    if (const std::string refusal = connection->refusal(); !refusal.empty()) error.what = refusal;
    return in_context(connection->server(), std::move(error));
  }
  for (kube::SnapshotPage& page : **result) {
    live.texts.push_back(
        {.kind = page.kind, .text = std::move(page.json), .name = connection->server()});
  }
  return live;
}

}  // namespace jogak::cli
