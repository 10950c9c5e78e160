// SPDX-License-Identifier: Apache-2.0
//
// One object becomes what was asked for: itself, its metadata, or a row of a table; then text.
#include "apiserver/rest/exchange.h"

#include <algorithm>

#include "apiserver/tables/tables.h"

namespace jogak::api {

namespace {

constexpr std::string_view kMetaVersion = "meta.k8s.io/v1";

// Members in the order of their names, all the way down: the order of YAML answers.
Doc sorted(const Doc& value) {
  if (value.is_array()) {
    Doc list = Doc::array();
    for (const Doc& item : value.items()) list.push(sorted(item));
    return list;
  }
  if (!value.is_object()) return value;
  std::vector<const Doc::Member*> members;
  for (const Doc::Member& member : value.members()) members.push_back(&member);
  std::ranges::sort(members, {}, [](const Doc::Member* member) { return member->key; });
  Doc object = Doc::object();
  for (const Doc::Member* member : members) {
    object.members().push_back({member->key, sorted(member->value)});
  }
  return object;
}

std::string quoted_warning(std::string_view text) {
  std::string out = "299 - \"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

Doc column_of(const Column& column) {
  return Doc::object()
      .set("name", column.name)
      .set("type", column.type)
      .set("format", column.format)
      .set("description", column.description)
      .set("priority", column.priority);
}

// Finished pods are marked, so that kubectl can tell them from running ones.
Doc row_conditions(const Resource& resource, const Doc& object) {
  if (resource.kind != "Pod" || !resource.group.empty()) return {};
  const std::string& phase = object.get("status", "phase").as_string();
  if (phase != "Succeeded" && phase != "Failed") return {};
  return Doc::array().push(Doc::object()
                               .set("type", "Completed")
                               .set("status", "True")
                               .set("reason", phase)
                               .set("message", phase == "Succeeded"
                                                   ? "The pod has completed successfully."
                                                   : "The pod failed."));
}

}  // namespace

Doc partial_of(const Doc& object) {
  return Doc::object()
      .set("kind", "PartialObjectMetadata")
      .set("apiVersion", kMetaVersion)
      .set("metadata", object["metadata"]);
}

Doc table_row(const Resource& resource, const Doc& object, std::string_view include_object,
              TimeUs now) {
  Doc row = Doc::object().set("cells", table_cells(resource, object, now));
  if (Doc conditions = row_conditions(resource, object); !conditions.is_null()) {
    row.set("conditions", std::move(conditions));
  }
  if (include_object == "None") return row.set("object", Doc());
  if (include_object == "Object") return row.set("object", object);
  Doc partial = partial_of(object);
  if (resource.kind == "DaemonSet" && resource.group == "apps") {
    // made up when the version apps/v1 is written, which a table is not
    Doc& annotations = partial.at("metadata").at("annotations");
    annotations.erase("deprecated.daemonset.template.generation");
    if (annotations.empty()) partial.at("metadata").erase("annotations");
  }
  return row.set("object", std::move(partial));
}

Doc table_of(const Resource& resource, Doc list_meta, bool with_columns) {
  Doc table = Doc::object();
  table.set("kind", "Table").set("apiVersion", kMetaVersion).set("metadata", std::move(list_meta));
  if (!with_columns) return table.set("columnDefinitions", Doc()).set("rows", Doc::array());
  Doc columns = Doc::array();
  for (const Column& column : table_columns(resource)) columns.push(column_of(column));
  return table.set("columnDefinitions", std::move(columns)).set("rows", Doc::array());
}

net::Headers Exchange::headers(std::string_view content_type) const {
  net::Headers headers = {{"Content-Type", std::string(content_type)},
                          {"Cache-Control", "no-cache, private"}};
  std::vector<std::string_view> sent;  // the same warning only once
  for (const std::string& warning : warnings) {
    if (std::ranges::find(sent, warning) != sent.end()) continue;
    sent.push_back(warning);
    headers.emplace_back("Warning", quoted_warning(warning));
  }
  return headers;
}

bool Exchange::wants_pretty() const {
  return form.is_pretty || info.parameter("pretty") == "true" || info.parameter("pretty") == "1";
}

bool Exchange::takes_stored_json(const Resource& resource) const {
  return form.form == codec::Form::Json && form.as == codec::Negotiated::As::Object &&
         resource.is_storage_version;
}

std::string Exchange::text_of(const Doc& value) const {
  if (form.form == codec::Form::Yaml) return sorted(value).yaml();
  if (wants_pretty()) return value.json(JsonWriter::Style::Pretty);
  std::string text;
  value.append_json(text);
  text += '\n';
  return text;
}

void Exchange::answer_json(int code, std::string json) {
  writer->respond(code, headers("application/json"), std::move(json));
}

void Exchange::answer_text(int code, std::string text) {
  writer->respond(code, headers("text/plain; charset=utf-8"), std::move(text));
}

void Exchange::refuse(const ApiError& error) {
  net::Headers extra;
  if (error.is_plain_text) {
    writer->respond(error.code, headers("text/plain; charset=utf-8"), error.message);
    return;
  }
  const Doc status = status_of(error);
  const bool is_protobuf = form.form == codec::Form::Protobuf;
  const bool is_yaml = form.form == codec::Form::Yaml;
  net::Headers all = headers(is_protobuf ? "application/vnd.kubernetes.protobuf"
                                         : (is_yaml ? "application/yaml" : "application/json"));
  if (error.retry_after_s > 0) {
    all.emplace_back("Retry-After", std::to_string(error.retry_after_s));
  }
  writer->respond(error.code, std::move(all),
                  is_protobuf ? codec::encode_protobuf(status, schema::get("meta.v1.Status"))
                              : text_of(status));
}

void Exchange::answer(int code, Doc object, const schema::Struct* type, const Resource* resource,
                      TimeUs now) {
  using As = codec::Negotiated::As;
  if (form.as == As::Table && resource != nullptr) {
    Doc table = table_of(
        *resource, Doc::object().set("resourceVersion", object.get("metadata", "resourceVersion")),
        true);
    table.at("rows").push(table_row(*resource, object, info.parameter("includeObject"), now));
    object = std::move(table);
    type = nullptr;
  } else if (form.as == As::Partial && resource != nullptr) {
    object = partial_of(object);
    type = &schema::get("meta.v1.PartialObjectMetadata");
  }
  if (form.form == codec::Form::Protobuf && type != nullptr) {
    writer->respond(code, headers(form.content_type), codec::encode_protobuf(object, *type));
    return;
  }
  // a table or a Status in an answer to a client that would rather have protobuf
  const bool is_fallback = form.form == codec::Form::Protobuf;
  writer->respond(code, headers(is_fallback ? "application/json" : form.content_type),
                  text_of(object));
}

void Exchange::answer_list(const Resource& resource, Doc list_meta, std::vector<Doc> items,
                           TimeUs now) {
  using As = codec::Negotiated::As;
  if (form.as == As::Table) {
    Doc table = table_of(resource, std::move(list_meta), true);
    for (const Doc& item : items) {
      table.at("rows").push(table_row(resource, item, info.parameter("includeObject"), now));
    }
    const bool is_fallback = form.form == codec::Form::Protobuf;
    writer->respond(200, headers(is_fallback ? "application/json" : form.content_type),
                    text_of(table));
    return;
  }
  Doc list = Doc::object();
  const bool is_partial = form.as == As::Partial;
  list.set("kind", is_partial ? "PartialObjectMetadataList" : resource.list_kind)
      .set("apiVersion", is_partial ? std::string(kMetaVersion) : resource.api_version())
      .set("metadata", std::move(list_meta));
  Doc& into = list.at("items") = Doc::array();
  for (Doc& item : items) {
    if (is_partial) item = partial_of(item);
    // items of typed lists say neither kind nor apiVersion
    if (!is_partial && resource.type != nullptr) {
      item.erase("kind");
      item.erase("apiVersion");
    }
    into.push(std::move(item));
  }
  const schema::Struct* element =
      is_partial ? &schema::get("meta.v1.PartialObjectMetadata") : resource.type;
  if (form.form == codec::Form::Protobuf && element != nullptr) {
    writer->respond(200, headers(form.content_type), codec::encode_protobuf_list(list, *element));
    return;
  }
  writer->respond(200, headers(form.content_type), text_of(list));
}

}  // namespace jogak::api
