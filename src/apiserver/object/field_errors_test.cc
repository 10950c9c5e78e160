// SPDX-License-Identifier: Apache-2.0
//
// Field paths, and the words of each kind of finding.
#include "apiserver/object/field_errors.h"

#include <gtest/gtest.h>

namespace jogak::api {
namespace {

std::string only_message(const FieldErrors& errors) {
  return errors.size() == 1 ? errors.list().front().message : errors.text();
}

TEST(Path, GrowsStepByStep) {
  const Path path = Path("spec").child("containers").index(0).child("resources", "limits");
  EXPECT_EQ(path.key("nvidia.com/gpu").text(),
            "spec.containers[0].resources.limits[nvidia.com/gpu]");
  EXPECT_EQ(Path().child("metadata").text(), "metadata");
}

TEST(FieldErrors, ShowsStringsInQuotes) {
  FieldErrors errors;
  errors.invalid(Path("a"), "x\"\n\x01", "must be y");
  EXPECT_EQ(only_message(errors), "Invalid value: \"x\\\"\\n\\x01\": must be y");
}

TEST(FieldErrors, ShowsOtherValuesAsJson) {
  FieldErrors errors;
  Doc value = Doc::object();
  value.set("p", 1).set("q", "<&>");
  errors.duplicate(Path("a"), value);
  errors.invalid(Path("b"), Doc(), "");
  errors.invalid(Path("c"), 3, "too small");
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_EQ(errors.list()[0].message, "Duplicate value: {\"p\":1,\"q\":\"\\u003c\\u0026\\u003e\"}");
  EXPECT_EQ(errors.list()[1].message, "Invalid value: null");
  EXPECT_EQ(errors.list()[2].message, "Invalid value: 3: too small");
}

TEST(FieldErrors, EveryKindHasItsWords) {
  FieldErrors errors;
  const Path at("f");
  errors.not_found(at, "n");
  errors.required(at, "why");
  errors.not_supported(at, "c", {"A", "B"});
  errors.forbidden(at, "why");
  errors.too_long(at, 1);
  errors.too_many(at, 3, 2);
  errors.type_invalid(at, 1, "must be a string");
  errors.internal(at, "oops");
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"FieldValueNotFound", "Not found: \"n\""},
      {"FieldValueRequired", "Required value: why"},
      {"FieldValueNotSupported", "Unsupported value: \"c\": supported values: \"A\", \"B\""},
      {"FieldValueForbidden", "Forbidden: why"},
      {"FieldValueTooLong", "Too long: may not be more than 1 byte"},
      {"FieldValueTooMany", "Too many: 3: must have at most 2 items"},
      {"FieldValueTypeInvalid", "Invalid value: 1: must be a string"},
      {"InternalError", "Internal error: oops"},
  };
  ASSERT_EQ(errors.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(reason_of(errors.list()[i].type), expected[i].first);
    EXPECT_EQ(errors.list()[i].message, expected[i].second);
  }
}

TEST(FieldErrors, TextStandsInBracketsWhenThereAreSeveral) {
  FieldErrors errors;
  EXPECT_EQ(errors.text(), "");
  errors.required(Path("a"));
  EXPECT_EQ(errors.text(), "a: Required value");
  errors.required(Path("a"));  // said once
  EXPECT_EQ(errors.text(), "a: Required value");
  errors.required(Path("b"));
  EXPECT_EQ(errors.text(), "[a: Required value, b: Required value]");
}

}  // namespace
}  // namespace jogak::api
