// SPDX-License-Identifier: Apache-2.0
//
// Refusals as Status objects, member by member.
#include "apiserver/object/api_error.h"

#include <gtest/gtest.h>

namespace jogak::api {
namespace {

std::string status_json(const Refusal& refusal) {
  std::string out;
  status_of(refusal.error()).append_json(out);
  return out;
}

TEST(ApiError, NotFoundNamesResourceAndObject) {
  EXPECT_EQ(status_json(not_found({"deployments", "apps"}, "none")),
            R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)"
            R"("message":"deployments.apps \"none\" not found","reason":"NotFound",)"
            R"("details":{"name":"none","group":"apps","kind":"deployments"},"code":404})");
}

TEST(ApiError, InvalidObjectHasACausePerError) {
  FieldErrors errors;
  errors.required(Path("spec.a"));
  errors.invalid(Path("spec.b"), 0, "must be greater");
  const Refusal refusal = invalid_object("Pod", "", "x", errors);
  EXPECT_EQ(refusal.error().code, 422);
  EXPECT_EQ(refusal.error().message,
            "Pod \"x\" is invalid: [spec.a: Required value, spec.b: Invalid value: 0: must be "
            "greater]");
  ASSERT_EQ(refusal.error().causes.size(), 2U);
  EXPECT_EQ(refusal.error().causes[1].reason, "FieldValueInvalid");
  EXPECT_EQ(refusal.error().causes[1].field, "spec.b");
  EXPECT_EQ(refusal.error().causes[1].message, "Invalid value: 0: must be greater");
}

TEST(ApiError, ForbiddenWithAndWithoutAName) {
  EXPECT_EQ(forbidden({"pods", ""}, "x", "why").error().message, "pods \"x\" is forbidden: why");
  EXPECT_EQ(forbidden({"pods", ""}, "", "why").error().message, "pods is forbidden: why");
  EXPECT_EQ(forbidden({}, "", "why").error().message, "forbidden: why");
}

TEST(ApiError, TooLargeVersionAsksToComeBack) {
  const Doc status = status_of(too_large_version(9, 5).error());
  EXPECT_EQ(status["message"].as_string(), "Timeout: Too large resource version: 9, current: 5");
  EXPECT_EQ(status.get("details", "retryAfterSeconds").as_int(), 1);
  EXPECT_EQ(status.get("details", "causes").items()[0]["reason"].as_string(),
            "ResourceVersionTooLarge");
}

TEST(ApiError, DetailsAreLeftOutUnlessTheyAreMeantToBeEmpty) {
  EXPECT_FALSE(status_of(bad_request("no").error()).has("details"));
  const Doc missing = status_of(no_such_resource().error());
  ASSERT_TRUE(missing.has("details"));
  EXPECT_TRUE(missing["details"].empty());
}

TEST(ApiError, ReasonMayBeMissing) {
  const Doc status = status_of(bare_error(500, "broken").error());
  EXPECT_FALSE(status.has("reason"));
  EXPECT_EQ(status["code"].as_int(), 500);
}

TEST(ApiError, SuccessHasNoCode) {
  const Doc status = success_status({"widgets", "g.example"}, "s", "u-1");
  std::string json;
  status.append_json(json);
  EXPECT_EQ(json, R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success",)"
                  R"("details":{"name":"s","group":"g.example","kind":"widgets","uid":"u-1"}})");
}

TEST(ApiError, ExpiredMayCarryAContinueToken) {
  Refusal refusal = expired("too old");
  refusal.error().continue_token = "abc";
  EXPECT_EQ(status_of(refusal.error()).get("metadata", "continue").as_string(), "abc");
}

}  // namespace
}  // namespace jogak::api
