// SPDX-License-Identifier: Apache-2.0
//
// What the agent reads and writes of the machine it runs on besides the driver: files of the
// driver, PCI classes, whose processes are whose, CDI files, the file of labels. The edge of
// NodeAgent: a simulated node has an empty one and touches no file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/labels/feature_labels.h"
#include "agent/mig/journal.h"
#include "agent/model/node_model.h"
#include "agent/plugin/cdi.h"
#include "agent/plugin/config.h"
#include "agent/plugin/host.h"
#include "agent/run/options.h"
#include "base/result.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

// Functions may be null: then there is nothing to read, and nothing is written.
struct HostView {
  std::string machine = {};  // as feature_labels() wants it; "" unknown
  std::function<HostFiles(const nvml::NodeFacts& facts, const PluginConfig& config)> files =
      nullptr;
  std::function<std::map<std::string, std::uint32_t>(const nvml::NodeFacts& facts)> pci_classes =
      nullptr;  // by bus id
  std::function<ProcessOwners(const std::vector<std::int64_t>& pids)> owners = nullptr;
  std::function<Result<void>(const std::vector<CdiFile>& files)> put_cdi = nullptr;
  std::function<bool()> has_cdi = nullptr;  // files of ours are there
  std::function<Result<void>(const std::string& path, const Labels& labels)> put_labels = nullptr;
  // Null: nothing is cut on this node, and no change is finished. Used on the NVML thread.
  std::shared_ptr<MigJournalStore> mig_journal = nullptr;
};

// A journal that is gone with the process: of simulated nodes, whose GPUs go with it, too.
class MemoryJournal final : public MigJournalStore {
 public:
  Result<MigJournal> load() override { return journal_; }
  Result<void> save(const MigJournal& journal) override {
    journal_ = journal;
    return {};
  }

 private:
  MigJournal journal_;
};

// This machine.
HostView real_host(const AgentOptions& options);

}  // namespace jogak::agent
