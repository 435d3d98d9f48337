// The C entry, outlined bodies of parallel loops, and the pointers of the caller's workspace (lowering.md §2.2). Every
// body is a function of its own whose pointers are `noalias` parameters: that is what keeps accumulators in registers.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <set>

#include "codegen/x86/emitter.h"
#include "ir/visit.h"

namespace tilewright::codegen {

namespace {

enum HostField : unsigned { host_abi, host_workers, host_ctx, host_workspace, host_parallel_for };

llvm::StructType* host_type(llvm::LLVMContext& c) {
  auto* i32 = llvm::Type::getInt32Ty(c);
  auto* ptr = llvm::PointerType::get(c, 0);
  return llvm::StructType::get(c, {i32, i32, ptr, ptr, ptr});
}

std::string place_of(const Allocate& a) {
  auto it = a.annotations.find("place");
  const std::string* text = it == a.annotations.end() ? nullptr : it->second.get<std::string>();
  return text ? *text : "stack";
}

int64_t offset_of(const Allocate& a) {
  auto it = a.annotations.find("offset");
  const int64_t* value = it == a.annotations.end() ? nullptr : it->second.get<int64_t>();
  return value ? *value : 0;
}

int64_t bytes_of(const Buffer& b) {
  int64_t n = b->dtype.element_bytes() * b->dtype.lanes;
  for (const Expr& e : b->shape) n *= const_int(e).value_or(0);
  return n;
}

}  // namespace

Emitter::Emitter(llvm::Module& module, const lowering::LoweredFunction& function, const Target& target)
    : module_(module),
      context_(module.getContext()),
      lowered_(function),
      function_(*function.function),
      target_(target),
      builder_(context_) {
  if (lowered_.options.fp_contract) flags_.setAllowContract(true);
}

Status Emitter::run() {
  emit_entry();
  if (refusal_) return refuse(*refusal_);
  return {};
}

// Uses minus what is bound inside. Order of first use: the result depends on the program only.
Emitter::Captures Emitter::captures_of(const Stmt& body) {
  Captures out;
  std::set<const VarNode*> bound, seen;
  auto use = [&](const Buffer& b) {
    if (!bound.contains(b->data.get()) && seen.insert(b->data.get()).second) out.buffers.push_back(b);
  };
  std::function<bool(const Expr&)> on_expr = [&](const Expr& e) {
    if (const Load* load = as<Load>(e)) use(load->buffer);
    if (const Let* let = as<Let>(e)) bound.insert(let->var.get());
    if (const VarNode* v = as<VarNode>(e); v && !v->dtype.is_handle() && !bound.contains(v) && seen.insert(v).second)
      out.scalars.emplace_back(v);
    return true;
  };
  walk(body, on_expr, [&](const Stmt& s) {
    if (const For* loop = as<For>(s)) bound.insert(loop->var.get());
    if (const Bind* bind = as<Bind>(s)) bound.insert(bind->var.get());
    if (const Store* st = as<Store>(s)) use(st->buffer);
    if (const Allocate* alloc = as<Allocate>(s)) {
      bound.insert(alloc->buffer->data.get());
      if (place_of(*alloc) != "stack") out.workspace.push_back(alloc);
    }
    return true;
  });
  std::erase_if(out.scalars, [&](const Var& v) { return bound.contains(v.get()); });
  return out;
}

std::vector<Emitter::WorkspaceGroup> Emitter::group_workspace(const std::vector<const Allocate*>& allocations) {
  std::vector<WorkspaceGroup> groups;
  std::vector<const Allocate*> sorted = allocations;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Allocate* a, const Allocate* b) { return offset_of(*a) < offset_of(*b); });
  for (const Allocate* a : sorted) {
    bool slice = place_of(*a) == "slice";
    int64_t begin = offset_of(*a), end = begin + bytes_of(a->buffer);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const WorkspaceGroup& g) { return g.slice == slice && begin < g.end; });
    if (group == groups.end()) {
      groups.push_back({begin, end, slice, {a}});
    } else {
      group->end = std::max(group->end, end);
      group->members.push_back(a);
    }
  }
  return groups;
}

