// SPDX-License-Identifier: Apache-2.0
//
// The manifests of examples/playground, as they are: the assembler reads the files. CMake says
// where they lie.
#include <cstdint>

#include "base/check.h"
#include "cli/up_demo.h"

#ifndef JOGAK_EXAMPLES
#define JOGAK_EXAMPLES "examples/playground"
#endif

#define JOGAK_MANIFEST(symbol, file)                                   \
  __asm__(                                                             \
      ".pushsection .rodata\n"                                         \
      ".global jogak_manifest_" #symbol                                \
      "\n"                                                             \
      "jogak_manifest_" #symbol                                        \
      ":\n"                                                            \
      ".incbin \"" JOGAK_EXAMPLES "/" file                             \
      "\"\n"                                                           \
      "jogak_manifest_" #symbol                                        \
      "_end:\n"                                                        \
      ".balign 8\n"                                                    \
      ".global jogak_manifest_" #symbol                                \
      "_size\n"                                                        \
      "jogak_manifest_" #symbol                                        \
      "_size:\n"                                                       \
      ".quad jogak_manifest_" #symbol "_end - jogak_manifest_" #symbol \
      "\n"                                                             \
      ".popsection\n");                                                \
  extern "C" const char jogak_manifest_##symbol[];                     \
  extern "C" const std::uint64_t jogak_manifest_##symbol##_size

JOGAK_MANIFEST(gpu_pod, "1-gpu-pod.yaml");
JOGAK_MANIFEST(training, "2-training-job.yaml");
JOGAK_MANIFEST(inference, "3-inference.yaml");
JOGAK_MANIFEST(urgent, "4-urgent-job.yaml");
JOGAK_MANIFEST(cannot_run, "5-cannot-run.yaml");

namespace jogak::cli {

std::string_view example_manifest(std::string_view name) {
  if (name == "1-gpu-pod.yaml") return {jogak_manifest_gpu_pod, jogak_manifest_gpu_pod_size};
  if (name == "2-training-job.yaml") {
    return {jogak_manifest_training, jogak_manifest_training_size};
  }
  if (name == "3-inference.yaml") return {jogak_manifest_inference, jogak_manifest_inference_size};
  if (name == "4-urgent-job.yaml") return {jogak_manifest_urgent, jogak_manifest_urgent_size};
  if (name == "5-cannot-run.yaml") {
    return {jogak_manifest_cannot_run, jogak_manifest_cannot_run_size};
  }
  JOGAK_CHECK(false, "no example {}", name);
}

}  // namespace jogak::cli
