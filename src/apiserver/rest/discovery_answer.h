// SPDX-License-Identifier: Apache-2.0
//
// Inside of discovery: finding out which form a client takes, and answers in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/codec/codec.h"
#include "apiserver/object/api_error.h"
#include "apiserver/rest/discovery.h"
#include "base/doc.h"

namespace jogak::api {

// The alternatives of the Accept header, best first; "*/*" when there is none.
std::vector<codec::MediaType> accepted_types(const net::Headers& headers);
// "application/*" covers "application/json".
bool covers(const codec::MediaType& accepted, std::string_view type);

TextAnswer plain_answer(int status, std::string text);
// A Status. An error of plain text stays plain.
TextAnswer error_answer(const ApiError& error);
// A document as JSON or YAML, whatever the client takes, else 406.
TextAnswer document_answer(const Doc& doc, std::string_view query, const net::Headers& headers);
// A text that was made before, with its entity tag; 304 when the client has that already.
TextAnswer cached_answer(const std::string& text, std::string_view content_type,
                         std::string_view tag, const net::Headers& headers);
// Whether the query asks for indented JSON.
bool wants_pretty(std::string_view query, const net::Headers& headers);

// The server's version, and what a list of paths answers at "/".
Doc version_document();
// /healthz, /livez, /readyz and the single checks below them. nullopt: there is no such check.
std::optional<TextAnswer> answer_health(std::string_view path, std::string_view query);
std::vector<std::string> health_paths();

}  // namespace jogak::api
