// SPDX-License-Identifier: Apache-2.0
//
// An agent sits on every node for months, and most of what its start touched is never looked at
// again: relocations, symbol tables and initialisers of some ninety libraries, flags, parsers.
#pragma once

#include <memory>

#include "base/loop.h"

namespace jogak::agent {

// Before there are threads: few heaps, so that each thread of gRPC does not keep one of its own.
void keep_few_heaps();

// Gives back what is free of the heaps, and takes the program's own unwritten pages (code and
// constants of the executable and its libraries) out of the process. They stay in the page cache;
// those in use come back at the next touch, a microsecond or so for 16 of them.
void give_back_memory();

// Does that now, again when the first words with the API server and the kubelet are spoken, and
// then every ten minutes, as long as `is_alive` says so. On the loop's thread.
void keep_memory_small(Loop& loop, const std::shared_ptr<bool>& is_alive);

}  // namespace jogak::agent
