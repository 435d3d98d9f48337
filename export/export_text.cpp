// The texts of an export: C header, checking program, CMake file.
#include <fmt/format.h>

#include "export/export.h"
#include "ir/build.h"
#include "ir/visit.h"

namespace tilewright {

namespace {

std::string shape_text(const Buffer& b) {
  std::string out;
  for (const Expr& e : b->shape) out += fmt::format("{}{}", out.empty() ? "" : "x", const_int(e).value_or(-1));
  return out.empty() ? "scalar" : out;
}

int64_t elements(const Buffer& b) {
  int64_t n = 1;
  for (const Expr& e : b->shape) n *= const_int(e).value_or(1);
  return n;
}

bool is_written(const Function& f, const Buffer& b) {
  bool found = false;
  walk_stmts(f.body, [&](const Stmt& s) {
    if (const Block* block = as<Block>(s))
      for (const BufferRegion& r : block->writes) found = found || r.buffer.same_as(b);
    return !found;
  });
  return found;
}

/// Longest reduction of the program: K' of the tolerance.
int64_t reduction_length(const Function& f) {
  int64_t longest = 1;
  walk_stmts(f.body, [&](const Stmt& s) {
    if (const Block* block = as<Block>(s)) {
      int64_t k = 1;
      for (const Iter& iter : block->iters)
        if (iter.type == IterType::reduction) k *= const_int(iter.dom.extent).value_or(1);
      longest = std::max(longest, k);
    }
    return true;
  });
  return longest;
}

}  // namespace

std::string export_header(const ExportRequest& r, const Function& f, int64_t workspace, int64_t slice) {
  std::string buffers;
  for (size_t i = 0; i < f.params.size(); ++i)
    if (const Buffer& b = f.params[i].buffer)
      buffers += fmt::format(" *   buffers[{}]  {:<12} {} {}{}\n", i, b->name, shape_text(b), b->dtype.str(),
                             is_written(f, b) ? ", written" : "");
  return fmt::format(
      R"(/* {title}
 *
 * Made by Tilewright {version} for {target}.{record}{measured}
 *
 *   int32_t {name}(void* const* buffers, const int64_t* scalars);    0, or a negative error
 *
{buffers} *
 * Row-major, 64-byte aligned, not overlapping. Parallel loops run on the pool of tw_runtime.h.
 */
#ifndef {name}_H
#define {name}_H

#include "tw_runtime.h"

#ifdef __cplusplus
extern "C" {{
#endif

int32_t {name}_kernel(void* const* buffers, const int64_t* scalars, const tw_host* host);

static inline int32_t {name}(void* const* buffers, const int64_t* scalars) {{
  return tw_call({name}_kernel, buffers, scalars, {workspace}, {slice});
}}

#ifdef __cplusplus
}}
#endif

#endif
)",
      fmt::arg("title", r.title), fmt::arg("version", TILEWRIGHT_VERSION), fmt::arg("target", r.target.text()),
      fmt::arg("record", r.record.empty() ? "" : " Record " + r.record + "."),
      fmt::arg("measured", r.measured.empty() ? "" : "\n * Measured: " + r.measured + "."), fmt::arg("name", r.name),
      fmt::arg("buffers", buffers), fmt::arg("workspace", workspace), fmt::arg("slice", slice));
}

