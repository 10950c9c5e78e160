// SPDX-License-Identifier: Apache-2.0
//
// The wiring of one process. What dies is destroyed by the world's loop, between two tasks: nothing
// of it runs then, and nothing it wanted to send leaves any more.
#include "test/livesim/replica.h"

#include <utility>

#include <fmt/core.h>

#include "base/check.h"
#include "kube/api_client.h"
#include "kube/leader_election.h"
#include "live/kube_cluster.h"
#include "test/livesim/faulty_client.h"
#include "test/livesim/process_loop.h"

namespace jogak::livesim {

// Members go in reverse: the driver first, the loop last.
struct Replica::Process {
  Process(World& world, Life of)
      : life(of),
        loop(world.loop(), of.clock_offset),
        client(world.network(), loop, of.process),
        api(client) {}

  Life life;
  ProcessLoop loop;
  FaultyClient client;
  kube::ApiClient api;
  std::unique_ptr<kube::LeaderElection> election;
  std::unique_ptr<live::KubeCluster> cluster;
  std::unique_ptr<Saboteur> saboteur;
  std::unique_ptr<live::SchedulerDriver> driver;
};

Replica::Replica(World& world, Checkers& checkers, ReplicaOptions options)
    : world_(world), checkers_(checkers), options_(std::move(options)) {}

Replica::~Replica() { end(); }

void Replica::start(Life life) {
  JOGAK_CHECK(process_ == nullptr);
  process_ = std::make_unique<Process>(world_, life);
  Process& process = *process_;
  if (life.dies_after > 0) {
    process.loop.kill_after(life.dies_after, [this] {
      ++deaths_;
      end();
    });
  }
  const bool ignores_lease = options_.sabotage == Sabotage::IgnoreLease;
  const bool waits_for_lease = options_.has_lease && !ignores_lease;
  const std::string identity = fmt::format("replica-{}-{}", options_.slot, life.process);
  checkers_.add_process(life.process, identity);
  live::KubeClusterOptions cluster_options;
  cluster_options.host = identity;
  cluster_options.seed = options_.seed + static_cast<std::uint64_t>(life.process);
  if (waits_for_lease) {
    cluster_options.write_until = [&process] { return process.election->valid_until(); };
  }
  if (options_.has_lease) begin_lease(process);
  process.cluster = std::make_unique<live::KubeCluster>(process.api, std::move(cluster_options));
  process.saboteur = std::make_unique<Saboteur>(*process.cluster, options_.sabotage);
  live::DriverOptions driver_options;
  driver_options.seed = options_.seed;
  driver_options.set_policy(options_.policy);
  driver_options.is_standby = waits_for_lease;
  auto driver = live::SchedulerDriver::make(*process.saboteur, std::move(driver_options));
  JOGAK_CHECK(driver.has_value(), "{}", driver.error().what);
  process.driver = *std::move(driver);
}

void Replica::begin_lease(Process& process) {
  kube::LeaseOptions lease;
  lease.identity = fmt::format("replica-{}-{}", options_.slot, process.life.process);
  lease.seed = options_.seed + static_cast<std::uint64_t>(process.life.process);
  auto election = kube::LeaderElection::make(
      process.api, std::move(lease),
      {.on_lead =
           [this, &process] {
             ++leads_;
             if (process.driver != nullptr && options_.sabotage != Sabotage::IgnoreLease) {
               process.driver->lead();
             }
           },
       .on_lose =
           [this, &process](const std::string&) {
             // It ends, and is started anew by whoever watches over it.
             process.loop.kill();
             world_.loop().post([this, number = process.life.process] {
               if (process_ != nullptr && process_->life.process == number) end();
             });
           },
       .on_new_leader = {},
       .on_error = {}});
  JOGAK_CHECK(election.has_value(), "{}", election.error().what);
  process.election = *std::move(election);
}

void Replica::stall_for(TimeUs span) {
  if (process_ != nullptr) process_->loop.stall_for(span);
}

void Replica::spare() {
  if (process_ != nullptr) process_->loop.kill_after(UINT64_MAX / 2, {});
}

void Replica::stop() {
  if (process_ == nullptr || process_->loop.is_stalled() || process_->election == nullptr) return;
  Process& process = *process_;
  // A binding under way may still be carried out: then the next leader must wait for the lease.
  if (process.driver == nullptr || process.driver->binds_in_flight() > 0) return kill();
  past_ = counts();
  if (const std::string wrong = fault(); !wrong.empty()) fault_ = wrong;
  process.driver.reset();
  process.saboteur.reset();
  process.cluster.reset();
  const int number = process.life.process;
  const auto end_this = [this, number] {
    world_.loop().post([this, number] {
      if (process_ != nullptr && process_->life.process == number) end();
    });
  };
  process.election->release(end_this);
  world_.loop().after(10 * kSecondInUs, end_this);
}

void Replica::kill() {
  if (process_ == nullptr) return;
  process_->loop.kill();
  ++deaths_;
  end();
}

void Replica::end() {
  if (process_ == nullptr) return;
  past_ = counts();
  if (const std::string wrong = fault(); !wrong.empty()) fault_ = wrong;
  process_->loop.kill();
  process_->driver.reset();
  process_->saboteur.reset();
  process_->cluster.reset();
  process_->election.reset();
  process_.reset();
}

live::DriverCounts Replica::counts() const {
  live::DriverCounts sum = past_;
  if (driver() == nullptr) return sum;
  const live::DriverCounts& now = driver()->counts();
  sum.decisions += now.decisions;
  sum.bound += now.bound;
  sum.refused += now.refused;
  sum.preempted += now.preempted;
  sum.bind_errors += now.bind_errors;
  sum.invalid_plans += now.invalid_plans;
  sum.unreadable += now.unreadable;
  return sum;
}

bool Replica::is_leading() const {
  if (driver() == nullptr || process_->loop.is_dead()) return false;
  return options_.has_lease ? process_->election->is_leader() : true;
}

std::string Replica::fault() const {
  if (!fault_.empty() || driver() == nullptr) return fault_;
  const live::DriverCounts& now = driver()->counts();
  return now.invalid_plans + now.unreadable > 0 ? driver()->last_fault() : "";
}

const live::SchedulerDriver* Replica::driver() const {
  return process_ == nullptr ? nullptr : process_->driver.get();
}

}  // namespace jogak::livesim