void Emitter::decorate(llvm::Function* f) {
  std::string features;
  for (const std::string& word : target_.features) features += (features.empty() ? "+" : ",+") + word;
  f->addFnAttr("target-cpu", target_.arch);
  f->addFnAttr("target-features", features);
  f->addFnAttr("prefer-vector-width", std::to_string(target_.vector_bits));
  f->addFnAttr(llvm::Attribute::NoUnwind);
  if (lowered_.options.denormals == "flush") f->addFnAttr("denormal-fp-math", "preserve-sign,preserve-sign");
}

// i32 body(captured pointers, captured scalars, workspace pointers, [begin, end,] host, worker)
llvm::Function* Emitter::begin_body(const std::string& name, const Captures& captures,
                                    const std::vector<WorkspaceGroup>& groups, bool has_range) {
  std::vector<Type> types(captures.buffers.size(), builder_.getPtrTy());
  for (const Var& v : captures.scalars) types.push_back(type_of(v->dtype));
  types.insert(types.end(), groups.size(), builder_.getPtrTy());
  if (has_range) types.insert(types.end(), 2, builder_.getInt64Ty());
  types.push_back(builder_.getPtrTy());
  types.push_back(builder_.getInt32Ty());
  auto* f = llvm::Function::Create(llvm::FunctionType::get(builder_.getInt32Ty(), types, false),
                                   llvm::Function::InternalLinkage, name, module_);
  decorate(f);
  f->addFnAttr(llvm::Attribute::NoInline);
  unsigned i = 0;
  auto pointer = [&](const Buffer& b, bool noalias, int64_t bytes) {
    llvm::Argument* a = f->getArg(i++);
    a->setName(b->name);
    if (noalias) a->addAttr(llvm::Attribute::NoAlias);
    a->addAttr(llvm::Attribute::getWithAlignment(context_, llvm::Align(64)));
    a->addAttr(llvm::Attribute::NonNull);
    if (bytes > 0) a->addAttr(llvm::Attribute::getWithDereferenceableBytes(context_, static_cast<uint64_t>(bytes)));
    return a;
  };
  auto flag = [&](const char* key) {
    auto it = function_.attrs.find(key);
    const bool* value = it == function_.attrs.end() ? nullptr : it->second.get<bool>();
    const int64_t* number = it == function_.attrs.end() ? nullptr : it->second.get<int64_t>();
    return (value && *value) || (number && *number);
  };
  // Parameters may overlap only if the program says so by tir.noalias = False.
  bool declared = function_.attrs.contains("tir.noalias") || function_.attrs.contains("tirx.noalias");
  bool noalias = !declared || flag("tir.noalias") || flag("tirx.noalias");
  for (const Buffer& b : captures.buffers) pointers_[b->data.get()] = pointer(b, noalias, bytes_of(b));
  for (const Var& v : captures.scalars) {
    f->getArg(i)->setName(v->name);
    scalars_[v.get()] = f->getArg(i++);
  }
  builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", f));
  for (const WorkspaceGroup& g : groups) {
    llvm::Argument* base = pointer(g.members[0]->buffer, true, g.end - g.begin);
    for (const Allocate* a : g.members)
      pointers_[a->buffer->data.get()] = builder_.CreateConstInBoundsGEP1_64(
          builder_.getInt8Ty(), base, static_cast<uint64_t>(offset_of(*a) - g.begin));
  }
  body_ = f;
  host_ = f->getArg(static_cast<unsigned>(f->arg_size()) - 2);
  worker_ = f->getArg(static_cast<unsigned>(f->arg_size()) - 1);
  return f;
}