std::string export_main(const std::vector<ExportRequest>& requests) {
  std::string includes, rows, tables;
  for (const ExportRequest& r : requests) {
    const Function& f = *r.program->main();
    includes +=
        fmt::format("#include \"{}.h\"\nint32_t {}_reference_kernel(void* const*, const int64_t*, const tw_host*);\n",
                    r.name, r.name);
    std::string list;
    for (const Param& p : f.params)
      if (p.buffer)
        list += fmt::format("  {{{}, {}, '{}', {}}},\n", elements(p.buffer), p.buffer->dtype.element_bytes(),
                            p.buffer->dtype == kBFloat16 ? 'b'
                            : p.buffer->dtype.is_float() ? 'f'
                            : p.buffer->dtype.is_uint()  ? 'u'
                                                         : 'i',
                            is_written(f, p.buffer) ? 1 : 0);
    tables += fmt::format(
        "static const tensor {0}_tensors[] = {{\n{1}}};\nstatic int32_t call_{0}(void* const* b) {{ return {0}(b, 0); "
        "}}\n",
        r.name, list);
    rows += fmt::format(
        "  {{\"{0}\", {0}_tensors, sizeof {0}_tensors / sizeof(tensor), {1}, call_{0}, {0}_reference_kernel}},\n",
        r.name, reduction_length(f));
  }
  return fmt::format(
      R"(/* Checks each exported kernel against its unscheduled program on random inputs, and times it. Exit status 1 on a wrong result. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime, also with -std=c11 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

{includes}
typedef struct {{ int64_t elements; int bytes; char kind; int written; }} tensor; /* kind: f float, b bfloat16, i int, u unsigned */
typedef struct {{ const char* name; const tensor* tensors; size_t count; int64_t reduction; int32_t (*call)(void* const*); tw_kernel_fn reference; }} kernel;

{tables}
static const kernel kernels[] = {{
{rows}}};

static double now(void) {{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}}

static uint64_t state = 0x9e3779b97f4a7c15u;
static double uniform(void) {{
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(state >> 11) * 0x1p-53 * 2 - 1;
}}

static uint16_t half_of(float x) {{ _Float16 h = (_Float16)x; uint16_t bits; memcpy(&bits, &h, 2); return bits; }}

static void put(void* p, int64_t i, const tensor* t, double x) {{
  if (t->kind == 'f' && t->bytes == 4) ((float*)p)[i] = (float)x;
  else if (t->kind == 'f' && t->bytes == 8) ((double*)p)[i] = x;
  else if (t->kind == 'f' && t->bytes == 2) ((uint16_t*)p)[i] = half_of((float)x);
  else if (t->kind == 'b') {{ float f = (float)x; uint32_t bits; memcpy(&bits, &f, 4); ((uint16_t*)p)[i] = (uint16_t)(bits >> 16); }}
  else if (t->bytes == 1) ((int8_t*)p)[i] = (int8_t)(t->kind == 'u' ? 127 * (x + 1) / 2 : 127 * x);
  else if (t->bytes == 4) ((int32_t*)p)[i] = (int32_t)(100 * x);
  else if (t->bytes == 8) ((int64_t*)p)[i] = (int64_t)(100 * x);
  else ((int16_t*)p)[i] = (int16_t)(100 * x);
}}

static double get(const void* p, int64_t i, const tensor* t) {{
  if (t->kind == 'f' && t->bytes == 4) return ((const float*)p)[i];
  if (t->kind == 'f' && t->bytes == 8) return ((const double*)p)[i];
  if (t->kind == 'f' && t->bytes == 2) {{ _Float16 h; memcpy(&h, (const uint16_t*)p + i, 2); return (double)h; }}
  if (t->kind == 'b') {{ uint32_t bits = (uint32_t)((const uint16_t*)p)[i] << 16; float f; memcpy(&f, &bits, 4); return f; }}
  if (t->kind == 'u' && t->bytes == 1) return ((const uint8_t*)p)[i];
  if (t->bytes == 1) return ((const int8_t*)p)[i];
  if (t->bytes == 4) return ((const int32_t*)p)[i];
  if (t->bytes == 8) return (double)((const int64_t*)p)[i];
  return ((const int16_t*)p)[i];
}}

static double unit(const tensor* t) {{
  if (t->kind == 'b') return 0x1p-8;
  if (t->kind != 'f') return 0;
  return t->bytes == 8 ? 0x1p-53 : t->bytes == 4 ? 0x1p-24 : 0x1p-11;
}}

static int compare(const void* a, const void* b) {{
  double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}}

static int check(const kernel* k) {{
  void *mine[32], *theirs[32];
  if (k->count > 32) return 1;
  for (size_t i = 0; i < k->count; ++i) {{
    const tensor* t = &k->tensors[i];
    size_t bytes = (size_t)(t->elements * t->bytes + 63) / 64 * 64;
    mine[i] = aligned_alloc(64, bytes);
    theirs[i] = aligned_alloc(64, bytes);
    if (!mine[i] || !theirs[i]) {{ printf("%s WRONG out of memory\n", k->name); return 1; }}
    for (int64_t e = 0; e < t->elements; ++e) put(mine[i], e, t, uniform());
    memcpy(theirs[i], mine[i], (size_t)(t->elements * t->bytes));
  }}
  int32_t a = k->call(mine), b = tw_call(k->reference, theirs, 0, {reference_workspace}, {reference_slice});
  double worst = 0;
  int wrong = a != 0 || b != 0;
  for (size_t i = 0; i < k->count; ++i) {{
    const tensor* t = &k->tensors[i];
    if (!t->written) continue;
    double sum = 0;
    for (int64_t e = 0; e < t->elements; ++e) {{ double r = get(theirs[i], e, t); sum += r * r; }}
    double sigma = sqrt(sum / (double)t->elements), u = unit(t);
    for (int64_t e = 0; e < t->elements; ++e) {{
      double r = get(theirs[i], e, t), x = get(mine[i], e, t), error = fabs(x - r);
      double limit = u == 0 ? 0 : 2 * u * fabs(r) + 16 * fmax(u, 0x1p-24) * sqrt((double)k->reduction) * sigma + 16 * u * sigma;
      if (!(error <= limit)) wrong = 1;
      if (error > worst) worst = error;
    }}
  }}
  double times[31];
  int n = 0;
  for (; n < 31; ++n) {{ double start = now(); k->call(mine); times[n] = now() - start; }}
  qsort(times, (size_t)n, sizeof(double), compare);
  printf("%s %s max_err=%.3g median_us=%.3f\n", k->name, wrong ? "WRONG" : "ok", worst, times[n / 2] * 1e6);
  for (size_t i = 0; i < k->count; ++i) {{ free(mine[i]); free(theirs[i]); }}
  return wrong;
}}

int main(void) {{
  int wrong = 0;
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; ++i) wrong |= check(&kernels[i]);
  return wrong;
}}
)",
      fmt::arg("includes", includes), fmt::arg("tables", tables), fmt::arg("rows", rows),
      fmt::arg("reference_workspace", int64_t{1} << 28), fmt::arg("reference_slice", int64_t{1} << 20));
}

std::string export_cmake(const std::vector<ExportRequest>& requests) {
  std::string objects;
  for (const ExportRequest& r : requests)
    objects +=
        fmt::format("  ${{CMAKE_CURRENT_SOURCE_DIR}}/{0}.o ${{CMAKE_CURRENT_SOURCE_DIR}}/{0}_reference.o\n", r.name);
  return fmt::format(R"(cmake_minimum_required(VERSION 3.16)
project(check C)
find_package(Threads REQUIRED)
add_executable(check main.c tw_runtime.c
{})
target_link_libraries(check PRIVATE Threads::Threads m)
)",
                     objects);
}

}  // namespace tilewright
