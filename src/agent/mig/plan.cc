// SPDX-License-Identifier: Apache-2.0
//
// A depth-first walk over the layouts that have the wanted counts; see plan.h. There are a few
// hundred at most, so every one is looked at.
#include "agent/mig/plan.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/check.h"

namespace jogak::agent {

namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

bool is_same(const MigPresent& present, const MigPlace& place) {
  return present.is_whole && present.place == place;
}

// Walks the layouts with exactly these counts that hold all places of `fixed`.
class Search {
 public:
  Search(const MigGeometry& geometry, const MigCounts& counts)
      : geometry_(geometry), left_(counts), allowed_(geometry.still_allowed(counts)) {}

  // False: this one may not be there, or overlaps another that is fixed.
  bool fix(const MigPlace& place) {
    const SliceMask mask = slice_mask(place.at);
    if (place.profile < 0 || left_[index(place.profile)] == 0 || (used_ & mask) != 0) return false;
    --left_[index(place.profile)];
    used_ |= mask;
    layout_.push_back(place);
    return true;
  }

  void prefer(const MigPlace& place) { preferred_.push_back(place); }

  // The best layout, unsorted; nullopt when there is none.
  std::optional<MigLayout> run() {
    walk(0, 0);
    return std::move(best_);
  }

 private:
  // Profiles from largest_first()[at] on; of that one, the places from `from` on.
  void walk(std::size_t at, std::size_t from) {
    const auto& order = geometry_.largest_first();
    while (at < order.size() && left_[index(order[at])] == 0) {
      ++at;
      from = 0;
    }
    if (at == order.size()) return look();
    const int profile = order[at];
    const auto& places = geometry_.profiles()[index(profile)].placements;
    for (std::size_t i = from; i < places.size(); ++i) {
      const SliceMask mask = slice_mask(places[i]);
      if ((used_ & mask) != 0) continue;
      const MigPlace place{.at = places[i], .profile = profile};
      const bool is_kept = std::ranges::find(preferred_, place) != preferred_.end();
      used_ |= mask;
      --left_[index(profile)];
      kept_ += is_kept ? 1 : 0;
      layout_.push_back(place);
      walk(at, i + 1);
      layout_.pop_back();
      kept_ -= is_kept ? 1 : 0;
      ++left_[index(profile)];
      used_ &= ~mask;
    }
  }

  // A complete layout: better than the best so far? The first of equals stays.
  void look() {
    if (best_ && kept_ < best_kept_) return;
    const std::int64_t freedom = geometry_.freedom(used_, allowed_);
    if (best_ && kept_ == best_kept_ && freedom <= best_freedom_) return;
    best_ = layout_;
    best_kept_ = kept_;
    best_freedom_ = freedom;
  }

  const MigGeometry& geometry_;
  MigCounts left_;
  std::vector<bool> allowed_;
  SliceMask used_ = 0;
  MigLayout layout_;
  std::vector<MigPlace> preferred_;  // there already, and free to stay or go
  int kept_ = 0;
  std::optional<MigLayout> best_;
  int best_kept_ = 0;
  std::int64_t best_freedom_ = 0;
};

// The best layout when the instances in `is_protected` (by position in `present`) must stay.
std::optional<MigLayout> best_layout(const MigGeometry& geometry,
                                     std::span<const MigPresent> present, const MigCounts& counts,
                                     const std::vector<bool>& is_protected) {
  Search search(geometry, counts);
  for (std::size_t i = 0; i < present.size(); ++i) {
    if (!is_protected[i]) {
      if (present[i].is_whole) search.prefer(present[i].place);
    } else if (!present[i].is_whole || !search.fix(present[i].place)) {
      return std::nullopt;
    }
  }
  return search.run();
}

std::vector<bool> all_in_use(std::span<const MigPresent> present) {
  std::vector<bool> result;
  for (const MigPresent& instance : present) result.push_back(instance.in_use);
  return result;
}

// The steps from what is there to `layout`, which holds every instance in use.
MigPlan steps_to(const MigGeometry& geometry, std::span<const MigPresent> present,
                 MigLayout layout) {
  std::ranges::sort(layout);
  MigPlan plan{.destroy = {}, .create = layout, .keep = {}, .after = layout};
  for (const MigPresent& instance : present) {
    const auto same = std::ranges::find_if(
        plan.create, [&](const MigPlace& place) { return is_same(instance, place); });
    if (same == plan.create.end()) {
      JOGAK_CHECK(!instance.in_use, "instance {} is in use", instance.gi_id);
      plan.destroy.push_back(instance);
    } else {
      plan.keep.push_back(instance);
      plan.create.erase(same);
    }
  }
  const auto slices = [&](const MigPlace& place) {
    return geometry.profiles()[index(place.profile)].slices;
  };
  std::ranges::stable_sort(plan.create, [&](const MigPlace& a, const MigPlace& b) {
    return a.at.size != b.at.size ? a.at.size > b.at.size : slices(a) > slices(b);
  });
  return plan;
}

// A smallest set of instances in use (none of it can be left out) whose end makes room.
template <class Fits>
std::vector<std::size_t> blockers_of(std::span<const MigPresent> present, const Fits& fits) {
  std::vector<bool> is_protected(present.size(), false);
  std::vector<std::size_t> blockers;
  for (std::size_t i = 0; i < present.size(); ++i) {
    if (!present[i].in_use) continue;
    is_protected[i] = true;
    if (fits(is_protected)) continue;
    is_protected[i] = false;
    blockers.push_back(i);
  }
  return blockers;
}

template <class Fits>
MigRefusal refuse_in_use(const MigGeometry& geometry, std::span<const MigPresent> present,
                         std::string_view wanted, const Fits& fits) {
  MigRefusal refusal{.why = MigRefusal::Why::InUse, .reason = {}, .blockers = {}};
  std::vector<std::string> texts;
  for (const std::size_t i : blockers_of(present, fits)) {
    const std::string by = present[i].user.empty() ? "" : " by " + present[i].user;
    texts.push_back(present_text(geometry, present[i]) + by);
    refusal.blockers.push_back(present[i].gi_id);
  }
  refusal.reason = fmt::format("{} needs the place of what is in use: {}; stop that first", wanted,
                               fmt::join(texts, ", "));
  return refusal;
}

}  // namespace

