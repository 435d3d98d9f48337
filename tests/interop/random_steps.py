"""Random steps: the same program and the same call on both sides. Both refuse, or both apply and give one program; each
next step starts from there. TW_INTEROP_SEQUENCES says how many programs are walked, TW_INTEROP_SEED from which seed."""
import itertools
import os
import pickle
import random

import ours
import theirs
from tvm.s_tir import Schedule

LENGTH = 8  # steps of a walk
PROGRAMS = """
gemm:m=6,n=8,k=12
gemm:m=7,n=5,k=9
batch_gemm:b=2,m=4,n=6,k=4
mm_relu:m=8,n=12,k=6
gemm_bias_relu:m=4,n=6,k=8
conv2d:n=1,h=6,w=6,ci=4,co=6,kernel=3,pad=1
depthwise_conv2d:n=1,h=6,w=6,c=4,kernel=3,pad=1,stride=2
softmax:m=6,n=8
layernorm:m=4,n=12
reduce_sum:m=6,n=16
norm2:b=2,m=4,n=6
transpose2d:m=6,n=8
silu_mul:m=4,n=6
""".split()
# What the design lists (schedule-language.md §8, and "ours" in §3): refused here alone, by code.
STRICTER = {
    "dependence-would-break": "D13",
    "loop-drives-a-non-parallel-iter": "D15",
    "predicate-not-implied-by-domain": "D16",
    "padding-changes-the-value": "D18",
    "index-map-not-injective": "D19",
    "annotation-exists": "D20",
}


class Nothing(Exception):
    """The program has nothing that the call could name."""


class Chooser:
    """One random call, from the outline of the program as it is."""

    def __init__(self, rng, outline):
        self.rng, self.blocks = rng, outline

    def one(self, *items):
        return self.rng.choice(items)

    def flag(self):
        return self.rng.random() < 0.5

    def block(self, holds=lambda block: True):
        found = [b for b in self.blocks if holds(b)]
        if not found:
            raise Nothing
        return self.rng.choice(found)

    def handle(self, block=None):
        return f'sch.get_sblock("{(block or self.block())["name"]}")'

    def loop_of(self, block, at=None):
        at = self.rng.randrange(len(block["loops"])) if at is None else at
        return f"sch.get_loops({self.handle(block)})[{at}]"

    def loop(self):
        return self.loop_of(self.block(lambda b: b["loops"]))

    def loops(self, most):
        """Some loops of one block, nearly always next to each other and in order."""
        block = self.block(lambda b: b["loops"])
        count = self.rng.randint(1, min(most, len(block["loops"])))
        start = self.rng.randint(0, len(block["loops"]) - count)
        at = list(range(start, start + count))
        if self.rng.random() < 0.1:
            self.rng.shuffle(at)
        return block, at

    def number(self):
        return self.rng.choice((1, 2, 2, 3, 4, 4, 6, 8))

    def scope(self):
        return self.one("global", "shared", "local")

    def index_map(self, rank):
        names = [f"i{n}" for n in range(rank)]
        results = list(names)
        what = self.rng.randrange(4)
        if what == 0:
            self.rng.shuffle(results)
        elif rank:
            at = self.rng.randrange(rank)
            if what == 1:
                factor = self.number()
                results[at:at + 1] = [f"{names[at]} // {factor}", f"{names[at]} % {factor}"]
            elif what == 2 and rank > 1:
                results[:2] = [f"{names[0]} * {self.one(2, 4, 6, 8, 12)} + {names[1]}"]
        return f"lambda {', '.join(names)}: ({''.join(r + ', ' for r in results)})" if names else "lambda: ()"