// In the caller of the body: scalars_ and pointers_ are the caller's.
Emitter::Value Emitter::call_body(llvm::Function* body, const Captures& captures,
                                  const std::vector<WorkspaceGroup>& groups, std::vector<Value> range, Value worker) {
  std::vector<Value> args;
  for (const Buffer& b : captures.buffers) args.push_back(pointers_.at(b->data.get()));
  for (const Var& v : captures.scalars) args.push_back(scalars_.at(v.get()));
  Value workspace = groups.empty() ? nullptr : host_field(host_workspace, builder_.getPtrTy());
  for (const WorkspaceGroup& g : groups) {
    Value at = builder_.getInt64(static_cast<uint64_t>(g.begin + (g.slice ? lowered_.workspace_bytes : 0)));
    if (g.slice) {
      Value wide = builder_.CreateZExt(worker, builder_.getInt64Ty());
      at = builder_.CreateAdd(
          at, builder_.CreateMul(wide, builder_.getInt64(static_cast<uint64_t>(lowered_.workspace_slice_bytes))));
    }
    args.push_back(builder_.CreateInBoundsGEP(builder_.getInt8Ty(), workspace, at));
  }
  args.insert(args.end(), range.begin(), range.end());
  args.push_back(host_);
  args.push_back(worker);
  return builder_.CreateCall(body, args);
}

Emitter::Value Emitter::host_field(unsigned field, Type type) {
  return builder_.CreateLoad(type, builder_.CreateStructGEP(host_type(context_), host_, field));
}

// FTZ and DAZ are per thread, and pool threads do not inherit them: every body sets and restores MXCSR itself.
void Emitter::set_denormals(Value& saved) {
  saved = nullptr;
  if (lowered_.options.denormals != "flush") return;
  saved = builder_.CreateAlloca(builder_.getInt32Ty());
  Value changed = builder_.CreateAlloca(builder_.getInt32Ty());
  builder_.CreateIntrinsic(builder_.getVoidTy(), llvm::Intrinsic::x86_sse_stmxcsr, {saved});
  builder_.CreateStore(builder_.CreateOr(builder_.CreateLoad(builder_.getInt32Ty(), saved), builder_.getInt32(0x8040)),
                       changed);
  builder_.CreateIntrinsic(builder_.getVoidTy(), llvm::Intrinsic::x86_sse_ldmxcsr, {changed});
}

void Emitter::restore_denormals(Value saved) {
  if (saved) builder_.CreateIntrinsic(builder_.getVoidTy(), llvm::Intrinsic::x86_sse_ldmxcsr, {saved});
}

