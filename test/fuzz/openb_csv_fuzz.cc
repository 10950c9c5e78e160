// SPDX-License-Identifier: Apache-2.0
//
// openb node lists, pod lists and order files. The first byte chooses which; what was read must be
// usable: a node list that was accepted makes a cluster, and pods that were accepted can be run.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/openb_run.h"

namespace {

using namespace jogak::sim;  // one file, one program

constexpr std::string_view kNodes =
    "sn,cpu_milli,memory_mib,gpu,model\na,96000,393216,8,G2\nb,8000,8192,1,T4\n";
constexpr std::string_view kPods =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1000,1024,1,500\nq,1000,1024,2,1000\n";

void require(bool is_true) {
  if (!is_true) std::abort();
}

void run(const OpenbNodes& nodes, const OpenbPods& pods) {
  if (nodes.nodes.size() > 50 || pods.pods.size() > 50) return;
  OpenbVariant variant;
  variant.name = "fuzz";
  variant.pods = pods;
  variant.mix = openb_mix(pods);
  OpenbOrder order = draw_openb_order(nodes, pods, 1);
  if (order.arrivals.size() > 200) order.arrivals.resize(200);
  require(
      run_openb(nodes, variant, order, variant.mix, {.policy = "fgd", .check = true}).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const ReadOptions options{.skip_bad = (data[0] & 4) != 0};
  static const OpenbNodes nodes = *parse_openb_nodes("nodes", kNodes, {});
  static const OpenbPods pods = *parse_openb_pods("pods", kPods, {});
  switch (data[0] & 3) {
    case 0:
      if (const auto read = parse_openb_nodes("f", text, options)) run(*read, pods);
      break;
    case 1:
      if (const auto read = parse_openb_pods("f", text, options)) run(nodes, *read);
      break;
    default: {
      const auto orders = parse_openb_orders("f", text, nodes, pods, {42, 43});
      if (orders) require(orders->size() == 2);
    }
  }
  return 0;
}
