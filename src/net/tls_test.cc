// SPDX-License-Identifier: Apache-2.0
//
// Certificates and contexts; TLS over sockets is in http_server_test.cc.
#include "net/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

#include "net/freed.h"

namespace jogak::net {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;

Certificate read(const std::string& pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return Certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

TEST(SelfSignedTest, IsForItsHostsAndNoOthers) {
  const auto identity = make_self_signed({"127.0.0.1", "localhost", "::1"});
  ASSERT_TRUE(identity.has_value()) << identity.error().what;
  EXPECT_THAT(identity->key_pem, StartsWith("-----BEGIN PRIVATE KEY-----"));
  const Certificate certificate = read(identity->certificate_pem);
  ASSERT_NE(certificate, nullptr);
  EXPECT_EQ(X509_check_ip_asc(certificate.get(), "127.0.0.1", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(certificate.get(), "::1", 0), 1);
  EXPECT_EQ(X509_check_host(certificate.get(), "localhost", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_ip_asc(certificate.get(), "127.0.0.2", 0), 0);
  EXPECT_EQ(X509_check_host(certificate.get(), "example.org", 0, 0, nullptr), 0);
}

TEST(SelfSignedTest, VouchesForItself) {
  const Certificate certificate = read(make_self_signed({"localhost"})->certificate_pem);
  EXPECT_EQ(X509_check_ca(certificate.get()), 1);
  EXPECT_EQ(X509_verify(certificate.get(), X509_get0_pubkey(certificate.get())), 1);
  EXPECT_LT(X509_cmp_current_time(X509_get0_notBefore(certificate.get())), 0);
  EXPECT_GT(X509_cmp_current_time(X509_get0_notAfter(certificate.get())), 0);
}

TEST(SelfSignedTest, EachIsItsOwn) {
  EXPECT_NE(make_self_signed({"localhost"})->key_pem, make_self_signed({"localhost"})->key_pem);
}

TEST(SelfSignedTest, HostsThatAreNone) {
  EXPECT_FALSE(make_self_signed({}).has_value());
  EXPECT_FALSE(make_self_signed({""}).has_value());
  EXPECT_FALSE(make_self_signed({"a,DNS:b"}).has_value());
}

TEST(TlsContextTest, TakesWhatBelongsTogether) {
  const auto one = make_self_signed({"localhost"}).value();
  const auto other = make_self_signed({"localhost"}).value();
  EXPECT_TRUE(TlsContext::make(one).has_value());
  EXPECT_TRUE(TlsContext::make({one.certificate_pem + other.certificate_pem, one.key_pem}));
  const auto mixed = TlsContext::make({one.certificate_pem, other.key_pem});
  EXPECT_THAT(mixed.error().what, HasSubstr("does not belong to the certificate"));
}

TEST(TlsContextTest, SaysWhatIsNotPem) {
  const auto good = make_self_signed({"localhost"}).value();
  EXPECT_THAT(TlsContext::make({"hello", good.key_pem}).error().what,
              HasSubstr("TLS certificate: not PEM"));
  EXPECT_THAT(TlsContext::make({good.certificate_pem, "hello"}).error().what,
              HasSubstr("TLS key: not PEM"));
}

}  // namespace
}  // namespace jogak::net
