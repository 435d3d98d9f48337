// Whether this is a build with AddressSanitizer or ThreadSanitizer (the presets asan and tsan): everything is several
// times slower and larger in it.
#pragma once

namespace tilewright {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool with_sanitizer = true;
#elif defined(__has_feature)
inline constexpr bool with_sanitizer = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool with_sanitizer = false;
#endif

}  // namespace tilewright
