// SPDX-License-Identifier: Apache-2.0
//
// Everything that changes how this node's GPUs are cut, one change at a time: the end of a change
// that somebody was killed in, the label nvidia.com/mig.config (agent/mig/config_label.h), and pods
// that were placed here and want an instance (agent/mig/on_demand.h).
//
//   starting ──no journal──────────────────────────────────> resting
//      └─journal─> recovering (needs to know who holds what) ──^
//
//   resting ──a label, a pod──> telling "pending" (label only; waits until the node shows it)
//      ^                             v
//      |                        withholding: what the change may take is not offered any more, and
//      |                             |       the kubelet had time to hear of it
//      |                             v
//      |                        asking who holds what now
//      |                             v
//      └──facts show it── reading <── changing (NVML thread, with the journal)
//
// A layout that a label named is kept: where a reset or somebody's hand undid it, that is told, and
// it is made again when nothing is in the way; later and later, if it is undone each time.
//
// What a pod holds is never touched. Nothing is offered, and no label told, before the start is
// over: half a layout is never taken for one that was wanted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "agent/health/node_note.h"
#include "agent/mig/config_file.h"
#include "agent/mig/config_label.h"
#include "agent/mig/manager.h"
#include "agent/mig/on_demand.h"
#include "agent/model/node_model.h"
#include "agent/plugin/inventory.h"
#include "agent/run/mig_ask.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/result.h"
#include "nvml/worker.h"

namespace jogak::agent {

struct MigWorkOptions {
  bool answers_label = true;
  std::optional<MigConfigs> configs = {};  // of a file; else the standard ones of this node
  bool may_reboot = false;                 // somebody reboots the node when its label says so
  bool cuts_on_demand = false;
  bool keeps_layout = true;  // else what undid the label's layout is told, and let be
  // From noticing that it is not there any more to making it again: whoever cuts by hand takes
  // several commands. Doubles up to the maximum while it is undone again within `keep_peace`.
  TimeUs keep_after = 10 * kSecondInUs, keep_after_max = 640 * kSecondInUs;
  TimeUs keep_peace = 600 * kSecondInUs;
  // From telling the kubelet that devices are withheld to asking who holds what.
  TimeUs settle = kSecondInUs;
  TimeUs holdings_retry = kSecondInUs;
  TimeUs holdings_limit = 60 * kSecondInUs;  // without an answer the change is given up
  TimeUs cut_retry = 5 * kSecondInUs;        // after a cut that the driver refused
  TimeUs change_limit = 300 * kSecondInUs;   // of what is done to one GPU
};

struct MigWorkPorts {
  std::function<std::shared_ptr<const NodeSnapshot>()> node;
  // What is withheld or told changed.
  std::function<void()> publish;
  // The facts are to be read; on_facts() follows.
  std::function<void()> read_facts;
  // on_holdings() is to follow with an answer that is begun now. Null: nobody can be asked.
  std::function<void()> ask_holdings;
  // What people should be told of. Null: nobody is.
  std::function<void(NodeNote note)> note = nullptr;
};

class MigWork {
 public:
  // Loop, log and worker outlive it. `store` may be null: then nothing is ever changed.
  MigWork(Loop& loop, Log& log, nvml::Worker& worker, std::shared_ptr<MigJournalStore> store,
          MigWorkOptions options, MigWorkPorts ports);
  ~MigWork();
  MigWork(const MigWork&) = delete;
  MigWork& operator=(const MigWork&) = delete;

  void on_facts();
  // `error`: null, or why the kubelet could not answer.
  void on_holdings(const Error* error);
  // As they are on the node now, whoever changed them.
  void on_labels(const MigLabels& labels);
  // What all pods of this node that have not ended want.
  void on_asks(std::vector<MigAsk> asks);

