// SPDX-License-Identifier: Apache-2.0
//
// Logs of simulated containers, and the streams that need a real one. Nothing runs, so a container
// "writes" what the pod's annotation jogak.io/log.CONTAINER or jogak.io/log says, all at once when
// it starts; without one, a single line.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kinds/pod_strategy.h"
#include "apiserver/object/meta.h"
#include "apiserver/ops/ops.h"

namespace jogak::api {

namespace {

constexpr int kNoContent = 204;
constexpr int kNotImplemented = 501;
constexpr int kUnavailable = 503;

struct LogOptions {
  std::string container;
  bool is_previous = false;
  bool has_timestamps = false;
  std::optional<std::int64_t> tail_lines, limit_bytes, since_seconds;
  std::optional<TimeUs> since_time;
  std::string stream = "All";
};

// Go's words for what strconv would say.
ApiResult<std::int64_t> read_number(const std::string& text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || at != end) {
    return bad_request("strconv.ParseInt: parsing " + quoted(text) + ": invalid syntax");
  }
  return number;
}

bool read_flag(const std::string& text) { return text != "false" && text != "0"; }

ApiResult<LogOptions> read_options(const Call& call) {
  LogOptions options;
  for (const auto& [key, value] : call.query) {
    if (key == "container") {
      options.container = value;
    } else if (key == "previous") {
      options.is_previous = read_flag(value);
    } else if (key == "timestamps") {
      options.has_timestamps = read_flag(value);
    } else if (key == "stream") {
      options.stream = value;
    } else if (key == "tailLines") {
      JOGAK_TRY(options.tail_lines, read_number(value));
    } else if (key == "limitBytes") {
      JOGAK_TRY(options.limit_bytes, read_number(value));
    } else if (key == "sinceSeconds") {
      JOGAK_TRY(options.since_seconds, read_number(value));
    } else if (key == "sinceTime" && !value.empty()) {
      options.since_time = parse_time(value);
      if (!options.since_time) {
        return bad_request("parsing time " + quoted(value) + " as RFC 3339: cannot parse");
      }
    }
  }
  return options;
}

ApiResult<void> check_options(const LogOptions& options, const std::string& name) {
  FieldErrors errors;
  if (options.tail_lines.value_or(0) < 0) {
    errors.invalid(Path("tailLines"), *options.tail_lines, "must be greater than or equal to 0");
  }
  if (options.limit_bytes.value_or(1) < 1) {
    errors.invalid(Path("limitBytes"), *options.limit_bytes, "must be greater than 0");
  }
  if (options.since_seconds && options.since_time) {
    errors.forbidden(Path(""), "at most one of `sinceTime` or `sinceSeconds` may be specified");
  } else if (options.since_seconds.value_or(1) < 1) {
    errors.invalid(Path("sinceSeconds"), *options.since_seconds, "must be greater than 0");
  }
  if (options.stream != "All" && options.stream != "Stdout" && options.stream != "Stderr") {
    errors.not_supported(Path("stream"), options.stream, {"All", "Stderr", "Stdout"});
  }
  if (options.stream != "All" && options.tail_lines) {
    errors.forbidden(Path(""), "`tailLines` and specific `stream` are mutually exclusive for now");
  }
  if (!errors.empty()) {
    return invalid_object("PodLogOptions", "", name, errors);
  }
  return {};
}

std::vector<std::string> container_names(const Doc& pod) {
  std::vector<std::string> names;
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Doc& container : pod["spec"][list].items()) {
      names.push_back(container["name"].as_string());
    }
  }
  return names;
}

// The container asked for, or the only one.
ApiResult<std::string> pick_container(const Doc& pod, const std::string& asked) {
  const std::vector<std::string> names = container_names(pod);
  if (!asked.empty()) {
    if (std::ranges::find(names, asked) == names.end()) {
      return bad_request("container " + asked + " is not valid for pod " + name_of(pod));
    }
    return asked;
  }
  const auto& containers = pod["spec"]["containers"].items();
  if (containers.size() == 1) {
    return containers.front()["name"].as_string();
  }
  std::string all;
  for (const std::string& name : names) {
    all.append(all.empty() ? "" : " ").append(name);
  }
  return bad_request("a container name must be specified for pod " + name_of(pod) +
                     ", choose one of: [" + all + "]");
}

