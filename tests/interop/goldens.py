"""Every golden schedule: our trace replays in TVM to our program."""
import re
from pathlib import Path

import theirs

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "schedule"
# Goldens of what TVM does not have or does otherwise: the row of the design's table of deviations, or why.
LISTED = {
    "blockize_list": "the merged signature is in the order of addresses there",
    "blockize_predicate": "D16: the predicate of the outer block is lost there",
    "tensorize_dot_16x4_avx512": "D21: another instruction sequence there",
    "annotate_gpu": "our additions",
    **{name: "our additions" for name in ("pipeline", "pipeline_synchronous", "sample_pipeline_depth")},
    **{name: "D19: strides of one dimension, tables missing in the signature" for name in ("cache_index", "cache_index_negative", "cache_index_resize", "cache_index_threshold")},
    "cache_index_nothing": "an empty sequence fails there",
    **{name: "iters of the block are not bound there" for name in ("cache_inplace", "cache_inplace_nested")},
    "decompose_padding_fused": "other blocks under the loop are lost there",
    **{name: "the buffer between stays allocated there" for name in ("fuse_reduction_epilogue", "fuse_reduction_epilogue_max")},
    "loop_partition": "D14: signatures are empty or of the whole piece there",
    **{name: "masked loops are opaque, too; reads of several places are the whole axis" for name in ("rolling_buffer", "rolling_buffer_1d", "rolling_buffer_step_1")},
    **{name: "regions reach outside of the buffer there" for name in ("compute_at_clamped_width", "read_at_overshoot", "read_at_two_readers", "reindex_negative")},
    "reindex_guarded_read": "the copy reads outside of the buffer there",
    "reindex_predicate": "D16: the predicate is lost there",
    "decompose_padding_strided": "annotations and order of conditions",
    "transform_block_layout_predicate": "the predicate names lost loops there",
    "transform_layout_assumed_injective": "the map is no affine one",
    **{f"tensorize_{name}": "no such intrinsic there" for name in ("dot_16x2_avx512bf16", "dot_8x4_avx2", "dot_8x4_avxvnni")},
}
# TVM crashes on these, and would take the other cases along.
CRASHES = {"loop_partition_unit"}


def sections(path):
    parts = re.split(r"^# (before|trace|after|refused: \S+)\n", path.read_text(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def run(our, report):
    for path in sorted(FOLDER.glob("*.txt")):
        golden = sections(path)
        if "after" not in golden or path.stem in CRASHES:
            continue
        our.ask("begin", program=golden["before"])
        after = our.ask("step", text=golden["trace"])["program"]
        trace = our.ask("trace")["trace"]
        kinds = {instruction[0] for instruction in trace[0]}
        try:
            replayed = theirs.replay(theirs.parse(golden["before"]), trace)
        except theirs.FAILURES as failure:
            difference = str(failure)
        else:
            difference = our.difference(after, replayed.mod.script())
        if not difference and path.stem in LISTED:
            report.fail("listed, and there is no difference", path.stem, "take it out of LISTED")
        elif not difference:
            for kind in kinds:
                report.agree(kind)
        elif path.stem in LISTED:
            report.expect(f"{path.stem}: {LISTED[path.stem]}; seen: {difference.splitlines()[0][:150]}")
        else:
            report.fail(path.stem, "", difference)
