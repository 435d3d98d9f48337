// enter_postproc: marks where post-processing starts; the program does not change.
#include "schedule/primitive.h"

namespace tilewright {
namespace {

Status apply(Context&) { return {}; }

const RegisterPrimitive entry{
    "enter_postproc", "marks where post-processing starts", {.kind = "EnterPostproc", .apply = apply}};

}  // namespace
}  // namespace tilewright
