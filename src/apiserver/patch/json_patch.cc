// SPDX-License-Identifier: Apache-2.0
//
// JSON patch (RFC 6902) as the Go library behind the API server reads it, which is laxer than the
// RFC: "replace" of an absent member adds it, "copy" of one copies null, and an index may be
// negative and then counts from the end.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "apiserver/patch/patch.h"
#include "apiserver/schema/go_text.h"

namespace jogak::patch {
namespace {

constexpr std::size_t kOperationsMax = 10'000;
// Of all copies together, in bytes of JSON: copies of copies grow without bound.
constexpr std::size_t kCopiedBytesMax = 3 * 1024 * 1024;

// Where an operation looks: a container of the document and the name of something in it.
struct Target {
  Doc* container = nullptr;  // nullptr: the path leads nowhere
  std::string key;
};

std::string unescape(std::string_view token) {
  std::string key;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const char next = token[i] == '~' && i + 1 < token.size() ? token[i + 1] : '\0';
    if (next == '0' || next == '1') {
      key += next == '0' ? '~' : '/';
      ++i;
    } else {
      key += token[i];
    }
  }
  return key;
}

// As Go's Atoi: a sign and leading zeros are fine.
std::optional<std::int64_t> parse_index(std::string_view key) {
  if (key.starts_with('+')) {
    key.remove_prefix(1);
    if (key.starts_with('-')) return std::nullopt;
  }
  std::int64_t index = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (error != std::errc() || end != key.data() + key.size()) return std::nullopt;
  return index;
}

// The place of an existing item, or with `is_insert` the place to insert at.
std::optional<std::size_t> find_index(const Doc& array, std::string_view key, bool is_insert) {
  const auto size = static_cast<std::int64_t>(array.size()) + (is_insert ? 1 : 0);
  if (is_insert && key == "-") return array.size();
  std::optional<std::int64_t> index = parse_index(key);
  if (!index || *index >= size || *index < -size) return std::nullopt;
  return static_cast<std::size_t>(*index < 0 ? *index + size : *index);
}

class Document {
 public:
  explicit Document(Doc root) : root_(std::move(root)) {}

  // Whether the operation could be done; what it did in part before failing is of no use.
  bool run(const Doc& operation);
  Doc take() { return std::move(root_); }

 private:
  Target find(std::string_view path);
  bool add(std::string_view path, Doc value);
  bool remove(std::string_view path);
  bool replace(std::string_view path, const Doc& value);
  bool test(std::string_view path, const Doc& value);
  bool move(std::string_view from, std::string_view path);
  bool copy(std::string_view from, std::string_view path);
  // The value there. Of an absent member of an object a null; nullptr where there can be none.
  static const Doc* read(const Target& target);

  Doc root_;
  std::size_t copied_bytes_ = 0;
};

Target Document::find(std::string_view path) {
  if (path.find('/') == std::string_view::npos) return {};
  path.remove_prefix(path.find('/') + 1);
  Doc* container = &root_;
  while (true) {
    if (!container->is_object() && !container->is_array()) return {};
    const std::size_t end = path.find('/');
    std::string key = unescape(path.substr(0, end));
    if (end == std::string_view::npos) return {.container = container, .key = std::move(key)};
    path.remove_prefix(end + 1);
    if (container->is_object()) {
      container = container->find(key);
    } else {
      const auto index = find_index(*container, key, false);
      container = index ? &container->items()[*index] : nullptr;
    }
    if (container == nullptr) return {};
  }
}

const Doc* Document::read(const Target& target) {
  static const Doc kNull;
  if (target.container == nullptr) return nullptr;
  if (target.container->is_object()) {
    const Doc* member = target.container->find(target.key);
    return member == nullptr ? &kNull : member;
  }
  const auto index = find_index(*target.container, target.key, false);
  return index ? &target.container->items()[*index] : nullptr;
}

bool Document::add(std::string_view path, Doc value) {
  const Target target = find(path);
  if (target.container == nullptr) return false;
  if (target.container->is_object()) {
    target.container->set(target.key, std::move(value));
    return true;
  }
  const auto index = find_index(*target.container, target.key, true);
  if (!index) return false;
  Doc::Items& items = target.container->items();
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(*index), std::move(value));
  return true;
}

