// SPDX-License-Identifier: Apache-2.0
//
// The kubeconfig is written beside its place and renamed, so that nobody reads half of it.
#include "playground/access.h"

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "base/base64.h"
#include "base/doc.h"

namespace jogak::playground {

namespace {

std::unexpected<Error> system_error(std::string_view what, const std::string& path) {
  return fail(Errc::Unavailable, "{} {}: {}", what, path, std::strerror(errno));
}

}  // namespace

Result<std::string> random_token() {
  std::array<unsigned char, 32> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return system_error("reading", "the system's random source");
  }
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

std::string kubeconfig_text(const Access& access) {
  Doc cluster = Doc::object().set("server", access.url);
  if (!access.ca_pem.empty())
    cluster.set("certificate-authority-data", base64_encode(access.ca_pem));
  const auto named = [](std::string_view key, Doc value) {
    return Doc::array().push(Doc::object().set("name", "jogak").set(key, std::move(value)));
  };
  Doc config = Doc::object();
  config.set("apiVersion", "v1")
      .set("kind", "Config")
      .set("clusters", named("cluster", std::move(cluster)))
      .set("users", named("user", Doc::object().set("token", access.token)))
      .set("contexts", named("context", Doc::object().set("cluster", "jogak").set("user", "jogak")))
      .set("current-context", "jogak");
  return config.yaml();
}

Result<void> write_kubeconfig(const std::string& path, const Access& access) {
  const std::string part = path + ".part";
  const std::string text = kubeconfig_text(access);
  ::unlink(part.c_str());
  const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) return system_error("writing", path);
  const bool is_written =
      ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool is_closed = ::close(fd) == 0;
  if (!is_written || !is_closed || ::rename(part.c_str(), path.c_str()) != 0) {
    auto error = system_error("writing", path);
    ::unlink(part.c_str());
    return error;
  }
  return {};
}

}  // namespace jogak::playground
