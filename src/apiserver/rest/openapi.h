// SPDX-License-Identifier: Apache-2.0
//
// OpenAPI of everything served: one v3 document a group version, and all in one as v2, from which
// kubectl learns what may be validated and what explain shows.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/registry/resource.h"
#include "apiserver/rest/discovery.h"

namespace jogak::api {

class OpenApi {
 public:
  // `registry` outlives this.
  explicit OpenApi(const Registry& registry);
  ~OpenApi();

  // GET of /openapi/v2, /openapi/v3 and below; nullopt for any other path.
  std::optional<TextAnswer> answer(std::string_view path, std::string_view query,
                                   const net::Headers& headers);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace jogak::api
