// SPDX-License-Identifier: Apache-2.0
//
// One request and the way to its answer: objects, lists and refusals in the form the client asked
// for (JSON, YAML, protobuf; whole objects, tables, metadata alone).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/codec/codec.h"
#include "apiserver/object/api_error.h"
#include "apiserver/registry/resource.h"
#include "apiserver/rest/request.h"
#include "net/http.h"

namespace jogak::api {

struct Exchange {
  net::HttpRequest request;
  RequestInfo info;
  std::shared_ptr<net::ResponseWriter> writer;
  User user;
  codec::Negotiated form;
  std::vector<std::string> warnings;

  // The refusal as a Status (or plain text).
  void refuse(const ApiError& error);
  // An object of that type in the form asked for. `resource` says what its table looks like; null
  // for a Status.
  void answer(int code, Doc object, const schema::Struct* type, const Resource* resource,
              TimeUs now);
  void answer_text(int code, std::string text);
  // A list: `items` are whole objects. `list_meta` is {resourceVersion, continue, ...}.
  void answer_list(const Resource& resource, Doc list_meta, std::vector<Doc> items, TimeUs now);
  // Bytes that are JSON already.
  void answer_json(int code, std::string json);

  bool wants_pretty() const;
  // Whole objects in JSON, in the version that is stored: the store's bytes are the answer.
  bool takes_stored_json(const Resource& resource) const;
  net::Headers headers(std::string_view content_type) const;
  // Writes `value` as JSON or YAML, pretty when asked.
  std::string text_of(const Doc& value) const;
};

// `includeObject` of tables: what each row carries.
Doc table_row(const Resource& resource, const Doc& object, std::string_view include_object,
              TimeUs now);
Doc table_of(const Resource& resource, Doc list_meta, bool with_columns);
// {"kind":"PartialObjectMetadata",...}
Doc partial_of(const Doc& object);

}  // namespace jogak::api
