// Expressions to LLVM values.
#include <llvm/IR/Intrinsics.h>

#include <bit>
#include <cmath>

#include "codegen/x86/emitter.h"
#include "ir/visit.h"

namespace tilewright::codegen {

llvm::Type* Emitter::type_of(DType t) const {
  auto& c = context_;
  Type element = nullptr;
  if (t.is_bool())
    element = llvm::Type::getInt1Ty(c);
  else if (t == kVoid)
    return llvm::Type::getVoidTy(c);
  else if (t.is_handle())
    element = llvm::PointerType::get(c, 0);
  else if (t.code == TypeCode::ieee_float)
    element = t.bits == 16   ? llvm::Type::getHalfTy(c)
              : t.bits == 32 ? llvm::Type::getFloatTy(c)
                             : llvm::Type::getDoubleTy(c);
  else
    element = llvm::Type::getIntNTy(c, t.bits);  // integers, and the bits of bfloat16 and float8
  return t.lanes > 1 ? llvm::FixedVectorType::get(element, t.lanes) : element;
}

llvm::Type* Emitter::memory_type(DType t) const {
  return type_of(t.is_bool() ? DType{TypeCode::unsigned_integer, 8, t.lanes} : t);
}

llvm::Value* Emitter::fail(std::string message, DType type) {
  if (!refusal_) refusal_ = Refusal(codegen_unsupported, "no machine form for " + std::move(message));
  Type t = type_of(type);
  return t->isVoidTy() ? static_cast<Value>(builder_.getInt32(0)) : llvm::PoisonValue::get(t);
}

llvm::Value* Emitter::constant(double value, Type type) { return llvm::ConstantFP::get(type, value); }
llvm::Value* Emitter::bits_like(uint64_t value, Type type) { return llvm::ConstantInt::get(type, value); }

// Index arithmetic is over the integers (ir/simplify/analyzer.h): `nsw` lets LLVM form addresses from it.
llvm::Value* Emitter::index(const Expr& e) {
  bool saved = std::exchange(indexing_, true);
  Value v = expr(e);
  indexing_ = saved;
  return cast(v, e->dtype, kInt64.with_lanes(e->dtype.lanes));
}

llvm::Value* Emitter::address(const Buffer& buffer, Value at) {
  auto it = pointers_.find(buffer->data.get());
  if (it == pointers_.end()) return fail("buffer " + buffer->name + ", which is not allocated here", kHandle);
  return builder_.CreateInBoundsGEP(memory_type(buffer->dtype), it->second, at);
}

llvm::Value* Emitter::expr(const Expr& e) {
  if (refusal_) return fail("", e->dtype);
  switch (e->kind) {
    case ExprKind::kVarNode: {
      const VarNode* v = as<VarNode>(e);
      if (auto it = scalars_.find(v); it != scalars_.end()) return it->second;
      if (auto it = pointers_.find(v); it != pointers_.end()) return it->second;
      return fail("variable " + v->name + ", which is not bound", e->dtype);
    }
    case ExprKind::kIntImm:
      return e->dtype.is_float() ? fail("an integer literal of float type", e->dtype)
                                 : bits_like(static_cast<uint64_t>(as<IntImm>(e)->value), type_of(e->dtype));
    case ExprKind::kFloatImm: {
      double value = as<FloatImm>(e)->value;
      DType t = e->dtype.element();
      if (t.code == TypeCode::ieee_float)
        return constant(t.bits == 32 ? static_cast<float>(value) : value, type_of(e->dtype));
      return cast(constant(static_cast<float>(value), builder_.getFloatTy()), kFloat32, t);
    }
    case ExprKind::kStringImm:
      return fail("a string", e->dtype);
    case ExprKind::kCast: {
      const Expr& from = as<Cast>(e)->value;
      return cast(expr(from), from->dtype, e->dtype);
    }
    case ExprKind::kBinary:
      return binary(*as<Binary>(e));
    case ExprKind::kNot:
      return builder_.CreateNot(expr(as<Not>(e)->a));
    case ExprKind::kSelect: {
      const Select* s = as<Select>(e);
      Value c = expr(s->condition), a = expr(s->then_value), b = expr(s->else_value);
      return builder_.CreateSelect(c, a, b);
    }
    case ExprKind::kLoad:
      return load(*as<Load>(e));
    case ExprKind::kRamp: {
      const Ramp* r = as<Ramp>(e);
      Value base = splat(expr(r->base), r->lanes), stride = splat(expr(r->stride), r->lanes);
      std::vector<llvm::Constant*> steps;
      for (int i = 0; i < r->lanes; ++i)
        steps.push_back(llvm::ConstantInt::get(type_of(e->dtype.element()), static_cast<uint64_t>(i)));
      return builder_.CreateAdd(base, builder_.CreateMul(stride, llvm::ConstantVector::get(steps)));
    }
    case ExprKind::kBroadcast:
      return splat(expr(as<Broadcast>(e)->value), as<Broadcast>(e)->lanes);
    case ExprKind::kShuffle:
      return shuffle(*as<Shuffle>(e));
    case ExprKind::kLet: {
      const Let* let = as<Let>(e);
      scalars_[let->var.get()] = expr(let->value);
      return expr(let->body);
    }
    case ExprKind::kCall:
      return call(*as<Call>(e));
  }
  TW_UNREACHABLE();
}

// --- arithmetic
// --------------------------------------------------------------------------------------------------------

llvm::Value* Emitter::binary(const Binary& e) {
  DType t = e.a->dtype;
  if (t.is_float() && t.code != TypeCode::ieee_float) return fail("arithmetic on " + t.str(), e.dtype);
  Value a = expr(e.a), b = expr(e.b);
  if (e.op == BinaryOp::logical_and) return builder_.CreateAnd(a, b);
  if (e.op == BinaryOp::logical_or) return builder_.CreateOr(a, b);
  if (t.is_float()) return float_binary(e.op, a, b);
  if (e.op == BinaryOp::floor_div || e.op == BinaryOp::floor_mod) {
    if (t.is_int()) return floor_divide(a, b, e.op == BinaryOp::floor_mod, e.b);
  }
  return int_binary(e.op, a, b, t);
}

llvm::Value* Emitter::int_binary(BinaryOp op, Value a, Value b, DType t) {
  bool nsw = indexing_ && t.is_int() && t.bits >= 32, sign = t.is_int();
  switch (op) {
    case BinaryOp::add:
      return builder_.CreateAdd(a, b, "", false, nsw);
    case BinaryOp::sub:
      return builder_.CreateSub(a, b, "", false, nsw);
    case BinaryOp::mul:
      return builder_.CreateMul(a, b, "", false, nsw);
    case BinaryOp::div:
    case BinaryOp::trunc_div:
    case BinaryOp::floor_div:
      return sign ? builder_.CreateSDiv(a, b) : builder_.CreateUDiv(a, b);
    case BinaryOp::trunc_mod:
    case BinaryOp::floor_mod:
      return sign ? builder_.CreateSRem(a, b) : builder_.CreateURem(a, b);
    case BinaryOp::min:
      return builder_.CreateBinaryIntrinsic(sign ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a, b);
    case BinaryOp::max:
      return builder_.CreateBinaryIntrinsic(sign ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a, b);
    case BinaryOp::eq:
      return builder_.CreateICmpEQ(a, b);
    case BinaryOp::ne:
      return builder_.CreateICmpNE(a, b);
    case BinaryOp::lt:
      return sign ? builder_.CreateICmpSLT(a, b) : builder_.CreateICmpULT(a, b);
    case BinaryOp::le:
      return sign ? builder_.CreateICmpSLE(a, b) : builder_.CreateICmpULE(a, b);
    case BinaryOp::gt:
      return sign ? builder_.CreateICmpSGT(a, b) : builder_.CreateICmpUGT(a, b);
    case BinaryOp::ge:
      return sign ? builder_.CreateICmpSGE(a, b) : builder_.CreateICmpUGE(a, b);
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
      break;
  }
  TW_UNREACHABLE();
}

llvm::Value* Emitter::float_binary(BinaryOp op, Value a, Value b) {
  llvm::IRBuilder<>::FastMathFlagGuard guard(builder_);
  builder_.setFastMathFlags(flags_);
  switch (op) {
    case BinaryOp::add:
      return builder_.CreateFAdd(a, b);
    case BinaryOp::sub:
      return builder_.CreateFSub(a, b);
    case BinaryOp::mul:
      return builder_.CreateFMul(a, b);
    case BinaryOp::div:
      return builder_.CreateFDiv(a, b);
    // IEEE minimum and maximum: NaN is passed on, -0 < +0. One instruction where an operand is a suitable constant.
    case BinaryOp::min:
      return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, a, b);
    case BinaryOp::max:
      return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, a, b);
    case BinaryOp::eq:
      return builder_.CreateFCmpOEQ(a, b);
    case BinaryOp::ne:
      return builder_.CreateFCmpUNE(a, b);
    case BinaryOp::lt:
      return builder_.CreateFCmpOLT(a, b);
    case BinaryOp::le:
      return builder_.CreateFCmpOLE(a, b);
    case BinaryOp::gt:
      return builder_.CreateFCmpOGT(a, b);
    case BinaryOp::ge:
      return builder_.CreateFCmpOGE(a, b);
    default:
      break;
  }
  return fail("an integer division of floats", kFloat32);
}

