#!/usr/bin/python3
"""The live table on a pseudo terminal: a small terminal emulator keeps the screen as a person would see it.
Usage: live_screen_test.py TILEWRIGHT"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

TILEWRIGHT = os.path.abspath(sys.argv[1])
WIDTH, HEIGHT = 110, 20
failures = []


def expect(holds, what):
    if not holds:
        failures.append(what)


class Screen:
    """Lines of text and a cursor; knows what the table uses, and complains about the rest."""

    def __init__(self):
        self.lines, self.row, self.column = [""], 0, 0
        self.frames = 0  # redraws in place
        self.rest = ""

    def feed(self, text):
        text = self.rest + text
        self.rest = ""
        at = 0
        while at < len(text):
            c = text[at]
            if c == "\x1b":
                found = re.match(r"\x1b\[(\d*)([A-Za-z])", text[at:])
                if not found:
                    self.rest = text[at:]
                    return
                self.control(found.group(2), int(found.group(1) or 1))
                at += found.end()
                continue
            if c == "\r":
                self.column = 0
            elif c == "\n":
                self.row += 1
                if self.row == len(self.lines):
                    self.lines.append("")
            else:
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[: self.column] + c + line[self.column + 1 :]
                self.column += 1
                # The summary may wrap; the table, which moves the cursor by lines, may not.
                if self.column == WIDTH and not any(line.startswith("done: ") for line in self.lines):
                    failures.append(f"a line of the table is wider than the terminal: {self.lines[self.row]}")
            at += 1

    def control(self, letter, n):
        if letter == "A":
            expect(self.row >= n, "the cursor leaves the screen")
            self.row = max(self.row - n, 0)
            self.frames += 1
        elif letter == "K":
            self.lines[self.row] = self.lines[self.row][: self.column]
        elif letter == "J":
            self.lines[self.row] = self.lines[self.row][: self.column]
            del self.lines[self.row + 1 :]
        else:
            failures.append(f"unknown control sequence {letter}")


def run(arguments, environment, signals=()):
    """Runs on a terminal; returns exit code, screen, seconds. `signals`: (text on the screen to wait for, signal)."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    env = {k: v for k, v in os.environ.items() if k not in ("CI", "LC_ALL", "LC_CTYPE", "LANG")} | environment
    start = time.monotonic()
    child = subprocess.Popen([TILEWRIGHT, *arguments], stdin=slave, stdout=slave, stderr=slave, env=env, close_fds=True)
    os.close(slave)
    screen, raw, pending = Screen(), b"", list(signals)
    while True:
        ready, _, _ = select.select([master], [], [], 0.2)
        if ready:
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            if not data:
                break
            raw += data
            cut = len(raw)
            while cut and raw[cut - 1] >= 0x80 and len(raw) - cut < 3:
                cut -= 1  # not in the middle of a character
            screen.feed(raw[:cut].decode().replace("\r\n", "\n\r"))
            raw = raw[cut:]
        if pending and any(pending[0][0] in line for line in screen.lines):
            child.send_signal(pending.pop(0)[1])
        if time.monotonic() - start > 120:
            child.kill()
            failures.append("the run did not end")
    screen.feed(raw.decode(errors="replace").replace("\r\n", "\n\r"))
    return child.wait(), screen, time.monotonic() - start


OP = ["tune", "--op", "gemm:m=64,n=64,k=64", "--op", "softmax:m=64,n=64", "--runner", "fake", "--trials", "24", "--target", "x86-64-v3:cores=1"]

with tempfile.TemporaryDirectory(prefix="tilewright-live-") as folder:
    os.chdir(folder)

    code, screen, seconds = run(OP, {"TERM": "xterm", "LANG": "C.UTF-8"})
    text = "\n".join(screen.lines)
    expect(code == 0, f"exit code {code}\n{text}")
    heads = [i for i, line in enumerate(screen.lines) if line.split() == "task best vs base roof trials failed model trend eta".split()]
    expect(len(heads) == 1, f"expected one table, found {len(heads)}\n{text}")
    table = screen.lines[heads[0] + 1 : heads[0] + 4] if heads else ["", "", ""]
    expect(table[0].startswith(" gemm 64x64x64 float32") and " 24/24 " in table[0] and "done: " in table[0], f"first task\n{text}")
    expect(table[1].startswith(" softmax 64x64 float32") and "/24 " in table[1], f"second task\n{text}")
    expect(re.search("[▁▂▃▄▅▆▇█]", table[0]), f"no trend\n{text}")
    expect(table[2].startswith(" total ") and "Σ weight·latency" in table[2], f"sum\n{text}")
    # At most five times a second: a run of less than a second may be over before the second drawing.
    expect(screen.frames >= 1 or seconds < 1, f"the table was not redrawn in place in {seconds:.1f} s")
    expect(screen.frames <= 5 * seconds + 3, f"{screen.frames} redraws in {seconds:.1f} s")
    expect(any(line.startswith("done: ") for line in screen.lines) and "next:" in screen.lines, f"no summary\n{text}")
    expect("[00:" not in text.replace("[00:00", "", 1) or text.count(" best ") <= 2, f"lines of plain mode in the table\n{text}")

    # The run goes on: names come from its journal, and nothing is lost.
    directory = "runs/" + os.listdir("runs")[0]
    code, screen, _ = run(["tune", "--run", directory, "--trials", "32"], {"TERM": "xterm", "LANG": "C"})
    text = "\n".join(screen.lines)
    expect(code == 0 and any(line.startswith(" gemm 64x64x64 float32") and " 32/32 " in line for line in screen.lines), f"resumed\n{text}")
    expect(text.isascii(), f"a terminal without UTF-8 gets other characters\n{text}")

    for environment in ({"TERM": "dumb"}, {"TERM": "xterm", "CI": "1"}):
        code, screen, _ = run(OP, environment)
        text = "\n".join(screen.lines)
        expect(code == 0 and screen.frames == 0 and "] best gemm 64x64x64 float32" in text, f"plain mode with {environment}\n{text}")
    code, screen, _ = run(OP + ["--progress", "none"], {"TERM": "xterm"})
    expect(code == 0 and screen.lines[0].startswith("done: "), "--progress none shows something")

    code, screen, _ = run(OP[:-4] + ["--trials", "100000", "--target", "x86-64-v3:cores=1"], {"TERM": "xterm", "LANG": "C.UTF-8"},
                          [("best gemm", signal.SIGINT)])
    text = "\n".join(screen.lines)
    expect(code == 5 and "done: interrupted" in text, f"Ctrl-C gives exit code {code}\n{text}")

print("\n".join(failures) if failures else "the live table works")
sys.exit(bool(failures))
