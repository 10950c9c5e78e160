// SPDX-License-Identifier: Apache-2.0
//
// Each step ends in exactly one of the functions that begin the next; whatever comes meanwhile is
// kept and looked at when things rest.
#include "agent/run/mig_work.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "agent/mig/picture.h"
#include "agent/mig/pod_holders.h"

namespace jogak::agent {

namespace {

constexpr TimeUs kLockRetry = 2 * kSecondInUs;

}  // namespace

MigWork::MigWork(Loop& loop, Log& log, nvml::Worker& worker, std::shared_ptr<MigJournalStore> store,
                 MigWorkOptions options, MigWorkPorts ports)
    : loop_(loop),
      log_(log),
      worker_(worker),
      store_(std::move(store)),
      options_(std::move(options)),
      ports_(std::move(ports)),
      has_holders_(ports_.ask_holdings == nullptr),
      has_heard_(has_holders_) {}

MigWork::~MigWork() {
  loop_.cancel(timer_);
  loop_.cancel(drift_timer_);
}

// ---- what comes in ---------------------------------------------------------------------------

void MigWork::on_facts() {
  const std::uint64_t generation = ports_.node()->facts->generation;
  // What a reload of the driver took away is made again.
  if (std::exchange(generation_, generation) != generation) is_fresh_ = true;
  has_facts_ = true;
  look_for_resets(*ports_.node()->facts);
  switch (step_) {
    case Step::Starting:
      if (store_ == nullptr) return rest();
      return read_journal();
    case Step::Reading:
      return rest();
    case Step::Resting:
      look_at_drift();
      return look();
    default:
      return;
  }
}

void MigWork::on_holdings(const Error* error) {
  // A kubelet that does not serve the API never will: processes alone say what is in use.
  const bool is_answer = error == nullptr || error->code == Errc::NotFound;
  has_holders_ = has_holders_ || is_answer;
  has_heard_ = true;
  is_answered_ = is_answer;
  switch (step_) {
    case Step::Recovering:
      if (is_answer && !std::exchange(is_recovering_, true)) recover();
      return;
    case Step::Asking:
      if (is_answer) return carry_out();
      if (loop_.now() - asking_since_ >= options_.holdings_limit) {
        return give_up_asking(error->what);
      }
      loop_.cancel(timer_);
      timer_ = loop_.after(options_.holdings_retry, [this] { ports_.ask_holdings(); });
      return;
    case Step::Resting:
      return look();
    default:
      return;
  }
}

void MigWork::on_labels(const MigLabels& labels) {
  const bool is_other = !labels_ || labels_->config != labels.config;
  was_set_ = was_set_ || (labels_ && is_other);
  labels_ = labels;
  if (is_other) {
    is_fresh_ = true;
    was_refused_ = waits_for_reset_ = false;
    kept_.clear();
    drift_.clear();
    loop_.cancel(std::exchange(drift_timer_, 0));
    // What was said last stays on the node, but for the reason.
    if (labels.config.empty() && told_ && !std::exchange(told_->reason, "").empty()) {
      ports_.publish();
    }
  }
  if (step_ == Step::Telling) {
    if (is_other) return rest();
    if (labels.state == kMigPending && labels.state_of == applying_) return begin_apply();
  }
  look();
}

void MigWork::on_asks(std::vector<MigAsk> asks) {
  asks_ = std::move(asks);
  look();
}

// ---- the start -------------------------------------------------------------------------------

// Whoever died in the middle of a change left a journal: the change is finished, or undone, before
// anybody takes half a layout for one that was wanted.
void MigWork::read_journal() {
  if (std::exchange(is_reading_journal_, true)) return;
  worker_.run<bool>(
      [store = store_](nvml::GpuSource&) -> Result<bool> {
        JOGAK_TRY(const MigJournal journal, store->load());
        return !journal.empty();
      },
      [this](const Result<bool>& has_entries) {
        if (!has_entries) {
          log_.error("the journal of MIG changes cannot be read; what it says is not looked at",
                     {{"error", has_entries.error().what}});
        }
        if (!has_entries || !*has_entries) return rest();
        step_ = Step::Recovering;
        is_recovering_ = has_holders_;
        if (has_holders_) return recover();
        log_.info("a change of MIG layouts was cut short; nothing is offered before it is ended");
        ports_.ask_holdings();
      });
}

void MigWork::recover() {
  const auto node = ports_.node();
  worker_.run<Reports>(
      [store = store_, holders = pod_holders(*node->facts, *node->holders)](
          nvml::GpuSource& source) { return MigManager(source, *store).recover(holders); },
      [this](const Result<Reports>& reports) { on_recovered(reports); }, options_.change_limit);
}

void MigWork::on_recovered(const Result<Reports>& reports) {
  if (!reports) {
    log_.error("a change of MIG layouts that was cut short could not be ended",
               {{"error", reports.error().what}});
    if (reports.error().code != Errc::Conflict) return rest();
    // Another process is at it.
    timer_ = loop_.after(kLockRetry, [this] { recover(); });
    return;
  }
  for (const MigGpuReport& report : *reports) {
    log_.info(
        "a change of MIG layouts that was cut short",
        {{"gpu", report.uuid}, {"state", state_text(report.state)}, {"reason", report.reason}});
  }
  step_ = Step::Reading;
  ports_.read_facts();
}

// A change whose mode wanted a reset goes on after it, whoever began it: another process of ours
// leaves such a change in the journal, too.
void MigWork::look_for_resets(const nvml::NodeFacts& facts) {
  for (const nvml::GpuFacts& gpu : facts.gpus) {
    if (gpu.is_lost) continue;
    if (gpu.mig_pending != gpu.mig_enabled) {
      pending_.insert(gpu.uuid);
    } else if (pending_.erase(gpu.uuid) > 0) {
      looks_at_journal_ = true;
    }
  }
  if (!looks_at_journal_ || step_ != Step::Resting || store_ == nullptr) return;
  worker_.run<MigJournal>([store = store_](nvml::GpuSource&) { return store->load(); },
                          [this](const Result<MigJournal>& journal) {
                            if (journal && step_ == Step::Resting) go_on_after_reset(*journal);
                          });
}

void MigWork::go_on_after_reset(const MigJournal& journal) {
  looks_at_journal_ = false;
  const auto node = ports_.node();
  UnhealthyReasons devices;
  for (const MigJournalEntry& entry : journal) {
    const GpuView* const gpu = node->find(entry.goal.uuid);
    const bool is_in_force = gpu != nullptr && gpu->facts != nullptr && !gpu->facts->is_lost &&
                             gpu->facts->mig_enabled == entry.goal.is_enabled;
    if (entry.waits_for_reset && is_in_force) {
      devices[entry.goal.uuid] = "a change of its MIG layout goes on after the reset";
    }
  }
  if (devices.empty()) return;
  Change change;
  change.steps.emplace_back([store = store_](nvml::GpuSource& source, const MigHolders& holders) {
    return MigManager(source, *store).recover(holders);
  });
  change.done = [this](const Result<Reports>& reports) {
    if (!reports) {
      log_.warn("a change of MIG layouts cannot go on after a reset; trying again",
                {{"error", reports.error().what}});
      looks_at_journal_ = true;
      return;
    }
    for (const MigGpuReport& report : *reports) {
      log_.info(
          "a change of MIG layouts went on after a reset",
          {{"gpu", report.uuid}, {"state", state_text(report.state)}, {"reason", report.reason}});
    }
  };
  withhold(std::move(change), std::move(devices));
}

// ---- rest ------------------------------------------------------------------------------------

void MigWork::rest() {
  step_ = Step::Resting;
  has_begun_ = true;
  change_.reset();
  withheld_.clear();
  ports_.publish();
  look();
}

void MigWork::look() {
  if (step_ != Step::Resting || !has_facts_ || store_ == nullptr) return;
  // A label is looked at although the kubelet does not answer: it then fails for that reason.
  if (has_heard_ && look_at_label()) return;
  if (has_holders_) look_at_asks();
}

// ---- the label -------------------------------------------------------------------------------

Result<MigWork::Reports> MigWork::plans(std::span<const MigGoal> goals) {
  const auto node = ports_.node();
  const MigHolders holders = pod_holders(*node->facts, *node->holders);
  Reports reports;
  for (const MigGoal& goal : goals) {
    const GpuView* const gpu = node->find(goal.uuid);
    if (gpu == nullptr || gpu->facts == nullptr) {
      if (goal.uuid.empty()) {
        return fail(Errc::NotFound, "a GPU is lost, and nobody knows its name");
      }
      return fail(Errc::NotFound, "{} is not there any more", goal.uuid);
    }
    std::vector<nvml::ProcessFacts> processes;
    if (gpu->sample != nullptr) processes = gpu->sample->processes.value_or({});
    reports.push_back(plan_goal(*gpu->facts, processes, holders, goal));
  }
  return reports;
}

// The label is answered when it changes, at the start, after a reload, when its layout is there no
// more (look_at_drift), and when what was in the way is gone.
bool MigWork::look_at_label() {
  if (!options_.answers_label || !labels_ || labels_->config.empty()) return false;
  const bool is_fresh = std::exchange(is_fresh_, false);
  const bool may_retry = (was_refused_ && is_answered_) || waits_for_reset_;
  if (!is_fresh && !(may_retry && is_worth_another_try())) return false;
  const bool was_set = std::exchange(was_set_, false);
  // Carried out earlier: pods have cut the GPUs anew since, as they should.
  if (options_.cuts_on_demand && !was_set && labels_->state == kMigSuccess &&
      labels_->state_of == labels_->config) {
    return false;
  }
  was_refused_ = waits_for_reset_ = false;
  const auto node = ports_.node();
  const MigConfigs configs = options_.configs ? *options_.configs : standard_configs(*node->facts);
  MigLabelAnswer answer =
      read_labels(*labels_, configs, *node->facts, true,
                  [this](std::span<const MigGoal> goals) { return plans(goals); });
  if (answer.state == kMigSuccess) keep();
  if (answer.act == MigLabelAnswer::Act::Nothing) return false;
  if (answer.act == MigLabelAnswer::Act::Write) {
    // What a lost GPU would have is not known before it is back.
    was_refused_ =
        answer.state == kMigFailed && std::ranges::any_of(node->facts->gpus, [](const auto& gpu) {
          return gpu.is_lost || gpu.uuid.empty();
        });
    tell(answer);
    return false;
  }
  const auto reports = plans(answer.goals);
  if (!reports || overall(*reports) == MigState::Refused) {
    was_refused_ = true;
    tell(after_apply(labels_->config, reports, options_.may_reboot));
    return false;
  }
  applying_ = labels_->config;
  goals_ = std::move(answer.goals);
  step_ = Step::Telling;
  tell(answer);
  if (labels_->state == kMigPending && labels_->state_of == applying_) begin_apply();
  return true;
}

Result<std::vector<MigGoal>> MigWork::label_goals() const {
  const auto node = ports_.node();
  JOGAK_TRY(const auto config,
            find_config(options_.configs ? *options_.configs : standard_configs(*node->facts),
                        labels_->config));
  return config_goals(config, *node->facts);
}

bool MigWork::is_worth_another_try() {
  const auto goals = label_goals();
  if (!goals) return false;
  const auto reports = plans(*goals);
  if (!reports) return false;
  const MigState state = overall(*reports);
  return waits_for_reset_ ? state <= MigState::Done : state != MigState::Refused;
}

// The label's layout is there.
void MigWork::keep() {
  kept_ = labels_->config;
  kept_since_ = loop_.now();
  drift_.clear();
  loop_.cancel(std::exchange(drift_timer_, 0));
}

// Pods that cut as they need begin with the layout and are not held to it.
void MigWork::look_at_drift() {
  // What is looked at now anyhow needs no word of its own.
  if (kept_.empty() || is_fresh_ || options_.cuts_on_demand) return;
  const auto goals = label_goals();
  if (!goals) return;
  const auto reports = plans(*goals);
  if (!reports) return;
  std::string drift;
  const auto node = ports_.node();  // the views below are in it
  for (const MigGpuReport& report : *reports) {
    const GpuView* const gpu = node->find(report.uuid);
    // Nobody knows what a lost GPU has; it is looked at again when it is back.
    if (gpu == nullptr || gpu->facts == nullptr || gpu->facts->is_lost) return;
    if (report.state == MigState::Same) continue;
    drift += fmt::format("{}gpu {} has {}", drift.empty() ? "" : "; ", report.gpu,
                         shape_words(report.before));
  }
  if (drift.empty()) {
    // Somebody put it right.
    if (!std::exchange(drift_, "").empty()) {
      loop_.cancel(std::exchange(drift_timer_, 0));
      tell({.state = std::string(kMigSuccess), .state_of = kept_, .reason = "", .goals = {}});
    }
    return;
  }
  if (drift_ == drift) return;
  const bool is_first = drift_.empty();
  drift_ = drift;
  const std::string text = fmt::format("the layout {} is not there any more: {}", kept_, drift);
  if (is_first) {
    const bool is_peace = keep_after_ == 0 || loop_.now() - kept_since_ > options_.keep_peace;
    keep_after_ =
        is_peace ? options_.keep_after : std::min(2 * keep_after_, options_.keep_after_max);
    log_.warn("a MIG layout is not there any more", {{"config", kept_}, {"now", drift}});
    note(true, "MigLayoutLost", text);
  }
  tell({.state = std::string(options_.keeps_layout ? kMigPending : kMigFailed),
        .state_of = kept_,
        .reason = text,
        .goals = {}});
  if (!options_.keeps_layout) return;
  // Whoever goes on changing it is waited for.
  loop_.cancel(drift_timer_);
  drift_timer_ = loop_.after(keep_after_, [this] {
    drift_timer_ = 0;
    drift_.clear();
    kept_.clear();  // until it is there again
    is_fresh_ = true;
    look();
  });
}

void MigWork::note(bool is_warning, std::string reason, std::string text) const {
  if (!ports_.note) return;
  ports_.note({.is_warning = is_warning, .reason = std::move(reason), .text = std::move(text)});
}

void MigWork::tell(const MigLabelAnswer& answer) {
  Told told = {.state = answer.state, .state_of = answer.state_of, .reason = answer.reason};
  if (told_ == told) return;
  told_ = std::move(told);
  if (answer.state == kMigFailed) {
    if (drift_.empty()) {
      note(true, "MigConfigFailed", fmt::format("{}: {}", answer.state_of, answer.reason));
    }
    log_.warn("the MIG configuration of the node's label failed",
              {{"config", answer.state_of}, {"reason", answer.reason}});
  } else {
    log_.info("the MIG configuration of the node's label",
              {{"config", answer.state_of}, {"state", answer.state}, {"reason", answer.reason}});
  }
  ports_.publish();
}

void MigWork::begin_apply() {
  UnhealthyReasons devices;
  const auto reports = plans(goals_);
  for (const MigGoal& goal : goals_) {
    const bool is_same = reports && std::ranges::any_of(*reports, [&](const MigGpuReport& report) {
                           return report.uuid == goal.uuid && report.state == MigState::Same;
                         });
    if (!is_same) devices[goal.uuid] = "its MIG layout is being changed to " + applying_;
  }
  Change change;
  change.plan = [store = store_, goals = goals_](nvml::GpuSource& source,
                                                 const MigHolders& holders) {
    return MigManager(source, *store).plan(goals, holders);
  };
  for (const MigGoal& goal : goals_) {
    change.steps.emplace_back(
        [store = store_, goal](nvml::GpuSource& source, const MigHolders& holders) {
          return MigManager(source, *store).apply(std::span(&goal, 1), holders);
        });
  }
  change.done = [this](const Result<Reports>& done) {
    if (done) {
      for (const MigGpuReport& report : *done) {
        if (report.state == MigState::Same) continue;
        log_.info("a MIG layout", {{"gpu", report.uuid},
                                   {"state", state_text(report.state)},
                                   {"steps", report.steps.size()},
                                   {"reason", report.reason}});
      }
      const MigState state = overall(*done);
      was_refused_ = state == MigState::Refused;
      waits_for_reset_ = state == MigState::NeedsReset;
      if (state <= MigState::Done && labels_ && labels_->config == applying_) keep();
      if (state == MigState::Done) {
        note(false, "MigConfigApplied", applying_ + ": the GPUs are cut as it says");
      }
    }
    tell(after_apply(applying_, done, options_.may_reboot));
  };
  withhold(std::move(change), std::move(devices));
}

// ---- pods ------------------------------------------------------------------------------------

namespace {

// The GPUs that can be cut now, as the planner wants them. Geometries are kept beside.
struct Cuttable {
  std::vector<std::unique_ptr<MigGeometry>> geometries;
  std::vector<MigCutGpu> gpus;

