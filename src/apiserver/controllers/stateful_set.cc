// SPDX-License-Identifier: Apache-2.0
//
// The stateful set controller (pkg/controller/statefulset of Kubernetes is the model): members with
// numbers, made in ascending and ended in descending order, each on the claims of its number.
#include <algorithm>

#include <fmt/core.h>

#include "apiserver/controllers/events.h"
#include "apiserver/controllers/pod_control.h"
#include "apiserver/controllers/revisions.h"
#include "apiserver/controllers/scaled.h"
#include "apiserver/controllers/stateful_parts.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/controllers/workloads.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kTable = "statefulsets.apps";
constexpr std::string_view kClaims = "persistentvolumeclaims";
constexpr std::string_view kComponent = "statefulset-controller";
constexpr HistoryOf kHistory = {.table = kTable, .hash_label = "controller.kubernetes.io/hash"};
constexpr int kPerTurn = 25;  // pods made or deleted before others get the loop

struct Member {
  std::int64_t ordinal = 0;
  PodViewPtr pod;  // null: to be made
};

// All that one look at a set goes by.
struct Round {
  std::string key;
  Doc set;
  Doc current, update;            // revisions
  std::vector<Member> replicas;   // by ordinal
  std::vector<Member> condemned;  // highest first
  TimeUs min_ready = 0;
  TimeUs next = 0;         // when another member might be available
  bool is_ordered = true;  // OrderedReady
  int writes = 0;
  std::int64_t deleted_current = 0;  // members that this round has sent away for an update
};

// What a step says to the next one.
enum class Step : std::uint8_t { Go, Stop, Fail };

class StatefulSets : public Controller {
 public:
  explicit StatefulSets(const ControllerContext& context)
      : api_(context.make_api("kube-controller-manager")),
        queue_(api_->loop(), [this](const std::string& key) { return sync(key); }),
        control_(*api_, context.pods, std::string(kComponent), "StatefulSet",
                 [this](const std::string& key) { queue_.add(key); }) {
    following_ = api_->follow(kTable, [this](const api::Api::Change& change) {
      queue_.add(control_.note_owner(change));
    });
  }

 private:
  Outcome sync(const std::string& key) {
    const auto [ns, name] = split_key(key);
    auto set = api_->get(kTable, ns, name);
    if (!set.has_value()) return Outcome::Done;
    Round round;
    round.key = key;
    round.min_ready = set->get("spec", "minReadySeconds").as_int() * kSecondInUs;
    round.is_ordered = set->get("spec", "podManagementPolicy").as_string() != "Parallel";
    round.set = *std::move(set);
    std::vector<Doc> revisions = revisions_of(*api_, round.set);
    if (!find_revisions(round, revisions)) return Outcome::Retry;
    sort_members(round);
    bool is_right = true;
    if (!api::is_deleting(round.set) && control_.is_settled(key)) {
      is_right = move(round) != Step::Fail;
    }
    const bool is_written = write_status(round);
    if (round.next != 0) queue_.add_at(round.next, key);
    const bool is_trimmed = drop_history(round, revisions);
    return is_right && is_written && is_trimmed ? Outcome::Done : Outcome::Retry;
  }

  bool find_revisions(Round& round, std::vector<Doc>& revisions) {
    auto update = keep_current_revision(*api_, kHistory, round.set, revisions);
    if (!update.has_value()) return false;
    round.update = *std::move(update);
    round.current = round.update;
    for (const Doc& revision : revisions) {
      const bool is_it =
          api::name_of(revision) == round.set.get("status", "currentRevision").as_string();
      if (is_it) round.current = revision;
    }
    return true;
  }

