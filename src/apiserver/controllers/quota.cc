// SPDX-License-Identifier: Apache-2.0
//
// The quota controller (pkg/controller/resourcequota of Kubernetes is the model): what the objects
// of a namespace use of each quota, kept as sums that follow every change, so that a full count
// happens only when a quota is new. Objects are counted a few at a time, other work goes on
// between.
#include <algorithm>
#include <deque>
#include <utility>

#include "apiserver/controllers/policy_controllers.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/object/meta.h"
#include "apiserver/object/quota_usage.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kTable = "resourcequotas";
constexpr int kPerTurn = 50;  // objects counted before others get the loop

using Usage = std::shared_ptr<const api::ResourceList>;

class Quotas : public Controller {
 public:
  explicit Quotas(const ControllerContext& context)
      : api_(context.make_api("kube-controller-manager")),
        pods_(context.pods),
        queue_(api_->loop(), [this](const std::string& key) { return sync(key); }),
        late_(api_->loop(), [this](const std::string& key) { return recount(key); }) {
    following_ = api_->follow(kTable, [this](const api::Api::Change& change) { on_quota(change); });
    // a quota may name objects of a kind that is defined later
    definitions_ = api_->follow(
        "customresourcedefinitions.apiextensions.k8s.io", [this](const api::Api::Change& change) {
          const bool is_served = api::condition_is(*change.object, "Established", "True");
          if (!is_served || change.type == store::EventType::Deleted) return;
          for (auto& [key, quota] : quotas_) {
            const std::string& table = api::name_of(*change.object);
            if (!quota.tables.contains(table) && names(quota, table)) start(key, quota);
          }
        });
  }
  ~Quotas() override { *alive_ = false; }

 private:
  struct Quota {
    Doc spec;
    std::string revision;  // of the quota, as last told
    api::ResourceList hard, used;
    std::map<std::string, Usage, std::less<>> parts;           // by "table/name"
    std::set<std::string, std::less<>> tables;                 // that it tracks
    std::deque<std::pair<std::string, std::string>> to_count;  // table, name
    std::set<std::string, std::less<>> pending;  // tables whose first objects are on their way
  };

  static bool names(const Quota& quota, std::string_view table) {
    return std::ranges::any_of(
        quota.hard, [&](const auto& entry) { return api::quota_tracks(table, entry.first); });
  }

  void on_quota(const api::Api::Change& change) {
    const std::string key = key_of(*change.object);
    if (change.type == store::EventType::Deleted) {
      quotas_.erase(key);
      return;
    }
    const auto [it, is_new] = quotas_.try_emplace(key);
    Quota& quota = it->second;
    quota.revision = api::meta(*change.object)["resourceVersion"].as_string();
    const Doc& spec = (*change.object)["spec"];
    if (is_new || spec != quota.spec) {
      quota.spec = spec;
      start(key, quota);
    }
    queue_.add(key);
  }

  // Begins to count from nothing.
  void start(const std::string& key, Quota& quota) {
    const std::string ns = split_key(key).first;
    quota.hard = api::read_resources(quota.spec["hard"]);
    quota.used.clear();
    quota.parts.clear();
    quota.tables.clear();
    quota.to_count.clear();
    quota.pending.clear();
    for (const api::Api::Table& table : api_->tables()) {
      if (!table.is_namespaced || !names(quota, table.name)) continue;
      quota.tables.insert(table.name);
      for (const auto& [name, amount] : quota.hard) {
        if (api::quota_tracks(table.name, name)) quota.used.try_emplace(name, api::Amount());
      }
      if (follow(table.name)) {
        quota.pending.insert(table.name);  // its objects come all by themselves
      } else if (table.name == "pods") {
        for (const PodViewPtr& pod : pods_.in_namespace(ns)) {
          quota.to_count.emplace_back("pods", pod->name);
        }
      } else {
        for (const Doc& object : api_->list(table.name, ns)) count(quota, table.name, object);
      }
    }
    queue_.add(key);
  }

  // Whether the table was not followed before: then all its objects come once, soon.
  bool follow(const std::string& table) {
    const auto it = tables_.find(table);
    if (it != tables_.end()) return !it->second.has_begun;
    tables_[table].handle = api_->follow(
        table, [this, table](const api::Api::Change& change) { on_object(table, change); });
    api_->loop().post([this, alive = alive_, table] {
      if (!*alive) return;
      tables_[table].has_begun = true;
      for (auto& [key, quota] : quotas_) {
        if (quota.pending.erase(table) > 0) queue_.add(key);
      }
    });
    return true;
  }

  void on_object(const std::string& table, const api::Api::Change& change) {
    const std::string& ns = api::namespace_of(*change.object);
    const std::string prefix = ns + "/";
    for (auto it = quotas_.lower_bound(prefix);
         it != quotas_.end() && it->first.starts_with(prefix); ++it) {
      if (!it->second.tables.contains(table)) continue;
      if (change.type == store::EventType::Deleted) {
        put(it->second, table + "/" + api::name_of(*change.object), nullptr);
      } else {
        count(it->second, table, *change.object);
        if (table == "pods") look_again(ns, *change.object);
      }
      queue_.add(it->first);
    }
  }

