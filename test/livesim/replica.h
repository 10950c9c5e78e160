// SPDX-License-Identifier: Apache-2.0
//
// One scheduler process after another in one place: each life has its own loop, connection, lease
// identity and memory. The parts are those of `jogak scheduler`, unchanged.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "live/scheduler_driver.h"
#include "test/livesim/checkers.h"
#include "test/livesim/saboteur.h"
#include "test/livesim/world.h"

namespace jogak::livesim {

struct ReplicaOptions {
  int slot = 0;
  std::uint64_t seed = 1;
  Sabotage sabotage = Sabotage::None;
  std::string policy = "jogak";
  bool has_lease = true;  // false: leads at once
};

struct Life {
  int process = 0;  // never used before
  TimeUs clock_offset = 0;
  std::uint64_t dies_after = 0;  // steps; 0: not by itself
};

class Replica {
 public:
  // `world` and `checkers` outlive it.
  Replica(World& world, Checkers& checkers, ReplicaOptions options);
  ~Replica();

  void start(Life life);
  bool is_running() const { return process_ != nullptr; }
  void stall_for(TimeUs span);
  // As by SIGTERM: gives the lease up, then ends.
  void stop();
  // It will not die by itself any more.
  void spare();
  // Has it compare its memory with the server; a difference is a fault().
  void compare();
  // At once, in the middle of whatever it does.
  void kill();

  // Of all its lives.
  live::DriverCounts counts() const;
  std::uint64_t deaths() const { return deaths_; }
  bool is_leading() const;
  // What it complained of itself in this life or one before (an event of level error, a plan that
  // its own check stopped), "" for nothing.
  std::string fault() const;
  const live::SchedulerDriver* driver() const;

 private:
  struct Process;
  void begin_app(Process& process, const std::string& identity);
  void begin_lease(Process& process);
  void end_soon(Process& process);
  void end();

  World& world_;
  Checkers& checkers_;
  ReplicaOptions options_;
  std::unique_ptr<Process> process_;
  live::DriverCounts past_;
  std::string fault_;
  std::uint64_t deaths_ = 0;
};

}  // namespace jogak::livesim
