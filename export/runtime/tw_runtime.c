/* Runtime of exported Tilewright kernels; see tw_runtime.h. */
#include "tw_runtime.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* The pool: the caller and workers - 1 threads take chunks of one job at a time from a counter. Which worker runs a chunk does not
   change results: kernels write to places that depend on the chunk only. */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER, call_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_work = PTHREAD_COND_INITIALIZER, pool_done = PTHREAD_COND_INITIALIZER;
static uint32_t pool_threads, wanted_threads;
static uint64_t job_number;
static uint32_t job_running;
static int32_t (*job_body)(void*, int64_t, uint32_t);
static void* job_env;
static int64_t job_chunks;
static atomic_llong job_next;
static atomic_int job_error;

static tw_parallel_for_fn user_parallel_for;
static uint32_t user_workers;
static void* user_ctx;

static void run_chunks(uint32_t worker) {
  for (;;) {
    int64_t chunk = atomic_fetch_add(&job_next, 1);
    if (chunk >= job_chunks) return;
    int32_t error = job_body(job_env, chunk, worker);
    if (error != 0) atomic_store(&job_error, error);
  }
}

static void* worker_main(void* argument) {
  uint32_t worker = (uint32_t)(uintptr_t)argument;
  uint64_t seen = 0;
  for (;;) {
    pthread_mutex_lock(&pool_lock);
    while (job_number == seen) pthread_cond_wait(&pool_work, &pool_lock);
    seen = job_number;
    pthread_mutex_unlock(&pool_lock);
    run_chunks(worker);
    pthread_mutex_lock(&pool_lock);
    if (--job_running == 0) pthread_cond_signal(&pool_done);
    pthread_mutex_unlock(&pool_lock);
  }
  return NULL;
}

static int32_t pool_parallel_for(void* ctx, int64_t chunks, int32_t (*body)(void*, int64_t, uint32_t), void* env) {
  (void)ctx;
  pthread_mutex_lock(&pool_lock);
  job_body = body;
  job_env = env;
  job_chunks = chunks;
  atomic_store(&job_next, 0);
  atomic_store(&job_error, 0);
  job_running = pool_threads - 1;
  ++job_number;
  pthread_cond_broadcast(&pool_work);
  pthread_mutex_unlock(&pool_lock);
  run_chunks(0);
  pthread_mutex_lock(&pool_lock);
  while (job_running != 0) pthread_cond_wait(&pool_done, &pool_lock);
  pthread_mutex_unlock(&pool_lock);
  return atomic_load(&job_error);
}

static void start_pool(void) {
  if (pool_threads != 0) return;
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  uint32_t wanted = wanted_threads ? wanted_threads : (uint32_t)(online > 0 ? online : 1);
  uint32_t started = 1;
  for (; started < wanted; ++started) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, worker_main, (void*)(uintptr_t)started) != 0) break;
    pthread_detach(thread);
  }
  pool_threads = started;
}

void tw_set_threads(uint32_t threads) { wanted_threads = threads; }

void tw_set_parallel_for(tw_parallel_for_fn parallel_for, uint32_t workers, void* ctx) {
  user_parallel_for = parallel_for;
  user_workers = workers;
  user_ctx = ctx;
}

int32_t tw_call(tw_kernel_fn kernel, void* const* buffers, const int64_t* scalars, int64_t workspace_bytes, int64_t slice_bytes) {
  int32_t result;
  tw_host host = {1, user_workers, user_ctx, NULL, user_parallel_for};
  int own = user_parallel_for == NULL;
  if (own) {
    pthread_mutex_lock(&call_lock);
    start_pool();
    host.workers = pool_threads;
    host.parallel_for = pool_threads > 1 ? pool_parallel_for : NULL;
  }
  int64_t bytes = workspace_bytes + slice_bytes * (int64_t)host.workers;
  if (bytes > 0) host.workspace = aligned_alloc(64, (size_t)((bytes + 63) / 64 * 64));
  if (bytes > 0 && host.workspace == NULL) result = -1;
  else result = kernel(buffers, scalars, &host);
  free(host.workspace);
  if (own) pthread_mutex_unlock(&call_lock);
  return result;
}
