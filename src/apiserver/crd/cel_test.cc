// SPDX-License-Identifier: Apache-2.0
//
// Expressions of real definitions, then one test a part of the language.
#include "apiserver/crd/cel.h"

#include "apiserver/crd/testing.h"

namespace jogak::api::cel {
namespace {

using testing::doc;

// The value as JSON, or "error: WHAT".
std::string run(std::string_view text, std::string_view self = "{}", std::string_view old = "") {
  const auto expression = Expression::parse(text);
  if (!expression) return "syntax: " + expression.error().what;
  if (!expression->is_supported()) return "not supported";
  const Doc value = doc(self);
  const Doc before = old.empty() ? Doc() : doc(old);
  std::vector<Expression::Variable> variables = {{"self", &value}};
  if (!old.empty()) variables.push_back({"oldSelf", &before});
  const auto result = expression->evaluate(variables);
  return result ? testing::json(*result) : "error: " + result.error().what;
}

TEST(Cel, RulesOfARealDefinition) {
  EXPECT_EQ(run("self.replicas <= self.size", R"({"replicas": 1, "size": 3})"), "true");
  EXPECT_EQ(run("self.replicas <= self.size", R"({"replicas": 9, "size": 3})"), "false");
  constexpr std::string_view kFixed = "!has(oldSelf.sel) || self.sel == oldSelf.sel";
  EXPECT_EQ(run(kFixed, R"({"sel": "x"})", "{}"), "true");
  EXPECT_EQ(run(kFixed, R"({"sel": "y"})", R"({"sel": "x"})"), "false");
  EXPECT_EQ(run(kFixed, "{}", R"({"sel": "x"})"), "error: no such key: sel");
}

TEST(Cel, PrecedenceAndArithmetic) {
  EXPECT_EQ(run("1 + 2 * 3 == 7 && !(1 > 2)"), "true");
  EXPECT_EQ(run("10 / 3 + 10 % 3"), "4");
  EXPECT_EQ(run("-2 - -3"), "1");
  EXPECT_EQ(run("0x10 + 1"), "17");
  EXPECT_EQ(run("1.5 * 2.0"), "3");
  EXPECT_EQ(run("true ? 1 : false ? 2 : 3"), "1");
  EXPECT_EQ(run("1 / 0"), "error: division by zero");
  EXPECT_EQ(run("1 % 0"), "error: modulus by zero");
  EXPECT_EQ(run("9223372036854775807 + 1"), "error: integer overflow");
  EXPECT_EQ(run("'a' + \"b\""), "\"ab\"");
  EXPECT_EQ(run("[1] + [2]"), "[1,2]");
}

TEST(Cel, Logic) {
  EXPECT_EQ(run("self.x || true"), "true");  // the error does not count
  EXPECT_EQ(run("false && self.x"), "false");
  EXPECT_EQ(run("self.x && true"), "error: no such key: x");
  EXPECT_EQ(run("1 || true"), "true");
}

TEST(Cel, MembersAndIndexes) {
  constexpr std::string_view kSelf = R"({"a": {"b": [1, 2]}, "x-y": 3, "in": 4})";
  EXPECT_EQ(run("self.a.b[1]", kSelf), "2");
  EXPECT_EQ(run("self['a']['b'][0]", kSelf), "1");
  EXPECT_EQ(run("self.a.b[2]", kSelf), "error: index out of bounds: 2");
  EXPECT_EQ(run("self.x__dash__y + self.__in__", kSelf), "7");
  EXPECT_EQ(run("has(self.a.b) && !has(self.a.c)", kSelf), "true");
  EXPECT_EQ(run("'a' in self && !(3 in self.a.b)", kSelf), "true");
}

TEST(Cel, Macros) {
  constexpr std::string_view kSelf = R"({"l": [{"n": "a", "v": 1}, {"n": "b", "v": 2}],
                                         "m": {"k1": 1, "k2": 2}})";
  EXPECT_EQ(run("self.l.all(x, x.v > 0)", kSelf), "true");
  EXPECT_EQ(run("self.l.all(x, x.v > 1)", kSelf), "false");
  EXPECT_EQ(run("self.l.exists(x, x.n == 'b')", kSelf), "true");
  EXPECT_EQ(run("self.l.exists_one(x, x.v > 0)", kSelf), "false");
  EXPECT_EQ(run("self.l.filter(x, x.v > 1).map(x, x.n)", kSelf), "[\"b\"]");
  EXPECT_EQ(run("self.l.map(x, x.v > 1, x.n)", kSelf), "[\"b\"]");
  EXPECT_EQ(run("self.m.all(k, self.m[k] < 3)", kSelf), "true");
  EXPECT_EQ(run("self.l.all(x, self.l.exists(y, y.v == x.v))", kSelf), "true");
  EXPECT_EQ(run("self.l.exists(x, x.q == 1)", kSelf), "error: no such key: q");
  EXPECT_EQ(run("self.l.exists(x, x.q == 1 || x.v == 2)", kSelf), "true");
}

