// SPDX-License-Identifier: Apache-2.0
//
// Sockets are read and written through a BIO of our own, so that a peer that went away is an error
// and not a SIGPIPE, whatever the process does with signals.
#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "base/check.h"
#include "net/freed.h"

namespace jogak::net {
namespace {

using Ssl = std::unique_ptr<SSL, Freed<SSL_free>>;
using SslContext = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

// The oldest error of the library's queue, which is empty afterwards.
std::string openssl_error() {
  std::array<char, 256> text{};
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "no reason given";
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

int fd_of(BIO* bio) { return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))); }

int finish_io(BIO* bio, ssize_t result, int retry_flag) {
  BIO_clear_retry_flags(bio);
  if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    BIO_set_flags(bio, retry_flag | BIO_FLAGS_SHOULD_RETRY);
  }
  return static_cast<int>(result);
}

int bio_write(BIO* bio, const char* data, int size) {
  const ssize_t n = ::send(fd_of(bio), data, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  return finish_io(bio, n, BIO_FLAGS_WRITE);
}

int bio_read(BIO* bio, char* data, int size) {
  const ssize_t n = ::recv(fd_of(bio), data, static_cast<std::size_t>(size), 0);
  if (n == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return finish_io(bio, n, BIO_FLAGS_READ);
}

long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return 0;
}

Bio socket_bio(int fd) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    JOGAK_CHECK(made != nullptr);
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  Bio bio(BIO_new(method));
  JOGAK_CHECK(bio != nullptr);
  BIO_set_data(bio.get(), reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  BIO_set_init(bio.get(), 1);
  return bio;
}

class TlsStream : public Stream {
 public:
  TlsStream(SSL_CTX* context, int fd) : fd_(fd), ssl_(SSL_new(context)) {
    JOGAK_CHECK(ssl_ != nullptr);
    BIO* bio = socket_bio(fd).release();
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_accept_state(ssl_.get());
  }

  Moved read(std::span<char> into) override {
    ERR_clear_error();
    std::size_t got = 0;
    const int result = SSL_read_ex(ssl_.get(), into.data(), into.size(), &got);
    if (result == 1) return {Outcome::Done, got};
    return after_error(result, &is_read_blocked_on_write_);
  }

  Moved write(const OutputQueue& from) override {
    // One record of the first pieces. A call that blocked is repeated with the same bytes: those
    // of a queue's front stay the same until they are consumed.
    std::array<std::string_view, 64> pieces;
    const std::size_t count = from.peek(pieces);
    std::string_view bytes = pieces[0];
    if (count > 1 && bytes.size() < kRecordBytes) {
      record_.clear();
      for (std::size_t i = 0; i < count && record_.size() < kRecordBytes; ++i) {
        record_ += pieces[i].substr(0, kRecordBytes - record_.size());
      }
      bytes = record_;
    }
    ERR_clear_error();
    std::size_t taken = 0;
    bool ignored = false;
    const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &taken);
    if (result == 1) return {Outcome::Done, taken};
    return after_error(result, &ignored);
  }

  void end_writing() override {
    ERR_clear_error();
    if (!is_broken_ && SSL_is_init_finished(ssl_.get())) SSL_shutdown(ssl_.get());
    ::shutdown(fd_, SHUT_WR);
  }

  bool has_buffered() const override { return SSL_has_pending(ssl_.get()) == 1; }
  bool is_read_blocked_on_write() const override { return is_read_blocked_on_write_; }

 private:
  static constexpr std::size_t kRecordBytes = 16 * 1024;

  Moved after_error(int result, bool* is_blocked_on_write) {
    *is_blocked_on_write = false;
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return {Outcome::Blocked, 0};
      case SSL_ERROR_WANT_WRITE:
        *is_blocked_on_write = true;
        return {Outcome::Blocked, 0};
      case SSL_ERROR_ZERO_RETURN:
        return {Outcome::End, 0};
      default:
        break;
    }
    is_broken_ = true;
    const unsigned long code = ERR_peek_error();
    if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST) {
      tell_plain_client();
    }
    // A peer that closes without a goodbye has ended just the same.
    const bool is_end = ERR_GET_LIB(code) == ERR_LIB_SSL &&
                        ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
    ERR_clear_error();
    return {is_end ? Outcome::End : Outcome::Lost, 0};
  }

  // Somebody forgot the s of https: better a hint than a closed connection.
  void tell_plain_client() const {
    static constexpr std::string_view kAnswer =
        "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
        "Connection: close\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
    [[maybe_unused]] const ssize_t sent = ::send(fd_, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL);
    // Closing with input unread would reset the answer away.
    std::array<char, 4096> rest;
    while (::recv(fd_, rest.data(), rest.size(), 0) > 0) {
    }
  }

  int fd_;
  Ssl ssl_;
  std::string record_;
  bool is_read_blocked_on_write_ = false;
  bool is_broken_ = false;
};

