// SPDX-License-Identifier: Apache-2.0
// Addresses and ranges: what they mean, what new objects may say, what is warned about.
#include <gtest/gtest.h>

#include "apiserver/kinds/service_ip.h"

namespace jogak::api {
namespace {

std::string canonical(std::string_view text) {
  const auto address = IpAddress::parse(text);
  return address.has_value() ? address->text() : "none";
}

std::string found(const FieldErrors& errors) {
  std::string text;
  for (const FieldError& error : errors.list()) text += error.message + ";";
  return text;
}

TEST(IpAddress, IsReadLoosely) {
  EXPECT_EQ(canonical("10.9.8.7"), "10.9.8.7");
  EXPECT_EQ(canonical("010.009.8.7"), "10.9.8.7");
  EXPECT_EQ(canonical("::ffff:1.2.3.4"), "1.2.3.4");
  EXPECT_EQ(canonical("FE80:0:0:0:0:0:0:0abc"), "fe80::abc");
  for (const std::string_view text : {"", "1.2.3", "1.2.3.4.5", "1.2.3.256", "a.b.c.d", "1..2.3",
                                      "1.2.3.4 ", ":::", "1:2:3", "fe80::1%eth0"}) {
    EXPECT_EQ(canonical(text), "none") << text;
  }
}

TEST(IpAddress, KnowsSpecialOnes) {
  const auto ip = [](std::string_view text) { return *IpAddress::parse(text); };
  EXPECT_TRUE(ip("0.0.0.0").is_unspecified());
  EXPECT_TRUE(ip("::").is_unspecified());
  EXPECT_TRUE(ip("127.3.2.1").is_loopback());
  EXPECT_TRUE(ip("::1").is_loopback());
  EXPECT_FALSE(ip("::2").is_loopback());
  EXPECT_TRUE(ip("169.254.1.1").is_link_local());
  EXPECT_TRUE(ip("febf::1").is_link_local());
  EXPECT_FALSE(ip("fec0::1").is_link_local());
  EXPECT_TRUE(ip("224.0.0.9").is_link_local_multicast());
  EXPECT_FALSE(ip("224.0.1.9").is_link_local_multicast());
  EXPECT_TRUE(ip("ff02::9").is_link_local_multicast());
  EXPECT_FALSE(ip("1.2.3.4").is_loopback());
}

TEST(IpRange, HoldsAddressesButForItsEnds) {
  const auto range = IpRange::parse("10.0.0.0/24");
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->size(), 254);
  EXPECT_EQ(range->at(1).text(), "10.0.0.1");
  EXPECT_EQ(range->at(254).text(), "10.0.0.254");
  const auto may = [&](std::string_view text) {
    return range->may_allocate(*IpAddress::parse(text));
  };
  EXPECT_TRUE(may("10.0.0.1"));
  EXPECT_TRUE(may("10.0.0.254"));
  EXPECT_FALSE(may("10.0.0.0"));
  EXPECT_FALSE(may("10.0.0.255"));
  EXPECT_FALSE(may("10.0.1.1"));
  EXPECT_FALSE(may("fd00::1"));
}

TEST(IpRange, MayBeOfAnySize) {
  EXPECT_EQ(IpRange::parse("10.0.0.0/12")->size(), 65535);
  EXPECT_EQ(IpRange::parse("10.0.0.8/30")->size(), 2);
  EXPECT_EQ(IpRange::parse("10.0.0.8/32")->size(), 0);
  EXPECT_EQ(IpRange::parse("fd00::/120")->size(), 255);
  EXPECT_EQ(IpRange::parse("fd00::/120")->at(255).text(), "fd00::ff");
  EXPECT_EQ(IpRange::parse("10.0.3.7/22")->text(), "10.0.0.0/22");
  for (const std::string_view text :
       {"", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "x/8", "1.2/8"}) {
    EXPECT_FALSE(IpRange::parse(text).has_value()) << text;
  }
}

TEST(LegacyIp, NewValuesAreStrict) {
  const auto check = [](std::string_view text, const Doc& existing = {}) {
    FieldErrors errors;
    check_legacy_ip(text, existing, Path("x"), errors);
    return found(errors);
  };
  EXPECT_EQ(check("10.0.0.1"), "");
  EXPECT_EQ(check("FE80::0001"), "");
  EXPECT_NE(check("010.0.0.1").find("must not have leading 0s"), std::string::npos);
  EXPECT_NE(check("::ffff:1.2.3.4").find("IPv4-mapped"), std::string::npos);
  EXPECT_NE(check("x").find("must be a valid IP address"), std::string::npos);
  EXPECT_EQ(check("010.0.0.1", Doc::strings({"010.0.0.1"})), "");
}

TEST(CanonicalIp, HasOneSpelling) {
  const auto check = [](std::string_view text) {
    FieldErrors errors;
    check_canonical_ip(text, Path("x"), errors);
    return found(errors);
  };
  EXPECT_EQ(check("fe80::1"), "");
  EXPECT_NE(check("FE80::0001").find("must be in canonical form (\"fe80::1\")"), std::string::npos);
  EXPECT_NE(check("x").find("must be a valid IP address"), std::string::npos);
}

TEST(LegacyCidr, NewValuesAreStrict) {
  const auto check = [](std::string_view text, const std::vector<std::string>& existing = {}) {
    FieldErrors errors;
    check_legacy_cidr(text, existing, Path("x"), errors);
    return found(errors);
  };
  EXPECT_EQ(check("10.0.0.0/8"), "");
  EXPECT_EQ(check("2001:db8::/64"), "");
  EXPECT_NE(check("10.0.0.0").find("must be a valid CIDR value"), std::string::npos);
  EXPECT_NE(check("10.0.0.0/33").find("must be a valid CIDR value"), std::string::npos);
  EXPECT_NE(check("010.0.0.0/8").find("leading 0s"), std::string::npos);
  EXPECT_NE(check("10.0.0.0/08").find("leading 0s"), std::string::npos);
  EXPECT_NE(check("::ffff:10.0.0.0/104").find("IPv4-mapped"), std::string::npos);
  EXPECT_NE(check("10.0.0.1/8").find("bits set beyond"), std::string::npos);
  EXPECT_EQ(check("10.0.0.1/8", {"10.0.0.1/8"}), "");
}

TEST(EndpointIp, IsOfAHost) {
  const auto check = [](std::string_view text) {
    FieldErrors errors;
    check_endpoint_ip(text, Path("x"), errors);
    return found(errors);
  };
  EXPECT_EQ(check("10.0.0.1"), "");
  for (const std::string_view text :
       {"0.0.0.0", "127.0.0.1", "169.254.0.1", "224.0.0.1", "::1", "x"}) {
    EXPECT_NE(check(text), "") << text;
  }
}

TEST(IpWarnings, NameTheBetterSpelling) {
  const auto warned = [](auto warn, std::string_view text) {
    std::vector<std::string> warnings;
    warn(text, Path("x"), warnings);
    return warnings.empty() ? std::string() : warnings.front();
  };
  EXPECT_EQ(warned(warn_about_ip, "10.0.0.1"), "");
  EXPECT_EQ(warned(warn_about_ip, ""), "");
  EXPECT_EQ(warned(warn_about_ip, "010.0.0.1"),
            "x: non-standard IP address \"010.0.0.1\" is invalid: use \"10.0.0.1\"");
  EXPECT_EQ(warned(warn_about_ip, "FE80::1"),
            "x: IPv6 address \"FE80::1\" should be in RFC 5952 canonical format (\"fe80::1\")");
  EXPECT_EQ(warned(warn_about_cidr, "10.0.0.0/8"), "");
  EXPECT_EQ(warned(warn_about_cidr, "10.0.0.1/8"),
            "x: CIDR value \"10.0.0.1/8\" is ambiguous in this context (should be \"10.0.0.0/8\" "
            "or \"10.0.0.1/32\"?)");
  EXPECT_EQ(warned(warn_about_cidr, "010.0.0.0/8"),
            "x: non-standard CIDR value \"010.0.0.0/8\" is invalid: use \"10.0.0.0/8\"");
  EXPECT_EQ(warned(warn_about_cidr, "FE80::/64"),
            "x: IPv6 CIDR value \"FE80::/64\" should be in RFC 5952 canonical format "
            "(\"fe80::/64\")");
}

}  // namespace
}  // namespace jogak::api
