// SPDX-License-Identifier: Apache-2.0
//
// An API server in the test's process that an agent can be pointed at with a kubeconfig. Calls are
// for the test's thread.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "apiserver/server/server.h"
#include "base/doc.h"
#include "net/http_server.h"
#include "net/testing/loop_thread.h"

namespace jogak::agent {

class TestCluster {
 public:
  // Writes the kubeconfig. There is a node "n1" and nothing else.
  explicit TestCluster(const std::string& kubeconfig);
  ~TestCluster();
  TestCluster(const TestCluster&) = delete;
  TestCluster& operator=(const TestCluster&) = delete;

  // Of the node "n1". An empty value takes the label away.
  void label(const std::string& name, const std::string& value);
  std::string label(const std::string& name);
  std::string annotation(const std::string& name);
  // A pod of the namespace "ml" that is bound to n1, with these annotations.
  void bind_pod(const std::string& name, const std::map<std::string, std::string>& annotations);
  void remove_pod(const std::string& name);

 private:
  std::string text(const std::string& field, const std::string& name);

  net::LoopThread thread_;
  std::unique_ptr<api::Server> server_;
  std::unique_ptr<api::Api> api_;
  std::unique_ptr<net::HttpServer> http_;
};

}  // namespace jogak::agent
