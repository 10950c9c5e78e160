// SPDX-License-Identifier: Apache-2.0
//
// Command lines against one table: values, errors, help.
#include "base/args.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace jogak {
namespace {

constexpr Flag kFlags[] = {
    {.name = "seed",
     .kind = FlagKind::Int,
     .metavar = "N",
     .help = "random seed",
     .fallback = "1",
     .min = 0},
    {.name = "output",
     .letter = 'o',
     .kind = FlagKind::Choice,
     .metavar = "text|json|yaml",
     .help = "form of the report",
     .fallback = "text"},
    {.name = "verbose", .letter = 'v', .kind = FlagKind::Switch, .help = "say more"},
    {.name = "label", .kind = FlagKind::Repeated, .metavar = "K=V", .help = "only these nodes"},
    {.name = "out", .metavar = "FILE", .help = "where to write"},
};
constexpr std::string_view kExamples[] = {"jogak try a.yaml --seed 7"};
constexpr ArgTable kTable = {.command = "jogak try",
                             .operands = "FILE",
                             .summary = "tries a file",
                             .flags = kFlags,
                             .operands_max = 2,
                             .examples = kExamples};

Result<ParsedArgs> parse(std::initializer_list<std::string_view> words,
                         const ArgTable& table = kTable) {
  return parse_args(table, words);
}

std::string error_of(std::initializer_list<std::string_view> words,
                     const ArgTable& table = kTable) {
  const auto args = parse(words, table);
  return args ? "no error" : args.error().what;
}

TEST(Args, DefaultsHold) {
  const auto args = parse({}).value();
  EXPECT_EQ(args.number("seed"), 1);
  EXPECT_EQ(args.text("output"), "text");
  EXPECT_EQ(args.text("out"), "");
  EXPECT_FALSE(args.is_on("verbose"));
  EXPECT_TRUE(args.list("label").empty());
  EXPECT_TRUE(args.operands().empty());
  EXPECT_FALSE(args.is_given("seed"));
  EXPECT_FALSE(args.wants_help());
}

TEST(Args, EveryForm) {
  const auto args = parse({"a", "--seed", "7", "-o", "yaml", "--label=x=1", "--label", "y=2", "-v",
                           "--out=-", "b"})
                        .value();
  EXPECT_EQ(args.number("seed"), 7);
  EXPECT_EQ(args.text("output"), "yaml");
  EXPECT_EQ(args.list("label"), (std::vector<std::string>{"x=1", "y=2"}));
  EXPECT_TRUE(args.is_on("verbose"));
  EXPECT_EQ(args.text("out"), "-");
  EXPECT_EQ(args.operands(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(args.is_given("seed"));
}

TEST(Args, SmallPrint) {
  EXPECT_EQ(parse({"--seed=1", "--seed=2"}).value().number("seed"), 2);
  EXPECT_EQ(parse({"-ojson"}).value().text("output"), "json");
  EXPECT_EQ(parse({"-o=json"}).value().text("output"), "json");
  EXPECT_FALSE(parse({"-v", "--verbose=false"}).value().is_on("verbose"));
  EXPECT_EQ(parse({"--", "--seed", "-"}).value().operands(),
            (std::vector<std::string>{"--seed", "-"}));
  EXPECT_EQ(parse({"--out="}).value().text("out"), "");
  EXPECT_TRUE(parse({"--nonsense", "-h"}).value().wants_help());
  EXPECT_FALSE(parse({"--", "--help"}).value().wants_help());
}

TEST(Args, ErrorsSayWhatWouldBeRight) {
  EXPECT_EQ(error_of({"--sed=1"}), "unknown flag --sed; did you mean --seed?");
  EXPECT_EQ(error_of({"--zzzzzz"}), "unknown flag --zzzzzz");
  EXPECT_EQ(error_of({"-x"}), "unknown flag -x");
  EXPECT_EQ(error_of({"-vv"}), "unknown flag -vv; write short flags apart");
  EXPECT_EQ(error_of({"--seed"}), "--seed: needs a value, as in --seed=N");
  EXPECT_EQ(error_of({"--out", "--seed", "1"}), "--out: needs a value, as in --out=FILE");
  EXPECT_EQ(error_of({"--seed", "x"}), "--seed: \"x\" is not a whole number");
  EXPECT_EQ(error_of({"--seed", "-1"}), "--seed: -1 is not between 0 and 9223372036854775807");
  EXPECT_EQ(error_of({"-o", "jsno"}),
            "--output: \"jsno\" is not one of text|json|yaml; did you mean json?");
  EXPECT_EQ(error_of({"--verbose=maybe"}), "--verbose: is a switch and takes no value \"maybe\"");
  EXPECT_EQ(error_of({"a", "b", "c"}), "unexpected operand \"c\"");
}

TEST(Args, RequiredOnes) {
  static constexpr Flag kNeeded[] = {
      {.name = "spec", .metavar = "FILE", .help = "what to run", .is_required = true}};
  constexpr ArgTable kStrict = {.command = "jogak x",
                                .operands = "TRACE",
                                .flags = kNeeded,
                                .operands_min = 1,
                                .operands_max = 1};
  EXPECT_EQ(error_of({"t"}, kStrict), "--spec FILE is required: what to run");
  EXPECT_EQ(error_of({"--spec=s"}, kStrict), "missing operand: TRACE");
  EXPECT_EQ(error_of({"--spec=s", "t"}, kStrict), "no error");
}

TEST(Args, Help) {
  EXPECT_EQ(help_text(kTable), R"(usage: jogak try [flags] FILE

tries a file

flags:
      --seed N                 random seed (default 1)
  -o, --output text|json|yaml  form of the report (default text)
  -v, --verbose                say more
      --label K=V              only these nodes (may be repeated)
      --out FILE               where to write
  -h, --help                   print this and stop

examples:
  jogak try a.yaml --seed 7
)");
}

TEST(Args, HelpBreaksALongSummary) {
  constexpr ArgTable kLong = {
      .command = "jogak x",
      .summary =
          "Plays two hours of made-up pods on a made-up cluster under several policies and "
          "compares them."};
  EXPECT_TRUE(help_text(kLong).starts_with(
      "usage: jogak x [flags]\n\n"
      "Plays two hours of made-up pods on a made-up cluster under several policies and\n"
      "compares them.\n\nflags:\n"));
}

TEST(ArgsDeathTest, AskingForWhatIsNotInTheTable) {
  const auto args = parse({}).value();
  EXPECT_DEATH(args.text("nothing"), "no flag --nothing");
  EXPECT_DEATH(args.text("seed"), "check failed");
}

}  // namespace
}  // namespace jogak