// Rounds towards minus infinity. Powers of two are shifts and masks; else truncate and correct.
llvm::Value* Emitter::floor_divide(Value a, Value b, bool want_mod, const Expr& divisor) {
  Expr d = as<Broadcast>(divisor) ? as<Broadcast>(divisor)->value : divisor;
  if (std::optional<int64_t> c = const_int(d); c && *c > 0 && std::has_single_bit(static_cast<uint64_t>(*c))) {
    if (want_mod) return builder_.CreateAnd(a, bits_like(static_cast<uint64_t>(*c - 1), a->getType()));
    return builder_.CreateAShr(
        a, bits_like(static_cast<uint64_t>(std::countr_zero(static_cast<uint64_t>(*c))), a->getType()));
  }
  Value remainder = builder_.CreateSRem(a, b);
  Value zero = bits_like(0, a->getType());
  Value differs = builder_.CreateICmpSLT(builder_.CreateXor(remainder, b), zero);
  Value adjust = builder_.CreateAnd(builder_.CreateICmpNE(remainder, zero), differs);
  if (want_mod) return builder_.CreateAdd(remainder, builder_.CreateSelect(adjust, b, zero));
  return builder_.CreateSub(builder_.CreateSDiv(a, b), builder_.CreateZExt(adjust, a->getType()));
}