bool Document::remove(std::string_view path) {
  const Target target = find(path);
  if (target.container == nullptr) return false;
  if (target.container->is_object()) return target.container->erase(target.key);
  const auto index = find_index(*target.container, target.key, false);
  if (!index) return false;
  Doc::Items& items = target.container->items();
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(*index));
  return true;
}

bool Document::replace(std::string_view path, const Doc& value) {
  if (path.empty()) {
    if (!value.is_object() && !value.is_array()) return false;
    root_ = value;
    return true;
  }
  const Target target = find(path);
  if (read(target) == nullptr) return false;
  if (target.container->is_object()) {
    target.container->set(target.key, value);
  } else {
    target.container->items()[*find_index(*target.container, target.key, false)] = value;
  }
  return true;
}

bool Document::test(std::string_view path, const Doc& value) {
  if (path.empty()) return root_ == value;
  const Doc* found = read(find(path));
  return found != nullptr && *found == value;
}

bool Document::move(std::string_view from, std::string_view path) {
  const Target target = find(from);
  if (target.container == nullptr) return false;
  Doc value;  // moved out, not copied: ten thousand moves of something large must not hurt
  if (target.container->is_object()) {
    Doc* member = target.container->find(target.key);
    if (member == nullptr) return false;
    value = std::move(*member);
  } else {
    const auto index = find_index(*target.container, target.key, false);
    if (!index) return false;
    value = std::move(target.container->items()[*index]);
  }
  return remove(from) && add(path, std::move(value));
}

bool Document::copy(std::string_view from, std::string_view path) {
  const Doc* found = read(find(from));
  if (found == nullptr) return false;
  std::string json;
  found->append_json(json);
  copied_bytes_ += json.size();
  return copied_bytes_ <= kCopiedBytesMax && add(path, Doc(*found));
}

bool Document::run(const Doc& operation) {
  if (!operation["op"].is_string() || !operation["path"].is_string()) return false;
  const std::string& op = operation["op"].as_string();
  const std::string& path = operation["path"].as_string();
  const Doc& value = operation["value"];
  if (op == "add") return add(path, value);
  if (op == "remove") return remove(path);
  if (op == "replace") return replace(path, value);
  if (op == "test") return test(path, value);
  if (op != "move" && op != "copy") return false;
  if (!operation["from"].is_string()) return false;
  const std::string& from = operation["from"].as_string();
  return op == "move" ? move(from, path) : copy(from, path);
}

// What Go's decoder would say of a patch that is not a list of operations; "" when it is one.
std::string decoding_problem(const Doc& patch) {
  constexpr std::string_view kPrefix = "error decoding patch: json: cannot unmarshal";
  if (patch.is_null()) return "";
  if (!patch.is_array()) {
    return fmt::format("{} {} into Go value of type []handlers.jsonPatchOp", kPrefix,
                       schema::json_type(patch));
  }
  for (const Doc& operation : patch.items()) {
    if (!operation.is_object() && !operation.is_null()) {
      return fmt::format("{} {} into Go value of type handlers.jsonPatchOp", kPrefix,
                         schema::json_type(operation));
    }
    for (const std::string_view name : {"op", "path", "from"}) {
      const Doc& member = operation[name];
      if (!member.is_string() && !member.is_null()) {
        return fmt::format("{} {} into Go struct field jsonPatchOp.{} of type string", kPrefix,
                           schema::json_type(member), name);
      }
    }
  }
  return "";
}

}  // namespace

api::ApiResult<Doc> json_patch(Doc object, const Doc& patch) {
  if (std::string problem = decoding_problem(patch); !problem.empty()) {
    return api::bad_request(std::move(problem));
  }
  if (patch.size() > kOperationsMax) {
    api::ApiError error;
    error.code = 413;
    error.reason = "RequestEntityTooLarge";
    error.message = fmt::format(
        "Request entity too large: The allowed maximum operations in a JSON patch is {}, got {}",
        kOperationsMax, patch.size());
    return api::Refusal(std::move(error));
  }
  Document document(std::move(object));
  for (const Doc& operation : patch.items()) {
    if (!document.run(operation)) return api::unprocessable();
  }
  return document.take();
}

}  // namespace jogak::patch
