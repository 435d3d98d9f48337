// Calls whose lanes are made of other lanes: reinterpretation between element widths, and the LLVM intrinsics that
// bodies of tensor intrinsics name. Meanings: Intel's Software Developer's Manual, volume 2 (VPDPBUSD, VPMADDWD,
// VDPBF16PS).
#include <fmt/format.h>

#include "ir/interpret/expr_compiler.h"

namespace tilewright::interpreter {

namespace {
constexpr DType kShort{TypeCode::integer, 16, 1};
}  // namespace

/// Lane `lane` of the value's bits, cut or joined to unsigned pieces of that many bits.
int ExprCompiler::bits(const Expr& e, int width, int lane) {
  const DType from = e->dtype.element();
  const DType raw{TypeCode::unsigned_integer, static_cast<uint8_t>(from.bits), 1};
  auto whole = [&](int i) {
    const int reg = scalar(e, i);
    return from == raw ? reg : emit(Op::reinterpret, reg, 0, type_key(from), type_key(raw), interval_of(raw));
  };
  if (from.bits == width) return whole(lane);
  if (from.bits > width) {
    const int parts = from.bits / width;
    const int shifted = emit(Op::shift_right_u, whole(lane / parts), constant(int64_t{width} * (lane % parts)));
    return emit(Op::and_i, shifted, constant((int64_t{1} << width) - 1), 0, 0, {0, (int64_t{1} << width) - 1});
  }
  const int parts = width / from.bits;
  int joined = whole(lane * parts);
  for (int i = 1; i < parts; ++i) {
    const int part = emit(Op::shift_left_i, whole(lane * parts + i), constant(int64_t{from.bits} * i));
    joined = emit(Op::or_i, joined, part);
  }
  return joined;
}

int ExprCompiler::of_bits(int reg, DType to) {
  const DType raw{TypeCode::unsigned_integer, static_cast<uint8_t>(to.bits), 1};
  return to == raw ? reg : emit(Op::reinterpret, reg, 0, type_key(raw), type_key(to), interval_of(to));
}

int ExprCompiler::reinterpret(const Call& e, int lane) {
  if (e.dtype.is_bool() || e.args[0]->dtype.is_bool()) not_supported("reinterpret of bool");
  return of_bits(bits(e.args[0], e.dtype.bits, lane), e.dtype.element());
}

int ExprCompiler::llvm_call(const Call& e, int lane) {
  const StringImm* callee = as<StringImm>(e.args[0]);
  const std::string name = callee ? callee->value : "";
  auto piece = [&](int argument, DType type, int i) { return of_bits(bits(e.args[argument], type.bits, i), type); };
  auto starts = [&](std::string_view prefix) { return name.starts_with(prefix) && e.args.size() >= 3; };
  // acc + Σ4 unsigned byte × signed byte
  if (starts("llvm.x86.avx512.vpdpbusd.") && e.args.size() == 4) {
    int total = scalar(e.args[1], lane);
    for (int i = 0; i < 4; ++i)
      total = emit(Op::add_i, total,
                   emit(Op::mul_i, piece(2, kUInt8, 4 * lane + i), piece(3, kInt8, 4 * lane + i), 0, 0,
                        {-255 * 128, 255 * 127}));
    return wrap(total, kInt32, {});
  }
  // Σ2 of products of 16-bit numbers
  if (starts("llvm.x86.avx512.pmaddw.d.") || name == "llvm.x86.avx2.pmadd.wd") {
    const int low = emit(Op::mul_i, piece(1, kShort, 2 * lane), piece(2, kShort, 2 * lane));
    const int high = emit(Op::mul_i, piece(1, kShort, 2 * lane + 1), piece(2, kShort, 2 * lane + 1));
    return wrap(emit(Op::add_i, low, high), kInt32, {});
  }
  // acc + Σ2 of products of bfloat16 numbers
  if (starts("llvm.x86.avx512bf16.dpbf16ps.") && e.args.size() == 4) {
    int total = scalar(e.args[1], lane);
    for (int i : {1, 0})  // the instruction's order
      total = emit(Op::fma_f, convert(piece(2, kBFloat16, 2 * lane + i), kBFloat16, kFloat32),
                   convert(piece(3, kBFloat16, 2 * lane + i), kBFloat16, kFloat32), total);
    return total;
  }
  not_supported(fmt::format("LLVM intrinsic \"{}\"", name));
}

}  // namespace tilewright::interpreter
