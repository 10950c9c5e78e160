// SPDX-License-Identifier: Apache-2.0
//
// Keeps the MPS control daemons of a node: for each shared resource the steps of its machine
// (machine.h) are carried out with nvidia-cuda-mps-control, NVML and the folder. Nothing blocks:
// programs run beside the loop with a time limit, and modes are set on the NVML thread.
//
// Daemons outlive the agent. One that is no longer wanted is told to quit once no pod holds a share
// of it; then the GPUs get the compute modes that they had before.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/mps/folder.h"
#include "agent/mps/machine.h"
#include "agent/mps/program.h"
#include "base/log.h"
#include "base/result.h"
#include "kube/child_process.h"
#include "net/epoll_loop.h"

namespace jogak::agent {

struct MpsControlOptions {
  bool owns = true;              // else the daemons are somebody else's
  std::string root = {};         // the folder as we see it
  std::string host_root = {};    // and as the host does
  std::string search_path = {};  // PATH
  std::string driver_root = {};  // as we see it
  // A control group that daemons are put into, so that they do not end with the container of the
  // agent; "": they stay where they are.
  std::string cgroup = {};
  bool mounts = true;  // a tmpfs for the shared memory, see MpsFolder::make_shm
  TimeUs answer_limit = 5 * kSecondInUs;
  TimeUs start_limit = 20 * kSecondInUs;
  TimeUs retire_every = 5 * kSecondInUs;
  MpsTimes times = {};
};

struct MpsPorts {
  // Sets compute modes by UUID and tells, on the loop, what did not work, one line each.
  using ModesDone = std::function<void(std::vector<std::string> problems)>;
  std::function<void(std::map<std::string, int> modes, ModesDone done)> set_modes;
  // Some pod holds a share of the resource, or nobody knows.
  std::function<bool(const std::string& resource)> is_held;
  // problems() may be others.
  std::function<void()> on_change;
};

class MpsControl {
 public:
  // All on the loop's thread; loop and log outlive it.
  MpsControl(net::EpollLoop& loop, Log& log, MpsControlOptions options, MpsPorts ports);
  ~MpsControl();
  MpsControl(const MpsControl&) = delete;
  MpsControl& operator=(const MpsControl&) = delete;

  // The daemons that are to run from now on; others that we have are retired.
  void want(std::vector<MpsDaemon> daemons);

  // By resource: "" is ready, else why not. Resources whose daemon was not asked yet are left out.
  std::map<std::string, std::string> problems() const;
  std::map<std::string, std::uint64_t> starts() const;
  // Whether there is something left to be undone.
  bool is_done() const { return kept_.empty() && record_.is_empty(); }

 private:
  struct Kept;  // a daemon that is wanted
  using Answered = std::function<void(Result<std::string> answer)>;

  Kept* find(const std::string& resource, std::uint64_t number);  // null: not wanted any more
  void run(Kept& kept, const MpsStep& step);
  void done(Kept& kept, const Result<std::string>& outcome);
  void set_modes(Kept& kept);
  void start(Kept& kept);
  void end(Kept& kept);
  void watch(Kept& kept);
  void forget(Kept& kept);
  void tell(Kept& kept);
  void call(const std::string& resource, std::vector<std::string> args, std::string input,
            TimeUs limit, std::string shm, std::unique_ptr<kube::ChildProcess>& child,
            Answered answered);
  void leave_container(pid_t pid);
  void retire_later();
  void retire();
  void restore_modes();
  void save_record();

  net::EpollLoop& loop_;
  Log& log_;
  const MpsControlOptions options_;
  const MpsPorts ports_;
  const MpsFolder folder_;
  MpsRecord record_;
  std::string record_problem_, cgroup_problem_;
  std::map<std::string, std::unique_ptr<Kept>> kept_;  // by resource
  std::uint64_t numbers_ = 0;
  TimerId retire_timer_ = 0;
  std::map<std::string, std::unique_ptr<kube::ChildProcess>> quits_;  // under way, by resource
  bool is_restoring_ = false;
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace jogak::agent
