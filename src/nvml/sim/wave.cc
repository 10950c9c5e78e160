// SPDX-License-Identifier: Apache-2.0
//
// Load as a function of time, and its integral in closed form: energy and byte counters follow from
// it without a clock that ticks, and any moment can be asked for in any order.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "nvml/sim/machine_spec.h"

namespace jogak::nvml::sim {

namespace {

// Over the first `part` (0 to 1) of a period that begins at 0; in value times periods.
double part_integral(const Wave& wave, double part) {
  const double low = wave.low;
  const double high = wave.high;
  switch (wave.shape) {
    case Shape::Constant:
      return high * part;
    case Shape::Square:
      return part <= 0.5 ? high * part : high * 0.5 + low * (part - 0.5);
    case Shape::Ramp:
      return low * part + (high - low) * part * part / 2;
    case Shape::Sine: {
      const double turn = 2 * std::numbers::pi;
      return (low + high) / 2 * part + (high - low) / 2 * (1 - std::cos(turn * part)) / turn;
    }
  }
  return 0;
}

}  // namespace

double wave_at(const Wave& wave, TimeUs time) {
  const TimeUs in_period = (time + wave.phase) % wave.period;
  const double part = static_cast<double>(in_period) / static_cast<double>(wave.period);
  const double low = wave.low;
  const double high = wave.high;
  switch (wave.shape) {
    case Shape::Constant:
      return high;
    case Shape::Square:
      return part < 0.5 ? high : low;
    case Shape::Ramp:
      return low + (high - low) * part;
    case Shape::Sine:
      return (low + high) / 2 + (high - low) / 2 * std::sin(2 * std::numbers::pi * part);
  }
  return 0;
}

double wave_integral(const Wave& wave, TimeUs time) {
  const double seconds = static_cast<double>(wave.period) / static_cast<double>(kSecondInUs);
  const auto until = [&](TimeUs end) {
    const double part = static_cast<double>(end % wave.period) / static_cast<double>(wave.period);
    const TimeUs periods = end / wave.period;
    const auto whole = static_cast<double>(periods);
    return (whole * part_integral(wave, 1) + part_integral(wave, part)) * seconds;
  };
  return until(time + wave.phase) - until(wave.phase);
}

Wave sm_wave(const ProcessSpec& process) {
  constexpr TimeUs kPeriod = 47 * kSecondInUs;
  if (process.sway_percent == 0) return {.high = process.sm_percent};
  return {.shape = Shape::Sine,
          .low = std::max(0, process.sm_percent - process.sway_percent),
          .high = std::min(100, process.sm_percent + process.sway_percent),
          .period = kPeriod,
          .phase = process.pid * 7 * kSecondInUs % kPeriod};
}

int sm_percent_at(const ProcessSpec& process, TimeUs time) {
  return static_cast<int>(std::lround(wave_at(sm_wave(process), time)));
}

double sm_seconds(const ProcessSpec& process, TimeUs from, TimeUs to) {
  const TimeUs begin = std::max(from, process.from);
  const TimeUs end = process.until == 0 ? to : std::min(to, process.until);
  if (end <= begin) return 0;
  const Wave wave = sm_wave(process);
  return wave_integral(wave, end) - wave_integral(wave, begin);
}

}  // namespace jogak::nvml::sim