// --- conversions
// -------------------------------------------------------------------------------------------------------

llvm::Value* Emitter::to_float32(Value v, DType from) {
  Type f32 = type_of(kFloat32.with_lanes(from.lanes)), i32 = type_of(kInt32.with_lanes(from.lanes));
  if (from.code == TypeCode::ieee_float)
    return from.bits < 32 ? builder_.CreateFPExt(v, f32) : from.bits > 32 ? builder_.CreateFPTrunc(v, f32) : v;
  if (from.code == TypeCode::bfloat)
    return builder_.CreateBitCast(builder_.CreateShl(builder_.CreateZExt(v, i32), bits_like(16, i32)), f32);
  return fail("a conversion from " + from.str(), kFloat32.with_lanes(from.lanes));
}

llvm::Value* Emitter::from_float32(Value v, DType to) {
  Type i32 = type_of(kInt32.with_lanes(to.lanes));
  if (to.code == TypeCode::ieee_float)
    return to.bits < 32   ? builder_.CreateFPTrunc(v, type_of(to))
           : to.bits > 32 ? builder_.CreateFPExt(v, type_of(to))
                          : v;
  if (to.code == TypeCode::bfloat) {
    // Round to nearest even on the bits; the AVX512_BF16 instruction flushes subnormals and is not used.
    Value bits = builder_.CreateBitCast(v, i32);
    Value odd = builder_.CreateAnd(builder_.CreateLShr(bits, bits_like(16, i32)), bits_like(1, i32));
    Value rounded = builder_.CreateLShr(builder_.CreateAdd(bits, builder_.CreateAdd(odd, bits_like(0x7fff, i32))),
                                        bits_like(16, i32));
    Value quiet = builder_.CreateOr(builder_.CreateLShr(bits, bits_like(16, i32)), bits_like(0x40, i32));
    return builder_.CreateTrunc(builder_.CreateSelect(builder_.CreateFCmpUNO(v, v), quiet, rounded), type_of(to));
  }
  return fail("a conversion to " + to.str(), to);
}

