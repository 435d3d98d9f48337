"""Every golden schedule: our trace replays in TVM to our program."""
import re
from pathlib import Path

import ours
import theirs

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "schedule"
# Goldens of what TVM does not have or does otherwise: the row of the design's table of deviations, or why.
LISTED = {
    "blockize_list": "the merged signature is in the order of addresses there",
    "blockize_predicate": "D16: the predicate of the outer block is lost there",
    "tensorize_dot_16x4_avx512": "D21: another instruction sequence there",
    **{f"tensorize_{name}": "no such intrinsic there" for name in ("dot_16x2_avx512bf16", "dot_8x4_avx2", "dot_8x4_avxvnni")},
}


def sections(path):
    parts = re.split(r"^# (before|trace|after|refused: \S+)\n", path.read_text(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def run(our, report):
    for path in sorted(FOLDER.glob("*.txt")):
        golden = sections(path)
        if "after" not in golden:
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
        if not difference:
            for kind in kinds:
                report.agree(kind)
        elif path.stem in LISTED:
            report.expect(f"{path.stem}: {LISTED[path.stem]}")
        else:
            report.fail(path.stem, "", difference)
