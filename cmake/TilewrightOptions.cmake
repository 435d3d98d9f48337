# One interface target carries what every target of ours needs; nothing is set directory-wide. What is meant for this tree
# alone (warnings, sanitizers, the linker) is wrapped in BUILD_INTERFACE: users of the installed package do not inherit it.
add_library(tw_options INTERFACE)
set(own_flags -Wall -Wextra -Wswitch -Wshadow -Werror -Wno-missing-field-initializers)
# GCC 12 at -O3 sees an overlap in std::string::operator=(const char*) where there is none (GCC bug 105651).
list(APPEND own_flags $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
# The std::stable_sort of GCC 12's library calls what the same library declares deprecated.
list(APPEND own_flags $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
# Results must not depend on how a compiler contracts our own arithmetic (search.md, determinism).
list(APPEND own_flags -ffp-contract=off)
# Where something is registered is told relative to the source folder, whichever clone's object the cache has given.
list(APPEND own_flags -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)
target_include_directories(tw_options INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>)
set(TILEWRIGHT_ABI "tilewright-${PROJECT_VERSION}")
target_compile_definitions(tw_options INTERFACE TILEWRIGHT_ABI="${TILEWRIGHT_ABI}" TILEWRIGHT_VERSION="${PROJECT_VERSION}")
if(TILEWRIGHT_SANITIZE)
  # Without vptr: code generation is compiled without type information, as LLVM is, so its classes look like no classes.
  list(APPEND own_flags -fsanitize=${TILEWRIGHT_SANITIZE} -fno-sanitize=vptr -fno-omit-frame-pointer)
  target_link_options(tw_options INTERFACE $<BUILD_INTERFACE:-fsanitize=${TILEWRIGHT_SANITIZE}>)
endif()
target_compile_options(tw_options INTERFACE "$<BUILD_INTERFACE:${own_flags}>")

find_program(TILEWRIGHT_CCACHE ccache)
if(TILEWRIGHT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths are hashed relative to the source folder, so that clones and worktrees share what they have compiled. Depend mode:
  # a miss costs one compilation, not a preprocessor run as well.
  set(launcher env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=true CCACHE_ABSSTDERR=true CCACHE_DEPEND=true ${TILEWRIGHT_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
endif()
find_program(TILEWRIGHT_MOLD mold)
if(TILEWRIGHT_MOLD)
  target_link_options(tw_options INTERFACE $<BUILD_INTERFACE:-fuse-ld=mold>)
endif()
