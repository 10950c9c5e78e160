// SPDX-License-Identifier: Apache-2.0
//
// Durations for people: two or three figures that matter, as apimachinery util/duration has them.
#include <string>

#include "apiserver/tables/tables.h"

namespace jogak::api {
namespace {

constexpr TimeUs kMinute = 60;
constexpr TimeUs kHour = 60 * kMinute;
constexpr TimeUs kDay = 24 * kHour;
constexpr TimeUs kYear = 365 * kDay;

// "3m20s", and "3m" when the small part is zero.
std::string two_parts(TimeUs large, char large_unit, TimeUs small, char small_unit) {
  std::string text = std::to_string(large) + large_unit;
  if (small != 0) {
    text += std::to_string(small) + small_unit;
  }
  return text;
}

}  // namespace

std::string human_duration(TimeUs span) {
  const TimeUs s = span / kSecondInUs;
  if (s < -1) {
    return "<invalid>";  // the future; one second is allowed for clocks that differ
  }
  if (s < 0) {
    return "0s";
  }
  if (s < 2 * kMinute) {
    return std::to_string(s) + "s";
  }
  if (s < 10 * kMinute) {
    return two_parts(s / kMinute, 'm', s % kMinute, 's');
  }
  if (s < 3 * kHour) {
    return std::to_string(s / kMinute) + "m";
  }
  if (s < 8 * kHour) {
    return two_parts(s / kHour, 'h', s % kHour / kMinute, 'm');
  }
  if (s < 2 * kDay) {
    return std::to_string(s / kHour) + "h";
  }
  if (s < 8 * kDay) {
    return two_parts(s / kDay, 'd', s % kDay / kHour, 'h');
  }
  if (s < 2 * kYear) {
    return std::to_string(s / kDay) + "d";
  }
  if (s < 8 * kYear) {
    return two_parts(s / kYear, 'y', s % kYear / kDay, 'd');
  }
  return std::to_string(s / kYear) + "y";
}

}  // namespace jogak::api
