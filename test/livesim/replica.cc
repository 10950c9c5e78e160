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
#include "ops/scheduler_app.h"
#include "test/livesim/faulty_client.h"
#include "test/livesim/process_loop.h"

namespace jogak::livesim {

// An event of level error is something that somebody should look at.
class ErrorSink : public LogSink {
 public:
  void write(const LogEvent& event) override {
    if (event.level == LogLevel::Error && first_.empty()) first_ = text_line(event);
  }
  const std::string& first() const { return first_; }

 private:
  std::string first_;
};

// Members go in reverse: the driver first, the loop last. Either the app, or its parts with a
// saboteur among them.
struct Replica::Process {
  Process(World& world, Life of)
      : life(of),
        loop(world.loop(), of.clock_offset),
        client(world.network(), loop, of.process),
        log(loop, errors),
        api(client) {}

  const live::SchedulerDriver* of_either() const {
    return app != nullptr ? app->driver() : driver.get();
  }

  Life life;
  ProcessLoop loop;
  FaultyClient client;
  ErrorSink errors;
  Log log;
  std::unique_ptr<ops::SchedulerApp> app;
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
  const std::string identity = fmt::format("replica-{}-{}", options_.slot, life.process);
  checkers_.add_process(life.process, identity);
  if (options_.sabotage == Sabotage::None && options_.has_lease)
    return begin_app(process, identity);
  const bool ignores_lease = options_.sabotage == Sabotage::IgnoreLease;
  const bool waits_for_lease = options_.has_lease && !ignores_lease;
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

// As `jogak scheduler` does, with everything.
void Replica::begin_app(Process& process, const std::string& identity) {
  ops::SchedulerAppOptions options;
  options.config.seed = options_.seed;
  options.config.profiles.front().policy = options_.policy;
  options.version = "1";
  options.host = identity;
  options.identity = identity;
  options.server = "simulated";
  process.app = std::make_unique<ops::SchedulerApp>(
      process.client, process.log, std::move(options),
      [this, &process](ops::SchedulerApp::End how, const std::string& why) {
        if (how == ops::SchedulerApp::End::Failed && fault_.empty()) {
          fault_ = "it gave up: " + why;
        }
        end_soon(process);
      });
}

// It ends, and is started anew by whoever watches over it.
void Replica::end_soon(Process& process) {
  process.loop.kill();
  world_.loop().post([this, number = process.life.process] {
    if (process_ != nullptr && process_->life.process == number) end();
  });
}

void Replica::begin_lease(Process& process) {
  kube::LeaseOptions lease;
  lease.identity = fmt::format("replica-{}-{}", options_.slot, process.life.process);
  lease.seed = options_.seed + static_cast<std::uint64_t>(process.life.process);
  auto election = kube::LeaderElection::make(
      process.api, std::move(lease),
      {.on_lead =
           [this, &process] {
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
  if (process_ == nullptr || process_->loop.is_stalled()) return;
  if (process_->app == nullptr) return kill();
  process_->app->stop();
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
  process_->app.reset();
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
  if (process_->app != nullptr) return process_->app->is_leading();
  return options_.has_lease ? process_->election->is_leader() : true;
}

std::string Replica::fault() const {
  if (!fault_.empty() || process_ == nullptr) return fault_;
  if (!process_->errors.first().empty()) return process_->errors.first();
  if (driver() == nullptr) return "";
  const live::DriverCounts& now = driver()->counts();
  return now.invalid_plans + now.unreadable > 0 ? driver()->last_fault() : "";
}

void Replica::compare() {
  if (process_ != nullptr && process_->app != nullptr) process_->app->compare();
}

const live::SchedulerDriver* Replica::driver() const {
  return process_ == nullptr ? nullptr : process_->of_either();
}

}  // namespace jogak::livesim