int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
                    const unsigned char* offered, unsigned int offered_size, void*) {
  static constexpr std::array<unsigned char, 9> kOurs = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* found = nullptr;
  const int result =
      SSL_select_next_proto(&found, chosen_size, kOurs.data(), kOurs.size(), offered, offered_size);
  if (result != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_NOACK;
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

class OpensslContext : public TlsContext {
 public:
  explicit OpensslContext(SslContext context) : context_(std::move(context)) {}
  std::unique_ptr<Stream> accept(int fd) override {
    return std::make_unique<TlsStream>(context_.get(), fd);
  }

 private:
  SslContext context_;
};

Bio memory_bio(const std::string& text) {
  Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  JOGAK_CHECK(bio != nullptr);
  return bio;
}

Result<void> use_certificates(SSL_CTX* context, const std::string& pem) {
  const Bio bio = memory_bio(pem);
  const Certificate own(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (own == nullptr) return invalid("TLS certificate: not PEM: {}", openssl_error());
  if (SSL_CTX_use_certificate(context, own.get()) != 1) {
    return invalid("TLS certificate: {}", openssl_error());
  }
  for (;;) {
    Certificate next(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (next == nullptr) break;
    if (SSL_CTX_add_extra_chain_cert(context, next.get()) != 1) {
      return invalid("TLS certificate chain: {}", openssl_error());
    }
    [[maybe_unused]] X509* const kept_by_context = next.release();
  }
  ERR_clear_error();  // the end of the text
  return {};
}

Result<void> use_key(SSL_CTX* context, const std::string& pem) {
  const Bio bio = memory_bio(pem);
  const auto no_password = [](char*, int, int, void*) { return -1; };
  const PrivateKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  if (key == nullptr) return invalid("TLS key: not PEM without a password: {}", openssl_error());
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return invalid("TLS key does not belong to the certificate: {}", openssl_error());
  }
  return {};
}

Result<void> require_clients_of(SSL_CTX* context, const std::string& pem) {
  const Bio bio = memory_bio(pem);
  int count = 0;
  for (;; ++count) {
    const Certificate next(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (next == nullptr) break;
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), next.get()) != 1 ||
        SSL_CTX_add_client_CA(context, next.get()) != 1) {
      return invalid("TLS authority of clients: {}", openssl_error());
    }
  }
  if (count == 0) return invalid("TLS authority of clients: not PEM: {}", openssl_error());
  ERR_clear_error();  // the end of the text
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return {};
}

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::make(const TlsIdentity& identity,
                                                     const std::string& client_ca_pem,
                                                     bool only_tls13) {
  SslContext context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return fail(Errc::Unavailable, "TLS: {}", openssl_error());
  SSL_CTX_set_min_proto_version(context.get(), only_tls13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  static constexpr std::string_view kSessions = "jogak";  // of one context are not another's
  SSL_CTX_set_session_id_context(
      context.get(), reinterpret_cast<const unsigned char*>(kSessions.data()), kSessions.size());
  SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
  JOGAK_TRY_VOID(use_certificates(context.get(), identity.certificate_pem));
  JOGAK_TRY_VOID(use_key(context.get(), identity.key_pem));
  if (!client_ca_pem.empty()) JOGAK_TRY_VOID(require_clients_of(context.get(), client_ca_pem));
  return std::make_shared<OpensslContext>(std::move(context));
}

}  // namespace jogak::net
