// SPDX-License-Identifier: Apache-2.0
// One step at a time for each daemon; its end leads to the next.
#include "agent/mps/control.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

namespace jogak::agent {

namespace {

constexpr std::size_t kAnswerBytesMax = 64 * 1024;
constexpr std::size_t kQuoteMax = 200;

// What a program said, fit for one line of a log.
std::string quoted(std::string_view text) {
  std::string line;
  for (const char c : text.substr(0, text.find('\n'))) {
    if (line.size() == kQuoteMax) break;
    line.push_back(c >= ' ' && c <= '~' ? c : '?');
  }
  return line;
}

Result<std::string> answer_of(kube::ChildOutcome outcome, TimeUs limit) {
  if (outcome.is_timed_out) {
    return fail(Errc::Timeout, "the MPS control daemon did not answer within {} s",
                limit / kSecondInUs);
  }
  if (outcome.exit_code == 0 && !outcome.is_output_too_long) return std::move(outcome.output);
  const std::string said = quoted(outcome.errors.empty() ? outcome.output : outcome.errors);
  return fail(Errc::Unavailable, "{} ended with code {}{}{}", kMpsProgram, outcome.exit_code,
              said.empty() ? "" : ": ", said);
}

}  // namespace

struct MpsControl::Kept {
  Kept(MpsDaemon daemon, MpsTimes times, bool owns) : machine(std::move(daemon), times, owns) {}

