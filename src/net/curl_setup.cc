// SPDX-License-Identifier: Apache-2.0
//
// URLs are taken apart by libcurl's own parser, so that nobody else's idea of a URL gets in.
#include "net/curl_setup.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "base/check.h"
#include "base/file.h"
#include "net/pem.h"
#include "net/tls.h"

namespace jogak::net {
namespace {

using Url = std::unique_ptr<CURLU, Freed<curl_url_cleanup>>;

constexpr long kReceiveBytes = 64 * 1024;
// Seconds that a connection may have been idle and still be used: less than what servers and
// balancers on the way allow, so that no request goes into one that is just being closed.
constexpr long kIdleSecondsMax = 55;
constexpr long kKeepaliveSeconds = 30, kKeepaliveInterval = 15;

std::string part_of(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK || text == nullptr) return "";
  std::string copy(text);
  curl_free(text);
  return copy;
}

struct UrlParts {
  std::string scheme, host, port, path, user;  // an IPv6 host in brackets
  bool is_default_port = false;
};

Result<UrlParts> parse_url(const std::string& text, std::string_view field, unsigned flags) {
  const Url url(curl_url());
  JOGAK_CHECK(url != nullptr, "no memory for a URL");
  // the text may hold a password: it is not in the message
  if (const CURLUcode code = curl_url_set(url.get(), CURLUPART_URL, text.c_str(), flags);
      code != CURLUE_OK) {
    std::string why = curl_url_strerror(code);
    return invalid("{}: not a URL: {}; write it as https://HOST:PORT", field, why);
  }
  UrlParts parts{.scheme = part_of(url.get(), CURLUPART_SCHEME),
                 .host = part_of(url.get(), CURLUPART_HOST),
                 .port = part_of(url.get(), CURLUPART_PORT),
                 .path = part_of(url.get(), CURLUPART_PATH),
                 .user = part_of(url.get(), CURLUPART_USER)};
  if (!part_of(url.get(), CURLUPART_QUERY).empty() ||
      !part_of(url.get(), CURLUPART_FRAGMENT).empty()) {
    return invalid("{}: a URL with a query or a fragment; leave them out", field);
  }
  if (parts.port.empty()) {
    parts.is_default_port = true;
    parts.port = parts.scheme == "https" ? "443" : parts.scheme == "http" ? "80" : "1080";
  }
  while (parts.path.ends_with('/')) parts.path.pop_back();
  return parts;
}

bool is_this_machine(std::string host) {
  if (host == "localhost" || host.ends_with(".localhost")) return true;
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  if (host.size() < 2 || host.front() != '[') return false;
  in6_addr v6{};
  host = host.substr(1, host.size() - 2);
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool is_v6(const std::string& host) {
  in6_addr ignored{};
  return ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

Result<void> check_tls(CurlOptions& options) {
  if (options.ca_pem.empty() && !options.ca_file.empty()) {
    auto text = read_file(options.ca_file, std::int64_t{16} << 20);
    if (!text) return in_context("certificate authority", std::move(text).error());
    options.ca_pem = *std::move(text);
  }
  if (!options.ca_pem.empty()) {
    if (options.insecure_skip_verify) {
      return invalid("insecure-skip-tls-verify together with a certificate authority; choose one");
    }
    if (auto count = count_certificates(options.ca_pem); !count) {
      return in_context("certificate authority", std::move(count).error());
    }
  }
  if (options.client_certificate_pem.empty() != options.client_key_pem.empty()) {
    return invalid("client {} is missing; a client certificate needs both",
                   options.client_key_pem.empty() ? "key" : "certificate");
  }
  if (!options.client_certificate_pem.empty()) {
    auto context = TlsContext::make(
        {.certificate_pem = options.client_certificate_pem, .key_pem = options.client_key_pem});
    if (!context) return in_context("client certificate", std::move(context).error());
  }
  return {};
}

curl_blob blob_of(const std::string& text) {
  return {.data = const_cast<char*>(text.data()), .len = text.size(), .flags = CURL_BLOB_NOCOPY};
}

// Once per process; libcurl is thread-safe in this.
void start_libcurl() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  JOGAK_CHECK(code == CURLE_OK, "libcurl: {}", curl_easy_strerror(code));
}

}  // namespace

Result<CurlSetup> CurlSetup::make(CurlOptions options) {
  start_libcurl();
  JOGAK_TRY(const UrlParts base, parse_url(options.base_url, "server", 0));
  if (base.scheme != "https" && base.scheme != "http") {
    return invalid("server: the scheme {} is not one of http and https", base.scheme);
  }
  if (!base.user.empty()) {
    return invalid("server: a URL with a user in it; give user and password apart from it");
  }
  if (options.connections_max == 0) return invalid("connections_max: must be at least 1");

  CurlSetup setup;
  setup.server = fmt::format("{}:{}", base.host, base.port);
  setup.is_this_machine = net::is_this_machine(base.host);
  std::string authority = base.is_default_port ? base.host : setup.server;
  if (base.scheme == "https") {
    JOGAK_TRY_VOID(check_tls(options));
    if (!options.tls_server_name.empty()) {
      // libcurl verifies the host of the URL, so the URL has the wanted name, the connection goes
      // elsewhere, and the server is told the host that the user wrote.
      setup.host_header = authority;
      const std::string name = is_v6(options.tls_server_name)
                                   ? fmt::format("[{}]", options.tls_server_name)
                                   : options.tls_server_name;
      authority = fmt::format("{}:{}", name, base.port);
      if (auto url = parse_url("https://" + authority, "tls-server-name", 0);
          !url || url->host != name) {
        return invalid("tls-server-name: \"{}\" is not the name of a host", name);
      }
      setup.connect_to.reset(curl_slist_append(nullptr, fmt::format("::{}", setup.server).c_str()));
      JOGAK_CHECK(setup.connect_to != nullptr);
    }
  }
  setup.url_prefix = fmt::format("{}://{}{}", base.scheme, authority, base.path);

  if (!options.proxy_url.empty()) {
    JOGAK_TRY(const UrlParts proxy,
              parse_url(options.proxy_url, "proxy-url", CURLU_NON_SUPPORT_SCHEME));
    if (proxy.scheme != "http" && proxy.scheme != "https" && proxy.scheme != "socks5" &&
        proxy.scheme != "socks5h") {
      return invalid("proxy-url: the scheme {} is not one of http, https and socks5", proxy.scheme);
    }
    setup.proxy_name = fmt::format("{}:{}", proxy.host, proxy.port);
    setup.proxy_url = options.proxy_url;
    // The proxy looks up the names, as in Go's client.
    if (proxy.scheme == "socks5") setup.proxy_url.insert(sizeof "socks5" - 1, "h");
  }
  setup.options = std::move(options);
  return setup;
}

void CurlSetup::apply(CURL* easy) const {
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);  // no wait for a look-up that was cancelled
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, kReceiveBytes);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, options.user_agent.c_str());
  if (options.compression) curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
  curl_easy_setopt(
      easy, CURLOPT_HTTP_VERSION,
      static_cast<long>(options.http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
  if (options.http2) curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>((options.connect_limit + kMsInUs - 1) / kMsInUs));
  curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, kIdleSecondsMax);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, kKeepaliveSeconds);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, kKeepaliveInterval);
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  if (!proxy_url.empty()) {
    curl_easy_setopt(easy, CURLOPT_PROXY, proxy_url.c_str());
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
  } else if (is_this_machine) {
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
  }

  curl_easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (options.insecure_skip_verify) {
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!options.ca_pem.empty()) {
    curl_blob blob = blob_of(options.ca_pem);
    curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &blob);
    // the folder of the system's roots would count as well
    curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
  }
  if (!options.client_certificate_pem.empty()) {
    curl_blob certificate = blob_of(options.client_certificate_pem);
    curl_blob key = blob_of(options.client_key_pem);
    curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &certificate);
    curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &key);
  }
  if (connect_to != nullptr) curl_easy_setopt(easy, CURLOPT_CONNECT_TO, connect_to.get());
}

}  // namespace jogak::net
