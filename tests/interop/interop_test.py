#!/usr/bin/python3
"""Tilewright against the real TVM, both ways. Usage: interop_test.py VENV SERVER TILEWRIGHT [PART…]
Makes the virtual environment VENV once (environment.py), then runs the parts below in it: TVM starts once for all cases.
Exits 77 with "skipped: <reason>" where the packages cannot be had. TW_INTEROP_SEQUENCES=N: length of the random part;
TW_INTEROP_SEED=N: its seed."""
import os
import sys
from pathlib import Path

import environment


def main(venv, server, tilewright, *parts):
    try:
        python = environment.ensure(Path(venv))
    except environment.Unavailable as reason:
        print(f"skipped: {reason}")
        return 77
    if Path(sys.prefix).resolve() != Path(venv).resolve():
        os.execv(python, [str(python), __file__, venv, server, tilewright, *parts])
    import goldens
    import ours
    import programs
    import random_steps
    import replays
    import report
    import spaces

    known = {module.__name__: module for module in (programs, goldens, replays, spaces, random_steps)}
    our = ours.Ours(server, tilewright)
    well = True
    # random_steps still finds differences (see its report): it runs when it is named.
    for name in parts or ("programs", "goldens", "replays", "spaces"):
        result = report.Report(name)
        known[name].run(our, result)
        well = result.finish() and well
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