llvm::Value* Emitter::cast(Value v, DType from, DType to) {
  if (from == to) return v;
  if (from.is_handle() || to.is_handle()) return fail("a cast between a pointer and a number", to);
  Type type = type_of(to);
  if (from.is_integer_like() && to.is_integer_like()) {
    if (to.is_bool()) return builder_.CreateICmpNE(v, bits_like(0, v->getType()));
    if (from.is_int()) return builder_.CreateSExtOrTrunc(v, type);
    return builder_.CreateZExtOrTrunc(v, type);
  }
  if (from.is_integer_like()) {
    Type wide = to.code == TypeCode::ieee_float ? type : type_of(kFloat32.with_lanes(to.lanes));
    Value f = from.is_int() ? builder_.CreateSIToFP(v, wide) : builder_.CreateUIToFP(v, wide);
    return to.code == TypeCode::ieee_float ? f : from_float32(f, to);
  }
  if (to.is_integer_like()) {
    Value f = from.code == TypeCode::ieee_float ? v : to_float32(v, from);
    if (to.is_bool()) return builder_.CreateFCmpUNE(f, constant(0, f->getType()));
    // Out of range is undefined in LLVM and a fixed value on x86: freeze keeps the program defined.
    return builder_.CreateFreeze(to.is_int() ? builder_.CreateFPToSI(f, type) : builder_.CreateFPToUI(f, type));
  }
  if (from.code == TypeCode::ieee_float && to.code == TypeCode::ieee_float) return builder_.CreateFPCast(v, type);
  return from_float32(to_float32(v, from), to);
}

// --- memory
// ------------------------------------------------------------------------------------------------------------

llvm::Value* Emitter::load(const Load& e) {
  int lanes = e.indices.empty() ? 1 : e.indices[0]->dtype.lanes;
  TW_CHECK(e.indices.size() <= 1, "buffer {} is not flat", e.buffer->name);
  Type type = memory_type(e.dtype);
  llvm::Align align(static_cast<uint64_t>(e.buffer->dtype.element_bytes()));
  Value v = nullptr;
  const Ramp* ramp = e.indices.empty() ? nullptr : as<Ramp>(e.indices[0]);
  std::optional<int64_t> stride = ramp ? const_int(ramp->stride) : std::nullopt;
  if (lanes == 1) {
    v = builder_.CreateAlignedLoad(
        type, address(e.buffer, e.indices.empty() ? builder_.getInt64(0) : index(e.indices[0])), align);
  } else if (stride == 1) {
    Value p = address(e.buffer, index(ramp->base));
    v = mask_ ? static_cast<Value>(builder_.CreateMaskedLoad(type, p, align, mask_))
              : builder_.CreateAlignedLoad(type, p, align);
  } else if (stride && !mask_ && *stride == -1) {
    v = strided_load(e, *ramp, *stride);
  } else {
    v = load_lanes(e, lanes);
  }
  return e.dtype.is_bool() ? builder_.CreateICmpNE(v, bits_like(0, type)) : v;
}

llvm::Value* Emitter::strided_load(const Load& e, const Ramp& ramp, int64_t) {
  Value first = builder_.CreateSub(index(ramp.base), builder_.getInt64(static_cast<uint64_t>(ramp.lanes - 1)));
  llvm::Align align(static_cast<uint64_t>(e.buffer->dtype.element_bytes()));
  return builder_.CreateVectorReverse(
      builder_.CreateAlignedLoad(memory_type(e.dtype), address(e.buffer, first), align));
}

// Lane by lane: gathers are not faster than loads and inserts before AVX-512, and masked-off lanes must not touch
// memory.
llvm::Value* Emitter::load_lanes(const Load& e, int lanes) {
  Type type = memory_type(e.dtype), element = memory_type(e.dtype.element());
  llvm::Align align(static_cast<uint64_t>(e.buffer->dtype.element_bytes()));
  Value at = index(e.indices[0]);
  bool wide = e.buffer->dtype.bits == 32 || e.buffer->dtype.bits == 64;
  if (wide && target_.has("avx2") && lanes * e.buffer->dtype.bits <= target_.vector_bits &&
      (mask_ || target_.has("avx512f"))) {
    Value pointers = address(e.buffer, at);
    Value on = mask_ ? mask_
                     : llvm::Constant::getAllOnesValue(
                           llvm::FixedVectorType::get(builder_.getInt1Ty(), static_cast<unsigned>(lanes)));
    return builder_.CreateMaskedGather(type, pointers, align, on, llvm::Constant::getNullValue(type));
  }
  Value v = llvm::Constant::getNullValue(type);
  for (int i = 0; i < lanes; ++i) {
    auto lane = static_cast<uint64_t>(i);
    Value before = v;
    llvm::BasicBlock *from = builder_.GetInsertBlock(), *after = nullptr;
    if (mask_) {
      auto* on = block("lane");
      after = block("lane_done");
      builder_.CreateCondBr(builder_.CreateExtractElement(mask_, lane), on, after);
      builder_.SetInsertPoint(on);
    }
    Value p = address(e.buffer, builder_.CreateExtractElement(at, lane));
    v = builder_.CreateInsertElement(v, builder_.CreateAlignedLoad(element, p, align), lane);
    if (after) {
      auto* on = builder_.GetInsertBlock();
      builder_.CreateBr(after);
      builder_.SetInsertPoint(after);
      auto* merged = builder_.CreatePHI(type, 2);
      merged->addIncoming(v, on);
      merged->addIncoming(before, from);
      v = merged;
    }
  }
  return v;
}

