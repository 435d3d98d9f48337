// A tensor intrinsic with what no registered one has: operands that must be aligned, and an annotation.
#include "schedule/intrinsics/intrinsic.h"

namespace tilewright {
namespace {

const Register<TensorIntrinsic> intrinsic{"test_add_4",
                                          "four numbers added to four aligned ones",
                                          {R"(
@T.prim_func(s_tir=True)
def add(A: T.Buffer((4,), "float32", offset_factor=4), C: T.Buffer((4,), "float32", offset_factor=4)):
    with T.sblock("root"):
        T.reads(C[0:4], A[0:4])
        T.writes(C[0:4])
        for i in range(4):
            with T.sblock("update"):
                vi = T.axis.spatial(4, i)
                C[vi] = C[vi] + A[vi]
)",
                                           R"(
@T.prim_func(s_tir=True)
def add(A: T.Buffer((4,), "float32", offset_factor=4), C: T.Buffer((4,), "float32", offset_factor=4)):
    with T.sblock("root"):
        T.reads(C[0:4], A[0:4])
        T.writes(C[0:4])
        T.sblock_attr({"note": 0})
        C[T.Ramp(0, 1, 4)] = C[T.Ramp(0, 1, 4)] + A[T.Ramp(0, 1, 4)]
)",
                                           {}}};

}  // namespace
}  // namespace tilewright
