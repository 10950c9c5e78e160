// SPDX-License-Identifier: Apache-2.0
// Things that have a number of replicas, built in or custom.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/registry/api.h"

namespace jogak::controllers {

// The table of that kind in that group ("apps/v1" is "apps"), in any version; "" for none.
std::string table_of(const api::Api& api, std::string_view api_version, std::string_view kind);

// Where objects of the table keep the wanted number (".spec.replicas"); nullopt: they have no
// scale.
std::optional<std::string> replicas_path(const api::Api& api, std::string_view table);

// The value at such a path.
const Doc& at_path(const Doc& object, std::string_view path);
// A merge patch that sets it.
Doc patch_at_path(std::string_view path, Doc value);

}  // namespace jogak::controllers
