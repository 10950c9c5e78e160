# SPDX-License-Identifier: Apache-2.0
#
# bench/<name>_bench.cc becomes the executable bench/<name>_bench, always at -O3. A bench may use
# google-benchmark (and then has BENCHMARK_MAIN) or be a plain program with its own main.

find_package(benchmark REQUIRED)
file(GLOB benches CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/*_bench.cc")
file(GLOB bench_support CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/*.cc")
list(FILTER bench_support EXCLUDE REGEX "_bench\\.cc$")
jogak_library(jogak_bench_support SOURCES ${bench_support} DEPS ${JOGAK_LIBRARIES})
if(bench_support)
  target_compile_options(jogak_bench_support PRIVATE -O3)
  target_include_directories(jogak_bench_support PUBLIC "${PROJECT_SOURCE_DIR}")
endif()
foreach(source IN LISTS benches)
  get_filename_component(name "${source}" NAME_WE)
  add_executable(${name} "${source}")
  target_compile_options(${name} PRIVATE -O3)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE jogak_bench_support ${JOGAK_LIBRARIES} jogak_api
                        benchmark::benchmark Threads::Threads)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
endforeach()
# It starts an agent between a scraper and the tests' stand-in for the kubelet, in their folder.
target_sources(agent_bench PRIVATE "${PROJECT_SOURCE_DIR}/test/kubelet/kubelet.cc"
               "${PROJECT_SOURCE_DIR}/src/base/testing/temp_folder.cc")
