// SPDX-License-Identifier: Apache-2.0
//
// A server without HTTP for tests, and the small languages of its tables: edits and refusals.
#include "apiserver/kinds/testing/workload_bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "apiserver/codec/codec.h"
#include "apiserver/object/meta.h"
#include "apiserver/schema/normalise.h"
#include "base/check.h"
#include "base/parse_number.h"

namespace jogak::api {

namespace {

// What stands between slashes.
std::vector<std::string> steps_of(std::string_view path) {
  std::vector<std::string> steps;
  while (true) {
    const std::size_t slash = path.find('/');
    steps.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return steps;
    path.remove_prefix(slash + 1);
  }
}

Doc* step_into(Doc& at, const std::string& step) {
  if (!at.is_array()) return &at.at(step);
  const auto index = parse_int(step);
  JOGAK_CHECK(index.has_value());
  while (at.size() <= static_cast<std::size_t>(*index)) at.push({});
  return &at.items()[static_cast<std::size_t>(*index)];
}

Doc value_of(std::string_view text) {
  auto parsed = codec::parse_json(text);
  return parsed.has_value() ? std::move(parsed->doc) : Doc(text);
}

}  // namespace

Doc json(std::string_view text) {
  auto parsed = codec::parse_json(text);
  JOGAK_CHECK(parsed.has_value());
  return std::move(parsed->doc);
}

Doc with(Doc base, const std::vector<std::string>& edits) {
  for (const std::string& edit : edits) {
    const std::size_t equals = edit.find('=');
    const std::vector<std::string> steps = steps_of(std::string_view(edit).substr(0, equals));
    Doc* at = &base;
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) at = step_into(*at, steps[i]);
    if (equals == std::string::npos) {
      at->erase(steps.back());
    } else {
      *step_into(*at, steps.back()) = value_of(std::string_view(edit).substr(equals + 1));
    }
  }
  return base;
}

std::string refusal(const ApiResult<Doc>& answer) {
  if (answer.has_value()) return {};
  const ApiError& error = answer.error();
  if (error.causes.empty()) return std::to_string(error.code) + " " + error.reason;
  std::string text;
  for (const Cause& cause : error.causes) {
    std::string_view reason = cause.reason;
    if (reason.starts_with("FieldValue"))
      reason.remove_prefix(std::string_view("FieldValue").size());
    text += (text.empty() ? "" : ", ") + std::string(reason) + " " + cause.field;
  }
  return text;
}

WorkloadBench::WorkloadBench(const KindOptions& options)
    : store_(loop_), ops_(loop_, store_, registry_, Rng(1, "bench")) {
  add_builtin_kinds(registry_, options);
}

const Resource& WorkloadBench::resource_of(const Doc& object) const {
  const std::string_view version = object["apiVersion"].as_string();
  const std::size_t slash = version.find('/');
  const bool has_group = slash != std::string_view::npos;
  const Resource* resource = registry_.find_kind(has_group ? version.substr(0, slash) : "",
                                                 has_group ? version.substr(slash + 1) : version,
                                                 object["kind"].as_string());
  JOGAK_CHECK(resource != nullptr);
  return *resource;
}

WriteRequest WorkloadBench::request(const Doc& object, std::string_view subresource) const {
  WriteRequest request;
  request.resource = &resource_of(object);
  if (request.resource->is_namespaced) {
    request.ns = namespace_of(object).empty() ? "ns" : namespace_of(object);
  }
  request.name = name_of(object);
  request.subresource = subresource;
  request.manager = "bench";
  return request;
}

Doc WorkloadBench::decoded(const Doc& object) const {
  schema::Complaints complaints;
  auto result = schema::decode(object, *resource_of(object).type, complaints);
  JOGAK_CHECK(result.has_value() && complaints.unknown.empty());
  return *std::move(result);
}

ApiResult<Doc> WorkloadBench::create(const Doc& object) {
  WriteRequest write = request(object, "");
  write.name.clear();
  ApiResult<Doc> answer = ops_.create(write, decoded(object));
  warnings_ = write.warnings;
  return answer;
}

ApiResult<Doc> WorkloadBench::update(const Doc& object, std::string_view subresource) {
  WriteRequest write = request(object, subresource);
  auto answer = ops_.update(write, decoded(object));
  warnings_ = write.warnings;
  if (!answer.has_value()) return std::unexpected(std::move(answer).error());
  return std::move(answer->object);
}

ApiResult<Doc> WorkloadBench::edit(const Doc& object, const std::vector<std::string>& edits,
                                   std::string_view subresource) {
  WriteRequest write = request(object, subresource);
  auto answer = ops_.change(
      write, [&](const Doc& current) -> ApiResult<Doc> { return decoded(with(current, edits)); });
  warnings_ = write.warnings;
  if (!answer.has_value()) return std::unexpected(std::move(answer).error());
  return std::move(answer->object);
}

ApiResult<Ops::Removed> WorkloadBench::remove(const Doc& object) {
  WriteRequest write = request(object, "");
  DeleteOptions options;
  options.propagation_policy = "Background";
  return ops_.remove(write, options);
}

Doc WorkloadBench::get(const Doc& object) const {
  const Resource& resource = resource_of(object);
  const WriteRequest read = request(object, "");
  auto found = ops_.get(resource.table, read.ns, read.name);
  JOGAK_CHECK(found.has_value());
  return ops_.in_version(*std::move(found), resource);
}

void expect_creates(WorkloadBench& bench, const Doc& base, const std::vector<Edited>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Doc object = with(base, rows[i].edits);
    const bool has_name = std::ranges::any_of(
        rows[i].edits, [](const std::string& edit) { return edit.starts_with("metadata/name="); });
    if (!has_name) object.at("metadata", "name") = name_of(base) + "-" + std::to_string(i);
    EXPECT_EQ(refusal(bench.create(object)), rows[i].causes) << rows[i].why;
  }
}

void expect_edits(WorkloadBench& bench, const Doc& base, const std::vector<Edited>& rows,
                  std::string_view subresource) {
  for (const Edited& row : rows) {
    ASSERT_EQ(refusal(bench.create(base)), "") << row.why;
    EXPECT_EQ(refusal(bench.edit(base, row.edits, subresource)), row.causes) << row.why;
    ASSERT_TRUE(bench.remove(base).has_value()) << row.why;
  }
}

}  // namespace jogak::api
