// SPDX-License-Identifier: Apache-2.0
//
// A Lease as leader election reads and writes it. What it does not know of the object stays as it
// was: the text that was read is the base of what is written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/loop.h"
#include "base/result.h"

namespace jogak::kube {

struct LeaseRecord {
  std::string holder = {};  // "": nobody
  std::int64_t duration_seconds = 0;
  std::int64_t transitions = 0;
  std::string acquire_time = {};  // as written
  std::string version = {};       // of the object
};

// Errors: Invalid, no Lease. Fields of a wrong type count as absent, since only the holder of that
// lease could be asked to mend them.
Result<LeaseRecord> read_lease(std::string_view json);

// The Lease with that record, renewed at `now`. `base` is the Lease as it was read, "" for a new
// one. `record.version` is not looked at: the base's own guards the write. Errors: the base is no
// Lease.
Result<std::string> write_lease(std::string_view base, std::string_view ns, std::string_view name,
                                const LeaseRecord& record, TimeUs now);

}  // namespace jogak::kube
