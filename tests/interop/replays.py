"""Our traces: candidates of both presets for every operator replay in TVM to our programs."""
import operators
import ours
import theirs

TARGETS = ("haswell:cores=4", "skylake-avx512:cores=4", "cascadelake:cores=4")
# Tensor intrinsics that TVM does not have under this name, or has as another sequence (D21).
OURS_ALONE = ("dot_8x4_avx2", "dot_8x4_avxvnni", "dot_16x2_avx512bf16", "dot_16x4_avx512")


def run(our, report):
    for workload in operators.tiled(our):
        text = our.ask("workload", text=workload)["program"]
        mod = theirs.parse(text)
        for target in TARGETS:
            for preset in ("metaschedule", "tilewright"):
                for number, sketch in enumerate(our.ask("sample", program=text, target=target, preset=preset, seed=1)["sketches"]):
                    check(our, report, f"{preset} on {target}: {workload} sketch {number}", preset, mod, sketch)


def check(our, report, case, preset, mod, sketch):
    if "refused" in sketch:
        return report.expect(f"no candidate: {sketch['refused']}")
    own = [i[2][0] for i in sketch["trace"][0] if i[0] == "Tensorize" and i[2][0] in OURS_ALONE]
    if own:
        return report.expect(f"no intrinsic {own[0]} there")
    try:
        there = theirs.replay(mod, sketch["trace"])
    except theirs.FAILURES as failure:
        # TVM's maximum starts at the least finite number only.
        if 'No matched reducer for identity (T.float32("-inf"),)' in str(failure):
            return report.expect("a maximum from -inf cannot be factored there")
        if "Cannot find a block with the name: B_pad" in str(failure):
            return report.expect("open: after pad_einsum of three operands there is no block B_pad there")
        if "decompose_reduction expect the loop" in str(failure):
            return report.expect("a reduction loop of extent 1 above keeps decompose_reduction from its place there")
        return report.fail("refused there", case, str(failure)[-1500:])
    difference = our.difference(sketch["program"], there.mod.script())
    if difference:
        return report.fail("another program: " + difference.split("\n")[0], case, difference + f"\n{there.trace}")
    return report.agree(f"{preset}: {case.split(': ')[1].split(':')[0]}")
