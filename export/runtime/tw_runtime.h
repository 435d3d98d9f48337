/* Runtime of exported Tilewright kernels: how a kernel is called, and the thread pool for its parallel loops. */
#ifndef TW_RUNTIME_H
#define TW_RUNTIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Must equal codegen/host.h: generated code reads this struct. */
typedef struct tw_host {
  uint32_t abi, workers;
  void* ctx;
  void* workspace;
  int32_t (*parallel_for)(void* ctx, int64_t chunks, int32_t (*body)(void* env, int64_t chunk, uint32_t worker),
                          void* env);
} tw_host;

typedef int32_t (*tw_parallel_for_fn)(void* ctx, int64_t chunks,
                                      int32_t (*body)(void* env, int64_t chunk, uint32_t worker), void* env);
typedef int32_t (*tw_kernel_fn)(void* const* buffers, const int64_t* scalars, const tw_host* host);

/* Uses `parallel_for` with `workers` workers for all later calls; NULL brings the default pool back. Not to be called
   while a kernel runs. */
void tw_set_parallel_for(tw_parallel_for_fn parallel_for, uint32_t workers, void* ctx);
/* Threads of the default pool; 0: one per online processor. Takes effect before the first call. */
void tw_set_threads(uint32_t threads);

/* Calls a kernel with workspace of its own: 0, -1 (out of memory), or the kernel's negative error. Thread-safe; calls
   through the default pool are made one after the other. */
int32_t tw_call(tw_kernel_fn kernel, void* const* buffers, const int64_t* scalars, int64_t workspace_bytes,
                int64_t slice_bytes);

#ifdef __cplusplus
}
#endif

#endif
