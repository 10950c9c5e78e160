// SPDX-License-Identifier: Apache-2.0
//
// The device plugins of simulated nodes, as their kubelets see them: who offers which devices,
// which are best for a container, who gets what. Plain values; without a host a node's devices are
// the numbers that its manifest says.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/doc.h"
#include "base/result.h"

namespace jogak::kubelet {

struct HostDevice {
  std::string id;
  bool is_healthy = true;
  friend bool operator==(const HostDevice&, const HostDevice&) = default;
};

struct HostResource {
  std::string name;  // "nvidia.com/gpu"
  std::vector<HostDevice> devices;
  friend bool operator==(const HostResource&, const HostResource&) = default;
};

// What one container holds of one resource.
struct HeldDevices {
  std::string container, resource;
  std::vector<std::string> ids;
  friend bool operator==(const HeldDevices&, const HeldDevices&) = default;
};

// A pod that holds devices.
struct DevicePod {
  std::string ns, name, uid;
  std::map<std::string, std::string, std::less<>> annotations;
  bool is_running = false;
  std::vector<HeldDevices> held;
  friend bool operator==(const DevicePod&, const DevicePod&) = default;
};

// The plugins of one node.
class NodeDevices {
 public:
  virtual ~NodeDevices() = default;

  // False until they have registered: nobody is admitted, and nothing is said of the node, before.
  virtual bool is_ready() const = 0;
  // Somebody is about to ask for devices. False: not yet, on_change follows; is_ready() is false
  // until then.
  virtual bool wake() = 0;
  // Whether the resource is theirs: a manifest's number of it counts for nothing.
  virtual bool manages(std::string_view resource) const = 0;
  // By name, each with its devices in the plugin's order. Lives until the next change.
  virtual const std::vector<HostResource>& resources() const = 0;
  // A hint which `size` of the available ones a container had best get, `must_include` among them.
  virtual std::vector<std::string> prefer(const std::string& resource,
                                          const std::vector<std::string>& available,
                                          const std::vector<std::string>& must_include,
                                          int size) = 0;
  // The environment that a container with these devices gets. An error fails the pod for good.
  virtual Result<std::map<std::string, std::string>> allocate(
      const std::string& resource, const std::vector<std::string>& ids) = 0;
  // A pod has got devices, or began or ceased to run.
  virtual void set_pod(const DevicePod& pod) = 0;
  virtual void forget_pod(const std::string& uid) = 0;
};

class DeviceHost {
 public:
  virtual ~DeviceHost() = default;

  // The node was made or changed. Null: it has no plugins. The same answer as long as the node is
  // there, with null before plugins come at most.
  virtual NodeDevices* see_node(const Doc& node) = 0;
  virtual void forget_node(const std::string& name) = 0;
  // The devices of a node became ready, more, fewer, healthy or unhealthy. Never called from within
  // a call of the kubelets.
  std::function<void(const std::string& node)> on_change;
};

}  // namespace jogak::kubelet
