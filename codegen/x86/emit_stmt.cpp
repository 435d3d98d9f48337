// Statements to LLVM IR.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>

#include "codegen/x86/emitter.h"
#include "ir/visit.h"

namespace tilewright::codegen {

namespace {

int64_t attr_int(const AttrDict& d, const char* key, int64_t otherwise) {
  auto it = d.find(key);
  const int64_t* v = it == d.end() ? nullptr : it->second.get<int64_t>();
  return v ? *v : otherwise;
}

// The schedule decides about a nest that holds vectors or unrolled code; LLVM keeps its hands off (lowering.md §0.4).
bool has_vectors(const Stmt& s) {
  bool found = false;
  walk(
      s,
      [&](const Expr& e) {
        found = found || e->dtype.lanes > 1;
        return !found;
      },
      [&](const Stmt& child) {
        if (const For* loop = as<For>(child)) found = found || loop->annotations.contains("scheduled");
        return !found;
      });
  return found;
}

}  // namespace

llvm::BasicBlock* Emitter::block(const char* name) {
  return llvm::BasicBlock::Create(context_, name, builder_.GetInsertBlock()->getParent());
}

void Emitter::stmt(const Stmt& s) {
  if (refusal_ || terminated()) return;
  switch (s->kind) {
    case StmtKind::kStore:
      return store(*as<Store>(s));
    case StmtKind::kSeq:
      for (const Stmt& item : as<Seq>(s)->stmts) stmt(item);
      return;
    case StmtKind::kFor:
      return loop(*as<For>(s));
    case StmtKind::kIf:
      return if_stmt(*as<If>(s));
    case StmtKind::kWhile:
      return while_loop(*as<While>(s));
    case StmtKind::kBind: {
      const Bind* bind = as<Bind>(s);
      scalars_[bind->var.get()] = expr(bind->value);
      return stmt(bind->body);
    }
    case StmtKind::kEvaluate:
      if (!const_int(as<Evaluate>(s)->value)) expr(as<Evaluate>(s)->value);
      return;
    case StmtKind::kAssert:
      return return_error(expr(as<Assert>(s)->condition), tw_error_assert);
    case StmtKind::kAttrStmt:
      return attribute(*as<AttrStmt>(s));
    case StmtKind::kAllocate:
      return allocate(*as<Allocate>(s));
    case StmtKind::kDeclBuffer:
      return stmt(as<DeclBuffer>(s)->body);
    case StmtKind::kBreak:
      if (loops_.empty()) return void(fail("break outside a loop", kVoid));
      return void(builder_.CreateBr(loops_.back().exit));
    case StmtKind::kContinue:
      if (loops_.empty()) return void(fail("continue outside a loop", kVoid));
      return void(builder_.CreateBr(loops_.back().next));
    case StmtKind::kReturn:
      if (as<Return>(s)->value) return void(fail("a return value", kVoid));
      return void(builder_.CreateRet(builder_.getInt32(0)));
    case StmtKind::kBlock:
      TW_UNREACHABLE("a block reached code generation");
  }
}

void Emitter::return_error(Value condition_ok, int error) {
  auto *bad = block("error"), *good = block("checked");
  builder_.CreateCondBr(condition_ok, good, bad);
  builder_.SetInsertPoint(bad);
  builder_.CreateRet(builder_.getInt32(static_cast<uint32_t>(error)));
  builder_.SetInsertPoint(good);
}

void Emitter::store(const Store& s) {
  DType t = s.value->dtype;
  Value v = expr(s.value);
  if (t.is_bool()) v = builder_.CreateZExt(v, memory_type(t));
  int lanes = s.indices.empty() ? 1 : s.indices[0]->dtype.lanes;
  llvm::Align align(static_cast<uint64_t>(s.buffer->dtype.element_bytes()));
  const Ramp* ramp = s.indices.empty() ? nullptr : as<Ramp>(s.indices[0]);
  if (lanes == 1 || (ramp && is_const(ramp->stride, 1))) {
    Value at = s.indices.empty() ? builder_.getInt64(0) : index(ramp ? ramp->base : s.indices[0]);
    Value p = address(s.buffer, at);
    if (lanes > 1 && mask_) {
      builder_.CreateMaskedStore(v, p, align, mask_);
      return;
    }
    if (nontemporal_ && lanes > 1) align = llvm::Align(static_cast<uint64_t>(s.buffer->dtype.element_bytes() * lanes));
    llvm::StoreInst* st = builder_.CreateAlignedStore(v, p, align);
    if (nontemporal_) {
      st->setMetadata(llvm::LLVMContext::MD_nontemporal,
                      llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(builder_.getInt32(1))));
      used_nontemporal_ = true;
    }
    return;
  }
  // Scatter lane by lane: AVX-512 scatters are no faster, and other targets have none.
  Value at = index(s.indices[0]);
  for (int i = 0; i < lanes; ++i) {
    llvm::BasicBlock* after = nullptr;
    if (mask_) {
      auto* on = block("lane");
      after = block("lane_done");
      builder_.CreateCondBr(builder_.CreateExtractElement(mask_, static_cast<uint64_t>(i)), on, after);
      builder_.SetInsertPoint(on);
    }
    Value p = address(s.buffer, builder_.CreateExtractElement(at, static_cast<uint64_t>(i)));
    builder_.CreateAlignedStore(builder_.CreateExtractElement(v, static_cast<uint64_t>(i)), p, align);
    if (after) {
      builder_.CreateBr(after);
      builder_.SetInsertPoint(after);
    }
  }
}

