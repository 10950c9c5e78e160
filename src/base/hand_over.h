// SPDX-License-Identifier: Apache-2.0
//
// Says to the thread sanitizer what orders two threads where it cannot see it: a library that is
// compiled without the sanitizer takes something from one thread and calls us back with it on
// another, under locks of its own. Costs nothing without the sanitizer, and orders nothing either:
// only for what the library does promise.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define JOGAK_HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define JOGAK_HAS_TSAN 1
#endif
#endif

#ifdef JOGAK_HAS_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace jogak {

// What this thread did so far comes before whatever follows a take_over() of the same address,
// which is only a name: nothing is read there.
inline void hand_over([[maybe_unused]] const void* name) {
#ifdef JOGAK_HAS_TSAN
  __tsan_release(const_cast<void*>(name));
#endif
}

inline void take_over([[maybe_unused]] const void* name) {
#ifdef JOGAK_HAS_TSAN
  __tsan_acquire(const_cast<void*>(name));
#endif
}

// A call from the library: it comes after what was handed over, and before its next one.
class TakenOver {
 public:
  explicit TakenOver(const void* name) : name_(name) { take_over(name_); }
  ~TakenOver() { hand_over(name_); }
  TakenOver(const TakenOver&) = delete;
  TakenOver& operator=(const TakenOver&) = delete;

 private:
  const void* name_;
};

}  // namespace jogak