  Cuttable(const NodeSnapshot& node, const UnhealthyReasons& unusable) {
    const MigHolders holders = pod_holders(*node.facts, *node.holders);
    for (const GpuView& view : node.gpus) {
      const nvml::GpuFacts* const gpu = view.facts;
      if (gpu == nullptr || gpu->is_lost || !gpu->mig_enabled || unusable.contains(view.uuid)) {
        continue;
      }
      auto geometry = MigGeometry::from_facts(gpu->mig_profiles);
      if (!geometry) continue;
      geometries.push_back(std::make_unique<MigGeometry>(*std::move(geometry)));
      std::vector<nvml::ProcessFacts> processes;
      if (view.sample != nullptr) processes = view.sample->processes.value_or({});
      gpus.push_back(
          {.gpu = gpu->index,
           .geometry = geometries.back().get(),
           .present = mig_present(*geometries.back(), gpu->mig_instances, processes, holders)});
    }
  }
};

// The instances that the pod holds, as (GPU, first memory slice).
std::vector<std::pair<int, int>> held_by(const NodeSnapshot& node, const PodName& pod) {
  std::vector<std::pair<int, int>> held;
  for (const nvml::GpuFacts& gpu : node.facts->gpus) {
    for (const nvml::MigInstanceFacts& row : gpu.mig_instances) {
      const DeviceHolders& holders = node.holders->of_instance(gpu.uuid, row.gi_id);
      const bool is_its = std::ranges::any_of(holders, [&](const DeviceHolder& holder) {
        return holder.holder.pod_namespace == pod.ns && holder.holder.pod == pod.name;
      });
      const std::pair at(gpu.index, row.placement.start);
      if (is_its && std::ranges::find(held, at) == held.end()) held.push_back(at);
    }
  }
  return held;
}

std::string text_of(const PodName& pod) { return pod.ns + "/" + pod.name; }

// What the pods were promised and do not hold yet.
std::vector<MigHold> missing(const NodeSnapshot& node, const std::vector<MigAsk>& asks) {
  std::vector<MigHold> holds;
  for (const MigAsk& ask : asks) {
    const auto held = held_by(node, ask.pod);
    const auto count = static_cast<std::size_t>(ask.count);
    if (held.size() >= count) continue;
    std::vector<std::pair<int, int>> places;
    for (const auto& place : ask.places) {
      if (std::ranges::find(held, place) == held.end()) places.push_back(place);
    }
    for (std::size_t i = 0; i < count - held.size(); ++i) {
      MigHold hold = {.pod = text_of(ask.pod), .profile = ask.profile, .gpu = {}, .start = {}};
      if (i < places.size()) {
        hold.gpu = places[i].first;
        hold.start = places[i].second;
      }
      holds.push_back(std::move(hold));
    }
  }
  return holds;
}

}  // namespace

bool MigWork::look_at_asks() {
  if (!options_.cuts_on_demand || asks_.empty() || loop_.now() < no_cut_before_) return false;
  const auto node = ports_.node();
  std::vector<MigHold> wanted = missing(*node, asks_);
  std::erase_if(waiting_, [&](const auto& entry) {
    return std::ranges::find(wanted, entry.first, &MigHold::pod) == wanted.end();
  });
  if (wanted.empty()) return false;
  const Cuttable cuttable(*node, {});
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    std::vector<MigHold> others = wanted;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const MigCut cut = cut_for(cuttable.gpus, others, wanted[i]);
    switch (cut.kind) {
      case MigCut::Kind::Use:
        // It is this one's from now on.
        wanted[i].gpu = cut.gpu;
        wanted[i].start = cut.place.at.start;
        break;
      case MigCut::Kind::Wait:
      case MigCut::Kind::Never:
        note_waiting(wanted[i].pod, cut.reason);
        break;
      case MigCut::Kind::Create: {
        const auto at = std::ranges::find(cuttable.gpus, cut.gpu, &MigCutGpu::gpu);
        begin_cut(*node, wanted[i].pod, cut, *at->geometry);
        return true;
      }
    }
  }
  return false;
}

