#!/usr/bin/python3
"""Reads ctest's output on standard input and passes it on, but holds the closing summary back and prints, before it, which
tests were skipped and why, and what sanitizers reported of any process. Usage: ctest … --output-junit FILE |
ctest_report.py FILE FOLDER-OF-REPORTS. Exits 1 if ctest's summary names failures or is missing (the caller's pipefail sees
ctest's own status as well), or if there is a report."""
import re
import sys
import xml.etree.ElementTree
from collections import defaultdict
from pathlib import Path


def reason(output):
    """The message of GTEST_SKIP() << "…": the lines after "file:line: Skipped"; a script prints "skipped: …"."""
    found = re.search(r"^\S+:\d+: Skipped\n(.*?)(?=\n\s*\n|\n\[|\Z)", output, re.M | re.S) or re.search(r"^skipped: (.*)$", output, re.M)
    text = " ".join(found.group(1).split()) if found else ""
    return text or "no reason given"


def skipped(junit_path):
    by_reason = defaultdict(list)
    for case in xml.etree.ElementTree.parse(junit_path).getroot().iter("testcase"):
        if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            by_reason[reason(case.findtext("system-out") or "")].append(case.get("name"))
    return by_reason


def print_reports(folder, shown=5):
    """Prints the first sanitizer reports; the number of all."""
    reports = sorted(Path(folder).iterdir())
    for path in reports[:shown]:
        lines = path.read_text(errors="replace").splitlines()
        print(f"\n{path}:")
        print("\n".join(lines[:60]) + (f"\n… {len(lines) - 60} more lines" if len(lines) > 60 else ""))
    if reports:
        print(f"\nerror: sanitizers report something of {len(reports)} processes (more in {folder})")
    return len(reports)


def main(junit_path, reports_folder):
    closing, in_closing, total = [], False, None
    for line in sys.stdin:
        in_closing = in_closing or bool(re.match(r"\d+% tests passed", line))
        if in_closing:
            closing.append(line)
        elif not re.match(r"\s+Start +\d+: ", line):
            print(line, end="", flush=True)
    text = "".join(closing)
    # ctest lists skipped tests without a reason; ours replaces that list.
    text = re.sub(r"\nThe following tests did not run:\n(?:\t.*\n)*", "", text)
    total = re.search(r"tests passed, (\d+) tests failed out of (\d+)", text)
    if not total:
        print("error: ctest printed no summary")
        return 1
    reports = print_reports(reports_folder)
    by_reason = skipped(junit_path)
    count = sum(len(names) for names in by_reason.values())
    print(f"\nskipped: {count} of {total.group(2)} tests" if count else "\nskipped: none")
    for why, names in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        shown = ", ".join(sorted(names)[:4]) + (", …" if len(names) > 4 else "")
        print(f"  {len(names):4}  {why}  ({shown})")
    print()
    print(text, end="")
    return 1 if int(total.group(1)) or reports else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
