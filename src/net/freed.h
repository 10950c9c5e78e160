// SPDX-License-Identifier: Apache-2.0
//
// unique_ptr for objects of C libraries: std::unique_ptr<SSL, Freed<SSL_free>>.
#pragma once

namespace jogak::net {

template <auto free_function>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    free_function(object);
  }
};

}  // namespace jogak::net
