// SPDX-License-Identifier: Apache-2.0
//
// Addresses and ranges. inet_pton does the strict reading; the loose one for IPv4 is ours.
#include "apiserver/kinds/service_ip.h"

#include <arpa/inet.h>

#include <algorithm>

#include "apiserver/object/names.h"
#include "base/parse_number.h"

namespace jogak::api {

namespace {

constexpr std::size_t kMappedPrefix = 12;  // bytes of ::ffff: in front of a mapped address
constexpr std::int64_t kRangeMax = 65535;

// Four decimal numbers; leading zeros say nothing.
std::optional<std::array<std::uint8_t, 4>> parse_v4(std::string_view text) {
  std::array<std::uint8_t, 4> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t end = i + 1 < bytes.size() ? text.find('.') : text.size();
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view part = text.substr(0, end);
    if (part.empty() || !std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; })) {
      return std::nullopt;
    }
    std::uint32_t value = 0;
    for (const char c : part) {
      value = value * 10 + static_cast<std::uint32_t>(c - '0');
      if (value > 255) return std::nullopt;
    }
    bytes[i] = static_cast<std::uint8_t>(value);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return bytes;
}

bool is_mapped(const std::array<std::uint8_t, 16>& bytes) {
  return std::all_of(bytes.begin(), bytes.begin() + 10, [](std::uint8_t b) { return b == 0; }) &&
         bytes[10] == 0xff && bytes[11] == 0xff;
}

// How a text that parses breaks the strict rules, "" when it does not.
std::string strict_problem(std::string_view text) {
  const Problems problems = check_ip(text);
  return problems.empty() ? std::string() : problems.front();
}

struct Cidr {
  IpAddress address;
  int bits = 0;
  std::string_view address_text, bits_text;
};

std::optional<Cidr> parse_cidr(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  Cidr cidr;
  cidr.address_text = text.substr(0, slash);
  cidr.bits_text = text.substr(slash + 1);
  const auto address = IpAddress::parse(cidr.address_text);
  const bool is_v6_text = cidr.address_text.contains(':');
  const auto bits = parse_int(cidr.bits_text, 0, is_v6_text ? 128 : 32);
  if (!address.has_value() || !bits.has_value()) return std::nullopt;
  cidr.address = *address;
  cidr.bits = static_cast<int>(*bits);
  if (is_v6_text && !address->is_v6()) cidr.bits = std::max(0, cidr.bits - 96);
  return cidr;
}

std::string network_text(const Cidr& cidr) {
  return cidr.address.network(cidr.bits).text() + "/" + std::to_string(cidr.bits);
}

}  // namespace

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  IpAddress address;
  if (!text.contains(':')) {
    const auto bytes = parse_v4(text);
    if (!bytes.has_value()) return std::nullopt;
    std::ranges::copy(*bytes, address.bytes_.begin());
    return address;
  }
  std::array<std::uint8_t, 16> bytes{};
  if (inet_pton(AF_INET6, std::string(text).c_str(), bytes.data()) != 1) return std::nullopt;
  if (is_mapped(bytes)) {
    std::copy(bytes.begin() + kMappedPrefix, bytes.end(), address.bytes_.begin());
  } else {
    address.is_v6_ = true;
    address.bytes_ = bytes;
  }
  return address;
}

std::string IpAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> out{};
  inet_ntop(is_v6_ ? AF_INET6 : AF_INET, bytes_.data(), out.data(), out.size());
  return out.data();
}

bool IpAddress::is_unspecified() const {
  return std::ranges::all_of(bytes_, [](std::uint8_t byte) { return byte == 0; });
}

bool IpAddress::is_loopback() const {
  if (!is_v6_) return bytes_[0] == 127;
  return bytes_.back() == 1 &&
         std::all_of(bytes_.begin(), bytes_.end() - 1, [](std::uint8_t byte) { return byte == 0; });
}

bool IpAddress::is_link_local() const {
  return is_v6_ ? bytes_[0] == 0xfe && (bytes_[1] & 0xc0) == 0x80
                : bytes_[0] == 169 && bytes_[1] == 254;
}

bool IpAddress::is_link_local_multicast() const {
  return is_v6_ ? bytes_[0] == 0xff && (bytes_[1] & 0x0f) == 0x02
                : bytes_[0] == 224 && bytes_[1] == 0 && bytes_[2] == 0;
}

IpAddress IpAddress::plus(std::int64_t offset) const {
  IpAddress result = *this;
  const std::size_t end = is_v6_ ? 16 : 4;
  std::uint32_t tail = 0;
  for (std::size_t i = end - 4; i < end; ++i) tail = (tail << 8) | result.bytes_[i];
  tail += static_cast<std::uint32_t>(offset);
  for (std::size_t i = end; i > end - 4; --i) {
    result.bytes_[i - 1] = static_cast<std::uint8_t>(tail & 0xff);
    tail >>= 8;
  }
  return result;
}

IpAddress IpAddress::network(int bits) const {
  IpAddress result = *this;
  for (int i = 0; i < static_cast<int>(bytes_.size()); ++i) {
    const int kept = std::clamp(bits - i * 8, 0, 8);
    const auto mask = static_cast<std::uint8_t>(0xff00 >> kept);
    result.bytes_[static_cast<std::size_t>(i)] &= mask;
  }
  return result;
}