void Emitter::emit_entry() {
  Captures all = captures_of(function_.body);
  std::vector<WorkspaceGroup> groups;
  {  // allocations inside parallel loops belong to their bodies
    std::set<const Allocate*> inner;
    walk_stmts(function_.body, [&](const Stmt& s) {
      const For* p = as<For>(s);
      if (!p || p->loop_kind != ForKind::parallel) return true;
      for (const Allocate* a : captures_of(p->body).workspace) inner.insert(a);
      return false;
    });
    std::erase_if(all.workspace, [&](const Allocate* a) { return inner.contains(a); });
    groups = group_workspace(all.workspace);
  }
  llvm::Function* body = begin_body(function_.name + ".body", all, groups, false);
  stmt(function_.body);
  if (!terminated()) builder_.CreateRet(builder_.getInt32(0));

  auto* ptr = builder_.getPtrTy();
  auto* type = llvm::FunctionType::get(builder_.getInt32Ty(), {ptr, ptr, ptr}, false);
  auto* entry = llvm::Function::Create(type, llvm::Function::ExternalLinkage, function_.name, module_);
  decorate(entry);
  builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", entry));
  scalars_.clear();
  pointers_.clear();
  host_ = entry->getArg(2);
  unsigned buffers = 0, scalars = 0;
  for (const Param& p : function_.params) {
    if (p.buffer || p.var->dtype.is_handle()) {
      Value slot = builder_.CreateConstInBoundsGEP1_64(ptr, entry->getArg(0), buffers++);
      Value pointer = builder_.CreateLoad(ptr, slot);
      if (p.buffer) pointers_[p.buffer->data.get()] = pointer;
      continue;
    }
    Value slot = builder_.CreateConstInBoundsGEP1_64(builder_.getInt64Ty(), entry->getArg(1), scalars++);
    Value raw = builder_.CreateLoad(builder_.getInt64Ty(), slot);
    DType t = p.var->dtype;
    scalars_[p.var.get()] =
        t.is_float() ? cast(builder_.CreateBitCast(raw, builder_.getDoubleTy()), kFloat64, t) : cast(raw, kInt64, t);
  }
  for (const Var& v : function_.symbolic) {
    Value slot = builder_.CreateConstInBoundsGEP1_64(builder_.getInt64Ty(), entry->getArg(1), scalars++);
    scalars_[v.get()] = cast(builder_.CreateLoad(builder_.getInt64Ty(), slot), kInt64, v->dtype);
  }
  for (const Buffer& b : all.buffers)
    if (!pointers_.contains(b->data.get()))
      return void(fail("buffer " + b->name + " is neither a parameter nor allocated", kVoid));
  for (const Var& v : all.scalars)
    if (!scalars_.contains(v.get())) return void(fail("variable " + v->name + " is not bound", kVoid));
  Value saved;
  set_denormals(saved);
  Value result = call_body(body, all, groups, {}, builder_.getInt32(0));
  restore_denormals(saved);
  builder_.CreateRet(result);

  llvm::Constant* sizes[] = {builder_.getInt64(static_cast<uint64_t>(lowered_.workspace_bytes)),
                             builder_.getInt64(static_cast<uint64_t>(lowered_.workspace_slice_bytes))};
  auto* array = llvm::ArrayType::get(builder_.getInt64Ty(), 2);
  new llvm::GlobalVariable(module_, array, true, llvm::GlobalValue::ExternalLinkage,
                           llvm::ConstantArray::get(array, sizes), function_.name + "_workspace");
}

// i32 outlined(env, chunk, worker): unpacks the environment and runs the body on the chunk's range of iterations.
llvm::Function* Emitter::outline(const For& loop, const Captures& captures, int64_t chunks, llvm::StructType* env) {
  auto saved_point = builder_.saveIP();
  auto saved_scalars = scalars_;
  auto saved_pointers = pointers_;
  auto* saved_body = body_;
  auto* saved_host = host_;
  auto* saved_worker = worker_;
  auto saved_loops = std::exchange(loops_, {});
  std::vector<WorkspaceGroup> groups = group_workspace(captures.workspace);
  std::string name = function_.name + ".parallel" + std::to_string(bodies_++);

  llvm::Function* body = begin_body(name + ".body", captures, groups, true);
  inside_parallel_ = true;
  Value begin = body->getArg(static_cast<unsigned>(body->arg_size()) - 4),
        end = body->getArg(static_cast<unsigned>(body->arg_size()) - 3);
  begin->setName("begin");
  end->setName("end");
  emit_loop(loop.var, begin, end, builder_.getInt64(1), true, false, loop.body);
  if (!terminated()) builder_.CreateRet(builder_.getInt32(0));
  inside_parallel_ = false;

  auto* type = llvm::FunctionType::get(builder_.getInt32Ty(),
                                       {builder_.getPtrTy(), builder_.getInt64Ty(), builder_.getInt32Ty()}, false);
  auto* f = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, module_);
  decorate(f);
  builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", f));
  unsigned i = 0;
  auto field = [&] {
    Value slot = builder_.CreateStructGEP(env, f->getArg(0), i);
    return builder_.CreateLoad(env->getElementType(i++), slot);
  };
  scalars_.clear();
  pointers_.clear();
  for (const Buffer& b : captures.buffers) pointers_[b->data.get()] = field();
  for (const Var& v : captures.scalars) scalars_[v.get()] = field();
  Value extent = field();
  host_ = field();
  // Chunk c covers [extent·c / chunks, extent·(c+1) / chunks): a function of the extent alone, never of the workers.
  Value c = f->getArg(1), n = builder_.getInt64(static_cast<uint64_t>(chunks));
  Value first = builder_.CreateSDiv(builder_.CreateMul(extent, c), n);
  Value last = builder_.CreateSDiv(builder_.CreateMul(extent, builder_.CreateAdd(c, builder_.getInt64(1))), n);
  Value saved;
  set_denormals(saved);
  Value result = call_body(body, captures, groups, {first, last}, f->getArg(2));
  restore_denormals(saved);
  builder_.CreateRet(result);

  scalars_ = std::move(saved_scalars);
  pointers_ = std::move(saved_pointers);
  body_ = saved_body;
  host_ = saved_host;
  worker_ = saved_worker;
  loops_ = std::move(saved_loops);
  builder_.restoreIP(saved_point);
  return f;
}

