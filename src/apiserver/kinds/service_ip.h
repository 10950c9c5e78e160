// SPDX-License-Identifier: Apache-2.0
//
// Addresses as the API server reads them: loosely for meaning (leading zeros, mapped addresses),
// strictly for what a new object may say; and the range that cluster IPs come from.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/object/field_errors.h"
#include "base/doc.h"

namespace jogak::api {

class IpAddress {
 public:
  // An IPv4 address mapped into IPv6 is that IPv4 address.
  static std::optional<IpAddress> parse(std::string_view text);

  bool is_v6() const { return is_v6_; }
  std::string text() const;  // canonical
  bool is_unspecified() const;
  bool is_loopback() const;
  bool is_link_local() const;
  bool is_link_local_multicast() const;
  // The address that many further on, or back; the last four bytes only.
  IpAddress plus(std::int64_t offset) const;
  // The address with all but the first `bits` cleared.
  IpAddress network(int bits) const;
  int bits() const { return is_v6_ ? 128 : 32; }

  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;

 private:
  bool is_v6_ = false;
  std::array<std::uint8_t, 16> bytes_{};  // of IPv4 the first four
};

// "10.0.0.0/24"
class IpRange {
 public:
  static std::optional<IpRange> parse(std::string_view text);

  bool is_v6() const { return base_.is_v6(); }
  bool contains(const IpAddress& address) const;
  // Whether a service may have it: the network's own address and the broadcast address are not for
  // services.
  bool may_allocate(const IpAddress& address) const;
  // The addresses for services, numbered from 1; at most 65535 of them are used.
  std::int64_t size() const;
  IpAddress at(std::int64_t number) const { return base_.plus(number); }
  std::string text() const { return base_.text() + "/" + std::to_string(bits_); }

 private:
  IpAddress base_;
  int bits_ = 0;
};

// A new value must be strictly right; a value that is in `existing` already may stay.
void check_legacy_ip(std::string_view text, const Doc& existing, const Path& at,
                     FieldErrors& errors);
void check_legacy_cidr(std::string_view text, const std::vector<std::string>& existing,
                       const Path& at, FieldErrors& errors);
// Of new kinds: canonical too.
void check_canonical_ip(std::string_view text, const Path& at, FieldErrors& errors);
// Not unspecified, loopback or link-local.
void check_endpoint_ip(std::string_view text, const Path& at, FieldErrors& errors);

void warn_about_ip(std::string_view text, const Path& at, std::vector<std::string>& warnings);
void warn_about_cidr(std::string_view text, const Path& at, std::vector<std::string>& warnings);

}  // namespace jogak::api
