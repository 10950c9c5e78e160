// SPDX-License-Identifier: Apache-2.0
// The state machine of each resource, and the waiting for leftovers of earlier pods.
#include "agent/plugin/device_plugin.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace jogak::agent {

namespace {

namespace fs = std::filesystem;

constexpr TimeUs kRetryMin = 20 * kMsInUs;
constexpr TimeUs kRetryMax = kSecondInUs;
// How long the kubelet may not watch before it is asked again; grows, so that two plugins for one
// resource do not take it from each other without end.
constexpr TimeUs kUnwatchedMin = 500 * kMsInUs;
constexpr TimeUs kUnwatchedMax = 300 * kSecondInUs;
constexpr TimeUs kWatchedLong = 60 * kSecondInUs;
constexpr std::string_view kSocketPrefix = "jogak-";
constexpr std::string_view kSocketSuffix = ".sock";

// "jogak-gpu-5f3c9a1e.sock": the part after the slash, and what no other process has.
std::string socket_name(std::string_view resource) {
  std::uint32_t token = 0;
  if (::getrandom(&token, sizeof token, 0) != static_cast<ssize_t>(sizeof token)) {
    token = static_cast<std::uint32_t>(::getpid());
  }
  const std::string_view name = resource.substr(resource.find('/') + 1);
  return fmt::format("{}{}-{:08x}{}", kSocketPrefix, name, token, kSocketSuffix);
}

// Nobody listens on it any more.
bool is_dead_socket(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  path.copy(address.sun_path, path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const int result = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const bool is_refused = result != 0 && errno == ECONNREFUSED;
  ::close(fd);
  return is_refused;
}

}  // namespace

struct DevicePlugin::Served {
  std::string name;
  std::unique_ptr<PluginServer> server;
  std::uint64_t number = 0;     // of the server
  std::string socket;           // its name in the folder
  bool is_calling = false;      // Register is under way
  bool is_asked_again = false;  // something happened meanwhile
  bool is_registered = false;
  int watchers = 0;
  TimeUs watched_since = 0;
  std::string problem;
  TimerId timer = 0;
  TimeUs retry = kRetryMin;
  TimeUs unwatched = kUnwatchedMin;
  std::uint64_t registrations = 0;
};

struct DevicePlugin::Start {
  std::string resource;
  std::vector<PluginDevice> devices;
  PluginServer::Done done;
  TimeUs deadline = 0;
  bool is_noticed = false;
};

DevicePlugin::DevicePlugin(net::EpollLoop& loop, Log& log, DevicePluginOptions options,
                           AskLeftovers ask_leftovers)
    : loop_(loop),
      log_(log),
      options_(std::move(options)),
      ask_leftovers_(std::move(ask_leftovers)),
      is_alive_(std::make_shared<bool>(true)),
      client_(std::make_unique<KubeletClient>(loop)) {
  const fs::path path(options_.kubelet_socket);
  folder_ = path.parent_path().string();
  kubelet_name_ = path.filename().string();
  remove_old_sockets();
  watch_ = std::make_unique<KubeletWatch>(
      loop_, folder_, kubelet_name_,
      [this](KubeletWatch::Change change) { on_folder_change(change); });
}

DevicePlugin::~DevicePlugin() {
  *is_alive_ = false;
  watch_.reset();
  for (auto& [name, served] : served_) loop_.cancel(served->timer);
  client_.reset();
  served_.clear();
}

void DevicePlugin::update(PluginSnapshotPtr snapshot) {
  snapshot_ = std::move(snapshot);
  for (auto& [name, served] : served_) {
    if (!served->server) continue;
    served->server->publish(snapshot_);
    // The kubelet learns with Register whether it has to ask before each start.
    const bool is_offered = snapshot_->inventory.find(name) != nullptr;
    if (is_offered && asks_before_start(name) != served->server->requires_pre_start()) {
      serve(*served);
    }
  }
  for (const PluginResource& resource : snapshot_->inventory.resources) {
    std::unique_ptr<Served>& served = served_[resource.name];
    if (served) continue;
    served = std::make_unique<Served>();
    served->name = resource.name;
    serve(*served);
  }
}

// Shares have other processes on the device by design.
bool DevicePlugin::asks_before_start(const std::string& name) const {
  const PluginResource* const resource = snapshot_->inventory.find(name);
  return ask_leftovers_ && (resource == nullptr || resource->replicas == 1);
}

void DevicePlugin::serve(Served& served) {
  loop_.cancel(served.timer);
  served.timer = 0;
  served.server.reset();  // before the new one: older kubelets mix up the two
  served.watchers = 0;
  served.is_registered = false;
  served.number = ++servers_;
  served.socket = socket_name(served.name);

  if (options_.on_step) options_.on_step("serve");
  PluginServer::Events events;
  events.on_step = options_.on_step;
  const auto post = [this, alive = is_alive_](auto task) {
    loop_.post([alive, task = std::move(task)] {
      if (*alive) task();
    });
  };
  const std::string& name = served.name;
  events.on_watch_start = [this, post, name, number = served.number] {
    post([this, name, number] { on_watch(name, number, true); });
  };
  events.on_watch_end = [this, post, name, number = served.number] {
    post([this, name, number] { on_watch(name, number, false); });
  };
  events.on_problem = [this, post, name](std::string_view call, std::string problem) {
    post([this, name, call = std::string(call), problem = std::move(problem)] {
      log_.error("the kubelet's request was refused",
                 {{"resource", name}, {"call", call}, {"reason", problem}});
    });
  };
  if (asks_before_start(name)) {
    events.pre_start = [this, post, name](std::vector<std::string> ids, PluginServer::Done done) {
      post([this, name, ids = std::move(ids), done = std::move(done)] {
        pre_start(name, ids, done);
      });
    };
  }
  // Said here, in the same words each time: the library below logs of its own accord.
  std::error_code ignored;
  auto server = fs::is_directory(folder_, ignored)
                    ? PluginServer::start(folder_ + "/" + served.socket, name, snapshot_, events)
                    : fail(Errc::NotFound, "{}: no such folder; a kubelet makes it", folder_);
  if (!server) {
    if (served.problem != server.error().what) {
      log_.error("a resource cannot be served",
                 {{"resource", name}, {"error", server.error().what}});
    }
    served.problem = server.error().what;
    served.timer = loop_.after(kRetryMax, [this, &served] { serve(served); });
    return;
  }
  served.server = *std::move(server);
  register_resource(served);
}

void DevicePlugin::register_resource(Served& served) {
  loop_.cancel(served.timer);
  served.timer = 0;
  if (!options_.registers || !served.server) return;
  if (served.is_calling) {
    served.is_asked_again = true;
    return;
  }
  served.is_calling = true;
  if (options_.on_step) options_.on_step("register");
  client_->register_resource({.kubelet_socket = options_.kubelet_socket,
                              .endpoint = served.socket,
                              .resource = served.name,
                              .requires_pre_start = served.server->requires_pre_start()},
                             [this, &served, number = served.number](const Result<void>& result) {
                               served.is_calling = false;
                               const bool is_old = number != served.number;
                               if (std::exchange(served.is_asked_again, false) || is_old) {
                                 register_resource(served);
                               } else {
                                 on_registered(served, result);
                               }
                             });
}

void DevicePlugin::on_registered(Served& served, const Result<void>& result) {
  if (result) {
    served.is_registered = true;
    served.problem.clear();
    served.retry = kRetryMin;
    ++served.registrations;
    log_.info("registered with the kubelet",
              {{"resource", served.name}, {"socket", served.socket}});
    // It watches within milliseconds; if it does not, ask again.
    if (served.watchers == 0) register_later(served);
    return;
  }
  served.is_registered = false;
  if (served.problem != result.error().what && result.error().code == Errc::Invalid) {
    log_.error("the kubelet refuses a resource",
               {{"resource", served.name}, {"error", result.error().what}});
  }
  served.problem = result.error().what;
  served.timer = loop_.after(served.retry, [this, &served] { register_resource(served); });
  served.retry = std::min(served.retry * 2, kRetryMax);
}

// A kubelet that was told and does not come may be unable to: a server that once ran out of
// descriptors accepts nobody any more. Then it gets another one.
void DevicePlugin::register_later(Served& served) {
  loop_.cancel(served.timer);
  const bool is_again = served.unwatched > kUnwatchedMin;
  served.timer = loop_.after(served.unwatched, [this, &served, is_again] {
    if (is_again && options_.registers) {
      serve(served);
    } else {
      register_resource(served);
    }
  });
  served.unwatched = std::min(served.unwatched * 2, kUnwatchedMax);
}

void DevicePlugin::on_watch(const std::string& resource, std::uint64_t server, bool is_start) {
  const auto it = served_.find(resource);
  if (it == served_.end() || it->second->number != server) return;
  Served& served = *it->second;
  if (is_start) {
    ++served.watchers;
    served.watched_since = loop_.now();
    if (served.is_registered) {
      loop_.cancel(served.timer);
      served.timer = 0;
    }
    return;
  }
  --served.watchers;
  if (served.watchers > 0) return;
  // The kubelet does not come back by itself. If it is restarting, the folder says so at once.
  if (loop_.now() - served.watched_since > kWatchedLong) served.unwatched = kUnwatchedMin;
  log_.warn("the kubelet stopped watching a resource", {{"resource", resource}});
  register_later(served);
}

void DevicePlugin::on_folder_change(KubeletWatch::Change change) {
  for (auto& [name, served] : served_) {
    if (!served->server) {
      // The folder may have come with it: now, and not when it is time again.
      if (change.is_kubelet_new) serve(*served);
      continue;
    }
    std::error_code error;
    if (!fs::exists(folder_ + "/" + served->socket, error) && !error) {
      log_.info("our socket was removed, as a starting kubelet does; serving again",
                {{"resource", name}});
      served->retry = kRetryMin;
      served->unwatched = kUnwatchedMin;
      serve(*served);
    } else if (change.is_kubelet_new) {
      served->retry = kRetryMin;
      served->unwatched = kUnwatchedMin;
      served->is_registered = false;
      register_resource(*served);
    }
  }
}

void DevicePlugin::remove_old_sockets() const {
  std::error_code error;
  fs::directory_iterator it(folder_, error);
  while (!error && it != fs::directory_iterator()) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(kSocketPrefix) && name.ends_with(kSocketSuffix) &&
        is_dead_socket(it->path().string())) {
      std::error_code ignored;
      fs::remove(it->path(), ignored);
    }
    it.increment(error);
  }
}

