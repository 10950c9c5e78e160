// SPDX-License-Identifier: Apache-2.0
//
// parallel_for: the same work on 0..n-1 with several threads, for independent simulation runs. The
// answer must not depend on it: each index writes only its own slot, and the caller combines the
// slots in index order.
#pragma once

#include <cstddef>
#include <functional>

namespace jogak {

// Calls fn(i) once for every i in [0, n), on up to `jobs` threads (0: one per processor), and
// returns when all have ended. Indices are handed out in order, one at a time. When calls throw, no
// new index is started, and the exception of the smallest index that threw is rethrown here.
void parallel_for(std::size_t n, std::size_t jobs, const std::function<void(std::size_t)>& fn);

}  // namespace jogak