llvm::Value* Emitter::shuffle(const Shuffle& e) {
  std::vector<Value> lanes;
  for (const Expr& v : e.vectors) {
    Value value = expr(v);
    if (v->dtype.lanes == 1)
      lanes.push_back(value);
    else
      for (int i = 0; i < v->dtype.lanes; ++i)
        lanes.push_back(builder_.CreateExtractElement(value, static_cast<uint64_t>(i)));
  }
  if (e.indices.size() == 1) return lanes.at(static_cast<size_t>(const_int(e.indices[0]).value_or(0)));
  Value out = llvm::PoisonValue::get(type_of(e.dtype));
  for (size_t i = 0; i < e.indices.size(); ++i) {
    std::optional<int64_t> lane = const_int(e.indices[i]);
    if (!lane || *lane < 0 || *lane >= static_cast<int64_t>(lanes.size()))
      return fail("a shuffle by a variable lane", e.dtype);
    out = builder_.CreateInsertElement(out, lanes[static_cast<size_t>(*lane)], i);
  }
  return out;
}

// --- calls
// -------------------------------------------------------------------------------------------------------------

llvm::Value* Emitter::if_then_else(const Call& e) {
  Value c = expr(e.args[0]);
  if (e.args[0]->dtype.is_vector()) {
    Value outer = mask_;
    mask_ = outer ? builder_.CreateAnd(outer, c) : c;
    Value a = expr(e.args[1]);
    Value off = builder_.CreateNot(c);
    mask_ = outer ? builder_.CreateAnd(outer, off) : off;
    Value b = expr(e.args[2]);
    mask_ = outer;
    return builder_.CreateSelect(c, a, b);
  }
  if (!reads_memory(e.args[1]) && !reads_memory(e.args[2]))
    return builder_.CreateSelect(c, expr(e.args[1]), expr(e.args[2]));
  auto *yes = block("yes"), *no = block("no"), *after = block("chosen");
  builder_.CreateCondBr(c, yes, no);
  builder_.SetInsertPoint(yes);
  Value a = expr(e.args[1]);
  yes = builder_.GetInsertBlock();
  builder_.CreateBr(after);
  builder_.SetInsertPoint(no);
  Value b = expr(e.args[2]);
  no = builder_.GetInsertBlock();
  builder_.CreateBr(after);
  builder_.SetInsertPoint(after);
  auto* merged = builder_.CreatePHI(a->getType(), 2);
  merged->addIncoming(a, yes);
  merged->addIncoming(b, no);
  return merged;
}

// Scalar libm, once a lane: correct, slow, and said so.
llvm::Value* Emitter::library_call(const std::string& name, const Call& e) {
  DType t = e.dtype.element();
  if (t != kFloat32 && t != kFloat64) return fail(name + " of " + t.str(), e.dtype);
  notes.push_back("slow-math: " + name + " of " + e.dtype.str() + " calls libm for each element");
  std::vector<Value> args;
  std::vector<Type> types(e.args.size(), type_of(t));
  for (const Expr& a : e.args) args.push_back(expr(a));
  llvm::FunctionCallee f =
      module_.getOrInsertFunction(t == kFloat32 ? name + "f" : name, llvm::FunctionType::get(type_of(t), types, false));
  if (e.dtype.lanes == 1) return builder_.CreateCall(f, args);
  Value out = llvm::PoisonValue::get(type_of(e.dtype));
  for (uint64_t i = 0; i < e.dtype.lanes; ++i) {
    std::vector<Value> lane;
    for (Value a : args) lane.push_back(builder_.CreateExtractElement(a, i));
    out = builder_.CreateInsertElement(out, builder_.CreateCall(f, lane), i);
  }
  return out;
}