// ---- leftovers --------------------------------------------------------------------------------

void DevicePlugin::pre_start(const std::string& resource, std::vector<std::string> ids,
                             PluginServer::Done done) {
  auto start = std::make_shared<Start>();
  start->resource = resource;
  start->done = std::move(done);
  start->deadline = loop_.now() + options_.leftover_wait;
  if (const PluginResource* const found = snapshot_->inventory.find(resource)) {
    for (const std::string& id : ids) {
      if (const PluginDevice* const device = found->find(id)) start->devices.push_back(*device);
    }
  }
  // Devices that are gone from the list belong to a container that had them before.
  if (start->devices.empty()) return start->done({});
  ask_leftovers(start);
}

void DevicePlugin::ask_leftovers(const std::shared_ptr<Start>& start) {
  ask_leftovers_(start->devices, [this, alive = is_alive_, start](const auto& leftovers) {
    if (*alive) on_leftovers(start, leftovers);
  });
}

void DevicePlugin::on_leftovers(const std::shared_ptr<Start>& start,
                                const Result<std::vector<Leftover>>& leftovers) {
  if (!leftovers) {
    log_.warn("nobody can tell whether the devices are in use; the container starts",
              {{"resource", start->resource}, {"error", leftovers.error().what}});
    return start->done({});
  }
  const Leftover* first = nullptr;
  for (const Leftover& leftover : *leftovers) {
    if (leftover.is_pod) {
      if (first == nullptr) first = &leftover;
    } else if (!start->is_noticed) {
      log_.warn("a process that was not given it uses a device that a container gets",
                {{"device", leftover.device}, {"pid", leftover.pid}, {"process", leftover.name}});
    }
  }
  const bool is_first_look = !std::exchange(start->is_noticed, true);
  if (first == nullptr) return start->done({});
  if (is_first_look) {
    log_.warn("a process of an earlier pod is still on a device; the container waits",
              {{"device", first->device}, {"pid", first->pid}, {"process", first->name}});
  }
  if (loop_.now() >= start->deadline) {
    return start->done(fail(Errc::Conflict,
                            "device {} is still used by process {} ({}) of an earlier pod; the "
                            "container starts when it has ended",
                            first->device, first->pid,
                            first->name.empty() ? "name not known" : first->name));
  }
  loop_.after(options_.leftover_ask_every, [this, alive = is_alive_, start] {
    if (*alive) ask_leftovers(start);
  });
}

// ---- status -----------------------------------------------------------------------------------

std::vector<DevicePlugin::ResourceStatus> DevicePlugin::status() const {
  std::vector<ResourceStatus> result;
  for (const auto& [name, served] : served_) {
    ResourceStatus status;
    status.name = name;
    status.socket = served->socket;
    status.is_registered = served->is_registered;
    status.is_watched = served->watchers > 0;
    status.problem = served->problem;
    status.registrations = served->registrations;
    if (const PluginResource* const resource = snapshot_->inventory.find(name)) {
      status.devices = resource->devices.size();
      status.healthy = static_cast<std::size_t>(
          std::ranges::count_if(resource->devices, &PluginDevice::is_healthy));
    }
    result.push_back(std::move(status));
  }
  return result;
}

bool DevicePlugin::is_ready() const {
  return std::ranges::all_of(served_, [](const auto& entry) {
    return entry.second->is_registered && entry.second->watchers > 0;
  });
}

}  // namespace jogak::agent
