// SPDX-License-Identifier: Apache-2.0
//
// The cluster around the schedulers: the playground's API server, controllers and simulated
// kubelets, a provisioner of volumes, another scheduler, and people who create, change and delete.
// All of it acts on the server without faults; only the schedulers under test go through the
// network.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/controllers/controllers.h"
#include "apiserver/server/server.h"
#include "base/doc.h"
#include "base/rng.h"
#include "base/sim_loop.h"
#include "playground/local_client.h"
#include "test/livesim/facts.h"
#include "test/livesim/faulty_client.h"

namespace jogak::livesim {

struct NodeSpec {
  std::string name, zone = "x";
  int cpu = 8, gpus = 0, pods = 20;
  bool has_devices = false;    // with the annotation jogak.io/gpus
  std::vector<int> sick = {};  // devices that are not healthy
};

struct PodSpec {
  std::string name, ns = "default";
  std::string scheduler = "jogak";
  int cpu_milli = 1000, gpus = 0;
  int share_milli = 0, share_count = 0;
  std::string zone = {}, priority_class = {}, app = {};
  bool is_gated = false, needs_volume = false, ignores_term = false;
  int runs_for_s = 0;  // 0: for ever
  int grace_s = 0;
};

Doc node_object(const NodeSpec& spec);
Doc pod_object(const PodSpec& spec);

struct WorldOptions {
  std::uint64_t seed = 1;
  bool has_controllers = true, has_kubelets = true;
};

class World {
 public:
  explicit World(WorldOptions options);
  ~World();

  SimLoop& loop() { return loop_; }
  api::Server& server() { return *server_; }
  api::Api& api() { return *api_; }
  Network& network() { return *network_; }
  Facts& facts() { return *facts_; }
  const Facts& facts() const { return *facts_; }

  // CHECKs that the server takes it.
  void add_node(const NodeSpec& spec);
  void add_pod(const PodSpec& spec);
  void add(std::string_view resource, std::string_view ns, Doc object);
  // False when it is not there.
  bool remove(std::string_view resource, std::string_view ns, std::string_view name,
              int grace_s = -1);
  bool patch(std::string_view resource, std::string_view ns, std::string_view name,
             const Doc& merge);
  // As another scheduler does. False when the server refuses.
  bool bind_foreign(const PodFacts& pod, std::string_view node);
  void cordon(std::string_view node, bool is_on);
  void set_devices(std::string_view node, const NodeSpec& spec);
  void run_for(TimeUs span) { loop_.run_for(span); }

 private:
  void on_claim(const api::Api::Change& change);
  void provision(const std::string& ns, const std::string& name);

  SimLoop loop_;
  Rng rng_;
  std::unique_ptr<api::Server> server_;
  std::unique_ptr<api::Api> api_, pods_api_;
  std::unique_ptr<Facts> facts_;
  std::unique_ptr<controllers::PodIndex> pods_;
  std::vector<std::unique_ptr<controllers::Controller>> controllers_;
  std::unique_ptr<playground::LocalClient> client_;
  std::unique_ptr<Network> network_;
  std::shared_ptr<void> claims_;
};

}  // namespace jogak::livesim
