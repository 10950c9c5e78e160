// SPDX-License-Identifier: Apache-2.0
// Recorded verdicts of kube-scheduler (test/golden/kube-scheduler-1.36/README.md): reading a file
// of them, and running one against the decision core.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/result.h"

namespace jogak::golden {

// The classes, each a file <class>.jsonl.gz of the folder.
std::vector<std::string> scenario_classes(const std::string& folder);

// Calls fn with each line of <class>.jsonl.gz.
Result<void> for_each_record(const std::string& folder, std::string_view class_name,
                             const std::function<void(std::string_view record)>& fn);

struct Outcome {
  std::string id;
  // What differs from the nearest acceptable result, one line each; empty: all is as recorded.
  std::vector<std::string> differences;
  nlohmann::json got;   // in the form of `result`
  nlohmann::json want;  // the result it was compared with
  nlohmann::json pod;
};

// Imports the record's cluster and pod, evaluates the pod and compares.
Outcome run_record(std::string_view record);

}  // namespace jogak::golden
