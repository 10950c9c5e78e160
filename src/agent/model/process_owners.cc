// SPDX-License-Identifier: Apache-2.0
//
// Parsers first, then the class that reads files.
#include "agent/model/process_owners.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/file.h"

namespace jogak::agent {

namespace {

constexpr std::size_t kIdDigits = 64;
constexpr std::size_t kUidLength = 36;
constexpr std::int64_t kProcBytesMax = 64 * 1024;

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

// "8-4-4-4-12" in lower case, with '-' or, as systemd has it, '_'; or the 32 digits of a static
// pod.
std::string uid_at(std::string_view text) {
  if (text.size() >= kUidLength) {
    std::string uid(text.substr(0, kUidLength));
    bool is_uid = true;
    for (std::size_t i = 0; i < uid.size() && is_uid; ++i) {
      const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
      if (is_dash) {
        is_uid = uid[i] == '-' || uid[i] == '_';
        uid[i] = '-';
      } else {
        is_uid = is_hex(uid[i]);
      }
    }
    if (is_uid) return uid;
  }
  constexpr std::size_t kStaticDigits = 32;
  const std::string_view digits = text.substr(0, kStaticDigits);
  const bool ends =
      text.size() == kStaticDigits || (text.size() > kStaticDigits && !is_hex(text[kStaticDigits]));
  if (digits.size() == kStaticDigits && ends && std::ranges::all_of(digits, is_hex)) {
    return std::string(digits);
  }
  return {};
}

// The 64 digits that end a path element, before ".scope": "cri-containerd-<id>.scope", "<id>".
std::string container_id_of(std::string_view element) {
  constexpr std::string_view kScope = ".scope";
  if (element.ends_with(kScope)) element.remove_suffix(kScope.size());
  if (element.size() < kIdDigits) return {};
  const std::string_view id = element.substr(element.size() - kIdDigits);
  if (!std::ranges::all_of(id, is_hex)) return {};
  const std::string_view before = element.substr(0, element.size() - kIdDigits);
  if (!before.empty() && !before.ends_with('-') && !before.ends_with(':')) return {};
  return std::string(id);
}

// Of one line: the pod is the last element that names one, the container comes after it.
CgroupOwner owner_of_path(std::string_view path) {
  CgroupOwner owner;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view element = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    std::size_t at = element.starts_with("pod") ? 0 : element.rfind("-pod");
    if (at != std::string_view::npos) {
      at += at == 0 && element.starts_with("pod") ? 3 : 4;
      if (std::string uid = uid_at(element.substr(at)); !uid.empty()) {
        // "...-pod<uid>.slice:cri-containerd:<id>" names both in one.
        owner = {.pod_uid = std::move(uid), .container_id = container_id_of(element)};
        continue;
      }
    }
    if (std::string id = container_id_of(element); !id.empty()) owner.container_id = std::move(id);
  }
  return owner;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  return names;
}

}  // namespace

CgroupOwner parse_cgroup(std::string_view text) {
  CgroupOwner best;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    // HIERARCHY:CONTROLLERS:PATH
    for (int i = 0; i < 2; ++i) {
      const std::size_t colon = line.find(':');
      line = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
    }
    CgroupOwner owner = owner_of_path(line);
    if (!owner.pod_uid.empty() && !owner.container_id.empty()) return owner;
    if (best.pod_uid.empty()) best.pod_uid = std::move(owner.pod_uid);
    if (best.container_id.empty()) best.container_id = std::move(owner.container_id);
  }
  return best;
}

std::optional<Holder> parse_pod_log_folder(std::string_view name) {
  const std::size_t first = name.find('_');
  const std::size_t last = name.rfind('_');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  Holder holder = {.pod_namespace = std::string(name.substr(0, first)),
                   .pod = std::string(name.substr(first + 1, last - first - 1)),
                   .container = {},
                   .pod_uid = std::string(name.substr(last + 1))};
  // None of the three may have an underscore in it.
  if (holder.pod_namespace.empty() || holder.pod.empty() || holder.pod_uid.empty() ||
      holder.pod.find('_') != std::string::npos) {
    return std::nullopt;
  }
  return holder;
}