  void sort_members(Round& round) {
    const std::int64_t start = first_ordinal(round.set);
    const std::int64_t count = round.set.get("spec", "replicas").as_int(1);
    for (std::int64_t i = 0; i < count; ++i) {
      round.replicas.push_back({.ordinal = start + i, .pod = nullptr});
    }
    const auto selector = api::LabelSelector::from_object(round.set.get("spec", "selector"));
    for (const PodViewPtr& pod : control_.claim(round.set, selector)) {
      const auto ordinal = ordinal_of(api::name_of(round.set), pod->name);
      if (!ordinal.has_value()) continue;
      const std::int64_t at = *ordinal - start;
      if (at >= 0 && at < count) {
        round.replicas[static_cast<std::size_t>(at)].pod = pod;
      } else {
        round.condemned.push_back({.ordinal = *ordinal, .pod = pod});
      }
    }
    std::ranges::sort(round.condemned, std::ranges::greater(), &Member::ordinal);
  }

  bool is_up(Round& round, const PodViewPtr& pod) {
    return pod != nullptr && is_available(*pod, round.min_ready, api_->now(), round.next);
  }

  bool is_unavailable(Round& round, const PodViewPtr& pod) {
    return !is_up(round, pod) || pod->is_deleting;
  }

  Step move(Round& round) {
    const PodViewPtr first_ill = first_unavailable(round);
    for (Member& member : round.replicas) {
      const Step step = look_after(round, member);
      if (step != Step::Go) return step;
    }
    for (const Member& member : round.condemned) {
      if (!keep_claim_owners(round, member, true)) return Step::Fail;
    }
    for (Member& member : round.condemned) {
      const Step step = condemn(round, member, first_ill);
      if (step != Step::Go) return step;
    }
    return update(round);
  }

  // The first that is not well: the wanted ones by number, then the others by number.
  PodViewPtr first_unavailable(Round& round) {
    for (const Member& member : round.replicas) {
      if (is_unavailable(round, member.pod)) return member.pod;
    }
    for (auto it = round.condemned.rbegin(); it != round.condemned.rend(); ++it) {
      if (is_unavailable(round, it->pod)) return it->pod;
    }
    return nullptr;
  }

  Step look_after(Round& round, Member& member) {
    if (member.pod == nullptr) {
      const Step made = make_member(round, member);
      if (made != Step::Go || round.is_ordered) return made == Step::Go ? Step::Stop : made;
      return Step::Go;
    }
    const PodViewPtr pod = member.pod;
    if (pod->is_finished()) {
      if (!pod->is_deleting && !remove(round, member)) return Step::Fail;
      return round.is_ordered ? Step::Stop : Step::Go;  // made anew once it is gone
    }
    if (pod->phase == PodPhase::Pending && !pod->is_deleting) {
      if (!keep_claims(round, member.ordinal, pod->name)) return Step::Fail;
    }
    const bool blocks =
        pod->is_deleting || pod->phase != PodPhase::Running || !pod->is_ready || !is_up(round, pod);
    if (blocks && round.is_ordered) return Step::Stop;
    return keep_claim_owners(round, member, false) ? Step::Go : Step::Fail;
  }

  Step make_member(Round& round, Member& member) {
    const std::string name = fmt::format("{}-{}", api::name_of(round.set), member.ordinal);
    if (round.writes++ >= kPerTurn) {
      queue_.add(round.key);
      return Step::Stop;
    }
    const bool claims_go =
        round.set.get("spec", "persistentVolumeClaimRetentionPolicy", "whenScaled").as_string() ==
        "Delete";
    for (const Doc& claim : member_claims(round.set, member.ordinal)) {
      const auto there = api_->get(kClaims, api::namespace_of(round.set), api::name_of(claim));
      if (claims_go && there.has_value() && is_stale_claim(*there, name)) return Step::Fail;
    }
    if (!keep_claims(round, member.ordinal, name)) return Step::Fail;
    const Doc& revision = uses_current(round, member.ordinal) ? round.current : round.update;
    auto made = api_->create("pods", api::namespace_of(round.set),
                             member_pod(round.set, revision, member.ordinal));
    say(round, made.has_value(), "Create", name, made.has_value() ? "" : made.error().message);
    if (!made.has_value()) return Step::Fail;
    control_.note_created(round.key, api::uid_of(*made));
    member.pod = std::make_shared<const PodView>(view_of(*made));
    return keep_claim_owners(round, member, false) ? Step::Go : Step::Fail;
  }

