// SPDX-License-Identifier: Apache-2.0
//
// `jogak sim openb`: the openb placement experiment over variants, policies and seeds, with the
// published numbers beside ours.
#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/args.h"
#include "base/file.h"
#include "base/parallel.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/seed_list.h"
#include "sim/openb_published.h"
#include "sim/openb_report.h"

namespace jogak::cli {

namespace {

constexpr Flag kFlags[] = {
    {.name = "dir",
     .letter = 'd',
     .metavar = "DIR",
     .help = "folder of the trace's CSV files",
     .is_required = true},
    {.name = "variant",
     .letter = 'v',
     .metavar = "NAMES",
     .help = "variants with commas between them; all: the seventeen with published results",
     .fallback = "default"},
    {.name = "policy",
     .letter = 'p',
     .metavar = "NAMES",
     .help = "policies with commas between them; all: every one",
     .fallback = "best-fit,fgd"},
    {.name = "seeds",
     .letter = 's',
     .metavar = "LIST",
     .help = "seeds, as 42 or 42-51",
     .fallback = "42-51"},
    {.name = "order",
     .metavar = "DIR",
     .help = "folder of published submission orders, VARIANT.txt.gz; none: draw them "
             "(default: DIR/sequences where it exists)"},
    {.name = "mix",
     .metavar = "VARIANT",
     .help = "tell the policies to expect this variant's workload instead of the one they get"},
    {.name = "jobs",
     .letter = 'j',
     .kind = FlagKind::Int,
     .metavar = "N",
     .help = "runs at a time; 0: one per processor",
     .fallback = "0",
     .min = 0,
     .max = 1024},
    kOutputFlag,
    {.name = "report", .metavar = "FILE", .help = "also write a page with charts, out.html"},
    {.name = "placements", .metavar = "FILE", .help = "also write every placement as CSV"},
    {.name = "skip-bad",
     .kind = FlagKind::Switch,
     .help = "leave out bad rows of the trace and list them, instead of stopping"},
    {.name = "no-timing",
     .kind = FlagKind::Switch,
     .help = "leave out times, so that equal runs print equal text"},
    {.name = "check",
     .kind = FlagKind::Switch,
     .help = "check every decision and the final state with independent code"},
    {.name = "check-published",
     .kind = FlagKind::Switch,
     .help = "exit 1 if a mean at 100 or 130 is off by more than three published deviations"},
};

constexpr std::string_view kExamples[] = {
    "jogak sim openb --dir traces/openb --policy all --seeds 42",
    "jogak sim openb --dir traces/openb --variant all --policy fgd,jogak --report out.html",
};

constexpr ArgTable kTable = {
    .command = "jogak sim openb",
    .summary =
        "Places the openb trace pod by pod at an empty cluster until 130 % of its GPU "
        "capacity has been asked for, and reports how much was allocated.",
    .flags = kFlags,
    .examples = kExamples,
};

struct Plan {
  sim::OpenbLoadOptions load;
  std::vector<std::string> policies;
};

Result<Plan> make_plan(const ParsedArgs& args) {
  Plan plan;
  plan.load.dir = args.text("dir");
  plan.load.skip_bad = args.is_on("skip-bad");
  if (args.text("variant") == "all") {
    for (const std::string_view name : sim::published_variants()) {
      plan.load.variants.emplace_back(name);
    }
  } else {
    auto variants = parse_words(args.text("variant"));
    if (!variants) return in_context("--variant", std::move(variants).error());
    plan.load.variants = *std::move(variants);
  }
  if (args.text("policy") == "all") {
    for (const core::PolicyInfo& info : core::policies()) plan.policies.emplace_back(info.name);
  } else {
    auto policies = parse_words(args.text("policy"));
    if (!policies) return in_context("--policy", std::move(policies).error());
    plan.policies = *std::move(policies);
  }
  for (const std::string& name : plan.policies) {
    auto policy = core::make_policy(name, 0);
    if (!policy) return in_context("--policy", std::move(policy).error());
  }
  auto seeds = parse_seeds(args.text("seeds"));
  if (!seeds) return in_context("--seeds", std::move(seeds).error());
  plan.load.seeds = *std::move(seeds);
  if (args.is_given("order")) {
    if (args.text("order") != "none") plan.load.order_dir = args.text("order");
  } else if (const auto dir = std::filesystem::path(plan.load.dir) / "sequences";
             std::filesystem::is_directory(dir)) {
    plan.load.order_dir = dir.string();
  }
  return plan;
}

Result<std::vector<sim::OpenbResult>> run_all(const Plan& plan, const sim::OpenbData& data,
                                              const std::optional<core::WorkloadMix>& mix,
                                              const ParsedArgs& args) {
  const std::size_t policies = plan.policies.size();
  const std::size_t seeds = plan.load.seeds.size();
  const std::size_t runs = data.variants.size() * policies * seeds;
  std::vector<std::optional<Result<sim::OpenbResult>>> slots(runs);
  Progress progress(runs, "runs");
  parallel_for(runs, static_cast<std::size_t>(args.number("jobs")), [&](std::size_t i) {
    const sim::OpenbVariant& variant = data.variants[i / (policies * seeds)];
    const sim::OpenbOrder& order = variant.orders[i % seeds];
    const sim::OpenbRunOptions options{.policy = plan.policies[i / seeds % policies],
                                       .keep_placements = args.is_given("placements"),
                                       .check = args.is_on("check")};
    slots[i] = sim::run_openb(data.nodes, variant, order, mix ? *mix : variant.mix, options);
    progress.done(fmt::format("{} {} seed {}", variant.name, options.policy, order.seed));
  });
  std::vector<sim::OpenbResult> results;
  for (auto& slot : slots) {
    JOGAK_TRY(sim::OpenbResult result, *std::move(slot));
    results.push_back(std::move(result));
  }
  return results;
}

Result<void> write_placements(const std::string& file,
                              const std::vector<sim::OpenbResult>& results) {
  std::string text(sim::kPlacementHeader);
  text += '\n';
  for (const sim::OpenbResult& result : results) {
    for (const std::string& row : result.placements) text.append(row).append("\n");
  }
  return write_file(file, text);
}

Result<int> run_command(const ParsedArgs& args) {
  JOGAK_TRY(const Plan plan, make_plan(args));
  JOGAK_TRY(const sim::OpenbData data, sim::load_openb(plan.load));
  std::optional<core::WorkloadMix> mix;
  if (args.is_given("mix")) {
    auto pods =
        sim::load_openb_pods(plan.load.dir, args.text("mix"), {.skip_bad = plan.load.skip_bad});
    if (!pods) return in_context("--mix", std::move(pods).error());
    mix = sim::openb_mix(*pods);
  }
  if (plan.load.skip_bad) {
    fmt::print(stderr, "skipped {} bad rows\n", data.skipped.size());
    for (const std::string& why : data.skipped) fmt::print(stderr, "  {}\n", why);
  }
  JOGAK_TRY(const auto results, run_all(plan, data, mix, args));
  const auto summaries = sim::summarize(results);
  if (args.is_given("placements")) {
    JOGAK_TRY_VOID(write_placements(args.text("placements"), results));
  }
  if (args.is_given("report")) {
    JOGAK_TRY_VOID(
        write_file(args.text("report"), sim::openb_html(summaries, !plan.load.order_dir.empty())));
  }
  const bool with_timing = !args.is_on("no-timing");
  if (args.text("output") == "table") {
    fmt::print("{}", sim::openb_table(summaries, with_timing));
  } else {
    print_doc(sim::openb_doc(results, summaries, with_timing), args.text("output"));
  }
  if (!args.is_on("check-published")) return kExitDone;
  const auto misses = sim::published_misses(summaries);
  for (const std::string& miss : misses) fmt::print(stderr, "misses the published: {}\n", miss);
  fmt::print(stderr, "{} misses of the published values\n", misses.size());
  return misses.empty() ? kExitDone : kExitFailed;
}

}  // namespace

int cmd_sim_openb(Args words) { return answer(kTable, words, run_command); }

}  // namespace jogak::cli
