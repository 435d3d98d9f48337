"""TVM's side."""
import json

import tvm
import tvm.s_tir.tensor_intrin  # registers the intrinsics that traces name; this is what takes half a minute
import tvm_ffi
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace

FAILURES = (RuntimeError, ValueError, TypeError, IndexError, AttributeError, KeyError)  # what a failed primitive raises


def parse(text):
    return tvm.script.from_source(text)


def equal(a, b):
    return tvm_ffi.structural_equal(a, b)


def plain(value):
    """Boxed numbers of TVM as Python's."""
    return bool(value.value) if str(value.ty) == "bool" else value.value


def trace_json(trace):
    return json.loads(json.dumps(trace.as_json(), default=plain))


def replay(mod, trace):
    """The schedule that a JSON trace gives."""
    schedule = Schedule(mod)
    Trace.apply_json_to_schedule(trace, schedule)
    return schedule


def design_space(mod, target, seed=1):
    """The schedules of the rules of a target, and its postprocessors."""
    from tvm.s_tir import meta_schedule

    context = meta_schedule.TuneContext(mod=mod, target=tvm.target.Target(target), space_generator="post-order-apply", num_threads=1, rand_state=seed)
    return list(context.generate_design_space()), list(context.space_generator.postprocs)


def postprocess(schedule, postprocs):
    """Whether it succeeds; some postprocessors refuse by an exception."""
    schedule.enter_postproc()
    try:
        return all(postproc.apply(schedule) for postproc in postprocs)
    except FAILURES:
        return False
