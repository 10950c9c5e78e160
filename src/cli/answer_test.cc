// SPDX-License-Identifier: Apache-2.0
//
// Where help, errors and answers go, and which exit code comes with them.
#include "cli/answer.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

namespace jogak::cli {
namespace {

constexpr Flag kFlags[] = {kOutputFlag};
constexpr ArgTable kTable = {.command = "jogak x", .summary = "does x", .flags = kFlags};

struct Printed {
  std::string out;
  std::string err;
};

template <class Fn>
Printed capture(Fn&& fn) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  fn();
  std::fflush(nullptr);
  return {.out = testing::internal::GetCapturedStdout(),
          .err = testing::internal::GetCapturedStderr()};
}

TEST(Answer, GoodWordsComeBackParsed) {
  int code = -1;
  const std::vector<std::string_view> words = {"-o", "yaml"};
  EXPECT_EQ(parse_or_answer(kTable, words, code)->text("output"), "yaml");
  EXPECT_EQ(code, -1);
}

TEST(Answer, HelpIsPrintedAndDone) {
  int code = -1;
  const std::vector<std::string_view> words = {"--help"};
  const Printed printed = capture([&] { EXPECT_FALSE(parse_or_answer(kTable, words, code)); });
  EXPECT_EQ(code, kExitDone);
  EXPECT_EQ(printed.out, help_text(kTable));
}

TEST(Answer, BadWordsAreBadUse) {
  int code = -1;
  const std::vector<std::string_view> words = {"--outptu=json"};
  const Printed printed = capture([&] { EXPECT_FALSE(parse_or_answer(kTable, words, code)); });
  EXPECT_EQ(code, kExitUsage);
  EXPECT_EQ(printed.err,
            "jogak x: unknown flag --outptu; did you mean --output?\n"
            "run `jogak x --help` for what it takes\n");
}

TEST(Answer, ErrorsHaveExitCodes) {
  const Printed printed = capture([] {
    EXPECT_EQ(report_error("jogak x", {.code = Errc::NotFound, .what = "open a"}), kExitUsage);
    EXPECT_EQ(report_error("jogak x", {.code = Errc::Invalid, .what = "bad b"}), kExitUsage);
    EXPECT_EQ(report_error("jogak x", {.code = Errc::Conflict, .what = "c"}), kExitFailed);
  });
  EXPECT_EQ(printed.err, "jogak x: open a\njogak x: bad b\njogak x: c\n");
}

TEST(Answer, DocsPrintInTheFormAskedFor) {
  const Doc doc = Doc::object().set("a", 1);
  EXPECT_EQ(capture([&] { print_doc(doc, "yaml"); }).out, "a: 1\n");
  EXPECT_EQ(capture([&] { print_doc(doc, "json"); }).out, "{\n  \"a\": 1\n}\n");
}

}  // namespace
}  // namespace jogak::cli