namespace {

/// Features that an x86 intrinsic needs, by the beginning of its name.
struct Needs {
  std::string_view prefix;
  std::vector<std::string_view> features;
};
const Needs kNeeds[] = {{"llvm.x86.avx512.vpdpbusd.512", {"avx512vnni"}},
                        {"llvm.x86.avx512.vpdpbusd.", {"avxvnni"}},
                        {"llvm.x86.avx512.pmaddw.d.512", {"avx512bw"}},
                        {"llvm.x86.avx512bf16.dpbf16ps.", {"avx512bf16"}},
                        {"llvm.x86.avx2.", {"avx2"}}};

}  // namespace

// The intrinsic named by the first argument; values of another type and the same size are reinterpreted.
llvm::Value* Emitter::llvm_intrinsic(const Call& e) {
  const StringImm* text = as<StringImm>(e.args[0]);
  const std::string name = text ? text->value : "";
  llvm::Intrinsic::ID id = llvm::Intrinsic::lookupIntrinsicID(name);
  if (id == llvm::Intrinsic::not_intrinsic) return fail("LLVM intrinsic \"" + name + "\"", e.dtype);
  if (name.starts_with("llvm.x86.")) {
    const Needs* needs =
        std::find_if(std::begin(kNeeds), std::end(kNeeds), [&](const Needs& n) { return name.starts_with(n.prefix); });
    if (needs == std::end(kNeeds)) return fail("LLVM intrinsic \"" + name + "\"", e.dtype);
    for (std::string_view feature : needs->features)
      if (!target_.has(feature) && !(feature == "avxvnni" && target_.has("avx512vnni") && target_.has("avx512vl")))
        return fail("\"" + name + "\", which needs " + std::string(feature), e.dtype);
  } else if (!name.starts_with("llvm.")) {
    return fail("LLVM intrinsic \"" + name + "\"", e.dtype);
  }
  std::vector<Type> overloads;
  if (llvm::Intrinsic::isOverloaded(id)) overloads.push_back(type_of(e.dtype));
  llvm::Function* f = llvm::Intrinsic::getOrInsertDeclaration(&module_, id, overloads);
  auto as_type = [&](Value v, Type type) -> Value {
    if (v->getType() == type) return v;
    if (v->getType()->getPrimitiveSizeInBits() != type->getPrimitiveSizeInBits()) return nullptr;
    return builder_.CreateBitCast(v, type);
  };
  if (f->arg_size() + 1 != e.args.size()) return fail("these arguments of \"" + name + "\"", e.dtype);
  std::vector<Value> args;
  for (size_t i = 0; i < f->arg_size(); ++i) {
    args.push_back(as_type(expr(e.args[i + 1]), f->getArg(static_cast<unsigned>(i))->getType()));
    if (!args.back()) return fail("these arguments of \"" + name + "\"", e.dtype);
  }
  Value result = as_type(builder_.CreateCall(f, args), type_of(e.dtype));
  return result ? result : fail("this result of \"" + name + "\"", e.dtype);
}

