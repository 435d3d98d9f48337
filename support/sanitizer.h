// Whether this is a build with AddressSanitizer or ThreadSanitizer (the presets asan and tsan): everything is several
// times slower and larger in it.
#pragma once

#if defined(__SANITIZE_THREAD__) && !defined(TW_THREAD_SANITIZER)
#define TW_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TW_THREAD_SANITIZER 1
#endif
#endif
#ifdef TW_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace tilewright {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool with_sanitizer = true;
#elif defined(__has_feature)
inline constexpr bool with_sanitizer = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool with_sanitizer = false;
#endif

/// What a library without instrumentation (oneTBB) guarantees, told to ThreadSanitizer: all that a thread did before
/// happens_before(p) is seen by a thread after its happens_after(p). Nothing in other builds.
#ifdef TW_THREAD_SANITIZER
inline void happens_before(void* p) { __tsan_release(p); }
inline void happens_after(void* p) { __tsan_acquire(p); }
#else
inline void happens_before(void*) {}
inline void happens_after(void*) {}
#endif

}  // namespace tilewright