  static bool uses_current(const Round& round, std::int64_t ordinal) {
    const Doc& strategy = round.set.get("spec", "updateStrategy");
    const std::int64_t place = ordinal - first_ordinal(round.set);
    const Doc& rolling = strategy["rollingUpdate"];
    if (!rolling.is_null()) return place < rolling["partition"].as_int();
    return strategy["type"].as_string() == "RollingUpdate" &&
           place < round.set.get("status", "currentReplicas").as_int();
  }

  bool keep_claims(Round& round, std::int64_t ordinal, const std::string& pod_name) {
    bool are_right = true;
    for (Doc& claim : member_claims(round.set, ordinal)) {
      const std::string name = api::name_of(claim);
      const std::string& ns = api::namespace_of(round.set);
      const auto there = api_->get(kClaims, ns, name);
      if (there.has_value()) {
        are_right = are_right && !api::is_deleting(*there);
        continue;
      }
      const auto made = api_->create(kClaims, ns, std::move(claim));
      are_right = are_right && made.has_value();
      write_event(*api_, kComponent, round.set, made.has_value() ? "Normal" : "Warning",
                  made.has_value() ? "SuccessfulCreate" : "FailedCreate",
                  made.has_value()
                      ? fmt::format("create Claim {} Pod {} in StatefulSet {} success", name,
                                    pod_name, api::name_of(round.set))
                      : fmt::format("create Claim {} for Pod {} in StatefulSet {} failed error: {}",
                                    name, pod_name, api::name_of(round.set), made.error().message));
    }
    return are_right;
  }

  bool keep_claim_owners(const Round& round, const Member& member, bool is_condemned) {
    for (const Doc& wanted : round.set.get("spec", "volumeClaimTemplates").items()) {
      auto claim = api_->get(kClaims, api::namespace_of(round.set),
                             claim_name(round.set, wanted, member.ordinal));
      if (!claim.has_value()) continue;
      auto owners = claim_owners(*claim, round.set, *member.pod, is_condemned);
      if (!owners.has_value()) continue;
      claim->at("metadata").set("ownerReferences", *std::move(owners));
      if (!api_->update(kClaims, *std::move(claim)).has_value()) return false;
    }
    return true;
  }

  void say(const Round& round, bool went_well, std::string_view verb, const std::string& pod,
           const std::string& error) {
    const std::string lower = verb == "Create" ? "create" : "delete";
    const std::string what =
        fmt::format("{} Pod {} in StatefulSet {}", lower, pod, api::name_of(round.set));
    write_event(*api_, kComponent, round.set, went_well ? "Normal" : "Warning",
                fmt::format("{}{}", went_well ? "Successful" : "Failed", verb),
                went_well ? what + " successful" : what + " failed error: " + error);
  }

  bool remove(Round& round, Member& member) {
    const PodViewPtr pod = member.pod;
    const auto removed =
        api_->remove("pods", pod->ns, pod->name,
                     Doc::object().set("preconditions", Doc::object().set("uid", pod->uid)));
    const bool is_gone = removed.has_value() || removed.error().code == 404;
    say(round, is_gone, "Delete", pod->name, is_gone ? "" : removed.error().message);
    if (!removed.has_value()) return is_gone;
    control_.note_deleted(round.key, pod->uid);
    ++round.writes;
    return true;
  }

  Step condemn(Round& round, Member& member, const PodViewPtr& first_ill) {
    if (member.pod->is_deleting) return round.is_ordered ? Step::Stop : Step::Go;
    const bool is_well =
        member.pod->phase == PodPhase::Running && member.pod->is_ready && is_up(round, member.pod);
    if (!is_well && round.is_ordered && member.pod != first_ill) return Step::Stop;
    if (round.writes >= kPerTurn) {
      queue_.add(round.key);
      return Step::Stop;
    }
    if (!remove(round, member)) return Step::Fail;
    return round.is_ordered ? Step::Stop : Step::Go;
  }

