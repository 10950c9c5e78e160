// SPDX-License-Identifier: Apache-2.0
//
// Recorded sessions of a real server, step by step through the functions of this folder: the patch
// is applied to the last known object, the answer must hold what came out, and managedFields must
// be those recorded. What other parts add (defaults, admission) is taken from the recording.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "apiserver/codec/codec.h"
#include "apiserver/object/meta.h"
#include "apiserver/patch/managed_fields.h"
#include "apiserver/patch/patch.h"
#include "apiserver/schema/normalise.h"

namespace jogak::patch {
namespace {

constexpr TimeUs kNow = 1'700'000'000 * kSecondInUs;

Doc parse(std::string text) {
  constexpr std::string_view kTime = "<time>";  // any moment of the recording
  for (std::size_t at = text.find(kTime); at != std::string::npos; at = text.find(kTime, at)) {
    text.replace(at, kTime.size(), "2026-01-01T00:00:00Z");
  }
  auto parsed = codec::parse_json(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return parsed ? parsed->doc : Doc();
}

std::string header(const Doc& request, std::string_view name) {
  return request["headers"][name].as_string();
}

// The path without its query, and one parameter of the query.
std::string path_of(const Doc& request) {
  const std::string& path = request["path"].as_string();
  return path.substr(0, path.find('?'));
}
std::string parameter(const Doc& request, const std::string& name) {
  const std::string& path = request["path"].as_string();
  const std::size_t at = path.find(name + "=");
  if (at == std::string::npos) return "";
  const std::size_t start = at + name.size() + 1;
  return path.substr(start, path.find('&', start) - start);
}

// "core.v1.Pod" for {apiVersion: v1, kind: Pod}.
const schema::Struct* type_of(const Doc& object) {
  const std::string& version = object["apiVersion"].as_string();
  const std::size_t slash = version.find('/');
  std::string name = "core." + version;
  if (slash != std::string::npos) {
    name = version.substr(0, version.find_first_of("./")) + version.substr(slash);
    std::ranges::replace(name, '/', '.');
  }
  return schema::find(name + "." + object["kind"].as_string());
}

// Managers without the values that differ from run to run, in the order of the recording.
Doc comparable_managers(const Doc& object) {
  Doc::Items managers = api::meta(object)["managedFields"].items();
  for (Doc& manager : managers) {
    if (manager.has("time")) manager.set("time", "<time>");
  }
  std::ranges::sort(managers, {}, [](const Doc& m) {
    return std::tuple(m["operation"].as_string(), m["manager"].as_string(),
                      m["subresource"].as_string(), m["apiVersion"].as_string());
  });
  return Doc::array(std::move(managers));
}

// Members that defaults fill in where a patch brings something new.
bool is_filled_in(std::string_view key) {
  static const std::set<std::string_view> kNames = {"terminationMessagePath",
                                                    "terminationMessagePolicy",
                                                    "imagePullPolicy",
                                                    "protocol",
                                                    "replicas",
                                                    "resourceVersion",
                                                    "generation",
                                                    "managedFields",
                                                    "lastProbeTime",
                                                    "uid",
                                                    "creationTimestamp",
                                                    "namespace",
                                                    "restartPolicy",
                                                    "terminationGracePeriodSeconds",
                                                    "dnsPolicy",
                                                    "schedulerName"};
  return kNames.contains(key);
}

// Every value of the patched object is in the answer, and the answer has nothing else of its own.
void expect_within(const Doc& patched, const Doc& answer, const std::string& at) {
  if (patched.is_object() && answer.is_object()) {
    for (const auto& [key, value] : patched.members()) {
      if (is_filled_in(key) || value.is_null()) continue;
      if (value.is_object() && value.empty() && !answer.has(key)) continue;
      expect_within(value, answer[key], at + "." + key);
    }
    for (const auto& [key, value] : answer.members()) {
      const bool is_known = patched.has(key) || is_filled_in(key) || value.is_null() ||
                            (value.is_object() && value.empty());
      EXPECT_TRUE(is_known) << at << "." << key << " is in the answer only";
    }
  } else if (patched.is_array() && patched.size() == answer.size()) {
    for (std::size_t i = 0; i < patched.size(); ++i) {
      expect_within(patched.items()[i], answer.items()[i], at + "[" + std::to_string(i) + "]");
    }
  } else {
    EXPECT_EQ(patched.json(), answer.json()) << at;
  }
}

class Replay {
 public:
  explicit Replay(const std::string& file) : in_(file) { EXPECT_TRUE(in_.good()) << file; }

  void run() {
    std::string line;
    std::getline(in_, line);
    while (std::getline(in_, line)) {
      const Doc step = parse(line);
      SCOPED_TRACE("step " + step["n"].number_text() + " " + step["request"]["method"].as_string() +
                   " " + step["request"]["path"].as_string());
      if (step.has("request") && step.has("response")) exchange(step);
    }
  }

  int tracked = 0;
  int patched = 0;

 private:
  void exchange(const Doc& step);
  void expect_managers(const Doc& old, Doc object, const Doc& answer, const Doc& request);
  void expect_apply(const Doc& old, const Doc& request, const Doc& response);
  void expect_patch(const Doc& old, const Doc& request, const Doc& response);
  void scale(const Doc& request, const Doc& answer);
  Writer writer_of(const Doc& request, const std::string& path, const Doc& object);

  static std::pair<std::string, std::string> split_subresource(const std::string& path) {
    for (const std::string_view name :
         {"status", "scale", "ephemeralcontainers", "binding", "finalize", "resize", "eviction"}) {
      if (path.ends_with("/" + std::string(name))) {
        return {path.substr(0, path.size() - name.size() - 1), std::string(name)};
      }
    }
    return {path, ""};
  }

  std::ifstream in_;
  std::map<std::string, Doc> objects_;  // by path; the last state that was seen
};

Writer Replay::writer_of(const Doc& request, const std::string& path, const Doc& object) {
  const std::string manager = parameter(request, "fieldManager");
  const schema::Struct* type = type_of(object);
  return {.manager = manager.empty() ? "golden" : manager,
          .api_version = object["apiVersion"].as_string(),
          .subresource = split_subresource(path).second,
          .has_status = type == nullptr || type->find("status") != nullptr,
          .now = kNow};
}

void Replay::expect_managers(const Doc& old, Doc object, const Doc& answer, const Doc& request) {
  ++tracked;
  const ObjectType type{.builtin = type_of(answer)};
  track_update(old, object, writer_of(request, path_of(request), answer), type);
  EXPECT_EQ(comparable_managers(object).json(), comparable_managers(answer).json());
}

void Replay::expect_apply(const Doc& old, const Doc& request, const Doc& response) {
  const Doc& answer = response["body"];
  const Doc intent =
      request.has("body") ? request["body"] : codec::parse_yaml(request["text"].as_string())->doc;
  const Doc& shape = old.is_null() ? intent : old;
  const schema::Struct* type = type_of(shape);
  if (type == nullptr) return;
  const bool is_forced = parameter(request, "force") == "true";
  const std::int64_t code = response["status"].as_int();
  // Rules that are not here refuse the rest.
  const bool is_ours = code == 500 || (code == 409 && !answer["details"].has("name")) ||
                       answer["message"].as_string().starts_with("invalid object type") ||
                       answer["message"].as_string().starts_with("metadata.managedFields");
  if (code >= 300 && !is_ours) return;
  const auto result =
      apply(old, intent, writer_of(request, path_of(request), shape), is_forced, {.builtin = type});
  if (!result) {
    const Doc status = api::status_of(result.error());
    EXPECT_EQ(result.error().code, code) << status.json();
    EXPECT_EQ(status["reason"], answer["reason"]);
    if (code == 409) {
      EXPECT_EQ(status["message"].as_string(), answer["message"].as_string());
    }
    EXPECT_EQ(status["details"]["causes"].json(), answer["details"]["causes"].json());
    return;
  }
  EXPECT_LT(code, 300);
  ++patched;
  Doc tolerant = answer;  // admission adds to the pods it creates
  if (old.is_null() && answer["kind"].as_string() == "Pod") tolerant = *result;
  if (!old.is_null()) expect_within(*result, tolerant, "");
  EXPECT_EQ(comparable_managers(*result).json(), comparable_managers(answer).json());
}

void Replay::expect_patch(const Doc& old, const Doc& request, const Doc& response) {
  const std::string form = header(request, "Content-Type");
  const schema::Struct* type = type_of(old);
  if (type == nullptr || !request.has("body")) return;
  const std::int64_t code = response["status"].as_int();
  const Doc& body = request["body"];
  const auto result = form.find("json-patch") != std::string::npos ? json_patch(old, body)
                      : form.find("strategic") != std::string::npos
                          ? strategic_merge_patch(old, body, *type)
                          : merge_patch(old, body);
  if (!result) {
    EXPECT_EQ(result.error().code, code) << result.error().message;
    const Doc status = api::status_of(result.error());
    const Doc& answer = response["body"];
    EXPECT_EQ(status["reason"], answer["reason"]);
    EXPECT_EQ(status["details"].json(), answer["details"].json());
    EXPECT_EQ(status["message"].as_string(), answer["message"].as_string());
    return;
  }
  if (code >= 300) return;
  schema::Complaints complaints;
  auto decoded = schema::decode(*result, *type, complaints);
  ASSERT_TRUE(decoded.has_value());
  ++patched;
  const Doc& answer = response["body"];
  // What admission and the rules of kinds do to it is not to be seen here.
  const std::string& kind = answer["kind"].as_string();
  const bool is_whole = split_subresource(path_of(request)).second.empty();
  if (is_whole && (kind == "Deployment" || kind == "ConfigMap")) {
    expect_within(*decoded, answer, "");
  }
  Doc object = answer;
  Doc& metadata = object.at("metadata");
  metadata.set("managedFields", (*decoded)["metadata"]["managedFields"]);
  if (!(*decoded)["metadata"].has("managedFields")) metadata.erase("managedFields");
  const Doc& sent = (*result)["metadata"]["managedFields"];
  if (sent.is_array() && sent.empty()) metadata.set("managedFields", sent);
  expect_managers(old, object, answer, request);
}

// The answer shows the Scale only; the parent is what the next answer about it will show.
void Replay::scale(const Doc& request, const Doc& answer) {
  const std::string parent = split_subresource(path_of(request)).first;
  const auto it = objects_.find(parent);
  if (it == objects_.end()) return;
  Doc object = it->second;
  object.at("spec", "replicas") = answer["spec"]["replicas"];
  track_update(it->second, object, writer_of(request, path_of(request), it->second),
               {.builtin = type_of(object)});
  it->second = object;
}

void Replay::exchange(const Doc& step) {
  const Doc& request = step["request"];
  const Doc& response = step["response"];
  const Doc& answer = response["body"];
  const std::string method = request["method"].as_string();
  const std::string path = path_of(request);
  const auto [parent, subresource] = split_subresource(path);
  const bool is_good = response["status"].as_int() < 300;
  const bool is_dry = !parameter(request, "dryRun").empty();
  const auto known = objects_.find(parent);
  const Doc old = known == objects_.end() ? Doc() : known->second;
  if (subresource == "scale") {
    if (is_good && method != "GET") scale(request, answer);
    return;
  }
  if (method == "POST" && subresource == "binding" && is_good) {
    objects_.erase(parent);
    return;
  }
  if (method == "POST" && is_good && subresource.empty() && answer["metadata"].has("uid")) {
    Doc object = answer;
    const Doc& body = request["body"];
    object.at("metadata").erase("managedFields");
    if (body["metadata"].has("managedFields")) {
      object.at("metadata").set("managedFields", body["metadata"]["managedFields"]);
    }
    if (answer["kind"].as_string() == "Namespace") object.erase("spec");
    if (answer["kind"].as_string() == "Pod") {
      for (const char* key : {"tolerations", "priority", "preemptionPolicy"}) {
        if (!body["spec"].has(key)) object.at("spec").erase(key);
      }
    }
    if (type_of(answer) != nullptr && request.has("body")) {
      expect_managers(Doc(), object, answer, request);
    }
    if (!is_dry) objects_[parent + "/" + api::name_of(answer)] = answer;
    return;
  }
  if (method == "PATCH") {
    if (header(request, "Content-Type").find("apply") != std::string::npos) {
      expect_apply(old, request, response);
    } else if (known != objects_.end()) {
      expect_patch(old, request, response);
    }
  }
  if (method == "PUT" && is_good && known != objects_.end() && type_of(answer) != nullptr &&
      request.has("body")) {
    Doc object = answer;
    object.at("metadata").erase("managedFields");
    const Doc& sent = request["body"]["metadata"]["managedFields"];
    if (sent.is_array()) object.at("metadata").set("managedFields", sent);
    expect_managers(old, object, answer, request);
  }
  if (is_good && !is_dry && answer["metadata"].has("uid")) objects_[parent] = answer;
  if (method == "DELETE" && is_good && !answer["metadata"].has("uid")) objects_.erase(parent);
}

struct Session {
  const char* name;
  int patched;  // at least so many results were compared
};

class GoldenSession : public testing::TestWithParam<Session> {};

TEST_P(GoldenSession, Replayed) {
  Replay replay(std::string(JOGAK_SOURCE_DIR) + "/test/golden/kube-apiserver-1.36/sessions/" +
                GetParam().name + ".jsonl");
  replay.run();
  EXPECT_GE(replay.patched, GetParam().patched);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenSession,
                         testing::Values(Session{"patch-json", 10}, Session{"patch-strategic", 15},
                                         Session{"ssa-basic", 12}, Session{"ssa-lists", 10}),
                         [](const auto& param) {
                           std::string name = param.param.name;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace jogak::patch