void Emitter::emit_parallel(const For& loop) {
  Captures captures = captures_of(loop.body);
  std::erase_if(captures.scalars, [&](const Var& v) { return v.get() == loop.var.get(); });
  auto it = loop.annotations.find("chunks");
  const int64_t* fixed = it == loop.annotations.end() ? nullptr : it->second.get<int64_t>();
  TW_CHECK(fixed && *fixed > 0, "parallel loop {} has no number of chunks", loop.var->name);

  std::vector<Type> fields(captures.buffers.size(), builder_.getPtrTy());
  for (const Var& v : captures.scalars) fields.push_back(type_of(v->dtype));
  fields.push_back(builder_.getInt64Ty());
  fields.push_back(builder_.getPtrTy());
  auto* env = llvm::StructType::get(context_, fields);
  llvm::Function* outlined = outline(loop, captures, *fixed, env);

  llvm::IRBuilder<> top(&body_->getEntryBlock(), body_->getEntryBlock().begin());
  Value storage = top.CreateAlloca(env);
  unsigned i = 0;
  auto put = [&](Value v) { builder_.CreateStore(v, builder_.CreateStructGEP(env, storage, i++)); };
  for (const Buffer& b : captures.buffers) put(pointers_.at(b->data.get()));
  for (const Var& v : captures.scalars) put(scalars_.at(v.get()));
  put(index(loop.extent));
  put(host_);

  Value chunks = builder_.getInt64(static_cast<uint64_t>(*fixed));
  auto *with_pool = block("pool"), *serial = block("serial"), *next = block("next"), *done = block("joined"),
       *failed = block("failed");
  Value run = host_field(host_parallel_for, builder_.getPtrTy());
  builder_.CreateCondBr(builder_.CreateIsNull(run), serial, with_pool);

  builder_.SetInsertPoint(with_pool);
  auto* type = llvm::FunctionType::get(
      builder_.getInt32Ty(), {builder_.getPtrTy(), builder_.getInt64Ty(), builder_.getPtrTy(), builder_.getPtrTy()},
      false);
  Value pool_result =
      builder_.CreateCall(type, run, {host_field(host_ctx, builder_.getPtrTy()), chunks, outlined, storage});
  builder_.CreateCondBr(builder_.CreateIsNull(pool_result), done, failed);

  builder_.SetInsertPoint(serial);
  auto* chunk = builder_.CreatePHI(builder_.getInt64Ty(), 2);
  chunk->addIncoming(builder_.getInt64(0), llvm::cast<llvm::Instruction>(run)->getParent());
  Value one = builder_.CreateCall(outlined, {storage, chunk, builder_.getInt32(0)});
  builder_.CreateCondBr(builder_.CreateIsNull(one), next, failed);
  builder_.SetInsertPoint(next);
  Value following = builder_.CreateAdd(chunk, builder_.getInt64(1));
  chunk->addIncoming(following, next);
  builder_.CreateCondBr(builder_.CreateICmpSLT(following, chunks), serial, done);

  builder_.SetInsertPoint(failed);
  auto* error = builder_.CreatePHI(builder_.getInt32Ty(), 2);
  error->addIncoming(pool_result, with_pool);
  error->addIncoming(one, serial);
  builder_.CreateRet(error);
  builder_.SetInsertPoint(done);
}

}  // namespace tilewright::codegen
