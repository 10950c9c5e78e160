# SPDX-License-Identifier: Apache-2.0
#
# The few functions every CMake file here is made of.
#
#   jogak_library(name SOURCES ... [DEPS ...] [PRIVATE_DEPS ...])
#   jogak_test(name SOURCES ... [DEPS ...] LABEL unit|prop|golden|sim|fuzz|tidy|e2e)
#   jogak_folder(folder [DEPS ...] [PRIVATE_DEPS ...])   src/<folder> -> library and its tests
#   jogak_check_headers()                                 target: every header compiles alone
#
# Sources are found by pattern (CONFIGURE_DEPENDS), so that a new file is in the build as soon as it
# exists: a test that is not built is not a test.

# A static library; an INTERFACE library while it has no sources.
function(jogak_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  if(arg_SOURCES)
    add_library(${name} STATIC ${arg_SOURCES})
    target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(${name} PUBLIC ${arg_DEPS} PRIVATE ${arg_PRIVATE_DEPS})
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(${name} INTERFACE ${arg_DEPS})
  endif()
endfunction()

# A gtest executable, registered with ctest under one label. It runs in the top folder of the
# sources, and finds the jogak executable in the variable JOGAK_BINARY.
function(jogak_test name)
  cmake_parse_arguments(arg "" "LABEL" "SOURCES;DEPS" ${ARGN})
  if(NOT arg_LABEL MATCHES "^(unit|prop|golden|sim|fuzz|tidy|e2e)$")
    message(FATAL_ERROR "${name}: LABEL is one of unit, prop, golden, sim, fuzz, tidy, e2e")
  endif()
  if(NOT arg_SOURCES)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(${name} PRIVATE JOGAK_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gtest_main GTest::gmock rapidcheck)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set(environment "JOGAK_BINARY=$<TARGET_FILE:jogak>")
  if(JOGAK_SANITIZE MATCHES "thread")
    list(APPEND environment "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/test/tsan.supp")
  endif()
  set_tests_properties(${name} PROPERTIES LABELS ${arg_LABEL} TIMEOUT 600
                       ENVIRONMENT "${environment}")
  if(arg_LABEL MATCHES "golden|sim|e2e")
    add_dependencies(${name} jogak)
  endif()
endfunction()

# src/<folder>/**.cc becomes jogak_<folder>. Beside the code live its tests, by name:
#   *_prop_test.cc *_diff_test.cc  -> jogak_<folder>_prop_tests    (label prop)
#   *_golden_test.cc               -> jogak_<folder>_golden_tests  (label golden)
#   *_test.cc                      -> jogak_<folder>_tests         (label unit)
# Builders and generators for tests live in folders named testing/ and go into
# jogak_<folder>_testing, which the tests of every folder may link.
# A folder inside a folder (apiserver/store) is a library of its own: jogak_apiserver_store.
function(jogak_folder path)
  cmake_parse_arguments(arg "" "" "DEPS;PRIVATE_DEPS;EXCLUDE" ${ARGN})
  string(REPLACE "/" "_" folder "${path}")
  file(GLOB_RECURSE all CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${path}/*.cc")
  foreach(excluded IN LISTS arg_EXCLUDE)
    list(REMOVE_ITEM all "${PROJECT_SOURCE_DIR}/src/${path}/${excluded}")
  endforeach()
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "(_test\\.cc$)|(/testing/)")
  jogak_library(jogak_${folder} SOURCES ${sources} DEPS ${arg_DEPS}
                PRIVATE_DEPS ${arg_PRIVATE_DEPS})
  if(NOT JOGAK_TESTS)
    return()
  endif()

  set(testing ${all})
  list(FILTER testing INCLUDE REGEX "/testing/")
  list(FILTER testing EXCLUDE REGEX "_test\\.cc$")
  jogak_library(jogak_${folder}_testing SOURCES ${testing} DEPS jogak_${folder} GTest::gtest
                rapidcheck)

  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  set(props ${tests})
  list(FILTER props INCLUDE REGEX "_(prop|diff)_test\\.cc$")
  set(goldens ${tests})
  list(FILTER goldens INCLUDE REGEX "_golden_test\\.cc$")
  set(units ${tests})
  list(FILTER units EXCLUDE REGEX "_(prop|diff|golden)_test\\.cc$")

  set(deps jogak_${folder}_testing jogak_base_testing ${arg_PRIVATE_DEPS})
  foreach(dep IN LISTS arg_DEPS)
    if(TARGET ${dep}_testing)
      list(APPEND deps ${dep}_testing)
    endif()
  endforeach()
  jogak_test(jogak_${folder}_tests SOURCES ${units} DEPS ${deps} LABEL unit)
  jogak_test(jogak_${folder}_prop_tests SOURCES ${props} DEPS ${deps} LABEL prop)
  jogak_test(jogak_${folder}_golden_tests SOURCES ${goldens} DEPS ${deps} LABEL golden)
endfunction()

# Target checkheaders: one tiny file per header that includes it alone and twice.
function(jogak_check_headers)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/src"
       "${PROJECT_SOURCE_DIR}/src/*.h")
  file(GLOB_RECURSE test_headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
       "${PROJECT_SOURCE_DIR}/test/*.h")
  set(sources "")
  foreach(header IN LISTS headers test_headers)
    set(source "${PROJECT_BINARY_DIR}/checkheaders/${header}.cc")
    file(CONFIGURE OUTPUT "${source}"
         CONTENT "#include \"${header}\"\n#include \"${header}\"  // the guard\n" @ONLY)
    list(APPEND sources "${source}")
  endforeach()
  add_library(checkheaders OBJECT EXCLUDE_FROM_ALL ${sources})
  target_include_directories(checkheaders PRIVATE "${PROJECT_SOURCE_DIR}/src"
                             "${PROJECT_SOURCE_DIR}")
  target_compile_options(checkheaders PRIVATE -O0 -g0)
  target_link_libraries(checkheaders PRIVATE ${JOGAK_LIBRARIES} GTest::gtest rapidcheck)
endfunction()