def split(c):
    block = c.block(lambda b: b["loops"])
    at = c.rng.randrange(len(block["loops"]))
    extent = block["loops"][at] or 8
    if c.flag():
        inner = c.rng.choice([n for n in range(1, extent + 1) if extent % n == 0])
        factors = [extent // inner, inner]
    else:
        factors = [c.number() for _ in range(c.rng.randint(1, 3))]
    if c.flag():
        factors[c.rng.randrange(len(factors))] = None
    flags = "" if c.flag() else f", preserve_unit_iters={c.flag()}, disable_predication={c.rng.random() < 0.2}"
    return f"sch.split({c.loop_of(block, at)}, factors={factors}{flags})"


def fuse(c):
    block, at = c.loops(3)
    return f"sch.fuse({', '.join(c.loop_of(block, i) for i in at)}, preserve_unit_iters={c.flag()})"


def reorder(c):
    block = c.block(lambda b: b["loops"])
    at = c.rng.sample(range(len(block["loops"])), c.rng.randint(1, len(block["loops"])))
    return f"sch.reorder({', '.join(c.loop_of(block, i) for i in at)})"


def reorder_block_iter_var(c):
    block = c.block(lambda b: b["iters"])
    order = c.rng.sample(range(block["iters"]), block["iters"])
    return f"sch.reorder_block_iter_var({c.handle(block)}, new_order={order})"


def annotate(c):
    value = c.one("1", "2.5", '"text"', "[1, 2]", '{"k": 1}', "True")
    return f'sch.annotate({c.one(c.handle(), c.loop())}, ann_key="{c.one("pragma_unroll_explicit", "key", "other")}", ann_val={value})'


def buffer_at(c, side):
    block = c.block(lambda b: b[side])
    return block, c.rng.randrange(len(block[side]) + (c.rng.random() < 0.05))


def cache(name, side):
    def make(c):
        block, at = buffer_at(c, side)
        # A buffer that is no neighbour's may be named as consumer too.
        consumers = f", consumer_blocks=[{c.handle()}]" if c.rng.random() < 0.15 else ""
        return f'sch.{name}({c.handle(block)}, {at}, "{c.scope()}"{consumers})'
    return make


def reindex_cache(name, side):
    def make(c):
        block, at = buffer_at(c, side)
        return f'sch.{name}({c.handle(block)}, {at}, "{c.scope()}", {c.index_map(block["iters"])})'
    return make


def compute_location(name):
    def make(c):
        index = f", index={c.one(-1, -1, -2, 0, 1)}" if c.rng.random() < 0.3 else ""
        return f"sch.{name}({c.handle()}, {c.loop()}, preserve_unit_loops={c.flag()}{index})"
    return make


def transform_layout(c):
    side, key = c.one(("read", "reads"), ("write", "writes"))
    block = c.block(lambda b: b[key])
    at = c.rng.randrange(len(block[key]))
    pad = f", pad_value={c.one('0.0', 'None')}" if c.rng.random() < 0.3 else ""
    return f'sch.transform_layout({c.handle(block)}, ("{side}", {at}), {c.index_map(block[key][at])}{pad})'


def block_calls(name):
    return lambda c: f"sch.{name}({c.handle()})"


def loop_calls(name):
    return lambda c: f"sch.{name}({c.loop()})"


GENERATORS = {
    "split": split, "fuse": fuse, "reorder": reorder, "reorder_block_iter_var": reorder_block_iter_var,
    "add_unit_loop": lambda c: f"sch.add_unit_loop({c.one(c.handle(), c.loop())})",
    "parallel": loop_calls("parallel"), "vectorize": loop_calls("vectorize"), "unroll": loop_calls("unroll"),
    "bind": lambda c: f'sch.bind({c.loop()}, "{c.one("blockIdx.x", "threadIdx.x", "threadIdx.y", "vthread")}")',
    "cache_read": cache("cache_read", "reads"), "cache_write": cache("cache_write", "writes"),
    "reindex_cache_read": reindex_cache("reindex_cache_read", "reads"), "reindex_cache_write": reindex_cache("reindex_cache_write", "writes"),
    "compute_at": compute_location("compute_at"), "reverse_compute_at": compute_location("reverse_compute_at"),
    "compute_inline": block_calls("compute_inline"), "reverse_compute_inline": block_calls("reverse_compute_inline"),
    "decompose_reduction": lambda c: "sch.decompose_reduction({}, {})".format(c.handle(b := c.block(lambda b: b["loops"])), c.one(c.loop_of(b), c.loop_of(b), c.loop())),
    "rfactor": lambda c: f"sch.rfactor({c.loop()}, factor_axis={c.one(0, 0, 1, -1, 2)})",
    "blockize": lambda c: f"sch.blockize({c.loop()}, preserve_unit_iters={c.flag()})",
    "storage_align": lambda c: f"sch.storage_align({c.handle()}, 0, axis={c.one(0, -1, -2)}, factor={c.number() * 4}, offset={c.number()})",
    "set_scope": lambda c: f'sch.set_scope({c.handle()}, 0, "{c.scope()}")',
    "annotate": annotate,
    "unannotate": lambda c: f'sch.unannotate({c.one(c.handle(), c.loop())}, ann_key="{c.one("key", "other")}")',
    "transform_layout": transform_layout,
    "pad_einsum": lambda c: f"sch.pad_einsum({c.handle(b := c.block())}, padding={[c.number() for _ in range(b['iters'])]})",
}


def apply_there(mod, text):
    """The new module, or the message of the refusal."""
    schedule = Schedule(mod, error_render_level="fast")
    try:
        exec(text, {"sch": schedule})  # noqa: S102  (our own text)
    except theirs.FAILURES as failure:
        return None, (str(failure).strip() or "no message").splitlines()[-1]
    return schedule.mod, None


class Walk:
    def __init__(self, our, report, seed, start):
        self.our, self.report, self.rng, self.case = our, report, random.Random(seed), f"seed {seed}: {start[0]}"
        self.text, self.mod, self.done = start[1], start[2], []
        self.outline = our.ask("begin", program=self.text)["blocks"]

    def differ(self, step, kind, what):
        self.report.fail(kind, self.case, "\n".join([*self.done, f"→ {step}", what]))

    def step(self, name):
        """One call on both sides; a difference leaves both as they were."""
        text = GENERATORS[name](Chooser(self.rng, self.outline))
        self.report.doing(name)
        mod, why = apply_there(self.mod, text)
        try:
            mine, code = self.our.ask("step", text=text), None
        except ours.Refused as refused:
            mine, code, message = None, refused.code, str(refused)
        if mod is None and mine is None:
            return self.report.agree(f"refused: {name}")
        if mine is None:
            if code in STRICTER:
                return self.report.expect(f"{name} refused here alone: {code}, {STRICTER[code]}")
            return self.differ(text, f"{name} refused here alone: {code}", message)
        if mod is None:
            self.our.ask("undo")
            return self.differ(text, f"{name} refused there alone: {why}", mine["program"])
        difference = self.our.difference(mine["program"], mod.script())
        if difference:
            self.our.ask("undo")
            return self.differ(text, f"{name} gives another program", difference)
        self.report.agree(f"applied: {name}")
        self.mod, self.outline = mod, mine["blocks"]
        self.done.append(text)


class Relay:
    """A Report at the other end of a pipe."""

    def __init__(self, pipe):
        self.pipe = pipe

    def __getattr__(self, call):
        def send(*arguments):
            pickle.dump((call, *arguments), self.pipe)
            self.pipe.flush()
        return send


def in_a_child(report, work):
    """Runs work(report) in a child process: some calls crash TVM, which ends the walk and nothing else."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        with os.fdopen(write, "wb") as pipe:
            work(Relay(pipe))
        os._exit(0)
    os.close(write)
    doing = "nothing"
    with os.fdopen(read, "rb") as pipe:
        while True:
            try:
                call, *arguments = pickle.load(pipe)
            except EOFError:
                break
            if call == "doing":
                doing = arguments[0]
            else:
                getattr(report, call)(*arguments)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        report.expect(f"TVM ends with signal {os.WTERMSIG(status)} in {doing}")
    elif status:
        report.fail("the walk ended", doing, f"exit status {status}")


def run(our, report):
    sequences, seed = int(os.environ.get("TW_INTEROP_SEQUENCES", "150")), int(os.environ.get("TW_INTEROP_SEED", "1"))
    known = {p["name"] for p in our.tool_json("show", "primitives")["primitives"]}
    names = sorted(known & GENERATORS.keys())
    starts = [(w, text := our.ask("workload", text=w)["program"], theirs.parse(text)) for w in PROGRAMS]

    def walk_from(start, number):
        def work(relay):
            walk = Walk(our, relay, seed * 1_000_003 + number, start)
            for _ in range(LENGTH):
                if walk.outline:
                    try:
                        walk.step(walk.rng.choice(names))
                    except Nothing:
                        continue
        return work

    for number, start in zip(range(sequences), itertools.cycle(starts)):
        in_a_child(report, walk_from(start, number))
