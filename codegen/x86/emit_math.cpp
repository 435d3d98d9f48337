// The shared math table over LLVM values (scalars or vectors): an arithmetic policy of ir/interpret/math_table.h. No
// fast-math flag is ever set here, so the bits are those of the interpreter whatever the program's contraction says.
#include <llvm/IR/Intrinsics.h>

#include "codegen/x86/emitter.h"
#include "ir/interpret/math_table.h"

namespace tilewright::codegen {

namespace {

struct LlvmArithmetic {
  using Float = llvm::Value*;
  using Bool = llvm::Value*;
  struct Int {
    llvm::Value* v;
  };
  llvm::IRBuilder<>& b;
  llvm::Type* type;  // float, or a vector of it

  llvm::Type* int_type() const { return type->getWithNewType(b.getInt32Ty()); }
  Int integer(int32_t x) const { return {llvm::ConstantInt::getSigned(int_type(), x)}; }
  Float constant(float x) const { return llvm::ConstantFP::get(type, x); }
  Float fma(Float x, Float y, Float z) const { return b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {x, y, z}); }
  Float add(Float x, Float y) const { return b.CreateFAdd(x, y); }
  Float sub(Float x, Float y) const { return b.CreateFSub(x, y); }
  Float mul(Float x, Float y) const { return b.CreateFMul(x, y); }
  Float div(Float x, Float y) const { return b.CreateFDiv(x, y); }
  Float rint(Float x) const { return b.CreateUnaryIntrinsic(llvm::Intrinsic::rint, x); }
  Float abs(Float x) const { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  Float copysign(Float x, Float y) const { return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, y); }
  Bool is_nan(Float x) const { return b.CreateFCmpUNO(x, x); }
  Bool less(Float x, Float y) const { return b.CreateFCmpOLT(x, y); }
  Float select(Bool c, Float x, Float y) const { return b.CreateSelect(c, x, y); }
  // Only integers in range reach to_int, except when x is NaN: then the result is replaced at the end, but it must not
  // be poison.
  Int to_int(Float x) const { return {b.CreateFreeze(b.CreateFPToSI(x, int_type()))}; }
  Float to_float(Int x) const { return b.CreateSIToFP(x.v, type); }
  Int bits(Float x) const { return {b.CreateBitCast(x, int_type())}; }
  Float from_bits(Int x) const { return b.CreateBitCast(x.v, type); }
  Int add(Int x, int32_t y) const { return {b.CreateAdd(x.v, integer(y).v)}; }
  Int sub(Int x, Int y) const { return {b.CreateSub(x.v, y.v)}; }
  Int shift_left(Int x, int n) const { return {b.CreateShl(x.v, integer(n).v)}; }
  Int shift_right(Int x, int n) const { return {b.CreateAShr(x.v, integer(n).v)}; }
  Int bit_and(Int x, int32_t y) const { return {b.CreateAnd(x.v, integer(y).v)}; }
  Float named(Float x) const { return x; }
  Int named(Int x) const { return x; }
};

}  // namespace

llvm::Value* Emitter::table_math(const std::string& name, Value x) {
  LlvmArithmetic a{builder_, x->getType()};
  if (name == "exp") return math::exp(a, x);
  if (name == "exp2") return math::exp2(a, x);
  if (name == "log") return math::log(a, x);
  if (name == "tanh") return math::tanh(a, x);
  if (name == "erf") return math::erf(a, x);
  if (name == "sigmoid") return math::sigmoid(a, x);
  return nullptr;
}

}  // namespace tilewright::codegen
