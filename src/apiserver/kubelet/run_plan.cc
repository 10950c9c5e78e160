// SPDX-License-Identifier: Apache-2.0
//
// Annotations win over commands; of a command only `sleep` and `exit` are understood, and of
// several containers the longest decides.
#include "apiserver/kubelet/run_plan.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "apiserver/object/meta.h"

namespace jogak::kubelet {

namespace {

constexpr std::int64_t kSecondsMax = 1'000'000'000;

// The words of command and args; a `sh -c "..."` is taken apart at blanks.
std::vector<std::string> words_of(const Doc& container) {
  std::vector<std::string> words;
  for (const std::string_view key : {"command", "args"}) {
    for (const Doc& item : container[key].items()) {
      std::string word;
      for (const char c : item.as_string() + " ") {
        if (c != ' ' && c != ';' && c != '\n' && c != '&') {
          word += c;
        } else if (!word.empty()) {
          words.push_back(std::move(word));
          word.clear();
        }
      }
    }
  }
  return words;
}

constexpr TimeUs kForEver = INT64_MAX;

// `sleep N` anywhere: the sum of them; `sleep infinity` and the like never end. nullopt without
// one.
std::optional<TimeUs> sleep_time(const std::vector<std::string>& words) {
  std::optional<TimeUs> total;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] != "sleep" && !words[i].ends_with("/sleep")) continue;
    const auto span = parse_seconds(words[i + 1]);
    if (!span.has_value()) return kForEver;
    total = total.value_or(0) + *span;
  }
  return total;
}

// `exit N` or the program `false`.
std::int32_t exit_code_of(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "false" || words[i].ends_with("/false")) return 1;
    if (words[i] != "exit" || i + 1 == words.size()) continue;
    std::int32_t code = 0;
    const std::string& text = words[i + 1];
    std::from_chars(text.data(), text.data() + text.size(), code);
    return code & 255;
  }
  return 0;
}

// Whether one of the words ends a shell at once, or the program itself is one that does.
bool has_exit(const std::vector<std::string>& words) {
  constexpr std::string_view kQuick[] = {"date", "echo", "env",        "hostname", "id",
                                         "ls",   "pwd",  "nvidia-smi", "printf",   "uname"};
  if (!words.empty()) {
    const std::string_view program(words[0]);
    if (std::ranges::find(kQuick, program.substr(program.rfind('/') + 1)) != std::end(kQuick)) {
      return true;
    }
  }
  return std::ranges::any_of(words, [](const std::string& word) {
    return word == "exit" || word == "false" || word == "true" || word.ends_with("/false") ||
           word.ends_with("/true");
  });
}

}  // namespace

std::optional<TimeUs> parse_seconds(std::string_view text) {
  if (text.ends_with('s')) text.remove_suffix(1);
  std::int64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error != std::errc() || whole < 0 || whole > kSecondsMax) return std::nullopt;
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  TimeUs fraction = 0;
  if (rest.starts_with('.')) {
    TimeUs unit = kSecondInUs / 10;
    for (rest.remove_prefix(1); !rest.empty(); rest.remove_prefix(1), unit /= 10) {
      if (rest[0] < '0' || rest[0] > '9') return std::nullopt;
      fraction += (rest[0] - '0') * unit;
    }
  }
  if (!rest.empty()) return std::nullopt;
  return whole * kSecondInUs + fraction;
}

RunPlan plan_of(const Doc& pod, const RunDefaults& defaults) {
  RunPlan plan;
  const Doc& annotations = api::meta(pod)["annotations"];
  plan.start_delay =
      parse_seconds(annotations[kStartSeconds].as_string()).value_or(defaults.start_delay);
  plan.ignores_term = annotations[kIgnoresTerm].as_string() == "true";
  if (const Doc* run = annotations.find(kRunSeconds)) {
    plan.run_time = parse_seconds(run->as_string());
  }
  // The longest container decides when nothing else does; one that says nothing never ends, but in
  // a Job, whose pods are meant to.
  const bool is_of_job = api::controller_of(pod)["kind"].as_string() == "Job";
  const TimeUs unsaid = is_of_job ? defaults.job_run_time : kForEver;
  TimeUs longest = 0;
  for (const Doc& container : pod.get("spec", "containers").items()) {
    const std::vector<std::string> words = words_of(container);
    plan.exit_code = std::max(plan.exit_code, exit_code_of(words));
    longest = std::max(longest, sleep_time(words).value_or(has_exit(words) ? 0 : unsaid));
  }
  if (!plan.run_time.has_value() && longest != kForEver) plan.run_time = longest;
  if (const Doc* code = annotations.find(kExitCode)) {
    const std::string& text = code->as_string();
    std::int32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) plan.exit_code = number;
  }
  return plan;
}

}  // namespace jogak::kubelet