  // A pod whose time to go is over costs nothing any more, though nothing tells of it.
  void look_again(const std::string& ns, const Doc& pod) {
    const Doc& metadata = api::meta(pod);
    const auto end = api::parse_time(metadata["deletionTimestamp"].as_string());
    if (!end.has_value()) return;
    const TimeUs grace = metadata["deletionGracePeriodSeconds"].as_int() * kSecondInUs;
    late_.add_at(*end + grace + kSecondInUs, key_of(ns, api::name_of(pod)));
  }

  Outcome recount(const std::string& key) {
    const auto [ns, name] = split_key(key);
    const auto pod = api_->get("pods", ns, name);
    if (!pod.has_value()) return Outcome::Done;
    const std::string prefix = ns + "/";
    for (auto it = quotas_.lower_bound(prefix);
         it != quotas_.end() && it->first.starts_with(prefix); ++it) {
      if (!it->second.tables.contains("pods")) continue;
      count(it->second, "pods", *pod);
      queue_.add(it->first);
    }
    return Outcome::Done;
  }

  void count(Quota& quota, const std::string& table, const Doc& object) {
    api::ResourceList usage;
    if (api::quota_covers(quota.spec, table, object)) {
      usage = api::quota_usage(table, object, api_->now());
      std::erase_if(usage, [&](const auto& entry) {
        return entry.second.is_zero() || !quota.hard.contains(entry.first);
      });
    }
    put(quota, table + "/" + api::name_of(object), usage.empty() ? nullptr : shared(usage));
  }

  // Most objects use the same as many others.
  Usage shared(const api::ResourceList& usage) {
    std::string text;
    api::write_resources(usage).append_json(text);
    std::weak_ptr<const api::ResourceList>& known = usages_[text];
    Usage found = known.lock();
    if (found == nullptr) {
      found = std::make_shared<const api::ResourceList>(usage);
      known = found;
      if (usages_.size() > usages_limit_) {
        std::erase_if(usages_, [](const auto& entry) { return entry.second.expired(); });
        usages_limit_ = std::max<std::size_t>(1000, usages_.size() * 2);
      }
    }
    return found;
  }

  static void put(Quota& quota, const std::string& part, Usage usage) {
    const auto it = quota.parts.find(part);
    if (it != quota.parts.end()) {
      for (const auto& [name, amount] : *it->second) quota.used[name] -= amount;
      quota.parts.erase(it);
    }
    if (usage == nullptr) return;
    for (const auto& [name, amount] : *usage) quota.used[name] += amount;
    quota.parts.emplace(part, std::move(usage));
  }

  Outcome sync(const std::string& key) {
    const auto it = quotas_.find(key);
    if (it == quotas_.end()) return Outcome::Done;
    Quota& quota = it->second;
    const auto [ns, name] = split_key(key);
    for (int i = 0; i < kPerTurn && !quota.to_count.empty(); ++i) {
      const auto [table, object_name] = quota.to_count.front();
      quota.to_count.pop_front();
      const auto object = api_->get(table, ns, object_name);
      if (object.has_value()) count(quota, table, *object);
    }
    if (!quota.to_count.empty()) {
      queue_.add(key);
      return Outcome::Done;
    }
    if (!quota.pending.empty()) return Outcome::Done;  // asked again when they are there
    auto object = api_->get(kTable, ns, name);
    if (!object.has_value()) return Outcome::Done;
    // Admission has charged something whose object is not counted here yet: both are on their way.
    if (api::meta(*object)["resourceVersion"].as_string() != quota.revision) return Outcome::Done;
    return write(quota, *std::move(object));
  }

  Outcome write(const Quota& quota, Doc object) {
    const api::ResourceList before = api::read_resources(object["status"]["used"]);
    api::ResourceList used = before;
    for (const auto& [name, amount] : quota.used) used[name] = amount;
    std::erase_if(used, [&](const auto& entry) { return !quota.hard.contains(entry.first); });
    const Doc& status = object["status"];
    const bool is_same = (status.has("used") || used.empty()) &&
                         status["hard"] == quota.spec["hard"] &&
                         std::ranges::equal(used, before, [](const auto& a, const auto& b) {
                           return a.first == b.first && a.second == b.second;
                         });
    if (is_same) return Outcome::Done;
    Doc fresh = Doc::object();
    fresh.set("hard", quota.spec["hard"]).set("used", api::write_resources(used));
    object.set("status", std::move(fresh));
    const auto written = api_->update(kTable, std::move(object), "status");
    return written.has_value() || written.error().code == 404 ? Outcome::Done : Outcome::Retry;
  }

  struct Followed {
    std::shared_ptr<void> handle;
    bool has_begun = false;
  };

  std::unique_ptr<api::Api> api_;
  PodIndex& pods_;
  WorkQueue queue_, late_;
  std::map<std::string, Quota, std::less<>> quotas_;  // by ns/name
  std::map<std::string, Followed, std::less<>> tables_;
  std::map<std::string, std::weak_ptr<const api::ResourceList>, std::less<>> usages_;
  std::size_t usages_limit_ = 1000;
  std::shared_ptr<void> following_, definitions_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::unique_ptr<Controller> quota_controller(const ControllerContext& context) {
  return std::make_unique<Quotas>(context);
}

}  // namespace jogak::controllers
