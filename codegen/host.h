/* C interface of compiled functions (lowering.md §2.2); exported with them. No global state, allocation or threads. */
#ifndef TILEWRIGHT_HOST_H
#define TILEWRIGHT_HOST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TW_HOST_ABI 1u

typedef int32_t (*tw_body)(void* env, int64_t chunk, uint32_t worker);

typedef struct tw_host {
  uint32_t abi;     /* TW_HOST_ABI */
  uint32_t workers; /* slices of the workspace; `worker` is below it */
  void* ctx;
  void* workspace; /* aligned to 64: tw_workspace[0] + workers * tw_workspace[1] bytes */
  /* Runs body for every chunk in [0, chunks), in any order, and returns 0 or the first error; NULL: serial. */
  int32_t (*parallel_for)(void* ctx, int64_t chunks, tw_body body, void* env);
} tw_host;

/* Entry `<name>`: buffers in order of the parameters, aligned to 64 bytes; scalars as int64 (floats: bits of a
   double), the symbolic extents behind them in order of declaration. Returns 0
   or a tw_error. The object also exports `const int64_t <name>_workspace[2]` = {shared bytes, bytes of a worker's
   slice}. */
typedef int32_t (*tw_entry)(void* const* buffers, const int64_t* scalars, const tw_host* host);

enum tw_error {
  tw_error_none = 0,
  tw_error_abi = -1,
  tw_error_assert = -2,
  tw_error_bounds = -3,
  tw_error_workspace = -4
};

#ifdef __cplusplus
}
#endif
#endif
