#!/usr/bin/python3
"""Budgets in numbers: lines per folder, the longest files, the CPU seconds that each header costs an empty file, start-up
time of `tilewright --help`. Prints, never fails: a number that grew by a tenth needs a sentence in the change that did it.
Usage: size.py BUILD [--no-headers]"""
import re
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER_BUDGET_S = 1.5
SUFFIXES = {".h", ".cpp", ".py", ".cmake", ".proto", ".def", ".sql"}


def listed():
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in names.split("\n") if name and (ROOT / name).is_file()]


def print_lines(names):
    lines = {name: (ROOT / name).read_bytes().count(b"\n") for name in names if Path(name).suffix in SUFFIXES and "golden/" not in name}
    folders, files = Counter(), Counter()
    for name, count in lines.items():
        folder = "/".join(name.split("/")[:2]) if name.startswith("tests/") else name.split("/")[0]
        folders[folder if "/" in name else "(root)"] += count
        files[folder if "/" in name else "(root)"] += 1
    print(f"lines: {sum(lines.values())} in {len(lines)} files, median file {statistics.median(lines.values()):.0f}")
    for folder, count in sorted(folders.items(), key=lambda item: -item[1]):
        print(f"  {count:6} {files[folder]:4} files  {folder}")
    print("longest files (limit 800, most under 250):")
    for name, count in sorted(lines.items(), key=lambda item: -item[1])[:10]:
        print(f"  {count:6}  {name}")


def include_flags(build):
    """-I and -D flags of our own compile commands, so that generated headers and library paths resolve."""
    ninja = (build / "build.ninja").read_text()
    flags = {flag for line in re.findall(r"^  (?:INCLUDES|DEFINES) = (.*)$", ninja, re.M) for flag in re.findall(r'(?:-isystem |-I|-D)\S+', line)}
    return [part.replace('\\"', '"') for flag in sorted(flags) if not flag.endswith("_EXPORTS") for part in flag.split(" ")]


def print_headers(names, build):
    flags = include_flags(build)
    costs = []
    for name in sorted(n for n in names if n.endswith(".h") and not n.startswith(("tests/", "examples/"))):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = subprocess.run(["g++", "-std=c++20", "-fsyntax-only", f"-I{ROOT}", *flags, "-include", str(ROOT / name), "-x", "c++", "/dev/null"], capture_output=True, text=True)
        costs.append((resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, name, done))
    print(f"headers alone (budget {HEADER_BUDGET_S} CPU s; {len(costs)} headers, sum {sum(cost for cost, *_ in costs):.1f} s), slowest:")
    for cost, name, _ in sorted(costs, key=lambda item: -item[0])[:10]:
        print(f"  {cost:6.2f} s  {name}{'   over budget' if cost > HEADER_BUDGET_S else ''}")
    for _, name, done in costs:
        if done.returncode:
            print(f"  not self-contained: {name}: {done.stderr.splitlines()[0] if done.stderr else ''}")


def print_start_up(build):
    program = build / "bin" / "tilewright"
    if not program.exists():
        return
    times = []
    for _ in range(11):
        start = time.perf_counter()
        subprocess.run([program, "--help"], stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    print(f"tilewright --help: median {1000 * statistics.median(times):.1f} ms of {len(times)} (budget 30 ms)")


def main():
    build = Path(sys.argv[1])
    names = listed()
    print_lines(names)
    print_start_up(build)
    if "--no-headers" not in sys.argv:
        print_headers(names, build)


if __name__ == "__main__":
    main()