  MpsMachine machine;
  std::uint64_t number = 0;                   // no other has it
  std::unique_ptr<kube::ChildProcess> child;  // of the step under way
  TimerId timer = 0;                          // of a wait
  int pid_fd = -1;                            // tells the end of the daemon
  pid_t pid = -1;
  bool was_told_ready = false;
  std::string told_problem;
};

MpsControl::MpsControl(net::EpollLoop& loop, Log& log, MpsControlOptions options, MpsPorts ports)
    : loop_(loop),
      log_(log),
      options_(std::move(options)),
      ports_(std::move(ports)),
      folder_(options_.root) {
  if (!options_.owns) return;
  auto record = folder_.load();
  if (record) {
    record_ = *std::move(record);
  } else {
    log_.error("what was changed for MPS cannot be read; it is not undone",
               {{"error", record.error().what}});
  }
  if (!record_.is_empty()) retire_later();
}

MpsControl::~MpsControl() {
  *is_alive_ = false;
  loop_.cancel(retire_timer_);
  for (auto& [resource, kept] : kept_) forget(*kept);
}

void MpsControl::want(std::vector<MpsDaemon> daemons) {
  std::erase_if(kept_, [&](auto& entry) {
    const bool stays = std::ranges::any_of(
        daemons, [&](const MpsDaemon& daemon) { return daemon.resource == entry.first; });
    if (!stays) forget(*entry.second);
    return !stays;
  });
  for (MpsDaemon& daemon : daemons) {
    // It becomes part of a path.
    if (!is_mps_resource(daemon.resource)) continue;
    const std::string resource = daemon.resource;
    std::unique_ptr<Kept>& kept = kept_[resource];
    if (kept != nullptr) {
      if (kept->machine.want(std::move(daemon)) && kept->timer != 0) {
        loop_.cancel(std::exchange(kept->timer, 0));
        done(*kept, std::string());
      }
      continue;
    }
    kept = std::make_unique<Kept>(std::move(daemon), options_.times, options_.owns);
    kept->number = ++numbers_;
    run(*kept, kept->machine.begin());
  }
  retire_later();
}

std::map<std::string, std::string> MpsControl::problems() const {
  std::map<std::string, std::string> result;
  for (const auto& [resource, kept] : kept_) {
    if (kept->machine.was_asked()) result[resource] = kept->machine.problem();
  }
  return result;
}

std::map<std::string, std::uint64_t> MpsControl::starts() const {
  std::map<std::string, std::uint64_t> result;
  for (const auto& [resource, kept] : kept_) result[resource] = kept->machine.starts();
  return result;
}

// ---- steps -----------------------------------------------------------------------------------

void MpsControl::run(Kept& kept, const MpsStep& step) {
  const std::string& resource = kept.machine.daemon().resource;
  switch (step.kind) {
    case MpsStep::Kind::Ask:
      if (!options_.owns) {
        if (!folder_.is_started(resource)) {
          return done(kept, fail(Errc::Unavailable,
                                 "the MPS control daemon of somebody else has not started: there "
                                 "is no {}/{}/.started",
                                 folder_.root(), resource));
        }
        // Then its word has to do.
        if (!find_mps_program(options_.search_path, options_.driver_root)) {
          return done(kept, std::string());
        }
      }
      [[fallthrough]];
    case MpsStep::Kind::Tell:
      return call(resource, {}, step.command + "\n", options_.answer_limit, "", kept.child,
                  [this, &kept](const Result<std::string>& answer) { done(kept, answer); });
    case MpsStep::Kind::Modes:
      return set_modes(kept);
    case MpsStep::Kind::Start:
      return start(kept);
    case MpsStep::Kind::End:
      return end(kept);
    case MpsStep::Kind::Wait:
      kept.timer = loop_.after(step.wait, [this, &kept] {
        kept.timer = 0;
        done(kept, std::string());
      });
      return;
  }
}

void MpsControl::done(Kept& kept, const Result<std::string>& outcome) {
  // What is posted may come when the daemon is not wanted any more.
  loop_.post([this, alive = is_alive_, resource = kept.machine.daemon().resource,
              number = kept.number, outcome] {
    if (!*alive) return;
    Kept* const still = find(resource, number);
    if (still == nullptr) return;
    still->child.reset();
    const MpsStep next = still->machine.on_done(outcome, loop_.now());
    if (still->pid_fd < 0 && still->machine.is_ready()) watch(*still);
    tell(*still);
    run(*still, next);
  });
}

MpsControl::Kept* MpsControl::find(const std::string& resource, std::uint64_t number) {
  const auto at = kept_.find(resource);
  return at == kept_.end() || at->second->number != number ? nullptr : at->second.get();
}

// Tells who listens, and the marks that NVIDIA's plugin looks for.
void MpsControl::tell(Kept& kept) {
  const MpsMachine& machine = kept.machine;
  if (!machine.was_asked()) return;
  const std::string& resource = machine.daemon().resource;
  const bool has_changed =
      machine.is_ready() != kept.was_told_ready || machine.problem() != kept.told_problem;
  if (!has_changed) return;
  if (machine.is_ready()) {
    log_.info("the MPS control daemon is ready",
              {{"resource", resource}, {"pid", kept.pid}, {"starts", machine.starts()}});
  } else if (kept.was_told_ready) {
    log_.error("the MPS control daemon is not ready any more",
               {{"resource", resource}, {"error", machine.problem()}});
  } else if (kept.told_problem.empty() && options_.owns) {
    log_.info("no MPS control daemon answers yet",
              {{"resource", resource}, {"error", machine.problem()}});
  } else {
    log_.warn("the MPS control daemon is not ready",
              {{"resource", resource}, {"error", machine.problem()}});
  }
  kept.was_told_ready = machine.is_ready();
  kept.told_problem = machine.problem();
  if (options_.owns) {
    folder_.set_started(resource, machine.is_ready());
    folder_.set_ready(std::ranges::all_of(
        kept_, [](const auto& entry) { return entry.second->machine.is_ready(); }));
  }
  if (ports_.on_change) ports_.on_change();
}

// A program beside the loop; what it says is the answer.
void MpsControl::call(const std::string& resource, std::vector<std::string> args, std::string input,
                      TimeUs limit, std::string shm, std::unique_ptr<kube::ChildProcess>& child,
                      Answered answered) {
  const auto program = find_mps_program(options_.search_path, options_.driver_root);
  if (!program) {
    return answered(fail(Errc::NotFound,
                         "{} is neither in PATH nor below {}; the agent needs the driver's "
                         "programs (NVIDIA_DRIVER_CAPABILITIES=compute,utility)",
                         kMpsProgram, options_.driver_root));
  }
  // Below another root our own paths mean nothing; those of the host do.
  const MpsFolder seen(program->root.empty() ? options_.root : options_.host_root);
  kube::ChildOptions options;
  options.command = program->path;
  options.args = std::move(args);
  options.environment =
      mps_environment(options_.search_path, seen.pipe(resource), seen.log(resource));
  options.input = std::move(input);
  options.enter = mps_enter(program->root, shm);
  options.time_limit = limit;
  options.output_bytes_max = kAnswerBytesMax;
  auto started = kube::ChildProcess::start(loop_, std::move(options),
                                           [answered, limit](kube::ChildOutcome outcome) {
                                             answered(answer_of(std::move(outcome), limit));
                                           });
  if (!started) return answered(std::unexpected(std::move(started).error()));
  child = *std::move(started);
}

void MpsControl::set_modes(Kept& kept) {
  std::map<std::string, int> modes;
  for (const MpsGpu& gpu : kept.machine.daemon().gpus) {
    modes[gpu.uuid] = kComputeModeExclusive;
    // The first that is seen is what it was before us.
    if (gpu.compute_mode) record_.modes.try_emplace(gpu.uuid, *gpu.compute_mode);
  }
  record_.daemons.insert(kept.machine.daemon().resource);
  // Before it is done: whoever starts after a crash knows what to undo.
  save_record();
  if (!ports_.set_modes) return done(kept, std::string());
  ports_.set_modes(std::move(modes), [this, alive = is_alive_, number = kept.number,
                                      resource = kept.machine.daemon().resource](
                                         const std::vector<std::string>& problems) {
    if (!*alive) return;
    Kept* const still = find(resource, number);
    if (still == nullptr) return;
    // Clients find the daemon all the same; only others are not kept off the GPU.
    for (const std::string& problem : problems) {
      log_.warn("a GPU is shared by MPS without the exclusive mode", {{"problem", problem}});
    }
    done(*still, std::string());
  });
}

void MpsControl::start(Kept& kept) {
  const std::string& resource = kept.machine.daemon().resource;
  if (auto made = folder_.make(resource); !made) {
    return done(kept, std::unexpected(std::move(made).error()));
  }
  auto shm = folder_.make_shm(options_.mounts);
  if (!shm) return done(kept, std::unexpected(std::move(shm).error()));
  const auto program = find_mps_program(options_.search_path, options_.driver_root);
  log_.info("starting an MPS control daemon",
            {{"resource", resource}, {"program", program ? program->root + program->path : ""}});
  call(resource, {"-d"}, "", options_.start_limit, *std::move(shm), kept.child,
       [this, &kept](const Result<std::string>& answer) { done(kept, answer); });
}

// It is there and silent: its clients wait for it in vain.
void MpsControl::end(Kept& kept) {
  const std::string& resource = kept.machine.daemon().resource;
  const auto pid = folder_.pid(resource);
  if (pid) {
    log_.error("an MPS control daemon that does not answer is ended",
               {{"resource", resource}, {"pid", *pid}});
    ::kill(*pid, SIGKILL);
  }
  done(kept, std::string());
}

// Its end is told at once, and it is put where it outlives our container.
void MpsControl::watch(Kept& kept) {
  const auto pid = folder_.pid(kept.machine.daemon().resource);
  if (!pid) return;
  if (options_.owns) leave_container(*pid);
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0));
  if (fd < 0) return;  // an old kernel: the next question finds it
  kept.pid = *pid;
  kept.pid_fd = fd;
  loop_.add_fd(fd, EPOLLIN, [this, &kept](std::uint32_t) {
    loop_.remove_fd(kept.pid_fd);
    ::close(std::exchange(kept.pid_fd, -1));
    // Where we are the first process of a container it is our child now.
    ::waitpid(std::exchange(kept.pid, -1), nullptr, WNOHANG);
    kept.machine.on_gone();
    tell(kept);
    if (kept.timer == 0) return;
    loop_.cancel(std::exchange(kept.timer, 0));
    done(kept, std::string());
  });
}

