#!/usr/bin/python3
"""Uses examples/plugin as built against an installed package. Usage: plugin_test.py TILEWRIGHT PLUGIN.so"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

tilewright, plugin = sys.argv[1:]
failures = []


def run(*arguments, code=0):
    done = subprocess.run([tilewright, *arguments], capture_output=True, text=True, timeout=250)
    if done.returncode != code:
        sys.exit(f"{' '.join(arguments)}: exit code {done.returncode}, expected {code}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done


def expect(holds, what):
    if not holds:
        failures.append(what)


def traces(*extra):
    lines = run("tune", "--op", "gemm:m=64,n=64,k=64", "--runner", "fake", "--trials", "80", "--json", "--db", "memory:", *extra).stdout
    events = [json.loads(line) for line in lines.splitlines()]
    end = [e for e in events if e["kind"] == "run.end"][0]
    expect(end["failed"] == 0, f"candidates failed: {end}")
    return [e["trace"] for e in events if e["kind"] == "job.dispatched"]


with tempfile.TemporaryDirectory(prefix="tilewright-plugin-") as folder:
    os.chdir(folder)
    os.environ["XDG_DATA_HOME"] = folder  # the user's database is not for tests
    checked = json.loads(run("plugin", "check", plugin, "--json").stdout)
    expect(checked["plugin"] == "acme@1.0", f"plugin check names {checked['plugin']}")
    added = {(r["registry"], r["name"]) for r in checked["registrations"]}
    expect(added == {("primitive", "acme_cyclic_split"), ("rule", "acme.cyclic"), ("mutator", "acme.shift_tile")}, f"it adds {added}")

    dealt = traces("--plugin", plugin)
    expect(any("AcmeCyclicSplit" in t for t in dealt), "no candidate uses the plug-in's primitive")
    without_rule, plain = traces("--plugin", plugin, "--no-rule", "acme.cyclic"), traces()
    expect(not any("Acme" in t for t in without_rule), "--no-rule does not leave the rule out")
    expect(without_rule != plain, "the mutator takes no part in the search")
    expect(without_rule == traces("--plugin", plugin, "--no-rule", "acme.cyclic"), "the search is not deterministic")

    Path("campaign.toml").write_text(f'[campaign]\nplugins = ["{plugin}"]\ntrials = 4\n[[task]]\nop = "gemm"\ngrid = {{ m = 64, n = 64, k = 64 }}\n')
    run("tune", "campaign.toml", "--runner", "fake")

    Path("schedule.py").write_text('i, j, k = sch.get_loops("C")\nsch.acme_cyclic_split(i, factor=4)\n')
    Path("refused.py").write_text('i, j, k = sch.get_loops("C")\nsch.acme_cyclic_split(i, factor=5)\n')
    Path("gemm.py").write_text(run("show", "gemm:m=64,n=64,k=64").stdout)
    text = run("opt", "gemm.py", "--schedule", "schedule.py", "--plugin", plugin).stdout
    expect("T.grid(4, 16, 64, 64)" in text, f"the primitive gives\n{text}")
    refused = run("opt", "gemm.py", "--schedule", "refused.py", "--plugin", plugin, code=1).stderr
    expect("[acme-factor-does-not-divide]" in refused and "refused.py:2:" in refused, refused)

    # A plug-in for another version is not even opened: its ABI word is read from the file.
    Path("other.so").write_bytes(Path(plugin).read_bytes().replace(b"tilewright-plugin:tilewright-", b"tilewright-plugin:tilewrihgt-"))
    other = run("plugin", "check", "other.so", code=1).stderr
    expect("was built for tilewrihgt-" in other and "this is tilewright-" in other, other)
    Path("no.so").write_bytes(Path("/proc/self/exe").resolve().read_bytes()[:4096])
    expect("no TW_PLUGIN line" in run("tune", "--plugin", "no.so", "--dry-run", code=3).stderr, "no.so was not refused")

print("\n".join(failures) if failures else "the plug-in works")
sys.exit(bool(failures))