  bool may_offer() const { return has_begun_; }
  // By uuid of GPUs and MIG devices, with why.
  const UnhealthyReasons& withheld() const { return withheld_; }
  // What the node is to say: labels and annotations. Empty where nothing was asked.
  struct Told {
    std::string state, state_of, reason;
    friend bool operator==(const Told&, const Told&) = default;
  };
  const std::optional<Told>& told() const { return told_; }
  bool is_recovering() const { return !has_begun_ && step_ != Step::Starting; }
  // From withholding devices to the facts that show the change, and at the start.
  bool is_changing() const {
    return step_ != Step::Starting && step_ != Step::Resting && step_ != Step::Telling;
  }
  bool is_resting() const { return step_ == Step::Resting; }

 private:
  using Reports = std::vector<MigGpuReport>;
  enum class Step : std::uint8_t {
    Starting,
    Recovering,
    Resting,
    Telling,
    Withholding,
    Asking,
    Changing,
    Reading,
  };
  // A change on its way from Withholding to Reading. One step after the other, each a job of the
  // NVML thread: in between, others get their turn, who may be containers that want to start.
  using Work = std::function<Result<Reports>(nvml::GpuSource&, const MigHolders&)>;
  struct Change {
    Work plan = nullptr;  // touches nothing; the steps are taken unless it says Refused
    std::vector<Work> steps = {};
    std::function<void(const Result<Reports>&)> done = nullptr;  // with the reports of all steps
  };

  void read_journal();
  void recover();
  void on_recovered(const Result<Reports>& reports);
  void look_for_resets(const nvml::NodeFacts& facts);
  void go_on_after_reset(const MigJournal& journal);
  void rest();
  void look();

  bool look_at_label();
  Result<Reports> plans(std::span<const MigGoal> goals);
  bool is_worth_another_try();
  Result<std::vector<MigGoal>> label_goals() const;
  void keep();
  void look_at_drift();
  void note(bool is_warning, std::string reason, std::string text) const;
  void tell(const MigLabelAnswer& answer);
  void begin_apply();

  bool look_at_asks();
  void begin_cut(const NodeSnapshot& node, const std::string& pod, const MigCut& cut,
                 const MigGeometry& geometry);
  void note_waiting(const std::string& pod, const std::string& reason);

  void withhold(Change change, UnhealthyReasons devices);
  void ask_holdings();
  void give_up_asking(const std::string& why);
  void carry_out();
  void run(Work work, std::function<void(Result<Reports>)> then);
  void take_step(std::size_t at, Reports so_far);
  void end_change(const Result<Reports>& reports);

  Loop& loop_;
  Log& log_;
  nvml::Worker& worker_;
  const std::shared_ptr<MigJournalStore> store_;
  const MigWorkOptions options_;
  const MigWorkPorts ports_;

  Step step_ = Step::Starting;
  bool has_begun_ = false;    // the start is over, and the facts show what came of it
  bool has_started_ = false;  // came to rest once
  bool is_reading_journal_ = false, is_recovering_ = false;
  bool has_facts_ = false;
  bool has_holders_ = false;  // the kubelet answered, or cannot ever
  bool has_heard_ = false;    // of the kubelet, if only that it does not answer
  bool is_answered_ = true;   // the last time
  std::uint64_t generation_ = 0;
  std::set<std::string> pending_;  // GPUs whose mode changes at a reset
  bool looks_at_journal_ = false;  // one of them was reset

  std::optional<MigLabels> labels_;
  bool is_fresh_ = true;
  bool was_set_ = false;      // the label, while we looked
  bool was_refused_ = false;  // by what is in use: tried again when that is gone
  bool waits_for_reset_ = false;
  std::string kept_;  // the label's configuration, once it was there; "" none
  TimeUs kept_since_ = 0, keep_after_ = 0;
  std::string drift_;  // what differs from it, as it was told; "" nothing
  TimerId drift_timer_ = 0;
  std::optional<Told> told_;
  std::string applying_;  // the configuration under way
  std::vector<MigGoal> goals_;

  std::vector<MigAsk> asks_;
  std::map<std::string, std::string> waiting_;  // by pod, the reason that was logged
  TimeUs no_cut_before_ = 0;

  std::optional<Change> change_;
  UnhealthyReasons withheld_;
  TimeUs asking_since_ = 0;
  TimerId timer_ = 0;
};

}  // namespace jogak::agent
