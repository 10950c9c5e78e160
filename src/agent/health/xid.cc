// SPDX-License-Identifier: Apache-2.0
//
// The table itself; the words are ours, the classes are the catalogue's.
#include "agent/health/xid.h"

#include <algorithm>
#include <iterator>

namespace jogak::agent {

namespace {

using enum XidClass;

// Sorted by code. Codes that the catalogue calls unused are left out.
constexpr XidInfo kXids[] = {
    {8, Application, "channel timed out"},
    {11, Application, "invalid or corrupted push buffer"},
    {13, Application, "graphics engine exception"},
    {14, Informational, "error injected from user space"},
    {25, Application, "illegal push buffer"},
    {31, Application, "memory page fault"},
    {32, Application, "corrupted push buffer, found by the DMA controller"},
    {37, Informational, "driver firmware method unknown"},
    {38, Informational, "driver firmware watchdog"},
    {39, Application, "copy engine 0 exception"},
    {40, Application, "copy engine 1 exception"},
    {41, Application, "copy engine 2 exception"},
    {43, Application, "program stopped after a fault of its own"},
    {44, Application, "graphics fault during a context switch"},
    {45, Application, "channel removed because its program ended"},
    {46, ResetGpu, "GPU stopped processing"},
    {48, ResetGpu, "uncorrectable (double-bit) ECC error"},
    {54, Hardware, "auxiliary power is not connected"},
    {60, Application, "video processor exception"},
    {61, ResetGpu, "internal micro-controller breakpoint"},
    {62, ResetGpu, "internal micro-controller halt"},
    {63, Informational, "memory row remapped or page retired"},
    {64, ResetGpu, "memory row remap or page retirement failed"},
    {66, Informational, "illegal access by the driver"},
    {67, Informational, "illegal access by the driver, verified"},
    {68, Application, "video decoder 0 exception"},
    {69, Application, "graphics engine class error"},
    {70, Application, "copy engine 3 exception"},
    {71, Application, "copy engine 4 exception"},
    {72, Application, "copy engine 5 exception"},
    {74, Nvlink, "NVLink error"},
    {75, Application, "copy engine 6 exception"},
    {76, Application, "copy engine 7 exception"},
    {77, Application, "copy engine 8 exception"},
    {78, Hardware, "vGPU could not start: driver and firmware do not fit"},
    {79, RestartNode, "GPU has fallen off the bus"},
    {80, Application, "corrupted data sent to the GPU"},
    {82, Application, "JPEG engine 0 error"},
    {83, Application, "video decoder 1 error"},
    {84, Application, "video decoder 2 error"},
    {85, Application, "copy engine 9 exception"},
    {86, Application, "optical flow engine exception"},
    {88, Application, "video decoder 3 error"},
    {89, Application, "video decoder 4 error"},
    {92, Informational, "high rate of single-bit ECC errors"},
    {93, Informational, "InfoROM wear limit reached"},
    {94, Contained, "contained memory error"},
    {95, ResetGpu, "uncontained memory error"},
    {96, Application, "video decoder 5 error"},
    {97, Application, "video decoder 6 error"},
    {98, Application, "video decoder 7 error"},
    {99, Application, "JPEG engine 1 error"},
    {100, Application, "JPEG engine 2 error"},
    {101, Application, "JPEG engine 3 error"},
    {102, Application, "JPEG engine 4 error"},
    {103, Application, "JPEG engine 5 error"},
    {104, Application, "JPEG engine 6 error"},
    {105, Application, "JPEG engine 7 error"},
    {106, Informational, "test message of the management bus"},
    {107, Informational, "silent test message of the management bus"},
    {108, Informational, "remote translation error over NVLink"},
    {109, ResetGpu, "context switch timeout"},
    {110, ResetGpu, "security fault"},
    {119, ResetGpu, "GSP did not answer"},
    {120, ResetGpu, "GSP error"},
    {121, Informational, "corrected error on the link to the CPU"},
    {126, Application, "copy engine 10 exception"},
    {127, Application, "copy engine 11 exception"},
    {128, Application, "copy engine 12 exception"},
    {129, Application, "copy engine 13 exception"},
    {130, Application, "copy engine 14 exception"},
    {131, Application, "copy engine 15 exception"},
    {132, Application, "copy engine 16 exception"},
    {133, Application, "copy engine 17 exception"},
    {134, Application, "copy engine 18 exception"},
    {135, Application, "copy engine 19 exception"},
    {136, ResetGpu, "link training failed"},
    {137, Application, "illegal access over NVLink"},
    {139, Application, "optical flow engine 1 error"},
    {140, ResetGpu, "ECC error that could not be repaired"},
    {141, Informational, "fast path error"},
    {142, Application, "video encoder 3 error"},
    {143, ResetGpu, "GPU could not be initialised"},
    {144, Nvlink, "NVLink SAW error"},
    {145, Nvlink, "NVLink RLW error"},
    {146, Nvlink, "NVLink TLW error"},
    {147, Nvlink, "NVLink TREX error"},
    {148, Nvlink, "NVLink control error"},
    {149, Nvlink, "NVLink NETIR error"},
    {150, Nvlink, "NVLink MSE error"},
    {151, Hardware, "key rotation failed: restart the virtual machine"},
    {152, Informational, "DLA memory error"},
    {153, Informational, "DLA timeout"},
    {154, Informational, "recovery action changed"},
    {155, ResetGpu, "NVLink brought down by software"},
    {156, ResetGpu, "part of the GPU retired"},
    {157, Informational, "nothing left to repair with"},
    {158, ResetGpu, "fatal timeout"},
    {159, Informational, "error on the coherent link"},
    {160, Informational, "channel retired"},
    {161, Informational, "channel could not be retired"},
    {162, Informational, "power smoothing on again"},
    {163, Informational, "power smoothing off"},
    {164, Informational, "power smoothing near its end of life"},
    {165, Informational, "power smoothing at its end of life"},
    {166, Informational, "unencrypted traffic before the link was ready"},
    {167, ResetGpu, "PCIe fatal timeout"},
    {168, Informational, "less memory because of errors in a protected region"},
    {169, ResetGpu, "security micro-controller halt"},
    {170, Informational, "interrupt in confidential mode"},
    {171, Informational, "more about an uncorrectable DRAM error"},
    {172, Informational, "more about an uncorrectable SRAM error"},
};
static_assert(std::ranges::is_sorted(kXids, {}, &XidInfo::code));

}  // namespace

std::string_view xid_class_text(XidClass kind) {
  switch (kind) {
    case Application:
      return "application";
    case Contained:
      return "contained";
    case ResetGpu:
      return "reset gpu";
    case Nvlink:
      return "nvlink";
    case RestartNode:
      return "restart node";
    case Hardware:
      return "hardware";
    case Informational:
      return "informational";
    case Unknown:
      break;
  }
  return "unknown";
}

XidInfo xid_info(std::uint64_t code) {
  const auto* const at = std::ranges::lower_bound(kXids, code, {}, &XidInfo::code);
  if (at != std::end(kXids) && at->code == code) return *at;
  return {.code = code, .kind = Unknown, .text = "unknown error"};
}

bool xid_stops_use(XidClass kind) {
  switch (kind) {
    case ResetGpu:
    case Nvlink:
    case RestartNode:
    case Hardware:
    // Nobody can say that it is harmless.
    case Unknown:
      return true;
    case Application:
    case Contained:
    case Informational:
      break;
  }
  return false;
}

}  // namespace jogak::agent
