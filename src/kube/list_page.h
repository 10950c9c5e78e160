// SPDX-License-Identifier: Apache-2.0
//
// The items of a list, out of the bytes of its answer as they arrive, so that a list of any length
// needs the memory of one item. `metadata` may stand before the items or after them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/json_cut.h"

namespace jogak::kube {

class ListPageReader {
 public:
  static constexpr std::size_t kItemBytesMax = std::size_t{64} << 20;

  explicit ListPageReader(std::size_t item_bytes_max = kItemBytesMax) : cutter_(item_bytes_max) {}

  // All items of the bytes before were taken; these hold until next_item() gives "".
  void feed(std::string_view bytes) { bytes_ = bytes; }
  // The text of an item, until the next call and while the bytes hold; "" when more bytes are
  // needed or the list is complete. After an error the reader is of no use.
  Result<std::string_view> next_item();

  struct Tail {
    std::string version;
    std::string next;  // token of the next page, "" after the last one
  };
  // After the last byte. Errors: Invalid, the text is not whole or is no list.
  Result<Tail> finish() const;

 private:
  Result<void> read_outline();

  ValueCutter cutter_;
  std::string_view bytes_;
  bool is_in_items_ = false;
  // The text without its items, and where reading it stands.
  std::string outline_;
  std::uint64_t depth_ = 0;
  bool is_in_string_ = false;
  bool is_escaped_ = false;
  bool is_done_ = false;
  std::size_t string_begin_ = 0;
  enum class Before : std::uint8_t { Other, ItemsKey, ItemsColon } before_ = Before::Other;
};

}  // namespace jogak::kube