std::optional<std::pair<std::string, Holder>> parse_container_log(std::string_view name) {
  constexpr std::string_view kEnd = ".log";
  if (!name.ends_with(kEnd)) return std::nullopt;
  name.remove_suffix(kEnd.size());
  const std::size_t first = name.find('_');
  const std::size_t second = first == std::string_view::npos ? first : name.find('_', first + 1);
  if (second == std::string_view::npos || name.size() < second + 2 + kIdDigits) return std::nullopt;
  const std::string_view rest = name.substr(second + 1);
  const std::size_t dash = rest.size() - kIdDigits - 1;
  std::string id(rest.substr(dash + 1));
  if (dash == 0 || rest[dash] != '-' || !std::ranges::all_of(id, is_hex)) return std::nullopt;
  Holder holder = {.pod_namespace = std::string(name.substr(first + 1, second - first - 1)),
                   .pod = std::string(name.substr(0, first)),
                   .container = std::string(rest.substr(0, dash)),
                   .pod_uid = {}};
  if (holder.pod_namespace.empty() || holder.pod.empty()) return std::nullopt;
  return std::pair(std::move(id), std::move(holder));
}

ProcessOwnerFinder::Inode ProcessOwnerFinder::inode_of(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {.number = info.st_ino,
          .changed_ns = info.st_ctim.tv_sec * 1'000'000'000LL + info.st_ctim.tv_nsec};
}

ProcessOwnerFinder::Known* ProcessOwnerFinder::look_up(std::int64_t pid, bool& was_known) {
  const std::string folder = fmt::format("{}/{}", paths_.proc, pid);
  const Inode inode = inode_of(folder + "/stat");
  const auto before = known_.find(pid);
  was_known = before != known_.end();
  if (was_known && inode.number != 0 && before->second.inode == inode) return &before->second;
  const auto stat = read_file(folder + "/stat", kProcBytesMax);
  if (!stat) return nullptr;
  // Field 22, counted behind the name, which stands in parentheses and may hold anything.
  std::string_view rest = std::string_view(*stat).substr(std::min(stat->rfind(')'), stat->size()));
  for (int i = 0; i < 20 && !rest.empty(); ++i) {
    const std::size_t space = rest.find(' ');
    rest = space == std::string_view::npos ? std::string_view() : rest.substr(space + 1);
  }
  const std::string_view start = rest.substr(0, rest.find(' '));
  was_known = was_known && before->second.start == start;
  if (was_known) {
    before->second.inode = inode;
    return &before->second;
  }
  const auto cgroup = read_file(folder + "/cgroup", kProcBytesMax);
  if (!cgroup) return nullptr;
  Known& known = known_[pid];
  known = {.inode = inode, .start = std::string(start), .cgroup = parse_cgroup(*cgroup)};
  return &known;
}

std::optional<Holder> ProcessOwnerFinder::holder_of(const CgroupOwner& cgroup) const {
  const auto pod = by_pod_.find(cgroup.pod_uid);
  const auto container = by_container_.find(cgroup.container_id);
  if (container == by_container_.end()) {
    return pod == by_pod_.end() ? std::nullopt : std::optional(pod->second);
  }
  Holder holder = container->second;
  holder.pod_uid = cgroup.pod_uid;
  return holder;
}

void ProcessOwnerFinder::list_folders() {
  by_pod_.clear();
  by_container_.clear();
  for (const std::string& name : names_in(paths_.pod_logs)) {
    auto holder = parse_pod_log_folder(name);
    if (!holder) continue;
    const std::string uid = holder->pod_uid;
    by_pod_[uid] = *std::move(holder);
  }
  for (const std::string& name : names_in(paths_.container_logs)) {
    if (auto found = parse_container_log(name)) by_container_.insert(*std::move(found));
  }
}

ProcessOwners ProcessOwnerFinder::find(const std::vector<std::int64_t>& pids) {
  ++round_;
  bool is_listed = false;
  ProcessOwners owners;
  for (const std::int64_t pid : pids) {
    bool was_known = false;
    Known* const known = look_up(pid, was_known);
    if (known == nullptr) continue;
    known->round = round_;
    const CgroupOwner& cgroup = known->cgroup;
    const bool is_pods = !cgroup.pod_uid.empty() || !cgroup.container_id.empty();
    auto holder = holder_of(cgroup);
    // A process of the host stays one; one of a pod may be older than its log file.
    const bool is_vague = !holder || holder->container.empty();
    if (is_pods && is_vague && !is_listed && (!was_known || !holder)) {
      list_folders();
      is_listed = true;
      holder = holder_of(cgroup);
    }
    if (holder) owners.emplace(pid, *std::move(holder));
  }
  std::erase_if(known_, [this](const auto& entry) { return entry.second.round != round_; });
  return owners;
}

}  // namespace jogak::agent
