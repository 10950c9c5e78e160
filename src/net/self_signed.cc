// SPDX-License-Identifier: Apache-2.0
//
// make_self_signed() of tls.h.
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>
#include <memory>

#include "net/freed.h"
#include "net/tls.h"

namespace jogak::net {
namespace {

using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;

constexpr long kDaySeconds = 24 * 60 * 60;

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> ignored{};
  return ::inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1;
}

bool add_extension(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool set_serial(X509* certificate) {
  std::uint64_t serial = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) != 1) return false;
  return ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1 | 1) == 1;
}

bool fill(X509* certificate, EVP_PKEY* key, const std::string& alternative_names) {
  if (X509_set_version(certificate, X509_VERSION_3) != 1 || !set_serial(certificate)) return false;
  // An hour ago, as the clocks of the two sides may differ.
  if (X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) == nullptr ||
      X509_gmtime_adj(X509_getm_notAfter(certificate), 365 * kDaySeconds) == nullptr) {
    return false;
  }
  X509_NAME* name = X509_get_subject_name(certificate);
  const auto* text = reinterpret_cast<const unsigned char*>("jogak");
  if (X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0) != 1 ||
      X509_set_issuer_name(certificate, name) != 1 || X509_set_pubkey(certificate, key) != 1) {
    return false;
  }
  // It is its own authority: what trusts it also finds that it may sign.
  return add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE") &&
         add_extension(certificate, NID_key_usage, "critical,digitalSignature,keyCertSign") &&
         add_extension(certificate, NID_ext_key_usage, "serverAuth,clientAuth") &&
         add_extension(certificate, NID_subject_key_identifier, "hash") &&
         add_extension(certificate, NID_subject_alt_name, alternative_names) &&
         X509_sign(certificate, key, EVP_sha256()) > 0;
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

}  // namespace

Result<TlsIdentity> make_self_signed(const std::vector<std::string>& hosts) {
  if (hosts.empty()) return invalid("certificate: no host to make it for");
  std::string alternative_names;
  for (const std::string& host : hosts) {
    if (host.empty() || host.find_first_of(",; \t\r\n") != std::string::npos) {
      return invalid("certificate: \"{}\" is not a host", host);
    }
    if (!alternative_names.empty()) alternative_names += ',';
    alternative_names += (is_address(host) ? "IP:" : "DNS:") + host;
  }
  const PrivateKey key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  const Bio certificate_out(BIO_new(BIO_s_mem())), key_out(BIO_new(BIO_s_mem()));
  const bool is_made = key != nullptr && certificate != nullptr && certificate_out != nullptr &&
                       key_out != nullptr &&
                       fill(certificate.get(), key.get(), alternative_names) &&
                       PEM_write_bio_X509(certificate_out.get(), certificate.get()) == 1 &&
                       PEM_write_bio_PKCS8PrivateKey(key_out.get(), key.get(), nullptr, nullptr, 0,
                                                     nullptr, nullptr) == 1;
  if (!is_made) {
    const char* reason = ERR_reason_error_string(ERR_get_error());
    ERR_clear_error();
    return invalid("certificate for {}: {}", alternative_names,
                   reason == nullptr ? "no reason given" : reason);
  }
  return TlsIdentity{text_of(certificate_out.get()), text_of(key_out.get())};
}

}  // namespace jogak::net
