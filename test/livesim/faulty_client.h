// SPDX-License-Identifier: Apache-2.0
//
// The network between one process and the server: an HttpClient that delays, loses, refuses, cuts
// and answers in the server's stead, as a FaultRates says. Time limits are kept on the client's
// side, so a request may be handled after its client gave up, but not after its time limit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/loop.h"
#include "base/rng.h"
#include "net/http_client.h"
#include "test/livesim/faults.h"
#include "test/livesim/process_loop.h"

namespace jogak::livesim {

// One request of a process, as the network saw it. Times are the world's.
struct Call {
  std::uint64_t number = 0;  // of all calls of the run
  int process = 0;           // who, never used again for another life
  std::string method, target, body;
  TimeUs sent_at = 0;
  TimeUs handled_at = 0;  // 0: the server never got it
  int status = 0;         // the server's answer, 0: none yet
  int told_status = 0;    // what the client was told, 0: nothing (yet)
};

class CallObserver {
 public:
  virtual ~CallObserver() = default;
  virtual void on_sent(const Call&) {}      // leaves the process
  virtual void on_handled(const Call&) {}   // reaches the server, just before it acts
  virtual void on_answered(const Call&) {}  // the server has answered with `status`
  virtual void on_told(const Call&) {}      // the client reads `told_status`
  virtual void on_ended(const Call&) {}     // the client heard its last of it, or gave it up
};

// What all processes of a run share.
struct Network {
  Network(Loop& of, net::HttpClient& server, std::uint64_t seed)
      : world(of), inner(server), rng(seed, "network") {}

  Loop& world;
  net::HttpClient& inner;  // on the world's loop; answers without faults
  Rng rng;
  FaultRates rates;
  bool is_faulty = true;  // false ends all faults, those under way too
  CallObserver* observer = nullptr;
  std::uint64_t calls = 0;
};

class FaultyClient : public net::HttpClient {
 public:
  // `network` and `loop` outlive the client; what was sent goes on without it.
  FaultyClient(Network& network, ProcessLoop& loop, int process)
      : network_(network), loop_(loop), process_(process) {}

  Loop& loop() override { return loop_; }
  std::shared_ptr<void> send(net::ClientRequest request, net::ClientEvents events) override;

 private:
  Network& network_;
  ProcessLoop& loop_;
  int process_;
};

}  // namespace jogak::livesim
