// SPDX-License-Identifier: Apache-2.0
//
// What the server says about itself: groups, versions, resources, OpenAPI, version, health.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/registry/resource.h"
#include "net/http.h"

namespace jogak::api {

struct TextAnswer {
  int status = 200;
  net::Headers headers;  // content-type and the like
  std::string body;
};

// Documents are made when first asked for and kept until the registry changes.
class Discovery {
 public:
  // `registry` outlives this.
  explicit Discovery(const Registry& registry);
  ~Discovery();

  // Answers GET of /, /api, /apis, /api/v1, /apis/GROUP, /apis/GROUP/VERSION, /version,
  // /openapi/v2, /openapi/v3 and below, /healthz, /livez and /readyz and below (these with any
  // method). nullopt: not a path of this part, or nothing there: the front says 404. `path` comes
  // without the query, which is `query` ("timeout=32s"); HEAD answers as GET (the front drops the
  // body).
  std::optional<TextAnswer> answer(std::string_view path, std::string_view query,
                                   const net::Headers& headers);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace jogak::api