  // The highest member of an old template goes, once all above it are available again.
  Step update(Round& round) {
    const Doc& strategy = round.set.get("spec", "updateStrategy");
    if (strategy["type"].as_string() == "OnDelete") return Step::Go;
    const std::int64_t partition = strategy.get("rollingUpdate", "partition").as_int();
    for (auto i = static_cast<std::int64_t>(round.replicas.size()) - 1; i >= partition; --i) {
      Member& member = round.replicas[static_cast<std::size_t>(i)];
      const bool is_old = member.pod != nullptr && !member.pod->is_deleting &&
                          member.pod->label(kRevisionLabel) != api::name_of(round.update);
      if (is_old) {
        if (!remove(round, member)) return Step::Fail;
        ++round.deleted_current;
        return Step::Stop;
      }
      if (is_unavailable(round, member.pod)) return Step::Stop;
    }
    return Step::Go;
  }

  bool write_status(Round& round) {
    const auto now_set = api_->get(kTable, api::namespace_of(round.set), api::name_of(round.set));
    if (!now_set.has_value()) return true;
    std::int64_t replicas = 0, ready = 0, available = 0, current = 0, updated = 0;
    for (const auto* list : {&round.replicas, &round.condemned}) {
      for (const Member& member : *list) {
        if (member.pod == nullptr) continue;
        const PodView& pod = *member.pod;
        ++replicas;
        if (pod.phase == PodPhase::Running && pod.is_ready) {
          ++ready;
          if (is_up(round, member.pod)) ++available;
        }
        if (pod.is_deleting) continue;
        const std::string_view revision = pod.label(kRevisionLabel);
        if (revision == api::name_of(round.current)) ++current;
        if (revision == api::name_of(round.update)) ++updated;
      }
    }
    current -= round.deleted_current;
    std::string current_name = api::name_of(round.current);
    const std::int64_t wanted = round.set.get("spec", "replicas").as_int(1);
    const std::string& type = round.set.get("spec", "updateStrategy", "type").as_string();
    if (type == "RollingUpdate" && updated == wanted && ready == wanted && replicas == wanted) {
      current_name = api::name_of(round.update);  // the update is complete
      current = updated;
    }
    Doc changed = *now_set;
    Doc& status = changed.at("status");
    put_count(status, "observedGeneration", api::meta(round.set)["generation"].as_int());
    put_count(status, "replicas", replicas, true);
    put_count(status, "readyReplicas", ready);
    put_count(status, "availableReplicas", available, true);
    put_count(status, "currentReplicas", current);
    put_count(status, "updatedReplicas", updated);
    status.set("currentRevision", current_name).set("updateRevision", api::name_of(round.update));
    status.set_default("collisionCount", 0);
    if (status == (*now_set)["status"]) return true;
    return api_->update(kTable, std::move(changed), "status").has_value();
  }

  bool drop_history(const Round& round, const std::vector<Doc>& revisions) {
    std::set<std::string, std::less<>> live = {api::name_of(round.current),
                                               api::name_of(round.update)};
    for (const auto* list : {&round.replicas, &round.condemned}) {
      for (const Member& member : *list) {
        if (member.pod != nullptr) live.emplace(member.pod->label(kRevisionLabel));
      }
    }
    std::vector<const Doc*> unused;
    for (const Doc& revision : revisions) {
      if (!live.contains(api::name_of(revision))) unused.push_back(&revision);
    }
    return drop_old_revisions(*api_, round.set, std::move(unused)).has_value();
  }

  std::unique_ptr<api::Api> api_;
  WorkQueue queue_;
  PodControl control_;
  std::shared_ptr<void> following_;
};

}  // namespace

std::unique_ptr<Controller> stateful_set_controller(const ControllerContext& context) {
  return std::make_unique<StatefulSets>(context);
}

}  // namespace jogak::controllers
