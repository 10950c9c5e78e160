// SPDX-License-Identifier: Apache-2.0
//
// OpenSSL behind pem.h.
#include "net/pem.h"

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <limits>
#include <memory>

#include "net/freed.h"

namespace jogak::net {
namespace {

using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;

// Reads certificates one by one and hands each to `use`, until that says false.
template <class Use>
Result<void> each_certificate(std::string_view pem, Use use) {
  if (pem.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    return invalid("PEM text of over 2 GiB");
  }
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  if (bio == nullptr) return fail(Errc::Unavailable, "no memory to read PEM text");
  for (int number = 1;; ++number) {
    const Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (certificate == nullptr) {
      const unsigned long code = ERR_peek_last_error();
      ERR_clear_error();
      const bool is_end =
          ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
      if (is_end && number > 1) return {};
      if (is_end) return invalid("no PEM certificate in it (-----BEGIN CERTIFICATE-----)");
      const char* reason = ERR_reason_error_string(code);
      return invalid("PEM certificate {} cannot be read: {}", number,
                     reason == nullptr ? "no reason given" : reason);
    }
    if (!use(certificate.get())) return {};
  }
}

}  // namespace

Result<int> count_certificates(std::string_view pem) {
  int count = 0;
  JOGAK_TRY_VOID(each_certificate(pem, [&count](const X509*) {
    ++count;
    return true;
  }));
  return count;
}

Result<TimeUs> certificate_expiry(std::string_view pem) {
  std::tm end{};
  bool is_read = false;
  JOGAK_TRY_VOID(each_certificate(pem, [&](const X509* certificate) {
    is_read = ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) == 1;
    return false;
  }));
  if (!is_read) return invalid("PEM certificate without a readable end of validity");
  return static_cast<TimeUs>(::timegm(&end)) * kSecondInUs;
}

}  // namespace jogak::net