void MpsControl::forget(Kept& kept) {
  loop_.cancel(std::exchange(kept.timer, 0));
  kept.child.reset();
  if (kept.pid_fd < 0) return;
  loop_.remove_fd(kept.pid_fd);
  ::close(std::exchange(kept.pid_fd, -1));
}

void MpsControl::leave_container(pid_t pid) {
  if (options_.cgroup.empty()) return;
  const auto moved = move_to_cgroup(options_.cgroup, pid);
  const std::string problem = moved ? "" : moved.error().what;
  if (!problem.empty() && problem != cgroup_problem_) {
    log_.warn("the MPS control daemon may end with the container of the agent",
              {{"problem", problem}});
  }
  cgroup_problem_ = problem;
}

// ---- the end of what is not wanted any more --------------------------------------------------

void MpsControl::retire_later() {
  if (!options_.owns || retire_timer_ != 0 || record_.is_empty()) return;
  retire_timer_ = loop_.after(options_.retire_every, [this] {
    retire_timer_ = 0;
    retire();
    retire_later();
  });
}

void MpsControl::retire() {
  bool are_left = false;
  for (const std::string& resource : record_.daemons) {
    if (kept_.contains(resource)) continue;
    are_left = true;
    if (quits_.contains(resource) || !ports_.is_held || ports_.is_held(resource)) continue;
    log_.info("an MPS control daemon is not wanted any more", {{"resource", resource}});
    folder_.set_started(resource, false);
    if (kept_.empty()) folder_.set_ready(false);
    std::unique_ptr<kube::ChildProcess>& child = quits_[resource];
    call(resource, {}, fmt::format("{}\n", kMpsQuit), options_.start_limit, "", child,
         [this, alive = is_alive_, resource](const Result<std::string>& answer) {
           loop_.post([this, alive, resource,
                       is_silent = !answer && answer.error().code == Errc::Timeout] {
             if (!*alive) return;
             quits_.erase(resource);
             // Nobody there is as good; one that is silent is told again.
             if (is_silent || kept_.contains(resource)) return;
             record_.daemons.erase(resource);
             save_record();
             restore_modes();
           });
         });
  }
  if (!are_left) restore_modes();
}

