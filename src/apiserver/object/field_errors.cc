// SPDX-License-Identifier: Apache-2.0
//
// The words of field errors. A string stands in quotes as Go's %q shows it, anything else as Go's
// JSON encoder writes it.
#include "apiserver/object/field_errors.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

namespace jogak::api {
namespace {

struct Words {
  std::string_view reason, text;
};

// In the order of FieldErrorType.
constexpr std::array<Words, 10> kWords = {{
    {"FieldValueNotFound", "Not found"},
    {"FieldValueRequired", "Required value"},
    {"FieldValueDuplicate", "Duplicate value"},
    {"FieldValueInvalid", "Invalid value"},
    {"FieldValueNotSupported", "Unsupported value"},
    {"FieldValueForbidden", "Forbidden"},
    {"FieldValueTooLong", "Too long"},
    {"FieldValueTooMany", "Too many"},
    {"FieldValueTypeInvalid", "Invalid value"},
    {"InternalError", "Internal error"},
}};

const Words& words_of(FieldErrorType type) { return kWords[static_cast<std::size_t>(type)]; }

std::string shown(const Doc& value) {
  if (value.is_string()) return quoted(value.as_string());
  std::string json;
  value.append_json(json);
  std::string out;
  out.reserve(json.size());
  // Go's encoder keeps HTML safe; these three only stand inside strings.
  for (const char c : json) {
    switch (c) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += c;
    }
  }
  return out;
}

FieldError entry(FieldErrorType type, const Path& at, std::string message) {
  return {.type = type, .field = at.text(), .message = std::move(message)};
}

std::string with_detail(std::string message, std::string_view detail) {
  if (!detail.empty()) message.append(": ").append(detail);
  return message;
}

FieldError plain(FieldErrorType type, const Path& at, std::string_view detail) {
  return entry(type, at, with_detail(std::string(words_of(type).text), detail));
}

FieldError valued(FieldErrorType type, const Path& at, const Doc& value, std::string_view detail) {
  return entry(type, at,
               with_detail(fmt::format("{}: {}", words_of(type).text, shown(value)), detail));
}

}  // namespace

std::string_view reason_of(FieldErrorType type) { return words_of(type).reason; }

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\a':
        out += "\\a";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\v':
        out += "\\v";
        break;
      default:
        if (byte < 0x20 || byte == 0x7f) {
          out += fmt::format("\\x{:02x}", byte);
        } else {
          out += c;
        }
    }
  }
  out += '"';
  return out;
}

void FieldErrors::required(const Path& at, std::string_view detail) {
  add(plain(FieldErrorType::Required, at, detail));
}

void FieldErrors::invalid(const Path& at, const Doc& value, std::string_view detail) {
  add(valued(FieldErrorType::Invalid, at, value, detail));
}

void FieldErrors::duplicate(const Path& at, const Doc& value) {
  add(valued(FieldErrorType::Duplicate, at, value, ""));
}

void FieldErrors::not_found(const Path& at, const Doc& value) {
  add(valued(FieldErrorType::NotFound, at, value, ""));
}

void FieldErrors::not_supported(const Path& at, const Doc& value,
                                const std::vector<std::string_view>& supported) {
  std::string detail;
  for (const std::string_view word : supported) {
    detail += detail.empty() ? "supported values: " : ", ";
    detail += quoted(word);
  }
  add(valued(FieldErrorType::NotSupported, at, value, detail));
}

void FieldErrors::forbidden(const Path& at, std::string_view detail) {
  add(plain(FieldErrorType::Forbidden, at, detail));
}

void FieldErrors::forbidden_by_policy(const Path& at) {
  FieldError error = plain(FieldErrorType::Forbidden, at, "disallowed by cluster policy");
  error.is_of_policy = true;
  add(std::move(error));
}

void FieldErrors::lift_policy() {
  std::erase_if(list_, [](const FieldError& error) { return error.is_of_policy; });
}

void FieldErrors::too_long(const Path& at, std::size_t limit) {
  add(plain(FieldErrorType::TooLong, at,
            fmt::format("may not be more than {} {}", limit, limit == 1 ? "byte" : "bytes")));
}

void FieldErrors::too_many(const Path& at, std::size_t actual, std::size_t limit) {
  add(valued(FieldErrorType::TooMany, at, Doc(actual),
             fmt::format("must have at most {} {}", limit, limit == 1 ? "item" : "items")));
}

void FieldErrors::type_invalid(const Path& at, const Doc& value, std::string_view detail) {
  add(valued(FieldErrorType::TypeInvalid, at, value, detail));
}

void FieldErrors::internal(const Path& at, std::string_view detail) {
  add(plain(FieldErrorType::Internal, at, detail));
}

std::string FieldErrors::text() const {
  std::vector<std::string> entries;
  for (const FieldError& error : list_) {
    std::string one = fmt::format("{}: {}", error.field, error.message);
    if (std::find(entries.begin(), entries.end(), one) == entries.end()) {
      entries.push_back(std::move(one));
    }
  }
  if (entries.size() == 1) return std::move(entries.front());
  std::string out;
  for (const std::string& one : entries) out.append(out.empty() ? "[" : ", ").append(one);
  return out.empty() ? out : out + "]";
}

}  // namespace jogak::api
