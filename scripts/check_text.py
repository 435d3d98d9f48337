#!/usr/bin/python3
"""Text files are UTF-8 with LF, end in one newline and have no trailing blanks; a source file stays under 800 lines
(tables exempt: data, goldens, generated reference pages). A file over 250 lines is counted by `scripts/dev size`, not refused."""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 800
SOURCE = {".h", ".cpp", ".c", ".py", ".cmake", ".proto"}
EXEMPT = ("tests/golden/", "tests/fixtures/", "bench/results/", "bench/suites/", "docs/reference/")


def listed():
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [name for name in names.decode().split("\0") if name and (ROOT / name).is_file()]


def check(name, data):
    """What is wrong with one file; data are its bytes."""
    if b"\0" in data:
        return  # binary
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        yield f"{name}: error: not UTF-8: {error.reason} at byte {error.start}"
        return
    if "\r" in text:
        yield f"{name}: error: carriage return; lines end in LF"
    if text and not text.endswith("\n"):
        yield f"{name}: error: no newline at the end"
    if name.startswith(EXEMPT):
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip():
            yield f"{name}:{number}: error: trailing blanks"
    lines = text.count("\n")
    if Path(name).suffix in SOURCE and lines > MAX_LINES:
        yield f"{name}: error: {lines} lines, at most {MAX_LINES}; split it by concept"


def main():
    names = listed()
    problems = [problem for name in names for problem in check(name, (ROOT / name).read_bytes())]
    print("\n".join(problems) if problems else f"text: {len(names)} files, nothing wrong")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
