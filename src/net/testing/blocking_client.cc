// SPDX-License-Identifier: Apache-2.0
//
// One socket, blocking, with the system's timeouts.
#include "net/testing/blocking_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "net/freed.h"
#include "net/http_text.h"

namespace jogak::net {
namespace {

using Ssl = std::unique_ptr<SSL, Freed<SSL_free>>;
using SslContext = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;

std::unexpected<Error> lost(std::string_view doing, std::string_view why) {
  return fail(Errc::Unavailable, "{}: {}", doing, why);
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

struct BlockingClient::Impl {
  int fd = -1;
  SslContext context;
  Ssl ssl;
  std::string address;
  std::string input;        // received, not used yet
  bool is_chunked = false;  // of the stream under way
  std::string stream;       // its content that makes no whole line yet
  bool is_stream_over = false;

  ~Impl() {
    ssl.reset();
    if (fd >= 0) ::close(fd);
  }

  Result<void> start_tls(const std::string& trusted_pem);
  // False at the end of what the peer sends.
  Result<bool> receive();
  Result<std::string> take_line();
  Result<std::string> take_bytes(std::size_t count);
  // nullopt behind the last one.
  Result<std::optional<std::string>> take_chunk();
};

Result<void> BlockingClient::Impl::start_tls(const std::string& trusted_pem) {
  context.reset(SSL_CTX_new(TLS_client_method()));
  const Bio bio(BIO_new_mem_buf(trusted_pem.data(), static_cast<int>(trusted_pem.size())));
  const Certificate trusted(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (trusted == nullptr) return invalid("trusted certificate: not PEM");
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), trusted.get());
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  ssl.reset(SSL_new(context.get()));
  X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), address.c_str());
  static constexpr std::array<unsigned char, 12> kProtocols = {2,   'h', '2', 8,   'h', 't',
                                                               't', 'p', '/', '1', '.', '1'};
  SSL_set_alpn_protos(ssl.get(), kProtocols.data(), kProtocols.size());
  SSL_set_fd(ssl.get(), fd);
  if (SSL_connect(ssl.get()) == 1) return {};
  const long verdict = SSL_get_verify_result(ssl.get());
  if (verdict != X509_V_OK) return lost("TLS", X509_verify_cert_error_string(verdict));
  const char* reason = ERR_reason_error_string(ERR_get_error());
  return lost("TLS", reason == nullptr ? "no handshake" : reason);
}

Result<bool> BlockingClient::Impl::receive() {
  std::array<char, 64 * 1024> buffer;
  ssize_t got = 0;
  if (ssl != nullptr) {
    got = SSL_read(ssl.get(), buffer.data(), static_cast<int>(buffer.size()));
    if (got <= 0 && SSL_get_error(ssl.get(), static_cast<int>(got)) == SSL_ERROR_ZERO_RETURN) {
      return false;
    }
  } else {
    got = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (got == 0) return false;
  }
  if (got <= 0) {
    const bool is_timeout = errno == EAGAIN || errno == EWOULDBLOCK;
    return fail(is_timeout ? Errc::Timeout : Errc::Unavailable, "reading: {}",
                std::strerror(errno));
  }
  input.append(buffer.data(), static_cast<std::size_t>(got));
  return true;
}

Result<std::string> BlockingClient::Impl::take_line() {
  std::size_t searched = 0;
  for (;;) {
    const std::size_t end = input.find("\r\n", searched);
    if (end != std::string::npos) {
      std::string line = input.substr(0, end);
      input.erase(0, end + 2);
      return line;
    }
    searched = input.empty() ? 0 : input.size() - 1;
    JOGAK_TRY(const bool is_more, receive());
    if (!is_more) return lost("reading a line", "the peer closed");
  }
}

Result<std::string> BlockingClient::Impl::take_bytes(std::size_t count) {
  while (input.size() < count) {
    JOGAK_TRY(const bool is_more, receive());
    if (!is_more) return lost("reading a body", "the peer closed");
  }
  std::string bytes = input.substr(0, count);
  input.erase(0, count);
  return bytes;
}

Result<std::optional<std::string>> BlockingClient::Impl::take_chunk() {
  JOGAK_TRY(const std::string line, take_line());
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), size, 16);
  if (error != std::errc() || end == line.data()) return invalid("not a chunk's size: {}", line);
  JOGAK_TRY(std::string bytes, take_bytes(size));
  JOGAK_TRY(const std::string after, take_line());
  if (!after.empty()) return invalid("a chunk does not end where it should: {}", after);
  if (size == 0) return std::optional<std::string>();
  return std::optional(std::move(bytes));
}

BlockingClient::BlockingClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BlockingClient::BlockingClient(BlockingClient&&) noexcept = default;
BlockingClient& BlockingClient::operator=(BlockingClient&&) noexcept = default;
BlockingClient::~BlockingClient() = default;

