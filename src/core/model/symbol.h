// SPDX-License-Identifier: Apache-2.0
// Interned strings. A SymbolTable belongs to one Cluster, never to the process, so that two
// clusters in one test cannot influence each other. Symbols are dense and stable; comparing two
// symbols of one table compares the strings. Symbol order is order of first use: never decide by
// it.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace jogak::core {

struct Symbol {
  std::uint32_t value = 0;  // 0 is the empty string, present in every table
  friend constexpr auto operator<=>(Symbol, Symbol) = default;
};

class SymbolTable {
 public:
  SymbolTable() { intern(""); }
  SymbolTable(const SymbolTable&) = delete;
  SymbolTable& operator=(const SymbolTable&) = delete;

  Symbol intern(std::string_view text) {
    if (const auto it = index_.find(text); it != index_.end()) return it->second;
    const Symbol symbol{static_cast<std::uint32_t>(texts_.size())};
    texts_.emplace_back(text);
    index_.emplace(texts_.back(), symbol);
    return symbol;
  }

  // False if the text was never interned; then nothing in the cluster can equal it.
  bool find(std::string_view text, Symbol& out) const {
    const auto it = index_.find(text);
    if (it == index_.end()) return false;
    out = it->second;
    return true;
  }

  // The view lives as long as the table.
  std::string_view text(Symbol symbol) const { return texts_[symbol.value]; }
  std::size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;  // deque: views into it stay valid
  std::unordered_map<std::string_view, Symbol> index_;
};

}  // namespace jogak::core
