// SPDX-License-Identifier: Apache-2.0
//
// See on_demand.h. The planner does the search: a layout with what is in use, what is promised, the
// new instance, and as many of the idle ones as fit beside them.
#include "agent/mig/on_demand.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include <fmt/format.h>

#include "agent/mig/profile_name.h"
#include "base/check.h"

namespace jogak::agent {

namespace {

constexpr std::size_t kIdleMax = 12;  // more never lie on one GPU

std::size_t index(int i) { return static_cast<std::size_t>(i); }

struct Candidate {
  MigCut cut;
  std::size_t destroyed = 0;
  std::int64_t freedom_before = 0;  // of the GPU: the fullest that fits is taken
};

// One GPU on the way to an answer: what must stay, what may go, what must get a place.
class Cutter {
 public:
  Cutter(const MigCutGpu& gpu, std::span<const MigHold> others, const MigHold& wanted)
      : gpu_(gpu), geometry_(*gpu.geometry), now_(gpu.present), wanted_(wanted) {
    counts_.assign(geometry_.profiles().size(), 0);
    for (const MigHold& hold : others) promise(hold);
    for (std::size_t i = 0; i < now_.size(); ++i) {
      if (now_[i].in_use) {
        if (now_[i].place.profile >= 0) ++counts_[index(now_[i].place.profile)];
      } else {
        idle_.push_back(i);
      }
    }
    JOGAK_CHECK(idle_.size() <= kIdleMax);
  }

  // False: the GPU can never have it, whatever is there now; why_not() says why.
  bool could_ever() {
    const auto profile = match_profile(wanted_.profile, geometry_.profiles());
    if (!profile) {
      why_not_ = profile.error().what;
      return false;
    }
    profile_ = *profile;
    const auto& places = geometry_.profiles()[index(profile_)].placements;
    for (const nvml::MigPlacement& at : places) {
      if (!wanted_.start || *wanted_.start == at.start) places_.push_back({at, profile_});
    }
    if (places_.empty()) {
      why_not_ = fmt::format("{} may not start at slice {}", geometry_.name(profile_),
                             wanted_.start.value_or(0));
    }
    return !places_.empty();
  }

  std::optional<Candidate> best() {
    std::optional<Candidate> best;
    for (const MigPlace& place : places_) {
      auto candidate = at(place);
      if (!candidate) continue;
      const auto rank = [&](const Candidate& c) {
        return std::tuple(c.destroyed, c.cut.kind != MigCut::Kind::Use, -after(c.cut));
      };
      if (!best || rank(*candidate) < rank(*best)) best = std::move(candidate);
    }
    return best;
  }

  const std::string& why_not() const { return why_not_; }

 private:
  // What another pod was promised: a place of its own, or a count anywhere.
  void promise(const MigHold& hold) {
    if (hold.gpu && *hold.gpu != gpu_.gpu) return;
    // Promised on no GPU in particular: it may come elsewhere, and cannot be kept room for on all.
    if (!hold.gpu) return;
    const auto profile = match_profile(hold.profile, geometry_.profiles());
    if (!profile) return;
    const auto& places = geometry_.profiles()[index(*profile)].placements;
    const auto at = std::ranges::find_if(
        places, [&](const nvml::MigPlacement& place) { return hold.start == place.start; });
    if (at == places.end()) {
      ++counts_[index(*profile)];
      return;
    }
    const MigPlace place{.at = *at, .profile = *profile};
    const auto there = std::ranges::find_if(now_, [&](const MigPresent& instance) {
      return instance.is_whole && !instance.in_use && instance.place == place;
    });
    if (there != now_.end()) {
      there->in_use = true;
      there->user = "pod " + hold.pod;
      return;
    }
    reserved_ |= slice_mask(place.at);
    fixed_.push_back(place);
  }

  // The answer with the instance at exactly this place; nullopt: it cannot lie there now.
  std::optional<Candidate> at(const MigPlace& place) {
    const SliceMask mask = slice_mask(place.at);
    if ((mask & reserved_) != 0 || !leaves_room(place)) return std::nullopt;
    Candidate result;
    result.cut.gpu = gpu_.gpu;
    result.cut.place = place;
    std::size_t must_go = 0;  // idle instances that lie in the way
    for (std::size_t i = 0; i < now_.size(); ++i) {
      const MigPresent& instance = now_[i];
      if ((slice_mask(instance.place.at) & mask) == 0) continue;
      if (instance.in_use) return std::nullopt;
      if (instance.is_whole && instance.place == place) {
        result.cut.kind = MigCut::Kind::Use;
        result.cut.gi_id = instance.gi_id;
        return result;
      }
      must_go |= std::size_t{1} << (std::ranges::find(idle_, i) - idle_.begin());
    }
    const auto gone = fewest_gone(place, must_go);
    if (!gone) return std::nullopt;
    result.cut.kind = MigCut::Kind::Create;
    for (std::size_t i = 0; i < idle_.size(); ++i) {
      if ((*gone >> i & 1) != 0) result.cut.destroy.push_back(now_[idle_[i]]);
    }
    result.destroyed = result.cut.destroy.size();
    return result;
  }

