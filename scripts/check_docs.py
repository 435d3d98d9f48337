#!/usr/bin/python3
"""Runs what the documentation shows, so that it cannot drift. Usage: check_docs.py [BUILD] [FILE.md …]

A fenced block is run if the line above it is <!-- run --> (or <!-- run exit=N -->): lines that begin with "$ " are commands,
run by bash one after the other; each other line must appear, in order, in the output of its command, where numbers may
differ, "…" stands for any text in a line, and a line "…" for any lines. A block under <!-- file: NAME --> is written to that file first.
The blocks of one page share one scratch folder, which looks like the tree's root with `tilewright` built.
Without BUILD nothing is run; links between pages are checked always."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^<!-- (run|file):? ?([^>]*?) ?-->\n```[a-z]*\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
NUMBER = re.compile(r"[-+]?\d[\d.,  ]*(?:e[-+]?\d+)?|\b[0-9a-f]{4,}\b")  # figures and short hashes
COMMAND_LIMIT_S = 300


def pages():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\n") if name and (ROOT / name).exists()]


def shape(line):
    """A line with its figures replaced and blanks folded: what must stay the same from run to run."""
    return " ".join(NUMBER.sub(" # ", line).split())


def missing_line(expected, output):
    """The first expected line that the output lacks, in order; None if all are there."""
    lines = iter([shape(line) for line in output.split("\n")])
    for line in expected:
        if line.strip() in ("…", ""):
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in shape(line).split("…")))
        if not any(pattern.fullmatch(found) for found in lines):
            return line
    return None


def parse_commands(text):
    """[(command, [expected lines])] of a block; a command goes on while its lines end in a backslash."""
    commands, continued = [], False
    for line in text.rstrip("\n").split("\n"):
        if continued:
            commands[-1] = (commands[-1][0] + "\n" + line, [])
        elif line.startswith("$ "):
            commands.append((line[2:], []))
        elif commands:
            commands[-1][1].append(line)
        continued = bool(commands) and line.endswith("\\") and (continued or line.startswith("$ "))
    return commands


def run_block(text, exit_code, scratch, environment):
    for command, expected in parse_commands(text):
        try:
            done = subprocess.run(["bash", "-c", command], cwd=scratch, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=COMMAND_LIMIT_S)
        except subprocess.TimeoutExpired:
            yield f"`{command}` ran longer than {COMMAND_LIMIT_S} s"
            return
        if done.returncode != exit_code:
            yield f"`{command}` gave exit code {done.returncode}, expected {exit_code}:\n{done.stdout[-2000:]}"
            return
        line = missing_line(expected, done.stdout)
        if line is not None:
            yield f"`{command}` did not print a line like\n    {line}\n  it printed\n{done.stdout[-2000:]}"
            return


def check_links(page, text):
    for found in LINK.finditer(text):
        target = found.group(1)
        if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
            yield text.count("\n", 0, found.start()) + 1, f"link to {target}, which does not exist"


def run_page(page, text, build):
    blocks = list(BLOCK.finditer(text))
    with tempfile.TemporaryDirectory(prefix="tilewright-docs-") as name:
        scratch = Path(name)
        for entry in ROOT.iterdir():
            if entry.name not in (".git", "runs", "tilewright"):
                (scratch / entry.name).symlink_to(entry)
        (scratch / "tilewright").symlink_to(build / "bin" / "tilewright")
        environment = dict(os.environ, PATH=f"{build / 'bin'}:{os.environ['PATH']}", XDG_DATA_HOME=str(scratch / ".data"),
                           XDG_CONFIG_HOME=str(scratch / ".config"), TILEWRIGHT_PREFIX=str(build))
        for found in blocks:
            kind, argument, body = found.groups()
            line = text.count("\n", 0, found.start()) + 1
            if kind == "file":
                (scratch / argument).write_text(body)
                continue
            code = re.fullmatch(r"(?:exit=(\d+))?", argument)
            if not code:
                yield line, f"unknown marker argument \"{argument}\", expected exit=N"
                continue
            for problem in run_block(body, int(code.group(1) or 0), scratch, environment):
                yield line, problem
    if blocks:
        print(f"{page.relative_to(ROOT)}: {sum(b.group(1) == 'run' for b in blocks)} blocks run")


def main():
    arguments = [Path(a) for a in sys.argv[1:]]
    build = next((a.resolve() for a in arguments if a.is_dir()), None)
    chosen = [a.resolve() for a in arguments if a.suffix == ".md"] or pages()
    problems = []
    for page in chosen:
        text = page.read_text()
        found = list(check_links(page, text)) + (list(run_page(page, text, build)) if build else [])
        problems += [f"{page.relative_to(ROOT)}:{line}: error: {problem}" for line, problem in found]
    print("\n".join(problems) if problems else f"docs: {len(chosen)} pages, nothing wrong")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
