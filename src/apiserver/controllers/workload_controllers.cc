// SPDX-License-Identifier: Apache-2.0
#include "apiserver/controllers/controllers.h"

namespace jogak::controllers {

std::vector<std::unique_ptr<Controller>> workload_controllers(const ControllerContext& context) {
  static_cast<void>(context);
  return {};
}

}  // namespace jogak::controllers
