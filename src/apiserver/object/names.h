// SPDX-License-Identifier: Apache-2.0
//
// The rules for names, labels and values of the Kubernetes API (apimachinery util/validation). Each
// function returns what is wrong in the server's words, one entry a broken rule; empty is right.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/object/field_errors.h"
#include "base/doc.h"

namespace jogak::api {

using Problems = std::vector<std::string>;

Problems check_dns1123_label(std::string_view text);      // <= 63
Problems check_dns1123_subdomain(std::string_view text);  // <= 253
Problems check_dns1035_label(std::string_view text);
Problems check_qualified_name(std::string_view text);  // [prefix/]name, keys of labels
Problems check_label_value(std::string_view text);
Problems check_port(std::int64_t port);           // 1 to 65535
Problems check_port_name(std::string_view text);  // IANA_SVC_NAME
Problems check_env_name(std::string_view text);
Problems check_config_key(std::string_view text);
Problems check_percent(std::string_view text);
Problems check_ip(std::string_view text);

// Adds an Invalid per problem.
void add_problems(FieldErrors& errors, const Path& at, const Doc& value, const Problems& problems);

// metadata of any object: name by `check_name`, generateName, namespace present or absent, labels,
// annotations (256 KiB), finalizers, owner references, generation.
using NameCheck = Problems (*)(std::string_view);
void validate_meta(const Doc& metadata, bool is_namespaced, NameCheck check_name, const Path& at,
                   FieldErrors& errors);
// Immutable members (name, namespace, uid, creationTimestamp, deletion*); no new finalizers while
// deleting.
void validate_meta_update(const Doc& metadata, const Doc& old_metadata, const Path& at,
                          FieldErrors& errors);
// Of built-in kinds: a finalizer has a domain or is one of the standard ones.
void validate_known_finalizers(const Doc& finalizers, const Path& at, FieldErrors& errors);
void validate_labels(const Doc& labels, const Path& at, FieldErrors& errors);
void validate_annotations(const Doc& annotations, const Path& at, FieldErrors& errors);
// A LabelSelector object.
void validate_label_selector(const Doc& selector, const Path& at, FieldErrors& errors);

}  // namespace jogak::api
