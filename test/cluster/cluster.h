// SPDX-License-Identifier: Apache-2.0
//
// A server with all its controllers under virtual time: objects go in as JSON, and come out as the
// controllers left them. Nothing runs pods or schedules them but the test itself.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/controllers/controllers.h"
#include "apiserver/server/server.h"
#include "base/doc.h"
#include "base/sim_loop.h"

namespace jogak::test {

// Reads JSON that the test wrote; CHECKs that it is some.
Doc json(std::string_view text);

class Cluster {
 public:
  explicit Cluster(controllers::ControllerOptions options = {});

  SimLoop& loop() { return loop_; }
  api::Api& api() { return *api_; }
  // Lets the controllers come to rest.
  void settle() { loop_.run_for(kSecondInUs); }
  void pass(TimeUs span) { loop_.run_for(span); }

  // Creates the object (in namespace "default" unless it names one) and lets things settle. CHECKs
  // that it was accepted.
  Doc make(std::string_view table, std::string_view object);
  // The same without the CHECK: "" or the reason of the refusal and its message.
  std::string try_make(std::string_view table, std::string_view object);
  // A null Doc when there is none.
  Doc get(std::string_view table, std::string_view name, std::string_view ns = "default") const;
  std::vector<Doc> list(std::string_view table, std::string_view ns = "default") const;
  // A merge patch; CHECKs that it was accepted.
  void patch(std::string_view table, std::string_view name, std::string_view change,
             std::string_view subresource = "", std::string_view ns = "default");
  void remove(std::string_view table, std::string_view name,
              std::string_view propagation = "Background", std::string_view ns = "default");

  // Names of all in the namespace, in order, with a blank between.
  std::string names(std::string_view table, std::string_view ns = "default") const;
  std::size_t count(std::string_view table) const { return list(table).size(); }
  // Pods that are not being deleted.
  std::vector<Doc> live_pods() const;

  // What kubelets would do.
  void run_pod(std::string_view name);  // Running and Ready
  void run_all_pods();                  // those that are Pending
  void end_pod(std::string_view name, std::string_view phase);
  void bind_pod(std::string_view name, std::string_view node);
  // The last step of a deletion with grace.
  void let_go(std::string_view name);
  // A node that is Ready and has a lease.
  void make_node(std::string_view name, std::string_view labels = "{}");
  void renew_lease(std::string_view node);

  // "reason: message" of the events about objects of that name.
  std::vector<std::string> events_of(std::string_view name, std::string_view ns = "default") const;

 private:
  SimLoop loop_;
  std::unique_ptr<api::Server> server_;
  std::unique_ptr<api::Api> api_, pods_api_;
  std::unique_ptr<controllers::PodIndex> pods_;
  std::vector<std::unique_ptr<controllers::Controller>> controllers_;
};

// A pod template's JSON with that label a=<app>.
std::string pod_template(std::string_view app, std::string_view image = "i:1");

}  // namespace jogak::test
