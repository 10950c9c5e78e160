// SPDX-License-Identifier: Apache-2.0
//
// Tells the scheduler which GPUs each pod of this node holds by the kubelet's account: the
// annotation jogak.io/gpu-holds of the pod. One patch at a time; what did not change is not
// written.
//
// The kubelet names pods without their uid, and a pod of that name may have been made anew on
// another node meanwhile. So each patch also says the node's name, which cannot be changed: the API
// server refuses it for a pod that is elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/plugin/annotations.h"
#include "base/log.h"
#include "base/loop.h"
#include "kube/api_client.h"

namespace jogak::agent {

class PodHoldsWriter {
 public:
  struct Options {
    std::string node;
    TimeUs retry_first = kSecondInUs;
    TimeUs retry_max = 60 * kSecondInUs;
  };
  // `api` and `log` outlive it. Nothing is called after its end.
  PodHoldsWriter(kube::ApiClient& api, Log& log, Options options);
  ~PodHoldsWriter();
  PodHoldsWriter(const PodHoldsWriter&) = delete;
  PodHoldsWriter& operator=(const PodHoldsWriter&) = delete;

  // All pods that hold something, as holds_annotations() says.
  void want(std::map<PodName, std::string> wanted);
  // A device was handed out: a pod of a known name may be another one. All are written again.
  void forget_written();
  bool is_settled() const { return !is_busy_ && timer_ == 0; }
  std::uint64_t writes() const { return writes_; }

 private:
  void next();
  void on_answer(const PodName& pod, const std::string& value, const Result<std::string>& answer);

  kube::ApiClient& api_;
  Log& log_;
  const Options options_;
  std::map<PodName, std::string> wanted_, written_;
  bool is_busy_ = false;
  TimerId timer_ = 0;
  TimeUs retry_ = 0;
  std::string problem_;
  std::uint64_t writes_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// The body of the patch (merge patch).
std::string pod_holds_patch(const std::string& node, const std::string& value);

}  // namespace jogak::agent