const Doc& status_of_container(const Doc& pod, const std::string& name) {
  static const Doc kNone;
  for (const std::string_view list :
       {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
    for (const Doc& status : pod["status"][list].items()) {
      if (status["name"].as_string() == name) {
        return status;
      }
    }
  }
  return kNone;
}

// When the asked-for run of the container began; a refusal when there was none.
ApiResult<std::string> start_of_run(const Doc& pod, const std::string& container,
                                    bool is_previous) {
  const Doc& status = status_of_container(pod, container);
  if (is_previous) {
    const Doc& ended = status["lastState"]["terminated"];
    if (ended.is_null()) {
      return bad_request("previous terminated container " + quoted(container) + " in pod " +
                         quoted(name_of(pod)) + " not found");
    }
    return ended["startedAt"].as_string();
  }
  for (const std::string_view state : {"running", "terminated"}) {
    if (const Doc* now = status["state"].find(state)) {
      return (*now)["startedAt"].as_string();
    }
  }
  const std::string& reason = status["state"]["waiting"]["reason"].as_string();
  return bad_request("container " + quoted(container) + " in pod " + quoted(name_of(pod)) +
                     " is waiting to start: " + (reason.empty() ? "ContainerCreating" : reason));
}

std::string written_by(const Doc& pod, const std::string& container) {
  const Doc& annotations = meta(pod)["annotations"];
  for (const std::string& key : {"jogak.io/log." + container, std::string("jogak.io/log")}) {
    if (annotations.has(key)) {
      std::string text = annotations[key].as_string();
      if (!text.empty() && text.back() != '\n') {
        text.push_back('\n');
      }
      return text;
    }
  }
  return "container " + container + " of pod " + namespace_of(pod) + "/" + name_of(pod) +
         " is simulated and writes nothing else\n";
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

bool is_too_old(const LogOptions& options, const std::string& started, TimeUs now) {
  const auto start = parse_time(started);
  if (!start) {
    return false;
  }
  if (options.since_time) {
    return *start < *options.since_time;
  }
  return options.since_seconds && *start < now - *options.since_seconds * kSecondInUs;
}

std::string cut(const LogOptions& options, const std::string& text, const std::string& started) {
  std::vector<std::string_view> lines = lines_of(text);
  if (options.tail_lines && std::cmp_less(*options.tail_lines, lines.size())) {
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(*options.tail_lines));
  }
  std::string out;
  for (const std::string_view line : lines) {
    if (options.has_timestamps) {
      out.append(started).append(" ");
    }
    out.append(line);
  }
  if (options.limit_bytes && std::cmp_less(*options.limit_bytes, out.size())) {
    out.resize(static_cast<std::size_t>(*options.limit_bytes));
  }
  return out;
}

std::string query_value(const Call& call, std::string_view key) {
  const auto found = std::ranges::find(
      call.query, key, [](const auto& entry) { return std::string_view(entry.first); });
  return found == call.query.end() ? std::string() : found->second;
}

}  // namespace

ApiResult<Answer> read_pod_log(Ops& ops, Call& call) {
  JOGAK_TRY(const LogOptions options, read_options(call));
  JOGAK_TRY_VOID(check_options(options, call.name));
  const auto pod = ops.get("pods", call.ns, call.name);
  if (!pod) {
    return not_found({"pods", ""}, call.name);
  }
  JOGAK_TRY(const std::string container, pick_container(*pod, options.container));
  if ((*pod)["spec"]["nodeName"].as_string().empty()) {
    return Answer{.code = kNoContent, .body = {}, .is_text = true, .text = {}};
  }
  JOGAK_TRY(const std::string started, start_of_run(*pod, container, options.is_previous));
  Answer answer{.code = 200, .body = {}, .is_text = true, .text = {}};
  if (!is_too_old(options, started, ops.loop().now())) {
    answer.text = cut(options, written_by(*pod, container), started);
  }
  return answer;
}

ApiResult<Answer> refuse_pod_stream(Ops& ops, Call& call) {
  const auto pod = ops.get("pods", call.ns, call.name);
  if (!pod) {
    return not_found({"pods", ""}, call.name);
  }
  if (call.subresource == "proxy") {
    if ((*pod)["status"]["podIP"].as_string().empty()) {
      return bad_request("address not allowed");
    }
    ApiError error;
    error.code = kUnavailable;
    error.reason = "ServiceUnavailable";
    error.message = "error trying to reach service: simulated pods listen on no address";
    return Refusal(std::move(error));
  }
  if (call.subresource != "portforward") {
    JOGAK_TRY_VOID(pick_container(*pod, query_value(call, "container")));
  }
  if ((*pod)["spec"]["nodeName"].as_string().empty()) {
    return bad_request("pod " + call.name + " does not have a host assigned");
  }
  return bare_error(kNotImplemented, call.subresource +
                                         " needs a running container; pods of this server are "
                                         "simulated");
}

}  // namespace jogak::api
