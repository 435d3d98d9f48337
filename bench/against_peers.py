#!/usr/bin/env python3
"""Tunes operators, exports the winners and times them against libraries in one process (bench/peers).

  bench/against_peers.py [--trials N] [--threads N] [--cold] [--run RUN | --op OP ...] [--peer NAME] [--out FILE]

Without --op: the float32 matrix products 128 to 2048. OpenBLAS is asked with each of its core types and the fastest
counts. Prints a table; --out appends one JSON line for each measurement.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent
build = root / "build" / "release"
core_types = ["", "Haswell", "Zen", "SkylakeX", "Cooperlake", "Sapphirerapids"]


def run(command, **more):
    return subprocess.run([str(c) for c in command], check=True, text=True, capture_output=True, **more)


def tune(op, args, folder):
    command = [build / "bin/tilewright", "--json", "--set", f"measure.threads={args.threads}", "--set",
               f"measure.mode={'cold' if args.cold else 'warm'}", *args.options, "--db", "memory:", "tune", "--op", op, "--trials", args.trials,
               "--seed", args.seed, "--run", folder / "run"]
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True)
    if done.returncode not in (0, 5):
        sys.exit(f"tuning {op} failed:\n{done.stderr}{done.stdout[-2000:]}")
    events = [json.loads(line) for line in (folder / "run/events.jsonl").read_text().splitlines()]
    end = next(e for e in events if e["kind"] == "run.end")
    return {"trials": end["trials"], "seconds": end["elapsed_s"]}


def shared_object(folder):
    """The exported kernel with the two functions that peer_bench calls."""
    run([build / "bin/tilewright", "export", folder / "run", "--as", "cpu", "--out", folder / "kernel"])
    header = next(h for h in (folder / "kernel").glob("*.h") if h.name != "tw_runtime.h")
    name = header.stem
    (folder / "kernel/bench.c").write_text(
        f'#include "{header.name}"\n'
        f"int32_t tw_bench_run(void* const* buffers) {{ return {name}(buffers, 0); }}\n"
        f"void tw_bench_threads(uint32_t n) {{ tw_set_threads(n); }}\n")
    out = folder / "bench.so"
    run(["cc", "-O2", "-shared", "-fPIC", "-o", out, "bench.c", "tw_runtime.c", f"{name}.o", "-lpthread", "-lm"],
        cwd=folder / "kernel")
    return out


def measure(op, kernel, args):
    best = None
    for core in core_types if op.startswith("gemm:") else [""]:
        # Idle threads of a library spin for a while: 2^22 cycles are enough from call to call, and peer_bench waits for their end.
        environment = dict(os.environ, OMP_NUM_THREADS=str(args.threads), OPENBLAS_THREAD_TIMEOUT="22", **({"OPENBLAS_CORETYPE": core} if core else {}))
        command = [build / "bin/peer_bench", "--op", op, "--kernel", kernel, "--threads", args.threads, "--rounds", args.rounds]
        command += ["--cold"] if args.cold else []
        for peer in args.peer or []:
            command += ["--peer", peer]
        try:
            line = json.loads(run(command, env=environment).stdout)
        except subprocess.CalledProcessError as error:
            if core and error.returncode < 0:  # this CPU lacks the core type's instructions
                continue
            sys.exit(f"peer_bench on {op} failed ({error.returncode}): {error.stderr}")
        blas = line["peers"].get("openblas")
        if blas:
            blas["core"] = core or "automatic"
        if best is None or (blas and blas["ratio"] < best["peers"]["openblas"]["ratio"]):
            best = line
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", action="append")
    parser.add_argument("--trials", default=256, type=int)
    parser.add_argument("--threads", default=1, type=int)
    parser.add_argument("--rounds", default=60, type=int)
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--peer", action="append")
    parser.add_argument("--option", dest="options", action="append", default=[], help="passed on to tilewright")
    parser.add_argument("--out")
    parser.add_argument("--keep", help="folder for runs and kernels; those that are there are used again")
    args = parser.parse_args()
    args.options = [word for option in args.options for word in option.split()]
    ratios = {}
    for op in args.op or [f"gemm:m={n},n={n},k={n},dtype=float32" for n in (128, 256, 512, 1024, 2048)]:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(args.keep) / op.replace(":", "_").replace(",", "_") if args.keep else pathlib.Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            made = {} if (folder / "bench.so").exists() else tune(op, args, folder)
            kernel = folder / "bench.so" if (folder / "bench.so").exists() else shared_object(folder)
            line = measure(op, kernel, args) | made
        if args.out:
            with open(args.out, "a") as out:
                out.write(json.dumps(line) + "\n")
        text = f"{op:46} {line['us']:9.1f} us {line['gflops']:7.1f} GFLOP/s"
        for name, peer in line["peers"].items():
            text += f"   {name}{' ' + peer['core'] if 'core' in peer else ''}: {peer['ratio']:.2f}x [{peer['ratio_q1']:.2f}, {peer['ratio_q3']:.2f}]"
            ratios.setdefault(name, []).append(peer["ratio"])
        if made:
            text += f"   {made['trials']} trials in {made['seconds']:.0f} s"
        print(text, flush=True)
    for name, values in ratios.items():
        if len(values) > 1:
            print(f"geometric mean against {name}: {math.exp(sum(map(math.log, values)) / len(values)):.3f}")


main()
