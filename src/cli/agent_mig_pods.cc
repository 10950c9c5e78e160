// SPDX-License-Identifier: Apache-2.0
//
// See agent_mig_pods.h.
#include "cli/agent_mig_pods.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "agent/mig/pod_holders.h"
#include "agent/plugin/kubelet_client.h"
#include "net/epoll_loop.h"

namespace jogak::cli {

Result<agent::MigHolders> holders_from_kubelet(const std::string& socket,
                                               const nvml::NodeFacts& node) {
  std::error_code ignored;
  if (!std::filesystem::exists(socket, ignored)) return agent::MigHolders{};
  net::EpollLoop loop;
  agent::KubeletClient client(loop);
  Result<std::vector<agent::Holding>> holdings = fail(Errc::Unavailable, "no answer");
  client.list_holdings(socket, [&](Result<std::vector<agent::Holding>> answer) {
    holdings = std::move(answer);
    loop.stop();
  });
  loop.run();
  if (!holdings) {
    return fail(Errc::Unavailable,
                "the kubelet does not say which pods hold what: {}; --pod-resources none goes on "
                "without",
                holdings.error().what);
  }
  return agent::pod_holders(node, agent::HolderIndex(node, *holdings));
}

}  // namespace jogak::cli