std::optional<IpRange> IpRange::parse(std::string_view text) {
  const auto cidr = parse_cidr(text);
  if (!cidr.has_value()) return std::nullopt;
  IpRange range;
  range.base_ = cidr->address.network(cidr->bits);
  range.bits_ = cidr->bits;
  return range;
}

bool IpRange::contains(const IpAddress& address) const {
  return address.is_v6() == is_v6() && address.network(bits_) == base_;
}

bool IpRange::may_allocate(const IpAddress& address) const {
  if (!contains(address) || address == base_) return false;
  const int host_bits = base_.bits() - bits_;
  if (is_v6() || host_bits <= 1 || host_bits > 31) return true;
  return address != base_.plus((std::int64_t{1} << host_bits) - 1);
}

std::int64_t IpRange::size() const {
  const int host_bits = base_.bits() - bits_;
  if (host_bits > 16) return kRangeMax;
  return std::max<std::int64_t>((std::int64_t{1} << host_bits) - (is_v6() ? 1 : 2), 0);
}

void check_legacy_ip(std::string_view text, const Doc& existing, const Path& at,
                     FieldErrors& errors) {
  for (const Doc& old : existing.items()) {
    if (old.as_string() == text) return;
  }
  add_problems(errors, at, text, check_ip(text));
}

void check_canonical_ip(std::string_view text, const Path& at, FieldErrors& errors) {
  FieldErrors found;
  check_legacy_ip(text, {}, at, found);
  for (const FieldError& error : found.list()) errors.add(error);
  if (!found.empty()) return;
  if (const std::string canonical = IpAddress::parse(text)->text(); canonical != text) {
    errors.invalid(at, text, "must be in canonical form (" + quoted(canonical) + ")");
  }
}

void check_legacy_cidr(std::string_view text, const std::vector<std::string>& existing,
                       const Path& at, FieldErrors& errors) {
  if (std::ranges::find(existing, text) != existing.end()) return;
  const auto cidr = parse_cidr(text);
  if (!cidr.has_value()) {
    errors.invalid(at, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    return;
  }
  const std::string problem = strict_problem(cidr->address_text);
  if (problem.contains("mapped")) {
    errors.invalid(at, text, "must not have an IPv4-mapped IPv6 address");
  } else if (!problem.empty() || (cidr->bits_text.size() > 1 && cidr->bits_text.starts_with('0'))) {
    errors.invalid(at, text, "must not have leading 0s in IP or prefix length");
  } else if (cidr->address != cidr->address.network(cidr->bits)) {
    errors.invalid(at, text, "must not have bits set beyond the prefix length");
  }
}

void check_endpoint_ip(std::string_view text, const Path& at, FieldErrors& errors) {
  const auto address = IpAddress::parse(text);
  if (!address.has_value()) {
    errors.invalid(at, text, "must be a valid IP address");
    return;
  }
  if (address->is_unspecified()) {
    errors.invalid(at, text, "may not be unspecified (" + std::string(text) + ")");
  }
  if (address->is_loopback()) {
    errors.invalid(at, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
  }
  if (address->is_link_local()) {
    errors.invalid(at, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
  }
  if (address->is_link_local_multicast()) {
    errors.invalid(at, text,
                   "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
  }
}

void warn_about_ip(std::string_view text, const Path& at, std::vector<std::string>& warnings) {
  const auto address = IpAddress::parse(text);
  if (!address.has_value()) return;
  const std::string canonical = address->text();
  if (!strict_problem(text).empty()) {
    warnings.push_back(at.text() + ": non-standard IP address " + quoted(text) +
                       " is invalid: use " + quoted(canonical));
  } else if (address->is_v6() && canonical != text) {
    warnings.push_back(at.text() + ": IPv6 address " + quoted(text) +
                       " should be in RFC 5952 canonical format (" + quoted(canonical) + ")");
  }
}

void warn_about_cidr(std::string_view text, const Path& at, std::vector<std::string>& warnings) {
  const auto cidr = parse_cidr(text);
  if (!cidr.has_value()) return;
  const std::string network = network_text(*cidr);
  const std::size_t before = warnings.size();
  if (cidr->address != cidr->address.network(cidr->bits)) {
    warnings.push_back(at.text() + ": CIDR value " + quoted(text) +
                       " is ambiguous in this context (should be " + quoted(network) + " or " +
                       quoted(cidr->address.text() + "/" + std::to_string(cidr->address.bits())) +
                       "?)");
  }
  if (!strict_problem(cidr->address_text).empty() ||
      (cidr->bits_text.size() > 1 && cidr->bits_text.starts_with('0'))) {
    warnings.push_back(at.text() + ": non-standard CIDR value " + quoted(text) +
                       " is invalid: use " + quoted(network));
  }
  if (warnings.size() == before && cidr->address.is_v6() && network != text) {
    warnings.push_back(at.text() + ": IPv6 CIDR value " + quoted(text) +
                       " should be in RFC 5952 canonical format (" + quoted(network) + ")");
  }
}

}  // namespace jogak::api