void Emitter::loop(const For& s) {
  if (s.loop_kind == ForKind::parallel && !inside_parallel_ && s.annotations.contains("chunks"))
    return emit_parallel(s);
  if (s.loop_kind == ForKind::thread_binding) return void(fail("a loop bound to " + s.thread, kVoid));
  Value begin = index(s.min), extent = index(s.extent);
  Value step = s.step ? index(s.step) : builder_.getInt64(1);
  // extent counts iterations when the step is null, else it is the length of the range (ir/stmt.h).
  Value end = builder_.CreateAdd(begin, extent, "", true, true);
  bool runs = const_int(s.extent).value_or(0) > 0;
  emit_loop(s.var, begin, end, step, runs, !has_vectors(s.body) && !attr_int(s.annotations, "scheduled", 0), s.body);
}

void Emitter::emit_loop(const Var& var, Value begin, Value end, Value step, bool surely_runs, bool free_for_llvm,
                        const Stmt& body) {
  auto *head = block(var->name.c_str()), *latch = block("next"), *exit = block("exit");
  if (surely_runs)
    builder_.CreateBr(head);
  else
    builder_.CreateCondBr(builder_.CreateICmpSLT(begin, end), head, exit);
  auto* before = builder_.GetInsertBlock();
  builder_.SetInsertPoint(head);
  auto* i = builder_.CreatePHI(builder_.getInt64Ty(), 2, var->name);
  i->addIncoming(begin, before);
  scalars_[var.get()] = var->dtype.bits == 64 ? static_cast<Value>(i) : builder_.CreateTrunc(i, type_of(var->dtype));
  loops_.push_back({latch, exit});
  stmt(body);
  loops_.pop_back();
  if (!terminated()) builder_.CreateBr(latch);
  builder_.SetInsertPoint(latch);
  Value next = builder_.CreateAdd(i, step, "", true, true);
  i->addIncoming(next, latch);
  llvm::BranchInst* back = builder_.CreateCondBr(builder_.CreateICmpSLT(next, end), head, exit);
  if (!free_for_llvm) {
    auto word = [&](const char* key) -> llvm::Metadata* {
      return llvm::MDNode::get(context_, llvm::MDString::get(context_, key));
    };
    auto off = [&](const char* key) -> llvm::Metadata* {
      return llvm::MDNode::get(
          context_, {llvm::MDString::get(context_, key), llvm::ConstantAsMetadata::get(builder_.getFalse())});
    };
    auto* id = llvm::MDNode::getDistinct(
        context_, {nullptr, word("llvm.loop.unroll.disable"), off("llvm.loop.vectorize.enable")});
    id->replaceOperandWith(0, id);
    back->setMetadata(llvm::LLVMContext::MD_loop, id);
  }
  builder_.SetInsertPoint(exit);
}