void MigWork::note_waiting(const std::string& pod, const std::string& reason) {
  if (std::exchange(waiting_[pod], reason) == reason) return;
  log_.warn("a pod waits for a MIG instance", {{"pod", pod}, {"reason", reason}});
}

void MigWork::begin_cut(const NodeSnapshot& node, const std::string& pod, const MigCut& cut,
                        const MigGeometry& geometry) {
  const std::string gpu = node.facts->gpus[static_cast<std::size_t>(cut.gpu)].uuid;
  const std::string place = geometry.place_text(cut.place);
  UnhealthyReasons devices;
  for (const MigPresent& instance : cut.destroy) {
    for (const std::string& uuid : instance.uuids) devices[uuid] = "it makes room for pod " + pod;
  }
  const int profile_id = geometry.profiles()[static_cast<std::size_t>(cut.place.profile)].id;
  Change change;
  // Not in the journal: an instance that was idle and is gone is no half layout, and the pod that
  // wants one is still there after a crash.
  change.steps.emplace_back(
      [store = store_, gpu, profile_id, cut](nvml::GpuSource& source,
                                             const MigHolders& holders) -> Result<Reports> {
        for (const MigPresent& instance : cut.destroy) {
          for (const std::string& uuid : instance.uuids) {
            if (const auto at = holders.find(uuid); at != holders.end()) {
              return fail(Errc::Conflict, "instance {} is held by {}", instance.gi_id, at->second);
            }
          }
        }
        JOGAK_TRY_VOID(store->lock());
        const auto made = [&]() -> Result<void> {
          for (const MigPresent& instance : cut.destroy) {
            JOGAK_TRY_VOID(source.destroy_instance(gpu, instance.gi_id));
          }
          JOGAK_TRY_VOID(source.create_instance(gpu, profile_id, cut.place.at, {}));
          return {};
        }();
        store->unlock();
        if (!made) return std::unexpected(made.error());
        return Reports{};
      });
  change.done = [this, pod, place, gpu](const Result<Reports>& done) {
    if (done) {
      log_.info("a MIG instance for a pod", {{"pod", pod}, {"gpu", gpu}, {"instance", place}});
      return;
    }
    log_.warn("no MIG instance could be made for a pod; trying again",
              {{"pod", pod}, {"gpu", gpu}, {"instance", place}, {"error", done.error().what}});
    no_cut_before_ = loop_.now() + options_.cut_retry;
    timer_ = loop_.after(options_.cut_retry, [this] { look(); });
  };
  withhold(std::move(change), std::move(devices));
}

