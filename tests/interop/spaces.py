"""Design spaces. The sketches of our preset metaschedule are TVM's, instruction for instruction, on x86, AVX-512 and VNNI;
TVM's traces for those and for CUDA and tensor cores replay here to TVM's programs, before and after its postprocessing."""
import json
import re

import operators
import ours
import theirs

CUDA = {"max_threads_per_block": 1024, "max_shared_memory_per_block": 49152, "thread_warp_size": 32}
# name: (our target, or None where we have no such preset yet; TVM's)
TARGETS = {
    "x86": ("haswell:cores=4", {"kind": "llvm", "mcpu": "haswell", "num-cores": 4}),
    "AVX-512": ("skylake-avx512:cores=4", {"kind": "llvm", "mcpu": "skylake-avx512", "num-cores": 4}),
    "VNNI": ("cascadelake:cores=4", {"kind": "llvm", "mcpu": "cascadelake", "num-cores": 4}),
    "CUDA": (None, {"kind": "cuda", "arch": "sm_70", **CUDA}),
    "tensor cores": (None, {"kind": "cuda", "arch": "sm_80", **CUDA}),
}


def even(value):
    """TVM writes a flag as 1 or as true."""
    if isinstance(value, list):
        return [even(item) for item in value]
    return int(value) if isinstance(value, bool) else value


def bare(trace):
    """Instructions without decisions."""
    return [json.dumps(even(instruction)) for instruction in trace[0]]


def has_unit_dimension(workload):
    return re.search(r"[:,](n|b|m)=1\b", workload)


def factored(trace):
    """Names of the blocks that a trace cuts by rfactor."""
    block_of, names = {}, set()
    for kind, inputs, attrs, outputs in trace[0]:
        block = attrs[0] if kind == "GetSBlock" else block_of.get(inputs[0]) if inputs and isinstance(inputs[0], str) else None
        if kind == "RFactor":
            names.add(block)
        elif kind in ("GetSBlock", "GetLoops", "Fuse", "Split"):
            block_of.update((output, block) for output in outputs)
    return names


def compare_sketches(our, report, case, workload, text, target, schedules):
    if has_unit_dimension(workload):
        # TVM's rules do not see that a block whose write is at a constant place is elementwise; ours do.
        return report.expect("sketches of a workload with a unit dimension")
    mine = [json.loads(line) for line in our.tool("show", "space", "--op", workload, "--target", target, "--set", "search.preset=metaschedule",
                                                  "--as", "json").splitlines() if not line.startswith("#")]
    their = [theirs.trace_json(s.trace.simplified(True)) for s in schedules]
    if len(mine) > len(their) and 'T.float32("-inf")' in text:
        report.expect("a maximum from -inf cannot be factored there")
        maxima = set(re.findall(r'T\.sblock\("(\w+)"\)(?:(?!T\.sblock).)*?with T\.init\(\):\s*\S+ = T\.float32\("-inf"\)', text, re.S))
        mine = [trace for trace in mine if not maxima & factored(trace)]
    if len(mine) != len(their):
        return report.fail("number of sketches", case, f"{len(mine)} sketches here, {len(their)} there")
    for number, (a, b) in enumerate(zip(mine, their)):
        a, b = bare(a), bare(b)
        if a == b:
            report.agree("sketches, " + case.split(":")[0])
            continue
        at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        report.fail("sketch", f"{case} sketch {number}", "\n".join([f"instruction {at}", "here:", *a[at:at + 3], "there:", *b[at:at + 3]]))


def compare_replay(our, report, case, kind, text, schedule):
    trace = theirs.trace_json(schedule.trace)
    try:
        mine = our.ask("replay", program=text, trace=trace)["program"]
    except ours.Refused as refused:
        if refused.code == "instruction-unknown":
            report.expect("no primitive " + re.search(r"is called (\w+)", str(refused)).group(1))
        elif refused.code == "intrinsic-stride-differs" and "dot_16x4_" in str(trace[0][refused.at]):
            # Its instructions load 64 bytes in a row, wherever the rows of the operand are.
            report.expect("a dot product on rows that are apart computes something else there")
        elif refused.code == "index-map-not-injective" and "no bound" in str(refused) and re.search(r'"ffi.String","data":"v\d+"', str(trace[0][refused.at])):
            report.expect("open: an index map that names sampled values")
        elif refused.code == "intrinsic-unknown":
            report.expect("no intrinsic " + re.search(r'"(\w+)"', str(refused)).group(1))
        else:
            at = trace[0][refused.at] if refused.at is not None else ""
            report.fail(f"refused here: {refused.code}", f"{case}, {kind}", f"{refused}\n{json.dumps(at)}\n{schedule.trace}")
        return
    difference = our.difference(mine, schedule.mod.script())
    if difference:
        report.fail("another program: " + difference.split("\n")[0], f"{case}, {kind}", difference + f"\n{schedule.trace}")
    else:
        report.agree(f"{kind}, {case.split(':')[0]}")


def run(our, report):
    for workload in operators.tiled(our):
        text = our.ask("workload", text=workload)["program"]
        mod = theirs.parse(text)
        for name, (target, their_target) in TARGETS.items():
            case = f"{name}: {workload}"
            try:
                schedules, postprocs = theirs.design_space(mod, their_target)
            except theirs.FAILURES:
                report.expect(f"TVM's own rules fail on {case}")
                continue
            if target:
                compare_sketches(our, report, case, workload, text, target, schedules)
            for number, schedule in enumerate(schedules):
                compare_replay(our, report, f"{case} sketch {number}", "before postprocessing", text, schedule)
                if theirs.postprocess(schedule, postprocs):
                    compare_replay(our, report, f"{case} sketch {number}", "after postprocessing", text, schedule)
                else:
                    report.expect("fails its postprocessing there")
