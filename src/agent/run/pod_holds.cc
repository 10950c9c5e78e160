// SPDX-License-Identifier: Apache-2.0
//
// One patch is under way at a time; what is wanted by its end is compared again.
#include "agent/run/pod_holds.h"

#include <algorithm>
#include <utility>

#include "base/json_writer.h"

namespace jogak::agent {

std::string pod_holds_patch(const std::string& node, const std::string& value) {
  JsonWriter json;
  json.begin_object();
  json.key("metadata").begin_object();
  json.key("annotations").begin_object();
  json.field(kHoldsAnnotation, value);
  json.end_object();
  json.end_object();
  json.key("spec").begin_object();
  json.field("nodeName", node);
  json.end_object();
  json.end_object();
  return json.take();
}

PodHoldsWriter::PodHoldsWriter(kube::ApiClient& api, Log& log, Options options)
    : api_(api), log_(log), options_(std::move(options)), retry_(options_.retry_first) {}

PodHoldsWriter::~PodHoldsWriter() { api_.loop().cancel(timer_); }

void PodHoldsWriter::want(std::map<PodName, std::string> wanted) {
  wanted_ = std::move(wanted);
  std::erase_if(written_, [this](const auto& entry) { return !wanted_.contains(entry.first); });
  next();
}

void PodHoldsWriter::forget_written() { written_.clear(); }

void PodHoldsWriter::next() {
  if (is_busy_ || timer_ != 0) return;
  const auto at = std::ranges::find_if(wanted_, [this](const auto& entry) {
    const auto written = written_.find(entry.first);
    return written == written_.end() || written->second != entry.second;
  });
  if (at == wanted_.end()) return;
  is_busy_ = true;
  ++writes_;
  api_.call_ok({.method = "PATCH",
                .target = "/api/v1/namespaces/" + kube::escape(at->first.ns) + "/pods/" +
                          kube::escape(at->first.name),
                .body = pod_holds_patch(options_.node, at->second),
                .content_type = "application/merge-patch+json"},
               [this, alive = std::weak_ptr<bool>(alive_), pod = at->first,
                value = at->second](const Result<std::string>& answer) {
                 if (!alive.expired()) on_answer(pod, value, answer);
               });
}

void PodHoldsWriter::on_answer(const PodName& pod, const std::string& value,
                               const Result<std::string>& answer) {
  is_busy_ = false;
  // Gone, or another pod: nothing to say about it until it is handed something anew.
  const bool is_final = answer || answer.error().code == Errc::NotFound ||
                        answer.error().code == Errc::Gone || answer.error().code == Errc::Invalid;
  if (is_final) {
    written_[pod] = value;
    retry_ = options_.retry_first;
    if (!answer) {
      log_.debug("a pod could not be annotated",
                 {{"pod", pod.ns + "/" + pod.name}, {"error", answer.error().what}});
    }
    problem_.clear();
    return next();
  }
  if (problem_ != answer.error().what) {
    log_.warn("a pod could not be annotated; trying again",
              {{"pod", pod.ns + "/" + pod.name}, {"error", answer.error().what}});
  }
  problem_ = answer.error().what;
  timer_ = api_.loop().after(retry_, [this] {
    timer_ = 0;
    next();
  });
  retry_ = std::min(2 * retry_, options_.retry_max);
}

}  // namespace jogak::agent