// Once nothing but the wanted daemons is there: two may have shared a GPU.
void MpsControl::restore_modes() {
  if (is_restoring_ || !ports_.set_modes) return;
  for (const std::string& resource : record_.daemons) {
    if (!kept_.contains(resource)) return;
  }
  std::map<std::string, int> modes = {record_.modes.begin(), record_.modes.end()};
  for (const auto& [resource, kept] : kept_) {
    for (const MpsGpu& gpu : kept->machine.daemon().gpus) modes.erase(gpu.uuid);
  }
  if (modes.empty()) return;
  is_restoring_ = true;
  auto restored = modes;
  ports_.set_modes(std::move(modes), [this, alive = is_alive_, restored = std::move(restored)](
                                         const std::vector<std::string>& problems) {
    if (!*alive) return;
    is_restoring_ = false;
    for (const std::string& problem : problems) {
      log_.warn("a GPU did not get its compute mode back", {{"problem", problem}});
    }
    for (const auto& [uuid, mode] : restored) record_.modes.erase(uuid);
    save_record();
  });
}

void MpsControl::save_record() {
  const auto saved = folder_.save(record_);
  const std::string problem = saved ? "" : saved.error().what;
  if (!problem.empty() && problem != record_problem_) {
    log_.error("what is changed for MPS cannot be written down", {{"error", problem}});
  }
  record_problem_ = problem;
}

}  // namespace jogak::agent
