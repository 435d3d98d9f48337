// CPU: decides where each allocation lives, and how many chunks a parallel loop has. Small ones on the stack of their
// body (16 KB together), others in the caller's workspace: a shared part, and a slice for each worker for what is
// allocated inside a parallel loop. Allocations are scoped, so offsets are those of a stack: siblings share bytes.
#include <fmt/format.h>

#include "ir/build.h"
#include "ir/rewrite.h"
#include "lowering/index.h"
#include "lowering/pass.h"

namespace tilewright::lowering {

namespace {

TW_REFUSAL_CODE(dynamic_allocation, "dynamic-allocation", "the size of an allocated buffer is not constant");

constexpr int64_t kStackBytes = 16 * 1024;
// Chunks of a parallel loop: a function of the extent alone, so that results and scratch never depend on the workers.
// 256 keep 64 workers busy with 4 chunks each; fewer iterations are one chunk each.
constexpr int64_t kMaxChunks = 256;

class Plan : public Rewriter {
 public:
  using Rewriter::operator();
  std::optional<Refusal> refusal;
  int64_t shared_bytes = 0, slice_bytes = 0;

  Stmt operator()(const Stmt& s) override {
    if (const For* loop = as<For>(s); loop && loop->loop_kind == ForKind::parallel) {
      if (parallel_) {  // nested: serial
        auto copy = edit(*loop);
        copy->loop_kind = ForKind::serial;
        copy->body = (*this)(loop->body);
        return finish(std::move(copy));
      }
      auto copy = edit(*loop);
      copy->annotations["chunks"] = std::min(const_int(loop->extent).value_or(kMaxChunks), kMaxChunks);
      parallel_ = true;
      int64_t saved_stack = std::exchange(stack_, 0), saved_offset = std::exchange(offset_, 0);
      copy->body = (*this)(loop->body);
      parallel_ = false;
      stack_ = saved_stack;
      offset_ = saved_offset;
      return finish(std::move(copy));
    }
    const Allocate* alloc = as<Allocate>(s);
    return alloc ? allocation(*alloc) : Rewriter::operator()(s);
  }

 private:
  Stmt allocation(const Allocate& alloc) {
    int64_t bytes = (buffer_bytes(*alloc.buffer) + 63) / 64 * 64;
    if (bytes == 0) {
      refusal = Refusal(dynamic_allocation, fmt::format("buffer {} has no constant size", alloc.buffer->name));
      return Stmt(&alloc);
    }
    auto copy = edit(alloc);
    bool on_stack = stack_ + bytes <= kStackBytes;
    int64_t saved_stack = stack_, saved_offset = offset_;
    if (on_stack) {
      stack_ += bytes;
      copy->annotations["place"] = "stack";
    } else {
      copy->annotations["place"] = parallel_ ? "slice" : "workspace";
      copy->annotations["offset"] = offset_;
      offset_ += bytes;
      int64_t& total = parallel_ ? slice_bytes : shared_bytes;
      total = std::max(total, offset_);
    }
    copy->body = (*this)(alloc.body);
    stack_ = saved_stack;
    offset_ = saved_offset;
    return finish(std::move(copy));
  }
  bool parallel_ = false;
  int64_t stack_ = 0, offset_ = 0;
};

Result<FunctionRef> run(const FunctionRef& f, const PassContext&) {
  Plan plan;
  Stmt body = plan(f->body);
  if (plan.refusal) return refuse(*plan.refusal);
  FunctionRef out = with_body(*f, body);
  out = with_attr(*out, "tilewright.workspace_bytes", plan.shared_bytes);
  return with_attr(*out, "tilewright.workspace_slice_bytes", plan.slice_bytes);
}

const Register<Pass> pass{"plan_workspace", "allocations get their place, parallel loops their chunks",
                          Pass{Form::flat, Form::kernels, {}, run, Pass::For::cpu}};

}  // namespace

}  // namespace tilewright::lowering
