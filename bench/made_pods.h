// SPDX-License-Identifier: Apache-2.0
//
// Objects as a busy GPU cluster has them, as JSON from a seed, and a peer in the same process that
// lists them: what reading a cluster costs without a network.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/rng.h"
#include "net/http_client.h"

namespace jogak::bench {

// A Deployment's pod with a GPU as it is once it runs, about 3 KB, on one of 5,000 nodes. Items of
// a list carry no kind.
std::string made_pod(int index, Rng& rng, bool has_kind);
// A node with 8 GPUs, about 2 KB: "node-0000" and so on.
std::string made_node(int index);

// Answers lists, by path, with prepared texts in the order given, one a request, in pieces as a
// socket gives them. A watch that streams stays open; everything else is never answered.
class ListPeer : public net::HttpClient {
 public:
  explicit ListPeer(Loop& loop) : loop_(loop) {}
  std::map<std::string, std::vector<const std::string*>> lists;  // not owned

  Loop& loop() override { return loop_; }
  std::shared_ptr<void> send(net::ClientRequest request, net::ClientEvents events) override;

 private:
  Loop& loop_;
  std::map<std::string, std::size_t> next_;
};

}  // namespace jogak::bench