MigPlanned plan_counts(const MigGeometry& geometry, std::span<const MigPresent> present,
                       const MigCounts& counts) {
  JOGAK_CHECK(counts.size() == geometry.profiles().size());
  JOGAK_CHECK(std::ranges::all_of(counts, [](int count) { return count >= 0; }));
  if (auto fault = geometry.count_fault(counts)) {
    return std::unexpected(MigRefusal{MigRefusal::Why::Never, *std::move(fault), {}});
  }
  if (auto layout = best_layout(geometry, present, counts, all_in_use(present))) {
    return steps_to(geometry, present, *std::move(layout));
  }
  const auto fits = [&](const std::vector<bool>& is_protected) {
    return best_layout(geometry, present, counts, is_protected).has_value();
  };
  if (!fits(std::vector<bool>(present.size(), false))) {
    return std::unexpected(MigRefusal{MigRefusal::Why::Never,
                                      fmt::format("{} do not fit on the GPU together, wherever "
                                                  "they are placed",
                                                  geometry.counts_text(counts)),
                                      {}});
  }
  return std::unexpected(refuse_in_use(geometry, present, geometry.counts_text(counts), fits));
}

MigPlanned plan_layout(const MigGeometry& geometry, std::span<const MigPresent> present,
                       MigLayout layout) {
  if (auto fault = geometry.layout_fault(layout)) {
    return std::unexpected(MigRefusal{MigRefusal::Why::Never, *std::move(fault), {}});
  }
  const auto fits = [&](const std::vector<bool>& is_protected) {
    for (std::size_t i = 0; i < present.size(); ++i) {
      const bool stays = std::ranges::any_of(
          layout, [&](const MigPlace& place) { return is_same(present[i], place); });
      if (is_protected[i] && !stays) return false;
    }
    return true;
  };
  if (fits(all_in_use(present))) return steps_to(geometry, present, std::move(layout));
  return std::unexpected(refuse_in_use(geometry, present, "the layout", fits));
}

std::string present_text(const MigGeometry& geometry, const MigPresent& present) {
  if (present.place.profile >= 0) {
    const bool is_told = present.is_whole || present.part_slices.empty();
    return fmt::format("instance {} ({}{})", present.gi_id, geometry.place_text(present.place),
                       is_told ? "" : " in parts " + parts_text(present.part_slices));
  }
  return fmt::format("instance {} ({} at slice {})", present.gi_id, present.profile,
                     present.place.at.start);
}

bool shows_layout(std::span<const MigPresent> present, const MigLayout& layout) {
  if (present.size() != layout.size()) return false;
  return std::ranges::all_of(present, [&](const MigPresent& instance) {
    return std::ranges::any_of(layout,
                               [&](const MigPlace& place) { return is_same(instance, place); });
  });
}

}  // namespace jogak::agent
