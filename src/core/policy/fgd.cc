// SPDX-License-Identifier: Apache-2.0
// Baseline "FGD" of the FGD paper (Weng et al., USENIX ATC 2023): score
// s = trunc(100 * sigma((F_before - F_after) / 1000)) over the node alone. Whole-GPU and CPU-only
// pods have one F_after; for a share every device with room is tried and the best s counts, the
// lowest index on ties. The hundred coarse steps are part of the method: with finer ones equal
// scores no longer fall to the first node in node order, which keeps filling the same nodes.
#include "core/policy/fgd.h"

#include <algorithm>
#include <functional>

#include "base/digest.h"
#include "core/policy/best_fit.h"

namespace jogak::core {

namespace {

// 10^12 * ln(i / (100 - i)) rounded up, i = 1..99: sigma(x) >= i/100 exactly when x >=
// ln(i/(100-i)). x is in units of 1000 milli, hence x * 10^9 for a difference in milli. Computed
// with 50 digits; the test compares every step with the exponential function.
constexpr std::array<std::int64_t, 99> kThresholds = {
    -4595119850134, -3891820298110, -3476098689835, -3178053830347, -2944438979166,
    -2751535313041, -2586689344097, -2442347035369, -2313634929180, -2197224577336,
    -2090741096933, -1992430164690, -1900958761193, -1815289966638, -1734601055388,
    -1658228076603, -1585627263740, -1516347489368, -1450010175505, -1386294361119,
    -1324925414743, -1265666373331, -1208311205924, -1152679509938, -1098612288668,
    -1045968555182, -994622575144,  -944461608840,  -895384047054,  -847297860387,
    -800119300112,  -753771802376,  -708185057924,  -663294217410,  -619039208406,
    -575364144903,  -532216813747,  -489548225318,  -447312218043,  -405465108108,
    -363965377201,  -322773392263,  -281851152140,  -241162056816,  -200670695462,
    -160342650075,  -120144311842,  -80042707673,   -40005334613,   0,
    40005334614,    80042707674,    120144311843,   160342650076,   200670695463,
    241162056817,   281851152141,   322773392264,   363965377202,   405465108109,
    447312218044,   489548225319,   532216813748,   575364144904,   619039208407,
    663294217411,   708185057925,   753771802377,   800119300113,   847297860388,
    895384047055,   944461608841,   994622575145,   1045968555183,  1098612288669,
    1152679509939,  1208311205925,  1265666373332,  1324925414744,  1386294361120,
    1450010175506,  1516347489369,  1585627263741,  1658228076604,  1734601055389,
    1815289966639,  1900958761194,  1992430164691,  2090741096934,  2197224577337,
    2313634929181,  2442347035370,  2586689344098,  2751535313042,  2944438979167,
    3178053830348,  3476098689836,  3891820298111,  4595119850135};
constexpr std::int64_t kThresholdUnit = 1'000'000'000;

constexpr std::size_t kStatesMax = 1U << 18;
constexpr std::size_t kMemoMax = 1U << 22;

std::uint64_t scramble(std::uint64_t key) {
  key = (key ^ (key >> 32)) * 0x9fb21c651e98df25ULL;
  return key ^ (key >> 29);
}

}  // namespace

LogisticSteps::LogisticSteps(std::int64_t weight) {
  __extension__ using Wide = __int128;
  for (std::size_t i = 0; i < least_.size(); ++i) {
    const Wide scaled = static_cast<Wide>(kThresholds[i]) * weight;
    Wide least = scaled / kThresholdUnit;
    if (scaled > 0 && scaled % kThresholdUnit != 0)
      ++least;  // round up; division already does below 0
    least_[i] = static_cast<std::int64_t>(least);
  }
}

std::int64_t LogisticSteps::step(std::int64_t difference) const {
  return std::upper_bound(least_.begin(), least_.end(), difference) - least_.begin();
}

std::size_t ScoreMemo::home(std::uint64_t key) const { return scramble(key) & (slots_.size() - 1); }

std::int64_t ScoreMemo::find(std::uint64_t key) const {
  if (slots_.empty()) return kMissing;
  for (std::size_t at = home(key);; at = (at + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[at];
    if (slot.score == kMissing || slot.key == key) return slot.score;
  }
}

void ScoreMemo::insert(std::uint64_t key, std::int64_t score) {
  if (slots_.size() < 2 * (size_ + 1)) {
    const std::vector<Slot> old = std::exchange(slots_, {});
    slots_.resize(std::max<std::size_t>(old.size() * 2, 1U << 12));
    size_ = 0;
    for (const Slot& slot : old) {
      if (slot.score != kMissing) insert(slot.key, slot.score);
    }
  }
  std::size_t at = home(key);
  while (slots_[at].score != kMissing) at = (at + 1) & (slots_.size() - 1);
  slots_[at] = {key, score};
  ++size_;
}

void ScoreMemo::clear() {
  slots_.clear();
  size_ = 0;
}

void FgdPolicy::prepare(const Cluster& cluster, const WorkloadMix& mix) {
  view_.prepare(cluster);
  mix_.prepare(cluster, mix);
  steps_ = LogisticSteps(mix_.total_weight());
  node_states_.assign(cluster.nodes().size(), {});
  forget();
}

void FgdPolicy::forget() {
  states_.clear();
  free_pool_.clear();
  state_slots_.assign(1U << 12, 0);
  std::ranges::fill(node_states_, NodeState{});
  memo_.clear();
}

std::span<const std::int32_t> FgdPolicy::free_of(const State& state) const {
  return std::span(free_pool_).subspan(state.first, state.size);
}

bool FgdPolicy::is_state(const State& state, Symbol model, std::int64_t cpu,
                         std::span<const std::int32_t> free) const {
  return state.model == model && state.cpu == cpu && std::ranges::equal(free_of(state), free);
}

std::uint32_t FgdPolicy::intern(Symbol model, std::int64_t cpu,
                                std::span<const std::int32_t> free) {
  if (state_slots_.size() < 2 * (states_.size() + 1)) {
    state_slots_.assign(state_slots_.size() * 2, 0);
    const std::vector<State> old = std::exchange(states_, {});
    const std::vector<std::int32_t> pool = std::exchange(free_pool_, {});
    for (const State& s : old) {
      intern(s.model, s.cpu, std::span(pool).subspan(s.first, s.size));
    }
  }
  std::uint64_t hash = scramble(static_cast<std::uint64_t>(cpu) << 16 ^ model.value);
  for (const std::int32_t milli : free) {
    hash = scramble(hash ^ static_cast<std::uint64_t>(milli));
  }
  const std::size_t mask = state_slots_.size() - 1;
  std::size_t at = hash & mask;
  for (; state_slots_[at] != 0; at = (at + 1) & mask) {
    const std::uint32_t found = state_slots_[at] - 1;
    if (is_state(states_[found], model, cpu, free)) return found;
  }
  states_.push_back({.model = model,
                     .cpu = cpu,
                     .first = free_pool_.size(),
                     .size = free.size(),
                     .fragmentation = mix_.fragmentation(model, cpu, free)});
  free_pool_.insert(free_pool_.end(), free.begin(), free.end());
  state_slots_[at] = static_cast<std::uint32_t>(states_.size());
  return static_cast<std::uint32_t>(states_.size() - 1);
}

std::uint32_t FgdPolicy::state_of(const Cluster& cluster, const Node& node) {
  const std::size_t slot = node_slot(cluster, node);
  if (slot >= node_states_.size()) node_states_.resize(cluster.nodes().size());
  NodeState& known = node_states_[slot];
  if (known.version == node.version && known.version != 0) return known.state;
  if (states_.size() >= kStatesMax || memo_.size() >= kMemoMax) forget();
  sorted_.clear();
  for (const std::int32_t milli : view_.look(node, GpuAsk::Whole).milli) {
    if (milli != FreeGpus::kHidden) sorted_.push_back(milli);
  }
  std::ranges::sort(sorted_);
  known = {node.version, intern(node.gpu_model, free_cpu(node), sorted_)};
  return known.state;
}

std::uint32_t FgdPolicy::request_number(const Request& request) {
  if (last_request_ < requests_.size() && requests_[last_request_] == request) {
    return last_request_;
  }
  const auto at = std::ranges::find(requests_, request);
  if (at == requests_.end()) requests_.push_back(request);
  last_request_ =
      static_cast<std::uint32_t>(std::ranges::find(requests_, request) - requests_.begin());
  return last_request_;
}

std::int64_t FgdPolicy::share_step(const State& state, const Request& request, std::int32_t value) {
  const std::span<const std::int32_t> free = free_of(state);
  const std::int32_t left = value - request.milli;
  after_.clear();
  bool is_placed = false;
  bool is_taken = false;
  for (const std::int32_t milli : free) {
    if (!is_placed && milli >= left) {
      after_.push_back(left);
      is_placed = true;
    }
    if (milli == value && !is_taken) {
      is_taken = true;
      continue;
    }
    after_.push_back(milli);
  }
  const std::int64_t f = mix_.fragmentation(state.model, state.cpu - request.cpu, after_);
  return steps_.step(state.fragmentation - f);
}

std::int64_t FgdPolicy::compute(const State& state, const Request& request) {
  const std::span<const std::int32_t> free = free_of(state);
  if (request.count == 1 && request.milli < kWholeMilli) {
    std::int64_t best = 0;
    std::int32_t last = -1;
    for (const std::int32_t value : free) {
      if (value < request.milli || value == last) continue;
      last = value;
      best = std::max(best, share_step(state, request, value));
    }
    return best;
  }
  // Whole devices, or several shares on the tightest devices (as choose() takes them).
  after_.assign(free.begin(), free.end());
  std::int32_t wanted = request.count;
  for (std::int32_t& milli : after_) {
    if (wanted == 0) break;
    if (milli < request.milli) continue;
    milli -= request.milli;
    --wanted;
  }
  std::ranges::sort(after_);
  const std::int64_t f = mix_.fragmentation(state.model, state.cpu - request.cpu, after_);
  return steps_.step(state.fragmentation - f);
}

std::int64_t FgdPolicy::score(const Cluster& cluster, const Shape& shape, const Node& node) {
  const GpuAmount ask = view_.ask(shape, node);
  // F knows nothing of MIG instances.
  if (ask.kind == GpuAsk::Mig) return best_fit_score(view_, shape, node);
  const std::uint32_t state = state_of(cluster, node);
  const Request request{shape.cpu, ask.count, ask.milli};
  const std::uint64_t key = std::uint64_t{request_number(request)} << 32 | state;
  if (const std::int64_t known = memo_.find(key); known != ScoreMemo::kMissing) return known;
  const std::int64_t result = compute(states_[state], request);
  memo_.insert(key, result);
  return result;
}

void FgdPolicy::choose(const Cluster& cluster, const Shape& shape, const Node& node,
                       std::vector<GpuHold>& out) {
  const GpuAmount ask = view_.ask(shape, node);
  if (!ask.is_share() || ask.count != 1 || node.gpus.empty()) {
    return Policy::choose(cluster, shape, node, out);
  }
  const State state = states_[state_of(cluster, node)];
  const Request request{shape.cpu, ask.count, ask.milli};
  const FreeGpus& free = view_.look(node, ask.kind);
  std::int64_t best = -1;
  std::int32_t best_gpu = -1;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    if (!share_fits(node.gpus[i], shape.spec.gpu) || free.milli[i] < ask.milli) continue;
    const std::int64_t step = share_step(state, request, free.milli[i]);
    if (step > best) {
      best = step;
      best_gpu = static_cast<std::int32_t>(i);
    }
  }
  if (best_gpu < 0) return Policy::choose(cluster, shape, node, out);
  out.push_back({.gpu = best_gpu, .amount = shape.spec.gpu.amount});
}

}  // namespace jogak::core
