// SPDX-License-Identifier: Apache-2.0
//
// JOGAK_CHECK(cond) and JOGAK_CHECK(cond, "fmt {}", args...): an invariant of ours broke. On in
// every build; prints file, line, expression and message to stderr, then aborts. JOGAK_DCHECK is
// for checks too costly to keep on: it is compiled but not evaluated when NDEBUG is defined.
#pragma once

#include <string>
#include <utility>

#include <fmt/core.h>

namespace jogak::internal {

// Prints "FILE:LINE: check failed: EXPR (message)" and aborts; the message may be empty.
[[noreturn]] void check_failed(const char* file, int line, const char* expression,
                               const std::string& message);

inline std::string check_message() { return {}; }

template <class... Args>
std::string check_message(fmt::format_string<Args...> text, Args&&... args) {
  return fmt::format(text, std::forward<Args>(args)...);
}

}  // namespace jogak::internal

#define JOGAK_CHECK(cond, ...)                                                        \
  do {                                                                                \
    if (!(cond)) [[unlikely]]                                                         \
      ::jogak::internal::check_failed(__FILE__, __LINE__, #cond,                      \
                                      ::jogak::internal::check_message(__VA_ARGS__)); \
  } while (false)

#ifdef NDEBUG
#define JOGAK_DCHECK(cond, ...)                  \
  do {                                           \
    if (false) JOGAK_CHECK(cond, ##__VA_ARGS__); \
  } while (false)
#else
#define JOGAK_DCHECK(...) JOGAK_CHECK(__VA_ARGS__)
#endif
