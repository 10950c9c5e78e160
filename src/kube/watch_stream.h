// SPDX-License-Identifier: Apache-2.0
//
// The events of a watch, out of the bytes of its answer as they arrive: JSON values one after
// another, wherever the pieces and lines end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/json_cut.h"

namespace jogak::kube {

struct WatchEvent {
  enum class Type : std::uint8_t { Added, Modified, Deleted, Bookmark, Error, Unknown };
  Type type = Type::Unknown;
  std::string_view object;  // its text; until the next event is asked for, and while the bytes hold
};

class WatchStream {
 public:
  static constexpr std::size_t kEventBytesMax = std::size_t{64} << 20;

  explicit WatchStream(std::size_t event_bytes_max = kEventBytesMax) : cutter_(event_bytes_max) {}

  // All events of the bytes before were taken; these hold until next() gives none.
  void feed(std::string_view bytes) { bytes_ = bytes; }
  // None: more bytes are needed. After an error the stream is of no use.
  Result<std::optional<WatchEvent>> next();
  // An event has begun and not ended.
  bool is_inside_event() const { return cutter_.is_inside(); }

 private:
  ValueCutter cutter_;
  std::string_view bytes_;
};

}  // namespace jogak::kube
