# SPDX-License-Identifier: Apache-2.0
#
# jogak_api: the messages and services of api/*.proto, generated at build time. The kubelet's
# sockets speak gRPC; only the folders that talk to it link this. Generated code is not ours to
# judge: it is compiled without warnings and included as a system header.
find_package(PkgConfig REQUIRED)
pkg_check_modules(GRPCPP REQUIRED grpc++>=1.40)
pkg_check_modules(PROTOBUF_LITE REQUIRED protobuf-lite)
find_program(JOGAK_PROTOC protoc REQUIRED)
find_program(JOGAK_GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
mark_as_advanced(JOGAK_PROTOC JOGAK_GRPC_CPP_PLUGIN)

# By name (absl for a mutex in its headers): pkg-config lists a hundred libraries below gRPC, and
# each would be loaded at start.
add_library(jogak_grpc INTERFACE)
target_include_directories(jogak_grpc SYSTEM INTERFACE ${GRPCPP_INCLUDE_DIRS}
                           ${PROTOBUF_LITE_INCLUDE_DIRS})
target_link_libraries(jogak_grpc INTERFACE grpc++ grpc gpr absl_synchronization protobuf-lite
                      Threads::Threads)

file(GLOB protos CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/api/*.proto")
set(api_dir "${PROJECT_BINARY_DIR}/api")
file(MAKE_DIRECTORY "${api_dir}/api")
set(api_sources "")
foreach(proto IN LISTS protos)
  get_filename_component(name "${proto}" NAME_WE)
  set(made "${api_dir}/api/${name}.pb.cc" "${api_dir}/api/${name}.grpc.pb.cc")
  add_custom_command(
    OUTPUT ${made} "${api_dir}/api/${name}.pb.h" "${api_dir}/api/${name}.grpc.pb.h"
    COMMAND "${JOGAK_PROTOC}" "--proto_path=${PROJECT_SOURCE_DIR}" "--cpp_out=${api_dir}"
            "--grpc_out=${api_dir}" "--plugin=protoc-gen-grpc=${JOGAK_GRPC_CPP_PLUGIN}" "${proto}"
    DEPENDS "${proto}" VERBATIM)
  list(APPEND api_sources ${made})
endforeach()
add_library(jogak_api STATIC ${api_sources})
target_compile_options(jogak_api PRIVATE -w)
target_include_directories(jogak_api SYSTEM PUBLIC "${api_dir}")
target_link_libraries(jogak_api PUBLIC jogak_grpc)
