// SPDX-License-Identifier: Apache-2.0
//
// Keeps the agent's labels, annotations, conditions and taints on its Node object. The latest wish
// wins; a write happens only when the node differs from it.
//
//            want()              GET node          PATCH node, PATCH status
//   resting --------> reading ------------> writing ----------------------> resting
//      ^                 ^   refused: 409       |          resync: reading
//      |                 +----------------------+
//      +--- errors wait 1 s, 2 s, ... 60 s, then read again
//
// Least privilege: get and patch of nodes, patch of nodes/status, this node's name alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/labels/node_patch.h"
#include "base/log.h"
#include "base/loop.h"
#include "kube/api_client.h"

namespace jogak::agent {

struct NodeWriterOptions {
  std::string node;
  // The node is compared again after so long, so that what somebody else undid comes back.
  TimeUs resync = 300 * kSecondInUs;
  TimeUs retry_first = kSecondInUs;
  TimeUs retry_max = 60 * kSecondInUs;
};

class NodeWriter {
 public:
  // `api` and `log` outlive it. Nothing is called after its end.
  NodeWriter(kube::ApiClient& api, Log& log, NodeWriterOptions options);
  ~NodeWriter();
  NodeWriter(const NodeWriter&) = delete;
  NodeWriter& operator=(const NodeWriter&) = delete;

  void want(NodeWish wish);
  // What somebody who watches the node saw of it. Where something of ours is missing or otherwise,
  // as on a node that was made anew, the node is compared in a second and not at the next resync;
  // later and later while somebody undoes it each time.
  void see(const Labels& labels, const std::map<std::string, std::string>& annotations);
  // The node was seen to be as wished, and nothing newer is wanted.
  bool is_settled() const { return is_settled_; }
  // Why the last try failed; "" it did not.
  const std::string& problem() const { return problem_; }
  struct Counts {
    std::uint64_t reads = 0, writes = 0, failures = 0;
  };
  const Counts& counts() const { return counts_; }
  // Called each time is_settled() became true.
  std::function<void()> on_settled;

 private:
  void read();
  void on_read(Result<std::string> body);
  void write(NodePatches patches);
  void write_status(std::string body);
  void fail_with(const Error& error);
  void settle();
  void again_after(TimeUs delay);
  // The callback, unless the writer is gone by then.
  template <class Fn>
  auto guarded(Fn fn);

  kube::ApiClient& api_;
  Log& log_;
  NodeWriterOptions options_;
  std::string target_;
  std::optional<NodeWish> wish_;
  std::uint64_t wish_number_ = 0;     // of the latest
  std::uint64_t written_number_ = 0;  // of the one that is being written
  bool is_busy_ = false;
  bool is_settled_ = false;
  TimeUs retry_ = 0;
  TimerId timer_ = 0;
  bool is_read_soon_ = false;
  TimeUs seen_at_ = 0, seen_pause_ = 0;  // the last difference that was seen
  std::string problem_;
  Counts counts_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace jogak::agent
