// SPDX-License-Identifier: Apache-2.0
//
// Whose process is that? NVML tells pids; the control group of a pid names its pod (by uid) and its
// container (by id); the kubelet's log folders name both without a question to the API server:
//
//   /proc/<pid>/cgroup                                      pod uid, container id
//   /var/log/pods/<namespace>_<pod>_<uid>                   pod uid -> namespace, pod
//   /var/log/containers/<pod>_<namespace>_<container>-<id>.log   container id -> all three
//
// Needs the host's pid namespace and those two folders, read only. The edge of the model: the
// parsers are pure, the class reads files.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/model/node_model.h"

namespace jogak::agent {

// What a control group says; "" what it does not.
struct CgroupOwner {
  std::string pod_uid;       // "0a1b...-...", with dashes
  std::string container_id;  // 64 hexadecimal digits
  friend bool operator==(const CgroupOwner&, const CgroupOwner&) = default;
};
// Text of /proc/<pid>/cgroup: v1 and v2, the systemd driver ("-pod0a1b_..._.slice",
// "cri-containerd-<id>.scope") and the cgroupfs one ("/pod<uid>/<id>").
CgroupOwner parse_cgroup(std::string_view text);

// "<namespace>_<pod>_<uid>"; the uid comes with the holder.
std::optional<Holder> parse_pod_log_folder(std::string_view name);
// "<pod>_<namespace>_<container>-<id>.log" -> holder and container id.
std::optional<std::pair<std::string, Holder>> parse_container_log(std::string_view name);

struct OwnerPaths {
  std::string proc = "/proc";
  std::string pod_logs = "/var/log/pods";
  std::string container_logs = "/var/log/containers";
};

class ProcessOwnerFinder {
 public:
  explicit ProcessOwnerFinder(OwnerPaths paths = {}) : paths_(std::move(paths)) {}

  // Owners of these pids, as far as they can be found. A pid that was asked before costs one look
  // at a file's inode, to see that it is the same process still; the folders are listed only when a
  // pod or container is not known yet. What is not asked again is forgotten.
  ProcessOwners find(const std::vector<std::int64_t>& pids);

 private:
  // Of /proc/<pid>/stat. The kernel makes a new inode for each process, and may make one again for
  // the same: equal ones mean one process.
  struct Inode {
    std::uint64_t number = 0;  // 0: there is no file
    std::int64_t changed_ns = 0;
    friend bool operator==(const Inode&, const Inode&) = default;
  };
  struct Known {
    Inode inode;
    std::string start;  // of the process, as that file has it: tells a pid used again
    CgroupOwner cgroup;
    std::uint64_t round = 0;  // of find(), when it was asked for last
  };
  static Inode inode_of(const std::string& path);
  // Null: there is no such process. `was_known`: it was there before.
  Known* look_up(std::int64_t pid, bool& was_known);
  std::optional<Holder> holder_of(const CgroupOwner& cgroup) const;
  void list_folders();

  OwnerPaths paths_;
  std::map<std::int64_t, Known> known_;
  std::uint64_t round_ = 0;
  std::map<std::string, Holder> by_container_;  // by container id
  std::map<std::string, Holder> by_pod_;        // by pod uid
};

}  // namespace jogak::agent