void Emitter::if_stmt(const If& s) {
  if (s.condition->dtype.is_vector()) {
    if (s.else_body) return void(fail("a masked statement with an else branch", kVoid));
    Value outer = mask_, condition = expr(s.condition);
    mask_ = outer ? builder_.CreateAnd(outer, condition) : condition;
    stmt(s.then_body);
    mask_ = outer;
    return;
  }
  auto *yes = block("then"), *after = block("after");
  auto* no = s.else_body ? block("else") : after;
  builder_.CreateCondBr(expr(s.condition), yes, no);
  builder_.SetInsertPoint(yes);
  stmt(s.then_body);
  if (!terminated()) builder_.CreateBr(after);
  if (s.else_body) {
    builder_.SetInsertPoint(no);
    stmt(s.else_body);
    if (!terminated()) builder_.CreateBr(after);
  }
  builder_.SetInsertPoint(after);
}

void Emitter::while_loop(const While& s) {
  auto *test = block("while"), *body = block("do"), *exit = block("exit");
  builder_.CreateBr(test);
  builder_.SetInsertPoint(test);
  builder_.CreateCondBr(expr(s.condition), body, exit);
  builder_.SetInsertPoint(body);
  loops_.push_back({test, exit});
  stmt(s.body);
  loops_.pop_back();
  if (!terminated()) builder_.CreateBr(test);
  builder_.SetInsertPoint(exit);
}

void Emitter::attribute(const AttrStmt& s) {
  if (s.key == "fast_math" || (s.key == "reassociate" && !is_const(s.value, 0))) {
    llvm::FastMathFlags saved = flags_;
    if (s.key == "fast_math")
      flags_.setFast();
    else  // the order of the terms is free, and with it which zero an extremum of zeros is
      flags_.setAllowReassoc(), flags_.setNoSignedZeros();
    stmt(s.body);
    flags_ = saved;
    return;
  }
  if (s.key == "nontemporal") {
    bool saved = std::exchange(nontemporal_, true);
    stmt(s.body);
    nontemporal_ = saved;
    if (!saved && used_nontemporal_ && !terminated()) {
      builder_.CreateIntrinsic(builder_.getVoidTy(), llvm::Intrinsic::x86_sse_sfence, {});
      used_nontemporal_ = false;
    }
    return;
  }
  stmt(s.body);
}

// A small array is an alloca in the entry block; SROA turns constant-indexed ones into registers.
void Emitter::allocate(const Allocate& s) {
  if (pointers_.contains(s.buffer->data.get())) return stmt(s.body);  // in the caller's workspace
  int64_t n = s.buffer->dtype.lanes;
  for (const Expr& e : s.buffer->shape) {
    std::optional<int64_t> extent = const_int(e);
    if (!extent) return void(fail("buffer " + s.buffer->name + " of unknown size on the stack", kVoid));
    n *= *extent;
  }
  llvm::IRBuilder<> top(&body_->getEntryBlock(), body_->getEntryBlock().begin());
  auto* array = llvm::ArrayType::get(memory_type(s.buffer->dtype.element()), static_cast<uint64_t>(n));
  llvm::AllocaInst* slot = top.CreateAlloca(array, nullptr, s.buffer->name);
  slot->setAlignment(llvm::Align(64));
  pointers_[s.buffer->data.get()] = slot;
  stmt(s.body);
  pointers_.erase(s.buffer->data.get());
}

}  // namespace tilewright::codegen
