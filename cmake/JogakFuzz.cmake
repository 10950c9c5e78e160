# SPDX-License-Identifier: Apache-2.0
#
# test/fuzz/<name>_fuzz.cc defines LLVMFuzzerTestOneInput. With JOGAK_FUZZ it is linked with
# libFuzzer; otherwise with smoke_main.cc, and ctest runs it for about two seconds over its corpus
# (test/fuzz/corpus/<name>/) and seeded changes of it. canary_fuzz.cc always fails: it proves that
# a failure is reported.

file(GLOB fuzzers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/test/fuzz/*_fuzz.cc")
foreach(source IN LISTS fuzzers)
  get_filename_component(target "${source}" NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name "${target}")
  set(corpus "${PROJECT_SOURCE_DIR}/test/fuzz/corpus/${name}")
  if(JOGAK_FUZZ)
    add_executable(${target} "${source}")
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${target} "${source}" "${PROJECT_SOURCE_DIR}/test/fuzz/smoke_main.cc")
    add_test(NAME fuzz_${name} COMMAND ${target} "${corpus}"
             WORKING_DIRECTORY "${PROJECT_BINARY_DIR}")
    set_tests_properties(fuzz_${name} PROPERTIES LABELS fuzz TIMEOUT 120)
    if(name STREQUAL "canary")
      set_tests_properties(fuzz_${name} PROPERTIES WILL_FAIL TRUE)
    endif()
  endif()
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE ${JOGAK_LIBRARIES})
  set_target_properties(${target} PROPERTIES
                        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
endforeach()
