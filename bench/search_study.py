#!/usr/bin/env python3
"""Does the model find better schedules than chance? Equal trials, several operators and seeds.

  bench/search_study.py [--trials N] [--seeds N] [--op OP ...] [--out FILE]

Strategies: evolutionary (with the cost model) and replay_trace (random). Prints for each run the best time after a quarter, half
and all of the trials, then the geometric mean of random ÷ model, and how well the models order candidates they have not seen.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent
tilewright = root / "build/release/bin/tilewright"


def best_so_far(op, strategy, seed, args):
    with tempfile.TemporaryDirectory() as folder:
        command = [tilewright, "--quiet", "--set", "measure.threads=1", "--set", "measure.mode=warm", "--db", "memory:", "tune", "--op", op, "--strategy",
                   strategy, "--trials", args.trials, "--seed", seed, "--run", folder + "/run", *args.options]
        done = subprocess.run([str(c) for c in command], text=True, capture_output=True)
        if done.returncode not in (0, 1):
            sys.exit(done.stderr)
        events = [json.loads(line) for line in pathlib.Path(folder + "/run/events.jsonl").read_text().splitlines()]
    times, best, metrics = [], math.inf, {}
    for e in events:
        if e["kind"] == "job.result" and e["stage"] == "screen" and e["settled"] and e["trial"] > 0:
            if e["status"] == "ok":
                best = min(best, e["median_ns"])
            times.append(best)
        if e["kind"] == "model.fit" and "held-out pair-accuracy" in e.get("metrics", {}):
            metrics = e["metrics"]
    return times, metrics


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", action="append")
    parser.add_argument("--trials", default=128, type=int)
    parser.add_argument("--seeds", default=3, type=int)
    parser.add_argument("--out")
    parser.add_argument("--option", dest="options", action="append", default=[], help="passed on to tilewright tune, as in --option=--no-rule=packed_tiling")
    args = parser.parse_args()
    gains, accuracy, peak = [], [], []
    for op in args.op or ["gemm:m=512,n=512,k=512", "conv2d:n=1,h=14,w=14,ci=256,co=256,kernel=3,pad=1", "gemm:m=384,n=512,k=96,layout=nt"]:
        for seed in range(1, args.seeds + 1):
            final = {}
            for strategy in ("replay_trace", "evolutionary"):
                times, metrics = best_so_far(op, strategy, seed, args)
                at = [times[min(len(times), max(1, args.trials * part // 4)) - 1] for part in (1, 2, 4)]
                final[strategy] = at[2]
                print(f"{op:52} seed {seed} {strategy:13} best after 1/4, 1/2, all: " + "  ".join(f"{t / 1e3:9.1f} us" for t in at), flush=True)
                if metrics:
                    accuracy.append(metrics["held-out pair-accuracy"])
                    peak.append(metrics["held-out peak@5"])
                if args.out:
                    with open(args.out, "a") as out:
                        out.write(json.dumps({"op": op, "seed": seed, "strategy": strategy, "best_ns": times, "metrics": metrics}) + "\n")
            gains.append(final["replay_trace"] / final["evolutionary"])
    print(f"random / model, geometric mean of {len(gains)}: {math.exp(sum(map(math.log, gains)) / len(gains)):.3f}   worst {min(gains):.3f}")
    if accuracy:
        print(f"held-out records: pair accuracy {statistics.mean(accuracy):.3f}, peak@5 {statistics.mean(peak):.3f}")


main()
