// SPDX-License-Identifier: Apache-2.0
//
// Sockets by the system's calls: what the server needs, with errors in words.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace jogak::net {

// A non-blocking listening socket on that address. Errc::Conflict: the port is taken.
Result<int> listen_on(const std::string& address, std::uint16_t port);

// Where a socket listens.
std::uint16_t port_of(int fd);

// Small answers go out at once, and a peer that has vanished is noticed within a minute or so.
void prepare_connection(int fd);

}  // namespace jogak::net
