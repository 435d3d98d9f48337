/* Runtime of exported Tilewright kernels; see tw_runtime.h. */
#define _GNU_SOURCE /* affinity of threads */
#include "tw_runtime.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The pool: the caller and workers - 1 threads run one job at a time, each a contiguous range of its chunks, so that a
   worker finds in its cache what it wrote in the call before (a shared counter costs more than small chunks where cores are
   far apart). Which worker runs a chunk does not change results: kernels write to places that depend on the chunk only.
   Workers look for the next job for about 50 us before they sleep, so that kernels that follow one another do not pay for
   waking threads. The caller, done with its own range, takes over those that no worker has begun: on a busy machine a worker
   may be without a core for milliseconds. */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER, call_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_work = PTHREAD_COND_INITIALIZER;
static uint32_t pool_threads, wanted_threads;
static _Alignas(64) atomic_uint job_number;   /* grows by one for each job */
static _Alignas(64) atomic_uint job_running;  /* ranges that are not finished */
/* By worker: the last job whose range was begun, by that worker or for it. */
typedef struct { _Alignas(64) atomic_uint job; } tw_claim;
static tw_claim* claims;
static atomic_uint sleepers;
static atomic_int job_error;
static int32_t (*job_body)(void*, int64_t, uint32_t);
static void* job_env;
static int64_t job_chunks;
/* Workspace of calls through the pool, kept for the next one: fresh pages cost more than small kernels. */
static void* kept_workspace;
static int64_t kept_bytes;

static tw_parallel_for_fn user_parallel_for;
static uint32_t user_workers;
static void* user_ctx;

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Waits for about 50 us; returns whether the word has become (equal) or ceased to be (not equal) the value. */
static int spin_until(atomic_uint* word, unsigned value, int equal) {
  int64_t end = now_ns() + 50000;
  for (;;) {
    for (int i = 0; i < 128; ++i) {
      if ((atomic_load_explicit(word, memory_order_acquire) == value) == equal) return 1;
      relax();
    }
    if (now_ns() > end) return 0;
    sched_yield(); /* whoever is waited for may need this core */
  }
}

/* Runs the worker's range of the job unless somebody has begun it. */
static void run_range(uint32_t worker, unsigned job) {
  unsigned before = job - 1;
  if (!atomic_compare_exchange_strong(&claims[worker].job, &before, job)) return;
  int64_t begin = job_chunks * worker / pool_threads, end = job_chunks * (worker + 1) / pool_threads;
  for (int64_t chunk = begin; chunk < end; ++chunk) {
    int32_t error = job_body(job_env, chunk, worker);
    if (error != 0) atomic_store(&job_error, error);
  }
  atomic_fetch_sub_explicit(&job_running, 1, memory_order_release);
}

static void* worker_main(void* argument) {
  uint32_t worker = (uint32_t)(uintptr_t)argument;
  unsigned seen = 0;
  for (;;) {
    if (!spin_until(&job_number, seen, 0)) {
      pthread_mutex_lock(&pool_lock);
      atomic_fetch_add(&sleepers, 1);
      while (atomic_load(&job_number) == seen) pthread_cond_wait(&pool_work, &pool_lock);
      atomic_fetch_sub(&sleepers, 1);
      pthread_mutex_unlock(&pool_lock);
    }
    seen = atomic_load(&job_number);
    run_range(worker, seen);
  }
  return NULL;
}

static int32_t pool_parallel_for(void* ctx, int64_t chunks, int32_t (*body)(void*, int64_t, uint32_t), void* env) {
  (void)ctx;
  job_body = body;
  job_env = env;
  job_chunks = chunks;
  atomic_store(&job_error, 0);
  atomic_store(&job_running, pool_threads);
  unsigned job = atomic_fetch_add(&job_number, 1) + 1;
  if (atomic_load(&sleepers) > 0) {
    pthread_mutex_lock(&pool_lock); /* a worker between its last look and its sleep holds it */
    pthread_cond_broadcast(&pool_work);
    pthread_mutex_unlock(&pool_lock);
  }
  for (uint32_t worker = 0; worker < pool_threads; ++worker) run_range(worker, job);
  while (!spin_until(&job_running, 0, 1)) sched_yield();
  return atomic_load(&job_error);
}

/* Workers stay on cores of their own, away from the caller's: schedulers leave two threads that call and answer each other
   on one core, where neither gets anything done. */
static void pin_workers(const pthread_t* threads, uint32_t n) {
  cpu_set_t allowed;
  int own = sched_getcpu();
  if (pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed) != 0 || (uint32_t)CPU_COUNT(&allowed) <= n) return;
  uint32_t next = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE && next < n; ++cpu) {
    if (cpu == own || !CPU_ISSET(cpu, &allowed)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(threads[next++], sizeof one, &one);
  }
}

static void start_pool(void) {
  if (pool_threads != 0) return;
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  uint32_t wanted = wanted_threads ? wanted_threads : (uint32_t)(online > 0 ? online : 1);
  pthread_t* threads = malloc(wanted * sizeof *threads);
  claims = aligned_alloc(64, wanted * sizeof *claims);
  uint32_t started = 1;
  for (uint32_t i = 0; claims && i < wanted; ++i) atomic_init(&claims[i].job, 0);
  for (; threads && claims && started < wanted; ++started)
    if (pthread_create(&threads[started - 1], NULL, worker_main, (void*)(uintptr_t)started) != 0) break;
  if (threads) pin_workers(threads, started - 1);
  for (uint32_t i = 0; threads && i + 1 < started; ++i) pthread_detach(threads[i]);
  free(threads);
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
  size_t rounded = (size_t)((bytes + 63) / 64 * 64);
  if (own && bytes > kept_bytes) {
    free(kept_workspace);
    kept_workspace = aligned_alloc(64, rounded);
    kept_bytes = kept_workspace ? bytes : 0;
  }
  if (bytes > 0) host.workspace = own ? kept_workspace : aligned_alloc(64, rounded);
  if (bytes > 0 && host.workspace == NULL) result = -1;
  else result = kernel(buffers, scalars, &host);
  if (own) pthread_mutex_unlock(&call_lock);
  else free(host.workspace);
  return result;
}
