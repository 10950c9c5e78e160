// SPDX-License-Identifier: Apache-2.0
//
// Links the text kube.types into the binary as it is: the assembler reads the file, so that it
// costs neither a generated source nor compile time. CMake says where it lies, and that this file
// must be compiled again when it changes.
#include "apiserver/schema/kube_types.h"

#include <cstdint>

#ifndef JOGAK_KUBE_TYPES
#define JOGAK_KUBE_TYPES "src/apiserver/schema/kube.types"
#endif

__asm__(
    ".pushsection .rodata\n"
    ".global jogak_kube_types_text\n"
    "jogak_kube_types_text:\n"
    ".incbin \"" JOGAK_KUBE_TYPES
    "\"\n"
    "jogak_kube_types_end:\n"
    ".balign 8\n"
    ".global jogak_kube_types_size\n"
    "jogak_kube_types_size:\n"
    ".quad jogak_kube_types_end - jogak_kube_types_text\n"
    ".popsection\n");

extern "C" {
extern const char jogak_kube_types_text[];
extern const std::uint64_t jogak_kube_types_size;
}

namespace jogak::schema {

std::string_view kube_types() { return {jogak_kube_types_text, jogak_kube_types_size}; }

}  // namespace jogak::schema
