// SPDX-License-Identifier: Apache-2.0
//
// Result<T>: a value, or the Error that the outside world handed us (bad input, a conflict, an
// outage). A decision that says no is not an error, and a broken invariant is a JOGAK_CHECK.
// Messages are lower case without a full stop, and say what was being done and to what.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace jogak {

// A code exists only if some caller acts differently on it.
enum class Errc : std::uint8_t { Invalid, NotFound, Conflict, Gone, Unavailable, Timeout };

struct [[nodiscard]] Error {
  Errc code = Errc::Invalid;
  std::string what;

  friend bool operator==(const Error&, const Error&) = default;
};

template <class T>
using Result = std::expected<T, Error>;

// fail(Errc::Conflict, "pod {} moved", name) converts to any Result<T>.
template <class... Args>
std::unexpected<Error> fail(Errc code, fmt::format_string<Args...> text, Args&&... args) {
  return std::unexpected(
      Error{.code = code, .what = fmt::format(text, std::forward<Args>(args)...)});
}

// The common case: input that can never be right, however often it is tried.
template <class... Args>
std::unexpected<Error> invalid(fmt::format_string<Args...> text, Args&&... args) {
  return fail(Errc::Invalid, text, std::forward<Args>(args)...);
}

// The same error with "prefix: " in front, to say where it happened (a file, a field).
inline std::unexpected<Error> in_context(std::string_view prefix, Error error) {
  error.what.insert(0, ": ").insert(0, prefix);
  return std::unexpected(std::move(error));
}

}  // namespace jogak

#define JOGAK_CONCAT_(a, b) a##b
#define JOGAK_CONCAT(a, b) JOGAK_CONCAT_(a, b)

// JOGAK_TRY(const auto meta, read_meta(json)): declares meta from the value, or returns the error.
#define JOGAK_TRY(decl, ...) JOGAK_TRY_(JOGAK_CONCAT(jogak_try_, __COUNTER__), decl, __VA_ARGS__)
#define JOGAK_TRY_(tmp, decl, ...)                  \
  auto tmp = (__VA_ARGS__);                         \
  if (!tmp.has_value()) [[unlikely]]                \
    return std::unexpected(std::move(tmp).error()); \
  decl = *std::move(tmp)

// The same for Result<void>, or where the value is not wanted.
#define JOGAK_TRY_VOID(...)                                                                \
  do {                                                                                     \
    if (auto jogak_try_result = (__VA_ARGS__); !jogak_try_result.has_value()) [[unlikely]] \
      return std::unexpected(std::move(jogak_try_result).error());                         \
  } while (false)