llvm::Value* Emitter::call(const Call& e) {
  using namespace llvm;
  const std::string& name = e.op->name;
  DType t = e.args.empty() ? e.dtype : e.args[0]->dtype;
  if (name == "if_then_else") return if_then_else(e);
  if (name == "likely" || name == "ignore_loop_partition") return expr(e.args[0]);
  if (name == "undef") return llvm::UndefValue::get(type_of(e.dtype));
  if (name == "assume") return builder_.CreateAssumption(expr(e.args[0]));
  if (name == "reinterpret") return builder_.CreateBitCast(expr(e.args[0]), type_of(e.dtype));
  if (name == "address_of") {
    const Load* place = as<Load>(e.args[0]);
    if (!place || place->dtype.is_vector()) return fail("the address of something that is no element", e.dtype);
    return address(place->buffer, place->indices.empty() ? builder_.getInt64(0) : index(place->indices[0]));
  }
  if (name == "prefetch") {
    auto imm = [&](size_t i, int64_t otherwise) {
      return builder_.getInt32(
          static_cast<uint32_t>(i < e.args.size() ? const_int(e.args[i]).value_or(otherwise) : otherwise));
    };
    return builder_.CreateIntrinsic(Intrinsic::prefetch, {builder_.getPtrTy()},
                                    {expr(e.args[0]), imm(1, 0), imm(2, 3), builder_.getInt32(1)});
  }
  if (t.is_float() && t.code != TypeCode::ieee_float) return fail(name + " of " + t.str(), e.dtype);

  static const std::map<std::string, Intrinsic::ID, std::less<>> unary{
      {"fabs", Intrinsic::fabs},      {"sqrt", Intrinsic::sqrt},     {"floor", Intrinsic::floor},
      {"ceil", Intrinsic::ceil},      {"trunc", Intrinsic::trunc},   {"round", Intrinsic::rint},
      {"nearbyint", Intrinsic::rint}, {"popcount", Intrinsic::ctpop}};
  if (auto it = unary.find(name); it != unary.end() && (t.is_float() == (name != "popcount"))) {
    if (t.is_float() && t.bits == 16)
      return cast(builder_.CreateUnaryIntrinsic(it->second, cast(expr(e.args[0]), t, kFloat32.with_lanes(t.lanes))),
                  kFloat32.with_lanes(t.lanes), t);
    return builder_.CreateUnaryIntrinsic(it->second, expr(e.args[0]));
  }
  if (name == "abs") {
    Value x = expr(e.args[0]);
    if (t.is_float()) return builder_.CreateUnaryIntrinsic(Intrinsic::fabs, x);
    return t.is_int() ? builder_.CreateBinaryIntrinsic(Intrinsic::abs, x, builder_.getFalse()) : x;
  }
  if (name == "rsqrt")
    return builder_.CreateFDiv(constant(1, type_of(t)),
                               builder_.CreateUnaryIntrinsic(Intrinsic::sqrt, expr(e.args[0])));
  if (name == "fma")
    return builder_.CreateIntrinsic(Intrinsic::fma, {type_of(t)}, {expr(e.args[0]), expr(e.args[1]), expr(e.args[2])});
  if (name == "copysign") return builder_.CreateBinaryIntrinsic(Intrinsic::copysign, expr(e.args[0]), expr(e.args[1]));
  if (name == "clz") return builder_.CreateBinaryIntrinsic(Intrinsic::ctlz, expr(e.args[0]), builder_.getFalse());
  if (name == "isnan" || name == "isinf" || name == "isfinite") {
    if (!t.is_float()) return splat(builder_.getInt1(name == "isfinite"), t.lanes);
    Value x = expr(e.args[0]);
    Value magnitude = builder_.CreateUnaryIntrinsic(Intrinsic::fabs, x),
          infinity = ConstantFP::getInfinity(x->getType());
    if (name == "isnan") return builder_.CreateFCmpUNO(x, x);
    return name == "isinf" ? builder_.CreateFCmpOEQ(magnitude, infinity) : builder_.CreateFCmpOLT(magnitude, infinity);
  }
  if (e.op->group == OpGroup::integer && e.args.size() == 2) {
    Value a = expr(e.args[0]), b = expr(e.args[1]);
    if (name == "shift_left") return builder_.CreateShl(a, b);
    if (name == "shift_right") return t.is_int() ? builder_.CreateAShr(a, b) : builder_.CreateLShr(a, b);
    if (name == "bitwise_and") return builder_.CreateAnd(a, b);
    if (name == "bitwise_or") return builder_.CreateOr(a, b);
    if (name == "bitwise_xor") return builder_.CreateXor(a, b);
  }
  if (name == "bitwise_not") return builder_.CreateNot(expr(e.args[0]));
  if (e.op->group == OpGroup::math && t.is_float()) {
    DType f32 = kFloat32.with_lanes(t.lanes);
    bool in_table =
        name == "exp" || name == "exp2" || name == "log" || name == "tanh" || name == "erf" || name == "sigmoid";
    if (in_table && t.bits <= 32) return cast(table_math(name, cast(expr(e.args[0]), t, f32)), f32, t);
    if (name == "sigmoid") return fail("sigmoid of " + t.str(), e.dtype);
    return library_call(name, e);
  }
  if (name == "call_llvm_pure_intrin" || name == "call_llvm_intrin") return llvm_intrinsic(e);
  if (name == "call_pure_extern" || name == "call_extern") return fail("an external function", e.dtype);
  return fail("operation " + name, e.dtype);
}

}  // namespace tilewright::codegen
