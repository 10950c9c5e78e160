// SPDX-License-Identifier: Apache-2.0
// Submission orders of openb runs: read from a sequences file, or drawn the way the published ones
// were (Weng et al., USENIX ATC 2023: "workload tuning" to 130 % of the GPU capacity).
#include <algorithm>
#include <map>
#include <numeric>

#include "base/parse_number.h"
#include "base/rng.h"
#include "sim/openb_trace.h"

namespace jogak::sim {

namespace {

// Words of one line, in order.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}
  std::string_view next() {
    const std::size_t start = std::min(rest_.find_first_not_of(" \t\r"), rest_.size());
    rest_.remove_prefix(start);
    const std::size_t end = std::min(rest_.find_first_of(" \t\r"), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }

 private:
  std::string_view rest_;
};

struct Line {
  std::string_view keyword;
  std::int64_t seed = 0;
  std::vector<std::int32_t> numbers;
};

// Numbers are read only where the seed is wanted: a file holds ten times what one run needs.
Result<Line> read_line(std::string_view text, std::int64_t limit,
                       const std::vector<std::int64_t>& seeds) {
  Words words(text);
  Line line;
  line.keyword = words.next();
  if (line.keyword != "arrivals" && line.keyword != "nodeorder") {
    return invalid("starts with \"{}\"; expected arrivals or nodeorder",
                   line.keyword.substr(0, 20));
  }
  auto seed = parse_int(words.next(), 0, std::int64_t{1} << 32);
  if (!seed) return in_context("field seed", std::move(seed).error());
  line.seed = *seed;
  if (std::ranges::find(seeds, line.seed) == seeds.end()) return line;
  auto count = parse_int(words.next(), 0, 10'000'000);
  if (!count) return in_context("field count", std::move(count).error());
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    auto number = parse_int(word, 0, limit - 1);
    if (!number) {
      return in_context(fmt::format("field {}", line.numbers.size() + 4),
                        std::move(number).error());
    }
    line.numbers.push_back(static_cast<std::int32_t>(*number));
  }
  if (static_cast<std::int64_t>(line.numbers.size()) != *count) {
    return invalid("field count: says {} numbers, {} follow", *count, line.numbers.size());
  }
  return line;
}

bool is_permutation_of_all(const std::vector<std::int32_t>& ranks, std::size_t n) {
  std::vector<bool> seen(n, false);
  for (const std::int32_t rank : ranks) {
    const std::size_t at = static_cast<std::size_t>(rank);
    if (at >= n || seen[at]) return false;
    seen[at] = true;
  }
  return ranks.size() == n;
}

Result<void> take_line(Line line, const OpenbNodes& nodes, const OpenbPods& pods,
                       OpenbOrder& order) {
  if (line.keyword == "arrivals") {
    if (!order.arrivals.empty()) return invalid("arrivals of seed {} given twice", line.seed);
    for (const std::int32_t row : line.numbers) {
      const std::int32_t pod = pods.pod_of_row[static_cast<std::size_t>(row)];
      if (pod != OpenbPods::kNoPod) order.arrivals.push_back(pod);
    }
    if (order.arrivals.empty()) return invalid("no arrivals for seed {}", line.seed);
    return {};
  }
  if (!order.node_rank.empty()) return invalid("nodeorder of seed {} given twice", line.seed);
  if (!is_permutation_of_all(line.numbers, nodes.nodes.size())) {
    return invalid("nodeorder of seed {} is not a permutation of the {} nodes", line.seed,
                   nodes.nodes.size());
  }
  order.node_rank = std::move(line.numbers);
  return {};
}

}  // namespace

Result<std::vector<OpenbOrder>> parse_openb_orders(std::string file, std::string_view text,
                                                   const OpenbNodes& nodes, const OpenbPods& pods,
                                                   const std::vector<std::int64_t>& seeds) {
  std::map<std::int64_t, OpenbOrder> found;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view raw = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (raw.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const bool is_nodes = raw.starts_with("nodeorder");
    const std::size_t limit = is_nodes ? nodes.nodes.size() : pods.pod_of_row.size();
    auto line = read_line(raw, static_cast<std::int64_t>(limit), seeds);
    if (!line) return in_context(fmt::format("{}:{}", file, number), std::move(line).error());
    if (std::ranges::find(seeds, line->seed) == seeds.end()) continue;
    OpenbOrder& order = found[line->seed];
    const auto taken = take_line(*std::move(line), nodes, pods, order);
    if (!taken) return in_context(fmt::format("{}:{}", file, number), taken.error());
  }
  std::vector<OpenbOrder> orders;
  for (const std::int64_t seed : seeds) {
    OpenbOrder order = found[seed];
    if (order.arrivals.empty() || order.node_rank.empty()) {
      return invalid("{}: no {} line for seed {}; use --order none to draw one", file,
                     order.arrivals.empty() ? "arrivals" : "nodeorder", seed);
    }
    order.seed = seed;
    order.is_published = true;
    orders.push_back(std::move(order));
  }
  return orders;
}

OpenbOrder draw_openb_order(const OpenbNodes& nodes, const OpenbPods& pods, std::int64_t seed) {
  const std::uint64_t number = static_cast<std::uint64_t>(seed);
  OpenbOrder order;
  order.seed = seed;

  order.arrivals.resize(pods.pods.size());
  std::iota(order.arrivals.begin(), order.arrivals.end(), 0);
  const auto pod_at = [&pods](std::int32_t i) -> const OpenbPod& {
    return pods.pods[static_cast<std::size_t>(i)];
  };
  std::ranges::sort(order.arrivals, {}, [&](std::int32_t i) { return pod_at(i).name; });
  Rng shuffle(number, "openb/arrivals");
  shuffle.shuffle(std::span(order.arrivals));

  const std::int64_t limit = nodes.gpu_milli() / 10 * 13;
  std::int64_t asked = 0;
  for (const std::int32_t i : order.arrivals) asked += pod_at(i).gpu_total();
  Rng clones(number, "openb/clones");
  if (asked > limit) {
    while (asked > limit) {
      const auto at = static_cast<std::ptrdiff_t>(clones.below(order.arrivals.size()));
      asked -= pod_at(order.arrivals[static_cast<std::size_t>(at)]).gpu_total();
      order.arrivals.erase(order.arrivals.begin() + at);
    }
  } else {
    // Without a single GPU pod the sum would never reach the limit.
    const std::size_t length_max = 16 * pods.pods.size() + 1'000'000;
    while (order.arrivals.size() < length_max) {
      const auto pod = static_cast<std::int32_t>(clones.below(pods.pods.size()));
      // The published generator tests one device's share, not the pod's whole request.
      if (asked + pod_at(pod).gpu_milli > limit) break;
      asked += pod_at(pod).gpu_total();
      order.arrivals.push_back(pod);
    }
  }

  order.node_rank.resize(nodes.nodes.size());
  std::iota(order.node_rank.begin(), order.node_rank.end(), 0);
  Rng ranks(number, "openb/nodes");
  ranks.shuffle(std::span(order.node_rank));
  return order;
}

}  // namespace jogak::sim
