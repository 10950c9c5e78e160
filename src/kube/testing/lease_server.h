// SPDX-License-Identifier: Apache-2.0
//
// One Lease behind a ScriptedHttp, with the rules of the API server: versions that guard writes, a
// create that fails when it exists. It may answer late or not at all.
#pragma once

#include <cstdint>
#include <string>

#include "kube/testing/scripted_http.h"

namespace jogak::kube::testing {

class LeaseServer {
 public:
  // Serves one request, now.
  void handle(const ScriptedHttp::ExchangePtr& exchange);
  // The same in two halves: what it answers, having done it.
  Answer serve(const net::ClientRequest& request);

  const std::string& json() const { return json_; }  // "": it does not exist
  // Somebody else's write, not guarded.
  void put(const std::string& json);
  void remove() { json_.clear(); }
  void set_silent(bool is_silent) { is_silent_ = is_silent; }
  // From the write to the answer.
  void set_delay(TimeUs delay) { delay_ = delay; }

 private:
  std::string json_;
  std::int64_t version_ = 0;
  bool is_silent_ = false;
  TimeUs delay_ = 0;
};

}  // namespace jogak::kube::testing
