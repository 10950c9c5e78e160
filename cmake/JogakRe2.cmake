# SPDX-License-Identifier: Apache-2.0
#
# RE2::RE2. Debian's package of RE2 brings no CMake file.
find_path(RE2_INCLUDE_DIR re2/re2.h REQUIRED)
find_library(RE2_LIBRARY re2 REQUIRED)
mark_as_advanced(RE2_INCLUDE_DIR RE2_LIBRARY)
add_library(RE2::RE2 UNKNOWN IMPORTED)
set_target_properties(RE2::RE2 PROPERTIES
                      IMPORTED_LOCATION "${RE2_LIBRARY}"
                      INTERFACE_INCLUDE_DIRECTORIES "${RE2_INCLUDE_DIR}"
                      INTERFACE_LINK_LIBRARIES Threads::Threads)