  // The smallest set of idle instances, with all of `must_go` in it, without which the new one may
  // be there beside the rest: more may have to go than lie in the way, for the engines they take.
  // Sets are bits over idle_.
  std::optional<std::size_t> fewest_gone(const MigPlace& place, std::size_t must_go) const {
    std::vector<std::size_t> sets;
    for (std::size_t set = 0; set < std::size_t{1} << idle_.size(); ++set) {
      if ((set & must_go) == must_go) sets.push_back(set);
    }
    std::ranges::stable_sort(sets, {}, [](std::size_t set) { return std::popcount(set); });
    const auto may_be = [&](std::size_t gone) {
      MigLayout layout = {place};
      for (std::size_t i = 0; i < now_.size(); ++i) {
        const auto bit = static_cast<std::size_t>(std::ranges::find(idle_, i) - idle_.begin());
        const bool stays = now_[i].in_use || (gone >> bit & 1) == 0;
        if (stays && now_[i].place.profile >= 0) layout.push_back(now_[i].place);
      }
      return !geometry_.layout_fault(layout);
    };
    const auto at = std::ranges::find_if(sets, may_be);
    return at == sets.end() ? std::nullopt : std::optional(*at);
  }

  // Whether everything that was promised still finds a place beside this one and what is in use.
  // Idle instances do not count: they serve the promises or go.
  bool leaves_room(const MigPlace& place) const {
    std::vector<MigPresent> there;
    MigCounts counts = counts_;
    for (const MigPresent& instance : now_) {
      if (!instance.in_use) continue;
      there.push_back(instance);
      there.back().is_whole = true;  // also one in parts: it stays as it is
    }
    std::vector<MigPlace> fixed = fixed_;
    fixed.push_back(place);
    for (const MigPlace& at : fixed) {
      MigPresent instance;
      instance.place = at;
      instance.in_use = true;
      there.push_back(std::move(instance));
      ++counts[index(at.profile)];
    }
    return plan_counts(geometry_, there, counts).has_value();
  }

  // How much may still come when this has been done.
  std::int64_t after(const MigCut& cut) const {
    SliceMask used = reserved_ | slice_mask(cut.place.at);
    MigCounts counts = counts_;
    for (const MigPlace& at : fixed_) ++counts[index(at.profile)];
    ++counts[index(cut.place.profile)];
    for (const MigPresent& instance : now_) {
      const bool is_gone =
          std::ranges::find(cut.destroy, instance.gi_id, &MigPresent::gi_id) != cut.destroy.end();
      if (!is_gone) used |= slice_mask(instance.place.at);
    }
    return geometry_.freedom(used, geometry_.still_allowed(counts));
  }

  const MigCutGpu& gpu_;
  const MigGeometry& geometry_;
  std::vector<MigPresent> now_;
  const MigHold& wanted_;
  MigCounts counts_;             // in use, and promised without a place
  std::vector<MigPlace> fixed_;  // promised with a place, and not there yet
  SliceMask reserved_ = 0;       // their slices
  std::vector<std::size_t> idle_;
  int profile_ = -1;
  std::vector<MigPlace> places_;
  std::string why_not_;
};

std::int64_t freedom_of(const MigCutGpu& gpu) {
  SliceMask used = 0;
  MigCounts counts(gpu.geometry->profiles().size(), 0);
  for (const MigPresent& instance : gpu.present) {
    used |= slice_mask(instance.place.at);
    if (instance.place.profile >= 0) ++counts[index(instance.place.profile)];
  }
  return gpu.geometry->freedom(used, gpu.geometry->still_allowed(counts));
}

}  // namespace

MigCut cut_for(std::span<const MigCutGpu> gpus, std::span<const MigHold> others,
               const MigHold& wanted) {
  std::optional<Candidate> best;
  bool could_be = false;
  std::string why_not = wanted.gpu ? fmt::format("gpu {} has no MIG", *wanted.gpu)
                                   : std::string("no GPU of the node has MIG on");
  for (const MigCutGpu& gpu : gpus) {
    JOGAK_CHECK(gpu.geometry != nullptr);
    if (wanted.gpu && *wanted.gpu != gpu.gpu) continue;
    Cutter cutter(gpu, others, wanted);
    if (!cutter.could_ever()) {
      why_not = cutter.why_not();
      continue;
    }
    could_be = true;
    auto candidate = cutter.best();
    if (!candidate) continue;
    candidate->freedom_before = freedom_of(gpu);
    const auto rank = [](const Candidate& c) {
      return std::tuple(c.destroyed, c.cut.kind != MigCut::Kind::Use, c.freedom_before);
    };
    if (!best || rank(*candidate) < rank(*best)) best = std::move(candidate);
  }
  if (best) return best->cut;
  MigCut no;
  no.kind = could_be ? MigCut::Kind::Wait : MigCut::Kind::Never;
  no.reason =
      could_be ? fmt::format("no room for a {} beside what is in use or promised", wanted.profile)
               : why_not;
  return no;
}

}  // namespace jogak::agent
