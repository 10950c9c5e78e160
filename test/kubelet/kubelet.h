// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for the kubelet's device manager, over real sockets and gRPC, with the behaviour that
// a kubelet 1.36 was seen to have: sockets wiped at start, options asked for although Register gave
// them, the list of available devices in random order, Allocate once for each container, init
// containers' devices reused, PreStartContainer at each start, one PodResources entry per device,
// no second try after a failed Allocate, stale health of devices whose plugin is gone. What a
// plugin does against the rules is written down in complaints(). Calls block; they are for the
// test's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace jogak::kubelet {

struct ContainerAsk {
  std::string name = {};
  std::map<std::string, int> devices = {};  // resource -> how many
  bool is_init = false;                     // ends before the next begins
};

struct PodAsk {
  std::string ns = "default";
  std::string name = {};
  std::vector<ContainerAsk> containers = {};
};

// What the runtime is told.
struct StartedContainer {
  std::map<std::string, std::vector<std::string>> ids;  // by resource, in Allocate's order
  std::map<std::string, std::string> env, annotations;
  std::vector<std::pair<std::string, std::string>> mounts;  // host, container
  std::vector<std::string> device_nodes;                    // container paths
  std::vector<std::string> cdi_devices;
  bool was_asked_to_prefer = false;
};

struct NodeCounts {
  int capacity = 0, allocatable = 0;
  friend bool operator==(const NodeCounts&, const NodeCounts&) = default;
};

class Kubelet {
 public:
  // Sockets in FOLDER/device-plugins and FOLDER/pod-resources. `seed` orders what is random.
  Kubelet(std::string folder, std::uint64_t seed);
  ~Kubelet();

  // Wipes the folder, as a kubelet does, then serves. Assignments are kept over stop() and start(),
  // as its checkpoint keeps them. A young one does as a real one does for its first second:
  // PodResources List tells nothing of pods that ran before, until learn_pods(). One that is
  // settled looks as if it had started long ago, so that nobody waits.
  enum class Age : std::uint8_t { Settled, Young };
  void start(Age age = Age::Settled);
  void learn_pods();
  std::uint64_t lists() const;  // answers of List; may be asked inside wait()
  void stop();

  // Loses its connection to a plugin, and does not dial again by itself.
  void lose(const std::string& resource);

  std::string socket() const;
  std::string pod_resources_socket() const;

  // Told of each step of a plugin's life as it is seen from here: "register", "options",
  // "options-given", "list" (one has come), "prefer", "preferred", "allocate", "allocated",
  // "pre-start", "pre-started". On whatever thread it happens, with the lock held: calls of this
  // class are not allowed there. To be set before start().
  std::function<void(std::string_view step, const std::string& resource)> on_step;

  // Waits for something to become true; looked at whenever anything changed. False: it did not.
  bool wait(const std::function<bool()>& is_so, int timeout_ms = 10'000);
  // May be asked inside wait().
  NodeCounts counts(const std::string& resource) const;
  std::set<std::string> healthy(const std::string& resource) const;
  std::map<std::string, std::int64_t> numa_nodes(const std::string& resource) const;
  bool is_watching(const std::string& resource) const;
  std::uint64_t registrations(const std::string& resource) const;
  bool has_options(const std::string& resource) const;  // GetDevicePluginOptions was answered

  // Admission, then the start of each container: by name. Errors: what the pod's status would say.
  Result<std::map<std::string, StartedContainer>> run(const PodAsk& pod);
  // In place: PreStartContainer alone.
  Result<void> restart_container(const std::string& ns, const std::string& pod,
                                 const std::string& container);
  // Frees its devices at once, as a forced deletion does: processes of its own may still be there.
  void remove(const std::string& ns, const std::string& pod);
  // What a kubelet does with running pods some time after its start: those with an init container
  // that had devices are admitted anew, and killed where their plugin is not there; others run on.
  // Names of the killed, "namespace/name".
  std::vector<std::string> readmit();
  // The pod's allocatedResourcesStatus: id -> "Healthy" or "Unhealthy". What the plugin said last;
  // a device that left the list, and all of them when the plugin ends, stay as they were.
  std::map<std::string, std::string> health_in_status(const std::string& ns,
                                                      const std::string& pod) const;

  std::vector<std::string> complaints() const;

  struct Impl;  // of kubelet.cc alone

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace jogak::kubelet
