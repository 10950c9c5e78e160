// SPDX-License-Identifier: Apache-2.0
//
// Only segments that were never writable are dropped: a page that the loader wrote to (relocated
// constants) exists nowhere else.
#include "agent/run/spare_memory.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

namespace jogak::agent {

namespace {

constexpr int kHeaps = 2;
constexpr TimeUs kSoon = 10 * kSecondInUs;
constexpr TimeUs kLater = 600 * kSecondInUs;

void give_back_after(Loop& loop, const std::shared_ptr<bool>& is_alive, TimeUs pause) {
  loop.after(pause, [&loop, is_alive] {
    if (!*is_alive) return;
    give_back_memory();
    give_back_after(loop, is_alive, kLater);
  });
}

int drop_unwritten(dl_phdr_info* object, std::size_t /*size*/, void* page_size) {
  const std::uintptr_t page = *static_cast<const std::uintptr_t*>(page_size);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    // Whole pages of this segment alone.
    const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr + page - 1) & ~(page - 1);
    const std::uintptr_t end =
        (object->dlpi_addr + segment.p_vaddr + segment.p_filesz) & ~(page - 1);
    // It may fail (locked pages): then they stay.
    if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

// Of an object with relocations in its code nothing may be dropped.
bool has_text_relocations(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_DYNAMIC) continue;
    const auto* at = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + segment.p_vaddr);
    for (; at->d_tag != DT_NULL; ++at) {
      if (at->d_tag == DT_TEXTREL) return true;
      if (at->d_tag == DT_FLAGS && (at->d_un.d_val & DF_TEXTREL) != 0) return true;
    }
  }
  return false;
}

}  // namespace

void keep_few_heaps() { ::mallopt(M_ARENA_MAX, kHeaps); }

void give_back_memory() {
  ::malloc_trim(0);
  std::uintptr_t page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t size, void* data) {
        const bool is_kernels = std::string_view(object->dlpi_name).starts_with("linux-");
        return is_kernels || has_text_relocations(*object) ? 0 : drop_unwritten(object, size, data);
      },
      &page);
}

void keep_memory_small(Loop& loop, const std::shared_ptr<bool>& is_alive) {
  give_back_memory();
  give_back_after(loop, is_alive, kSoon);
}

}  // namespace jogak::agent
