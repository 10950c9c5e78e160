// SPDX-License-Identifier: Apache-2.0
//
// A settings file that somebody may replace while the agent runs (an editor, a ConfigMap's mount):
// whether it is another one than last time, without reading it.
#pragma once

#include <string>

namespace jogak::agent {

// Equal texts: the same file with the same content, as far as its time and size tell. "gone" where
// there is none, "" for an empty path. Links are followed.
std::string file_fingerprint(const std::string& path);

}  // namespace jogak::agent
