# SPDX-License-Identifier: Apache-2.0
#
# Compiler and linker settings shared by every target: warnings, sanitizers, ccache and mold where
# the machine has them. Options are read from the cache variables of the top CMakeLists.txt.

add_compile_options(
  -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Wimplicit-fallthrough)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 sees overlapping copies in "text" + std::string at -O3 (GCC bug 105651).
  add_compile_options(-Wno-restrict)
  # At -O3 it takes the inside of an empty std::optional for a value that is read.
  add_compile_options($<$<CONFIG:Release>:-Wno-maybe-uninitialized>)
endif()
if(JOGAK_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12's own stable_sort uses a function it marks deprecated; clang blames the caller. The
  # other two are clang's reading of -Wconversion and -Wextra: both compilers ask for the same.
  add_compile_options(-Wthread-safety -Wno-deprecated-declarations -Wno-sign-conversion
                      -Wno-missing-designated-field-initializers)
endif()
if(JOGAK_HARDENED)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()

if(JOGAK_SANITIZE)
  add_compile_options(-fsanitize=${JOGAK_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${JOGAK_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 loses track of values through the instrumentation, and std::expected shows it
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()
if(JOGAK_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "JOGAK_FUZZ needs clang: use the preset named fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(JOGAK_COVERAGE)
  add_compile_options(--coverage -fprofile-abs-path)
  add_link_options(--coverage)
endif()

find_program(JOGAK_CCACHE ccache)
if(JOGAK_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${JOGAK_CCACHE}")
endif()
find_program(JOGAK_MOLD mold)
if(JOGAK_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
