// SPDX-License-Identifier: Apache-2.0
//
// One exchange at a time; callbacks hold a weak reference, so that dropping it is safe.
#include "agent/labels/node_writer.h"

#include <algorithm>
#include <utility>

namespace jogak::agent {

template <class Fn>
auto NodeWriter::guarded(Fn fn) {
  return [alive = std::weak_ptr<bool>(alive_), fn = std::move(fn)](auto&&... args) {
    if (!alive.expired()) fn(std::forward<decltype(args)>(args)...);
  };
}

NodeWriter::NodeWriter(kube::ApiClient& api, Log& log, NodeWriterOptions options)
    : api_(api),
      log_(log),
      options_(std::move(options)),
      target_("/api/v1/nodes/" + kube::escape(options_.node)),
      retry_(options_.retry_first) {}

NodeWriter::~NodeWriter() { api_.loop().cancel(timer_); }

void NodeWriter::want(NodeWish wish) {
  if (wish_ == wish) return;
  wish_ = std::move(wish);
  ++wish_number_;
  is_settled_ = false;
  // What is under way ends first; a wait after an error goes on.
  if (!is_busy_ && problem_.empty()) read();
}

void NodeWriter::see(const Labels& labels, const std::map<std::string, std::string>& annotations) {
  if (!is_settled_ || is_busy_ || is_read_soon_) return;
  const auto has_all = [](const auto& have, const auto& wanted) {
    return std::ranges::all_of(wanted, [&](const auto& entry) {
      const auto at = have.find(entry.first);
      return at != have.end() && at->second == entry.second;
    });
  };
  if (has_all(labels, wish_->labels) && has_all(labels, wish_->lasting_labels) &&
      has_all(annotations, wish_->annotations) &&
      has_all(annotations, wish_->lasting_annotations)) {
    return;
  }
  const TimeUs now = api_.loop().now();
  const bool is_again = seen_pause_ != 0 && now - seen_at_ < options_.resync;
  seen_pause_ = is_again ? std::min(2 * seen_pause_, options_.resync) : options_.retry_first;
  seen_at_ = now;
  is_read_soon_ = true;
  again_after(seen_pause_);
}

void NodeWriter::again_after(TimeUs delay) {
  api_.loop().cancel(timer_);
  timer_ = api_.loop().after(delay, guarded([this] { read(); }));
}

void NodeWriter::read() {
  api_.loop().cancel(timer_);
  timer_ = 0;
  is_read_soon_ = false;
  is_busy_ = true;
  written_number_ = wish_number_;
  ++counts_.reads;
  api_.call_ok({.method = "GET", .target = target_},
               guarded([this](Result<std::string> body) { on_read(std::move(body)); }));
}

void NodeWriter::on_read(Result<std::string> body) {
  if (!body) return fail_with(body.error());
  auto patches = node_patches(*body, *wish_, api_.loop().now());
  written_number_ = wish_number_;
  if (!patches) return fail_with(patches.error());
  for (const std::string& label : patches->removed_labels) {
    log_.info("a label of ours is stale and goes", {{"label", label}});
  }
  write(*std::move(patches));
}

void NodeWriter::write(NodePatches patches) {
  if (patches.node.empty()) return write_status(std::move(patches.status));
  ++counts_.writes;
  api_.call_ok(
      {.method = "PATCH",
       .target = target_,
       .body = std::move(patches.node),
       .content_type = "application/merge-patch+json"},
      guarded([this, status = std::move(patches.status)](const Result<std::string>& answer) {
        if (answer) return write_status(status);
        // Somebody wrote in between: look again, at once and without a complaint.
        if (answer.error().code == Errc::Conflict) return read();
        fail_with(answer.error());
      }));
}

void NodeWriter::write_status(std::string body) {
  if (body.empty()) return settle();
  ++counts_.writes;
  api_.call_ok({.method = "PATCH",
                .target = target_ + "/status",
                .body = std::move(body),
                .content_type = "application/strategic-merge-patch+json"},
               guarded([this](const Result<std::string>& answer) {
                 if (!answer) return fail_with(answer.error());
                 settle();
               }));
}

void NodeWriter::settle() {
  is_busy_ = false;
  if (!problem_.empty()) log_.info("the node object is written again", {{"node", options_.node}});
  problem_.clear();
  retry_ = options_.retry_first;
  if (written_number_ != wish_number_) return read();
  is_settled_ = true;
  again_after(options_.resync);
  if (on_settled) on_settled();
}

void NodeWriter::fail_with(const Error& error) {
  is_busy_ = false;
  ++counts_.failures;
  if (problem_ != error.what) {
    log_.warn("the node object could not be written; trying again",
              {{"node", options_.node}, {"error", error.what}});
  }
  problem_ = error.what;
  again_after(retry_);
  retry_ = std::min(2 * retry_, options_.retry_max);
}

}  // namespace jogak::agent