// ---- a change --------------------------------------------------------------------------------

void MigWork::withhold(Change change, UnhealthyReasons devices) {
  change_ = std::move(change);
  withheld_ = std::move(devices);
  if (withheld_.empty()) return carry_out();  // nothing is taken, so nobody can be hurt
  step_ = Step::Withholding;
  ports_.publish();
  loop_.cancel(timer_);
  timer_ = loop_.after(options_.settle, [this] { ask_holdings(); });
}

void MigWork::ask_holdings() {
  if (ports_.ask_holdings == nullptr) return carry_out();
  step_ = Step::Asking;
  asking_since_ = loop_.now();
  ports_.ask_holdings();
}

void MigWork::give_up_asking(const std::string& why) {
  const Change change = *std::exchange(change_, std::nullopt);
  change.done(fail(Errc::Unavailable, "the kubelet cannot say which pods hold devices: {}", why));
  was_refused_ = true;  // tried again once it answers
  rest();
}

void MigWork::carry_out() {
  step_ = Step::Changing;
  if (!change_->plan) return take_step(0, {});
  run(change_->plan, [this](const Result<Reports>& planned) {
    if (!planned) return end_change(planned);
    if (overall(*planned) != MigState::Refused) return take_step(0, {});
    Reports refused;  // the others would be done, and are not begun
    for (const MigGpuReport& report : *planned) {
      if (report.state == MigState::Refused) refused.push_back(report);
    }
    end_change(refused);
  });
}

void MigWork::run(Work work, std::function<void(Result<Reports>)> then) {
  const auto node = ports_.node();
  worker_.run<Reports>(
      [work = std::move(work), holders = pod_holders(*node->facts, *node->holders)](
          nvml::GpuSource& source) { return work(source, holders); },
      std::move(then), options_.change_limit);
}

void MigWork::take_step(std::size_t at, Reports so_far) {
  if (at == change_->steps.size()) return end_change(so_far);
  run(change_->steps[at],
      [this, at, so_far = std::move(so_far)](const Result<Reports>& reports) mutable {
        if (!reports) return end_change(reports);
        so_far.insert(so_far.end(), reports->begin(), reports->end());
        take_step(at + 1, std::move(so_far));
      });
}

void MigWork::end_change(const Result<Reports>& reports) {
  const Change change = *std::exchange(change_, std::nullopt);
  step_ = Step::Reading;
  change.done(reports);
  ports_.read_facts();
}

}  // namespace jogak::agent