Result<BlockingClient> BlockingClient::connect(std::uint16_t port,
                                               const BlockingClientOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->address = options.address;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  if (::inet_pton(AF_INET, options.address.c_str(), &to.sin_addr) != 1) {
    return invalid("\"{}\" is not an IPv4 address", options.address);
  }
  impl->fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval timeout{.tv_sec = options.timeout_s, .tv_usec = 0};
  ::setsockopt(impl->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  ::setsockopt(impl->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  const int on = 1;
  ::setsockopt(impl->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (options.receive_buffer_bytes > 0) {
    ::setsockopt(impl->fd, SOL_SOCKET, SO_RCVBUF, &options.receive_buffer_bytes, sizeof(int));
  }
  if (::connect(impl->fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    return lost("connecting", std::strerror(errno));
  }
  if (!options.trusted_pem.empty()) JOGAK_TRY_VOID(impl->start_tls(options.trusted_pem));
  return BlockingClient(std::move(impl));
}

Result<void> BlockingClient::send_raw(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent =
        impl_->ssl != nullptr
            ? SSL_write(impl_->ssl.get(), bytes.data(), static_cast<int>(bytes.size()))
            : ::send(impl_->fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return lost("sending", std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<void> BlockingClient::send_request(std::string_view method, std::string_view target,
                                          const Headers& headers, std::string_view body) {
  std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", method, target, impl_->address);
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  if (!body.empty()) text += fmt::format("Content-Length: {}\r\n", body.size());
  text += "\r\n";
  text += body;
  return send_raw(text);
}

Result<BlockingClient::Response> BlockingClient::read_head() {
  Response response;
  do {  // "100 Continue" comes before the answer
    response = {};
    JOGAK_TRY(const std::string first, impl_->take_line());
    if (!first.starts_with("HTTP/1.1 ") || first.size() < 12) {
      return invalid("not an answer of HTTP/1.1: {}", first);
    }
    std::from_chars(first.data() + 9, first.data() + 12, response.status);
    for (;;) {
      JOGAK_TRY(const std::string line, impl_->take_line());
      if (line.empty()) break;
      const std::size_t colon = line.find(':');
      if (colon == std::string::npos) return invalid("not a header: {}", line);
      response.headers.emplace_back(line.substr(0, colon),
                                    trim(std::string_view(line).substr(colon + 1)));
    }
  } while (response.status == 100);
  impl_->is_chunked = has_token(header(response.headers, "transfer-encoding"), "chunked");
  impl_->stream.clear();
  impl_->is_stream_over = false;
  return response;
}

Result<BlockingClient::Response> BlockingClient::read_response(std::string_view method) {
  JOGAK_TRY(Response response, read_head());
  if (method == "HEAD" || response.status == 204 || response.status == 304) return response;
  if (impl_->is_chunked) {
    for (;;) {
      JOGAK_TRY(const std::optional<std::string> chunk, impl_->take_chunk());
      if (!chunk) return response;
      response.body += *chunk;
    }
  }
  const std::string_view length = header(response.headers, "content-length");
  if (length.empty()) {
    JOGAK_TRY(response.body, read_to_end());
    return response;
  }
  std::size_t size = 0;
  std::from_chars(length.data(), length.data() + length.size(), size);
  JOGAK_TRY(response.body, impl_->take_bytes(size));
  return response;
}

Result<BlockingClient::Response> BlockingClient::request(std::string_view method,
                                                         std::string_view target,
                                                         const Headers& headers,
                                                         std::string_view body) {
  JOGAK_TRY_VOID(send_request(method, target, headers, body));
  return read_response(method);
}

Result<std::optional<std::string>> BlockingClient::read_line() {
  for (;;) {
    const std::size_t end = impl_->stream.find('\n');
    if (end != std::string::npos) {
      std::string line = impl_->stream.substr(0, end);
      impl_->stream.erase(0, end + 1);
      return std::optional(std::move(line));
    }
    if (impl_->is_stream_over) return std::optional<std::string>();
    JOGAK_TRY(const std::optional<std::string> chunk, impl_->take_chunk());
    if (chunk) impl_->stream += *chunk;
    impl_->is_stream_over = !chunk;
  }
}

Result<std::string> BlockingClient::read_to_end() {
  for (;;) {
    JOGAK_TRY(const bool is_more, impl_->receive());
    if (!is_more) return std::exchange(impl_->input, {});
  }
}

void BlockingClient::end_writing() { ::shutdown(impl_->fd, SHUT_WR); }

void BlockingClient::reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(impl_->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  impl_->ssl.reset();
  ::close(std::exchange(impl_->fd, -1));
}

}  // namespace jogak::net