TEST(Cel, Functions) {
  EXPECT_EQ(run("size('öä') + 'abc'.size() + size([1, 2]) + size({'a': 1})"), "8");
  EXPECT_EQ(run("'abc'.startsWith('a') && 'abc'.endsWith('c') && 'abc'.contains('b')"), "true");
  EXPECT_EQ(run("'abc'.matches('^[a-z]+$')"), "true");
  EXPECT_EQ(run("string(5) + string(true)"), "\"5true\"");
  EXPECT_EQ(run("int('7') + int(2.9)"), "9");
  EXPECT_EQ(run("'A b'.lowerAscii() + ' x '.trim()"), "\"a bx\"");
  EXPECT_EQ(run("'a,b'.split(',').join('-')"), "\"a-b\"");
  EXPECT_EQ(run("'hello'.substring(1, 3) + 'aa'.replace('a', 'b')"), "\"elbb\"");
  EXPECT_EQ(run("[3, 1].min() + [3, 1].max() + [1, 2].sum()"), "7");
  EXPECT_EQ(run("[1, 2].isSorted() && ![2, 1].isSorted()"), "true");
  EXPECT_EQ(run("'abcb'.indexOf('b') + 'abcb'.lastIndexOf('b')"), "4");
}

TEST(Cel, Comparisons) {
  EXPECT_EQ(run("1 == 1.0 && 1 < 1.5 && 'a' < 'b' && false < true"), "true");
  EXPECT_EQ(run("1 == '1'"), "false");
  EXPECT_EQ(run("1 < 'a'"), "error: no such overload");
  EXPECT_EQ(run("{'a': 1} == {'a': 1} && [1] != [2]"), "true");
}

TEST(Cel, Literals) {
  EXPECT_EQ(run(R"("tab\t\x41\u00e4\101")"), "\"tab\\tAäA\"");
  EXPECT_EQ(run(R"(r'\d')"), R"("\\d")");
  EXPECT_EQ(run("'''a\nb'''"), R"("a\nb")");
  EXPECT_EQ(run("null == null // a comment"), "true");
}

TEST(Cel, WhatIsBeyondThis) {
  EXPECT_EQ(run("timestamp(self.t) < timestamp('2024-01-01T00:00:00Z')"), "not supported");
  EXPECT_EQ(run("quantity('1').isLessThan(quantity('2'))"), "not supported");
  EXPECT_EQ(run("self.?a.orValue(1) == 1"), "not supported");
  EXPECT_EQ(run("other == 1"), "not supported");
}

TEST(Cel, SyntaxErrors) {
  for (const std::string_view text : {"", "self.", "1 +", "(1", "'a", "a b", "self.x ==", "#",
                                      "has(self)", "[1, 2", "self.all(x)", "'a\\", "'\\x1"}) {
    EXPECT_NE(syntax_error(text), "") << text;
  }
  EXPECT_EQ(syntax_error("self.a == 1"), "");
}

TEST(Cel, DeepNestingIsRefused) {
  EXPECT_NE(syntax_error(std::string(1000, '(') + "1" + std::string(1000, ')')), "");
  EXPECT_NE(syntax_error(std::string(1000, '!') + "true"), "");
}

}  // namespace
}  // namespace jogak::api::cel
