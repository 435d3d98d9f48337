// disallow_dynamic_loop: candidates whose loops have no constant extent are not measured.
#include <fmt/format.h>

#include "ir/build.h"
#include "search/postprocs/postproc.h"

namespace tilewright {

namespace {

TW_REFUSAL_CODE(dynamic_loop_extent, "dynamic-loop-extent", "a loop's extent is not a constant");

Status apply(Schedule& s, const PostprocContext&) {
  for (Place p : s.state().tree().loops()) {
    const For* loop = s.state().tree().loop(p);
    if (!const_int(loop->extent))
      return refuse(dynamic_loop_extent, fmt::format("the extent of loop {} is not a constant", loop->var->name));
  }
  return {};
}

const Register<Postproc> entry{"disallow_dynamic_loop", "refuses loops whose extent is not a constant", {apply}};

}  // namespace

}  // namespace tilewright
