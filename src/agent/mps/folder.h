// SPDX-License-Identifier: Apache-2.0
//
// The folder of MPS on a node (--mps-root), with the layout of NVIDIA's daemon, so that either may
// follow the other:
//
//   shm/                       a tmpfs, the /dev/shm of daemon and clients
//   .ready                     every daemon is ready
//   nvidia.com/gpu/pipe/       mounted into the containers
//   nvidia.com/gpu/log/
//   nvidia.com/gpu/.started    its limits are in force
//   .jogak                     what is ours to undo (record.h)
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "agent/mps/record.h"
#include "base/result.h"

namespace jogak::agent {

class MpsFolder {
 public:
  explicit MpsFolder(std::string root);  // as we see it

  const std::string& root() const { return root_; }
  std::string pipe(std::string_view resource) const;
  std::string log(std::string_view resource) const;
  std::string shm() const { return root_ + "/shm"; }

  // The folders of a daemon, open to clients of whatever user; under SELinux labelled for
  // containers.
  Result<void> make(std::string_view resource) const;
  // The memory that clients share with the daemon; a tmpfs of its own where `mounts` and the system
  // let us, which is kept if it is there. Gives what is to be mounted over the daemon's /dev/shm,
  // "" for nothing.
  Result<std::string> make_shm(bool mounts) const;

  void set_started(std::string_view resource, bool is_started) const;
  bool is_started(std::string_view resource) const;
  void set_ready(bool is_ready) const;

  Result<MpsRecord> load() const;  // empty where there is none
  Result<void> save(const MpsRecord& record) const;

  // Of the daemon, as it wrote it down, if that process is one.
  std::optional<pid_t> pid(std::string_view resource) const;

 private:
  std::string path(std::string_view resource, std::string_view name) const;

  std::string root_;
};

}  // namespace jogak::agent
