// Dot products of x86: four bytes (unsigned × signed) or two bfloat16 numbers to each 32-bit lane.
// Instructions: Intel's Software Developer's Manual, volume 2, VPDPBUSD, VPMADDWD, VDPBF16PS.
#include <fmt/format.h>

#include "schedule/intrinsics/intrinsic.h"

namespace tilewright {

namespace {

/// C[i] += Σ_k A[k] · B[i, k]
std::string desc(int lanes, int depth, const char* a, const char* b, const char* c) {
  return fmt::format(R"(
@T.prim_func(s_tir=True)
def dot(A: T.Buffer(({1},), "{2}", offset_factor=1), B: T.Buffer(({0}, {1}), "{3}", offset_factor=1), C: T.Buffer(({0},), "{4}", offset_factor=1)):
    with T.sblock("root"):
        T.reads(C[0:{0}], A[0:{1}], B[0:{0}, 0:{1}])
        T.writes(C[0:{0}])
        for i, k in T.grid({0}, {1}):
            with T.sblock("update"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] + T.Cast("{4}", A[vk]) * T.Cast("{4}", B[vi, vk])
)",
                     lanes, depth, a, b, c);
}

/// `statements`: the body's, after the signature.
std::string body(int lanes, int depth, const char* a, const char* b, const char* c, const std::string& statements) {
  return fmt::format(R"(
@T.prim_func(s_tir=True)
def dot(A: T.Buffer(({1},), "{2}", offset_factor=1), B: T.Buffer(({0}, {1}), "{3}", offset_factor=1), C: T.Buffer(({0},), "{4}", offset_factor=1)):
    with T.sblock("root"):
        T.reads(C[0:{0}], A[0:{1}], B[0:{0}, 0:{1}])
        T.writes(C[0:{0}])
{5}
)",
                     lanes, depth, a, b, c, statements);
}

TensorIntrinsic bytes(int lanes, const char* llvm, std::vector<std::string> features) {
  return {desc(lanes, 4, "uint8", "int8", "int32"),
          body(lanes, 4, "uint8", "int8", "int32",
               fmt::format(R"(
        A_u8x4: T.uint8x4 = A[T.Ramp(0, 1, 4)]
        A_i32: T.int32 = T.reinterpret("int32", A_u8x4)
        B_i8x{1}: T.int8x{1} = B[0, T.Ramp(0, 1, {1})]
        B_i32x{0}: T.int32x{0} = T.reinterpret("int32x{0}", B_i8x{1})
        C_i32x{0}: T.int32x{0} = C[T.Ramp(0, 1, {0})]
        C[T.Ramp(0, 1, {0})] = T.call_llvm_pure_intrin("int32x{0}", "{2}", C_i32x{0}, T.Broadcast(A_i32, {0}), B_i32x{0}))",
                           lanes, 4 * lanes, llvm)),
          std::move(features)};
}

/// Without a byte instruction that is exact: both operands widened to 16 bits. Even and odd pairs of bytes are summed
/// apart, so that only the instruction's own pairs are added up: low halves of every 32-bit lane, then high halves.
TensorIntrinsic words(int lanes, const char* llvm, std::vector<std::string> features) {
  return {desc(lanes, 4, "uint8", "int8", "int32"),
          body(lanes, 4, "uint8", "int8", "int32",
               fmt::format(R"(
        A_u8x4: T.uint8x4 = A[T.Ramp(0, 1, 4)]
        A_i32: T.int32 = T.reinterpret("int32", A_u8x4)
        A_even: T.int32 = T.bitwise_and(A_i32, 16711935)
        A_odd: T.int32 = T.bitwise_and(T.shift_right(A_i32, 8), 16711935)
        B_i8x{1}: T.int8x{1} = B[0, T.Ramp(0, 1, {1})]
        B_i16x{2}: T.int16x{2} = T.reinterpret("int16x{2}", B_i8x{1})
        B_even: T.int16x{2} = T.shift_right(T.shift_left(B_i16x{2}, T.Broadcast(T.int16(8), {2})), T.Broadcast(T.int16(8), {2}))
        B_odd: T.int16x{2} = T.shift_right(B_i16x{2}, T.Broadcast(T.int16(8), {2}))
        even: T.int32x{0} = T.call_llvm_pure_intrin("int32x{0}", "{3}", T.reinterpret("int16x{2}", T.Broadcast(A_even, {0})), B_even)
        odd: T.int32x{0} = T.call_llvm_pure_intrin("int32x{0}", "{3}", T.reinterpret("int16x{2}", T.Broadcast(A_odd, {0})), B_odd)
        C[T.Ramp(0, 1, {0})] = C[T.Ramp(0, 1, {0})] + even + odd)",
                           lanes, 4 * lanes, 2 * lanes, llvm)),
          std::move(features)};
}

TensorIntrinsic bfloats(int lanes, const char* llvm, std::vector<std::string> features) {
  return {desc(lanes, 2, "bfloat16", "bfloat16", "float32"),
          body(lanes, 2, "bfloat16", "bfloat16", "float32",
               fmt::format(R"(
        A_bf16x2: T.bfloat16x2 = A[T.Ramp(0, 1, 2)]
        A_i32: T.int32 = T.reinterpret("int32", A_bf16x2)
        B_bf16x{1}: T.bfloat16x{1} = B[0, T.Ramp(0, 1, {1})]
        C[T.Ramp(0, 1, {0})] = T.call_llvm_pure_intrin("float32x{0}", "{2}", C[T.Ramp(0, 1, {0})], T.reinterpret("bfloat16x{1}", T.Broadcast(A_i32, {0})), B_bf16x{1}))",
                           lanes, 2 * lanes, llvm)),
          std::move(features)};
}

const Register<TensorIntrinsic> intrinsics[] = {
    {"dot_16x4_vnni", "u8·s8 → s32, 16 lanes of 4: VPDPBUSD of AVX-512",
     bytes(16, "llvm.x86.avx512.vpdpbusd.512", {"avx512vnni"})},
    {"dot_8x4_avxvnni", "u8·s8 → s32, 8 lanes of 4: VPDPBUSD of AVX-VNNI",
     bytes(8, "llvm.x86.avx512.vpdpbusd.256", {"avxvnni|avx512vnni"})},
    {"dot_16x4_avx512", "u8·s8 → s32, 16 lanes of 4, exact: VPMADDWD of widened bytes",
     words(16, "llvm.x86.avx512.pmaddw.d.512", {"avx512bw"})},
    {"dot_8x4_avx2", "u8·s8 → s32, 8 lanes of 4, exact: VPMADDWD of widened bytes",
     words(8, "llvm.x86.avx2.pmadd.wd", {"avx2"})},
    {"dot_16x2_avx512bf16", "bf16·bf16 → f32, 16 lanes of 2: VDPBF16PS",
     bfloats(16, "llvm.x86.avx512bf16.dpbf16ps.512", {"avx512bf16"})},
};

}  // namespace

}  // namespace tilewright
