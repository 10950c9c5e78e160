// SPDX-License-Identifier: Apache-2.0
//
// The part of the agent that keeps MPS control daemons: between what the node wants (NodeAgent),
// the one that runs programs (MpsControl), NVML, and the kubelet's word on who holds a share.
#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "agent/run/agent_app.h"

namespace jogak::agent {

namespace {

constexpr std::string_view kFolderInContainer = "/mps";  // where NVIDIA's chart mounts it

}  // namespace

std::string AgentApp::mps_folder() const {
  if (!options_.mps.folder.empty()) return options_.mps.folder;
  std::error_code ignored;
  if (std::filesystem::is_directory(kFolderInContainer, ignored)) {
    return std::string(kFolderInContainer);
  }
  return node_->options().plugin.mps_root;
}

void AgentApp::want_mps(std::vector<MpsDaemon> daemons) {
  if (mps_ == nullptr) {
    const std::string folder = mps_folder();
    std::error_code ignored;
    const bool is_left = !folder.empty() && std::filesystem::exists(folder + "/.jogak", ignored);
    if (daemons.empty() && !is_left) return;
    const PluginConfig& plugin = node_->options().plugin;
    MpsControlOptions options;
    options.owns = options_.mps.mode == MpsMode::Own;
    options.root = folder;
    options.host_root = plugin.mps_root.empty() ? folder : plugin.mps_root;
    options.search_path = options_.mps.search_path;
    options.driver_root = plugin.driver_root_in_container;
    options.cgroup = options_.mps.cgroup;
    mps_ = std::make_unique<MpsControl>(loop_, log_, std::move(options), mps_ports());
  }
  mps_->want(std::move(daemons));
}

MpsPorts AgentApp::mps_ports() {
  return {.set_modes =
              [this](std::map<std::string, int> modes, MpsPorts::ModesDone done) {
                using Problems = std::vector<std::string>;
                node_->worker().run<Problems>(
                    [modes = std::move(modes)](nvml::GpuSource& source) -> Result<Problems> {
                      Problems problems;
                      for (const auto& [uuid, mode] : modes) {
                        if (const auto set = source.set_compute_mode(uuid, mode); !set) {
                          problems.push_back(fmt::format("{}: {}", uuid, set.error().what));
                        }
                      }
                      return problems;
                    },
                    [done = std::move(done)](const Result<Problems>& problems) {
                      done(problems ? *problems : Problems{problems.error().what});
                    });
              },
          .is_held =
              [this](const std::string& resource) {
                if (!had_holdings_) return true;
                const auto node = node_->snapshot();
                return !node->holdings_problem.empty() || node->holdings == nullptr ||
                       std::ranges::any_of(*node->holdings, [&](const Holding& holding) {
                         return holding.resource == resource;
                       });
              },
          .on_change = [this] { node_->on_mps(mps_->problems()); }};
}

std::string AgentApp::mps_problem() const {
  if (mps_ == nullptr) return {};
  for (const auto& [resource, problem] : mps_->problems()) {
    if (!problem.empty()) return fmt::format("the shares of {}: {}", resource, problem);
  }
  return {};
}

void AgentApp::add_mps_series() {
  node_->registry().sampled_gauges("jogak_agent_mps_ready",
                                   "1 while the MPS control daemon of a shared resource answers.",
                                   {"resource"}, [this] {
                                     std::vector<Sample> samples;
                                     if (mps_ == nullptr) return samples;
                                     for (const auto& [resource, problem] : mps_->problems()) {
                                       samples.push_back({{resource}, problem.empty() ? 1.0 : 0.0});
                                     }
                                     return samples;
                                   });
  node_->registry().sampled_counters(
      "jogak_agent_mps_starts_total", "Starts of an MPS control daemon by this agent.",
      {"resource"}, [this] {
        std::vector<Sample> samples;
        if (mps_ == nullptr) return samples;
        for (const auto& [resource, starts] : mps_->starts()) {
          samples.push_back({{resource}, static_cast<double>(starts)});
        }
        return samples;
      });
}

}  // namespace jogak::agent
